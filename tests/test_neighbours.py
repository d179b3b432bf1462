"""Among which known class an item lies."""

import numpy as np
from test_cluster import blobs

from unveil.neighbours import among_known


def test_items_of_known_classes_lie_among_them_and_others_do_not() -> None:
    x, y = blobs(5, 100)
    labelled = (y < 3) & (np.arange(len(y)) % 2 == 0)
    truth = y[~labelled]
    found = among_known(x[labelled], y[labelled], x[~labelled], 0)
    assert len(found.labelled) == len(found.unlabelled) == labelled.sum()  # as many of each
    known = truth[found.unlabelled] < 3
    assert found.share[known].mean() > 0.4
    assert found.share[~known].max() == 0
    assert found.own.mean() > 0.4
    assert found.other.max() == 0
