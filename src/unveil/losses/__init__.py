"""The equations of the paper as pure functions of tensors: no state, no settings, no files.

Features need not be normalized: the losses do it. Second views and queues are constants to the gradient.
"""

from unveil.losses.contrastive import neighborhood_contrastive, supervised_contrastive
from unveil.losses.mixing import hard_negatives
from unveil.losses.pairs import calibrated_threshold, cosine_pairs, nearest_pairs, ranking_pairs
from unveil.losses.predictions import consistency, pairwise_bce, pairwise_kl, sigmoid_rampup
from unveil.losses.transport import sinkhorn, swapped_prediction
from unveil.losses.within_batch import batch_contrastive, mean_entropy

__all__ = [
    "batch_contrastive",
    "calibrated_threshold",
    "consistency",
    "cosine_pairs",
    "hard_negatives",
    "mean_entropy",
    "nearest_pairs",
    "neighborhood_contrastive",
    "pairwise_bce",
    "pairwise_kl",
    "ranking_pairs",
    "sigmoid_rampup",
    "sinkhorn",
    "supervised_contrastive",
    "swapped_prediction",
]
