"""The number of classes at which clusterings agree."""

import numpy as np
from blobs import blobs

from unveil.counting.agreement import prominence, weigh


def test_agreement_rises_at_the_number_that_the_data_has() -> None:
    x, _ = blobs(4, 60)
    assert weigh(x, 20, 0).quantile(0.5) == 4


def test_it_decides_between_the_numbers_around_what_known_classes_say() -> None:
    x, _ = blobs(5, 60)
    before = -np.square((np.log(np.arange(1, 21)) - np.log(4)) / 0.3) / 2
    assert np.argmax(before) + 1 == 4
    assert weigh(x, 20, 0, before=before, learned=True).likeliest == 5


def test_clusterings_that_differ_do_not_move_what_known_classes_say() -> None:
    x, _ = blobs(5, 60, apart=0.5)
    before = -np.square((np.log(np.arange(1, 21)) - np.log(4)) / 0.3) / 2
    found = weigh(x, 20, 0, before=before, learned=True)
    assert np.nanmax(found.agreement) < 0.95
    np.testing.assert_allclose(np.diff(found.log_probability + np.log(found.numbers)), np.diff(before))


def test_a_rise_counts_beside_fewer_and_more_clusters() -> None:
    tried, agreement = np.array([2, 3, 4, 5, 6, 7, 8]), np.array([0.5, 0.5, 0.5, 0.9, 0.5, 0.5, 0.5])
    rise = prominence(tried, agreement, np.arange(1, 12))
    assert rise.argmax() + 1 == 5
    assert rise[0] == 0
    assert (rise[8:] == 0).all()
