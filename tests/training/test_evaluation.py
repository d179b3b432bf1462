"""Warnings say what looks wrong and what to try that is not set already."""

import numpy as np
import pytest
import torch

from unveil import settings
from unveil.methods.baseline import Baseline, BaselineSettings, Pairs
from unveil.methods.method import Context
from unveil.models import build_encoder
from unveil.models.heads import linear_head
from unveil.models.model import Model
from unveil.settings import Discovery
from unveil.training.evaluation import warnings


def baseline(pairs: Pairs = "cosine") -> Baseline:
    draw = torch.Generator().manual_seed(0)
    encoder = build_encoder(settings.Encoder(name="mlp", width=4), (3,), draw)
    model = Model(encoder, linear_head(4, 2, draw), linear_head(4, 5, draw), torch.float32)
    labels = np.zeros(0, dtype=np.int64)
    config = BaselineSettings(pairs=pairs)
    return Baseline(model, Context(settings=config, seed=0, labels=labels, features=lambda rows: torch.zeros(0, 4)))


FINE = {"clusters_used": 5, "mean_cosine": 0.3, "pair_density": 0.1}


@pytest.mark.parametrize(
    ("wrong", "name"),
    [({"clusters_used": 3}, "dead clusters"), ({"mean_cosine": 0.99}, "collapsed"), ({"pair_density": 0.0}, "no pos")],
)
def test_each_fault_has_its_warning(wrong: dict[str, float], name: str) -> None:
    assert warnings(FINE, 5, Discovery(), baseline()) == []
    (told,) = warnings({**FINE, **wrong}, 5, Discovery(), baseline())
    assert told.startswith(name)


def test_nothing_is_advised_that_is_set_already() -> None:
    bad = {**FINE, "clusters_used": 3, "pair_density": 0.0}
    both = " ".join(warnings(bad, 5, Discovery(), baseline()))
    assert "novel_head=kmeans" in both
    assert "pairs=rank" in both
    told = " ".join(warnings(bad, 5, Discovery(novel_head="kmeans"), baseline("rank")))
    assert "novel_head" not in told
    assert "pairs=rank" not in told
    assert "discovery.batch=256" in told
