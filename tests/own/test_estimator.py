"""The estimator as users of scikit-learn meet it."""

import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from unveil import NovelClassDiscovery
from unveil.errors import UnveilError
from unveil.metrics import clustering_accuracy


def blobs(
    classes: int, each: int = 40, dims: int = 8, seed: int = 0, apart: float = 5.0
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    draw = np.random.default_rng(seed)
    centers = draw.normal(size=(classes, dims)) * apart
    y = np.repeat(np.arange(classes), each)
    return (centers[y] + draw.normal(size=(len(y), dims))).astype(np.float32), y


def quick(**options: object) -> NovelClassDiscovery:
    return NovelClassDiscovery(**{"n_novel": 3, "steps": 20, "rehearsals": 0, "random_state": 0, **options})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def digits() -> tuple[NDArray[np.float64], NDArray[np.int64], NovelClassDiscovery]:
    X, y = load_digits(return_X_y=True)
    fitted = NovelClassDiscovery(n_novel=5, steps=120, rehearsals=1, random_state=0)
    return X, y, fitted.fit(X, np.where(y < 5, y, -1))


@parametrize_with_checks([NovelClassDiscovery(random_state=0, steps=30)])
def test_scikit_learn_checks(estimator: NovelClassDiscovery, check) -> None:  # type: ignore[no-untyped-def]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the checks label every row
        check(estimator)


def test_novel_digits_are_found(digits) -> None:  # type: ignore[no-untyped-def]
    _, y, found = digits
    novel = y >= 5
    assert clustering_accuracy(y[novel], found.labels_[novel]) > 0.8
    np.testing.assert_array_equal(found.labels_[~novel], y[~novel])
    assert set(found.novel_clusters_.tolist()) == {5, 6, 7, 8, 9}
    assert set(found.labels_[novel].tolist()) <= set(found.novel_clusters_.tolist())
    assert found.classes_.tolist() == list(range(10))
    assert (found.confidence_[~novel] == 1).all()
    assert 0 < found.confidence_[novel].mean() <= 1


def test_new_items_are_told_apart(digits) -> None:  # type: ignore[no-untyped-def]
    X, y, found = digits
    p = found.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-4)
    predicted = found.predict(X)
    np.testing.assert_array_equal(predicted, found.classes_[p.argmax(axis=1)])
    known = y < 5
    assert (predicted[known] == y[known]).mean() > 0.9
    assert (predicted[~known] >= 5).mean() > 0.9
    assert found.score(X, y) > 0.8
    assert found.transform(X).shape == (len(X), 64)


def test_what_is_like_nothing_seen_is_neither(digits) -> None:  # type: ignore[no-untyped-def]
    X, _, found = digits
    strange = np.random.default_rng(0).uniform(0, 16, size=(50, 64))
    assert (found.predict(strange, coverage=0.95) == -1).mean() > 0.9
    assert 0.01 < (found.predict(X, coverage=0.9) == -1).mean() < 0.2
    assert (found.predict(X, coverage=1.0) != -1).all()
    with pytest.raises(UnveilError, match="coverage is 2"):
        found.predict(X, coverage=2)


def test_information_about_classes(digits) -> None:  # type: ignore[no-untyped-def]
    X, _, found = digits
    rows = found.get_class_info().to_dict("records")
    assert [row["kind"] for row in rows] == ["known"] * 5 + ["novel"] * 5
    assert sum(row["size"] for row in rows) == len(X)
    best = found.representatives(7, 4)
    assert len(best) == 4
    assert (found.labels_[best] == 7).all()
    assert found.typicality_[best[0]] == found.typicality_[found.labels_ == 7].max()
    with pytest.raises(UnveilError, match="no class 77"):
        found.representatives(77)
    told = found.estimate_accuracy()
    assert 0 < told["low"] < told["accuracy"] < told["high"] <= 1
    assert "correct; could be" in told["sentence"]


def test_saved_and_loaded(digits, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    X, _, found = digits
    found.save(tmp_path / "run")
    again = NovelClassDiscovery.load(tmp_path / "run")
    np.testing.assert_array_equal(again.labels_, found.labels_)
    np.testing.assert_array_equal(again.predict(X, coverage=0.9), found.predict(X, coverage=0.9))
    np.testing.assert_allclose(again.predict_proba(X), found.predict_proba(X), atol=1e-5)  # sums in another order
    np.testing.assert_array_equal(again.representatives(7), found.representatives(7))
    assert again.forecast_ == found.forecast_
    assert again.get_params()["n_novel"] == 5
    with pytest.raises(UnveilError, match="no finished discovery"):
        NovelClassDiscovery.load(tmp_path)


def test_pickles_and_clones(digits) -> None:  # type: ignore[no-untyped-def]
    X, _, found = digits
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.predict(X), found.predict(X))
    assert clone(found).get_params() == found.get_params()


def test_equal_seeds_give_equal_results() -> None:
    x, y = blobs(6)
    given = np.where(y < 3, y, -1)
    first, second = (quick().fit(x, given) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    np.testing.assert_array_equal(first.confidence_, second.confidence_)


def test_text_labels_and_missing_ones_in_every_form() -> None:
    x, y = blobs(6)
    names = np.array(["ant", "bee", "cat", None, "-1", float("nan")], dtype=object)[y]
    found = quick().fit(x, names)
    assert set(found.labels_[y < 3]) == {"ant", "bee", "cat"}
    assert found.novel_clusters_.tolist() == ["novel-0", "novel-1", "novel-2"]
    assert clustering_accuracy(y[y >= 3], found.labels_[y >= 3].astype(str)) > 0.95
    assert set(found.predict(x, coverage=0.5)) >= {"neither"}


def test_a_known_class_may_be_called_novel() -> None:
    x, y = blobs(6)
    names = np.array(["novel-0", "novel-1", "c", None, None, None], dtype=object)[y]
    found = quick().fit(x, names)
    assert found.novel_clusters_.tolist() == ["new-0", "new-1", "new-2"]
    assert len(set(found.classes_.tolist())) == 6


def test_pandas_frames_and_pipelines() -> None:
    pd = pytest.importorskip("pandas")
    x, y = blobs(6)
    frame = pd.DataFrame(x, columns=[f"c{i}" for i in range(8)])
    labels = pd.Series(y).map({0: "a", 1: "b", 2: "c"})  # the others are NaN
    found = quick().fit(frame, labels)
    assert list(found.feature_names_in_) == list(frame.columns)
    assert clustering_accuracy(y, found.labels_.astype(str)) > 0.95
    piped = make_pipeline(StandardScaler(), quick()).fit(x, np.where(y < 3, y, -1))
    assert (piped.predict(x[y < 3]) == y[y < 3]).mean() > 0.9


def test_the_number_of_classes_is_estimated() -> None:
    x, y = blobs(9, dims=24)
    found = quick(n_novel="auto").fit(x, np.where(y < 5, y, -1))
    assert found.n_novel_ == 4
    assert "about 4 novel classes" in found.classes_estimate_.sentence()


def test_views_that_come_with_the_items() -> None:
    x, y = blobs(6)
    views = np.stack([x, x + 0.3 * np.random.default_rng(0).normal(size=x.shape), x * 1.1], axis=1)
    found = quick().fit(views, np.where(y < 3, y, -1))
    assert clustering_accuracy(y, found.labels_) > 0.95
    np.testing.assert_array_equal(found.predict(views), found.predict(x))  # the first view counts
    np.testing.assert_array_equal(quick().fit(views[:, :1], np.where(y < 3, y, -1)).labels_.shape, y.shape)


def test_memory_mapped_vectors(tmp_path: Path) -> None:
    x, y = blobs(6, each=100)
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    given = np.where(y < 3, y, -1)
    found = quick().fit(mapped, given)
    np.testing.assert_array_equal(found.labels_, quick().fit(x, given).labels_)
    np.testing.assert_array_equal(found.predict(mapped), found.predict(x))
    with pytest.raises(UnveilError, match="8 features"):
        quick().fit(x[:, :4], given).predict(mapped)
    x[500, 3] = np.nan
    np.save(tmp_path / "bad.npy", x)
    with pytest.raises(UnveilError, match="NaN"):
        quick().fit(np.load(tmp_path / "bad.npy", mmap_mode="r"), given)


def test_only_some_rows_are_trained_on_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    from unveil.discovery import vectors

    monkeypatch.setattr(vectors, "MOST_ROWS", 120)
    monkeypatch.setattr(vectors, "PER_CLASS", 10)
    x, y = blobs(6, each=200)
    found = quick().fit(x, np.where(y < 3, y, -1))
    assert clustering_accuracy(y, found.labels_) > 0.95
    assert len(found.labels_) == 1200


def test_known_classes_among_the_unlabeled() -> None:
    x, y = blobs(6, each=60)
    given = np.where((y < 3) & (np.arange(len(y)) % 2 == 0), y, -1)
    found = quick(known_in_unlabeled=True).fit(x, given)
    hidden_known = (given == -1) & (y < 3)
    assert (found.labels_[hidden_known] == y[hidden_known]).mean() > 0.95
    assert clustering_accuracy(y, found.labels_) > 0.95
    assert found.n_novel_ == 3
    assert (found.predict(x) == found.labels_).mean() > 0.95
    counted = quick(n_novel="auto", known_in_unlabeled=True).fit(x, given)
    assert counted.n_novel_ == 3


def test_warns_where_known_classes_seem_to_be_among_the_unlabeled() -> None:
    x, y = blobs(6, each=60)
    with pytest.warns(UserWarning, match="seems to contain known classes"):
        quick().fit(x, np.where((y < 3) & (np.arange(len(y)) % 2 == 0), y, -1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick().fit(x, np.where(y < 3, y, -1))


def test_images_by_their_pixels() -> None:
    X, y = load_digits(return_X_y=True)
    images = (X.reshape(-1, 8, 8) * 15).astype(np.uint8)
    found = NovelClassDiscovery(n_novel=5, encoder="pixels", steps=60, rehearsals=0, random_state=0)
    found.fit(images, np.where(y < 5, y, -1))
    assert clustering_accuracy(y, found.labels_) > 0.8
    assert found.predict(images[:3]).shape == (3,)
    x, labels = blobs(6)
    with pytest.raises(UnveilError, match="give their vectors"):
        quick().fit(x, np.where(labels < 3, labels, -1)).predict(images)


BAD_Y = np.array([0, 1] * 10)


@pytest.mark.parametrize(
    ("x", "y", "options", "message"),
    [
        (np.full((20, 4), np.nan), BAD_Y, {}, "NaN"),
        (np.ones((20, 4)), BAD_Y[:10], {}, "20 items and y has 10 labels"),
        (np.ones((20, 4)), np.where(BAD_Y, 0, -1), {"n_novel": 11}, "11 novel classes in 10 unlabeled items"),
        (np.ones((20, 4)), np.where(BAD_Y, 0, -1), {"n_novel": 0}, "give a whole number of 1 or more"),
        (np.ones((20, 4)), np.where(BAD_Y, 0, -1), {"n_novel": "many"}, "give a whole number"),
        (np.ones((20, 4)), np.where(BAD_Y, 0, -1), {"method": "nlc-hng"}, "ncl-hng"),
        (np.ones((20, 4)), np.linspace(0, 1, 20), {}, "fractional"),
        (np.ones((20, 4)), np.zeros((20, 2)), {}, "one label for each item"),
        (["/nowhere/a.png"] * 20, BAD_Y, {}, "do not exist"),
        (np.ones((20, 8, 8), dtype=np.uint8), BAD_Y, {"encoder": "best"}, "the encoder is 'best'"),
        (np.full((20, 4), 1e300), BAD_Y, {}, "too large"),
    ],
)
def test_bad_input_says_what_to_do(x: object, y: object, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quick(**options).fit(x, y)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("n_novel", ["auto", 1])
def test_odd_input_has_a_result(n_novel: object) -> None:
    x, y = blobs(4, each=30)
    given = np.where(y < 3, y, -1)
    found = quick(n_novel=n_novel).fit(x, given)  # one novel class
    assert found.n_novel_ >= 1
    assert (found.labels_[y == 3] >= 3).all()
    one = given.copy()
    one[(y == 2) & (np.cumsum(y == 2) > 1)] = -1  # a known class with one item
    assert quick(n_novel=n_novel).fit(x, one).labels_[60] == 2
    constant = quick(n_novel=n_novel).fit(np.ones_like(x), given)
    assert len(constant.labels_) == len(x)
    assert np.isfinite(constant.confidence_).all()
    copies = quick(n_novel=n_novel).fit(np.repeat(x[::30], 30, axis=0), given)  # four vectors, 30 times each
    assert len(np.unique(copies.labels_[y == 3])) == 1
    three = quick(n_novel=n_novel).fit(x[[0, 30, 119]], [0, 1, -1])
    assert three.labels_.tolist() == [0, 1, 2]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_no_or_all_rows_unlabeled() -> None:
    x, y = blobs(3, dims=20)
    alone = quick(n_novel="auto").fit(x)
    assert alone.n_novel_ == 3
    assert clustering_accuracy(y, alone.labels_) == 1.0
    assert clustering_accuracy(y, alone.predict(x)) == 1.0
    with pytest.warns(UserWarning, match="nothing to discover"):
        known = quick().fit(x, y)
    assert known.n_novel_ == 0
    np.testing.assert_array_equal(known.labels_, y)
    assert (known.predict(x) == y).mean() > 0.9


AUDITED = """
import os, sys
sys.dont_write_bytecode = True
import numpy as np
import torch._dynamo  # PyTorch makes a cache directory of its own when this is first imported
from unveil import NovelClassDiscovery

forbidden = []
STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system", "os.spawn")
CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "tempfile.mkstemp")

def watch(event, args):
    if event in STARTS or event in CHANGES:
        forbidden.append((event, args))
    if event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        if not str(args[0]).startswith("/dev/"):
            forbidden.append((event, args))

sys.addaudithook(watch)
draw, y = np.random.default_rng(0), np.repeat(np.arange(8), 15)
x = (draw.normal(size=(8, 20))[y] * 6 + draw.normal(size=(120, 20))).astype(np.float32)
given = np.where(y < 5, y, -1)
NovelClassDiscovery(n_novel="auto", steps=5, rehearsals=1, random_state=0, device="cpu").fit(x, given).predict(x)
images = draw.integers(0, 256, (120, 8, 8, 3), dtype=np.uint8)
by_pixels = NovelClassDiscovery(n_novel=3, encoder="pixels", steps=5, rehearsals=0, random_state=0, device="cpu")
by_pixels.fit(images, given).predict(images)
by_recipe = NovelClassDiscovery(n_novel=3, recipe=sys.argv[1], rehearsals=0, random_state=0, device="cpu")
by_recipe.fit(images, given).predict(images)
assert not forbidden, forbidden
open(sys.argv[2], "w").close()
assert forbidden  # the watch works
"""


def test_a_fit_writes_nothing_and_starts_no_process(tmp_path: Path) -> None:
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(
        'extends = "images"\n[encoder]\nwidth = 8\n[rotation]\nepochs = 1\nwarmup = 0\n[discovery]\nepochs = 1\n'
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HOME": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", AUDITED, str(recipe), str(tmp_path / "written")],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        timeout=280,
    )
    assert result.returncode == 0, result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny.toml", "written"]
