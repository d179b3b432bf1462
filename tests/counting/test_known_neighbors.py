"""Among which known class an item lies."""

import numpy as np
from blobs import blobs

from unveil.counting.known_neighbors import among_known, recognize, warn_of_known_classes
from unveil.data.items import Items
from unveil.data.task import Task


def test_items_of_known_classes_lie_among_them_and_others_do_not() -> None:
    x, y = blobs(5, 100)
    labeled = (y < 3) & (np.arange(len(y)) % 2 == 0)
    truth = y[~labeled]
    found = among_known(x[labeled], y[labeled], x[~labeled], 0)
    assert sorted(found.unlabeled) == list(range(len(truth)))  # all of them, however few labels there are
    known = truth[found.unlabeled] < 3
    np.testing.assert_array_equal(found.label[known], truth[found.unlabeled][known])
    assert (found.known == known).mean() > 0.98
    assert found.share[known].mean() > 0.4
    assert found.share[~known].max() < 0.3
    assert found.own.mean() > 0.4
    assert found.other.max() < 0.3


def test_nothing_is_recognized_where_it_cannot_be() -> None:
    x, y = blobs(4, 100)
    labeled = (y < 3) & (np.arange(len(y)) % 2 == 0)
    few = labeled & (np.arange(len(y)) % 4 == 0)
    assert recognize(x[few], y[few], x[~few], 0) is None  # 25 of each class
    known = ~labeled & (y < 3)
    assert recognize(x[labeled], y[labeled], x[known], 0) is None  # nothing is left
    assert recognize(x[labeled], y[labeled], x[~labeled], 0) is not None


def test_a_warning_where_unlabeled_items_lie_deep_in_a_known_class() -> None:
    x, y = blobs(5, 100)

    def warnings(labels: np.ndarray) -> list[str]:
        task = Task(name="blobs", items=Items.of(x), labels=labels, known=(0, 1, 2), n_novel=2)
        return warn_of_known_classes(task, x, 0)

    assert warnings(np.where(y < 3, y, -1)) == []
    (warning,) = warnings(np.where((y < 3) & (np.arange(len(y)) % 2 == 0), y, -1))
    assert "use known_in_unlabeled=True (--known-in-unlabeled)" in warning
