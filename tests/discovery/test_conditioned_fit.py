"""A fit survives numbers that have nothing to do with its classes."""

from typing import Any

import numpy as np
import pytest
from blobs import blobs
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from unveil import NovelClassDiscovery

X, Y = blobs(6, 30)
GIVEN = np.where(Y < 4, Y, -1)


def broken(how: str) -> NDArray[Any]:
    x = X.astype(np.float64)
    match how:
        case "large row":
            x[3] *= 1000
        case "marks":
            x[np.random.default_rng(0).random(x.shape) < 0.01] = -999
        case "offset":
            x += 1e8
        case "tiny":
            x *= 1e-12
    return x


@pytest.mark.filterwarnings("ignore:.*(larger than all others|marks for missing)")
@pytest.mark.parametrize("how", ["nothing", "large row", "marks", "offset", "tiny"])
def test_the_classes_are_found_all_the_same(how: str) -> None:
    x = broken(how)
    model = NovelClassDiscovery(n_novel=2, random_state=0).fit(x, GIVEN)
    new = GIVEN == -1
    assert adjusted_rand_score(Y[new], model.labels_[new]) > 0.95
    predicted = model.predict(x)
    assert adjusted_rand_score(Y[new], predicted[new]) > 0.95
