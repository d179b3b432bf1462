"""What people hand to the estimator: texts, data frames, odd parameters; and what it hands back."""

import logging
import pathlib
from collections import UserList
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from blobs import blobs
from numpy.typing import NDArray

from unveil import NovelClassDiscovery
from unveil.errors import UnveilError
from unveil.metrics import clustering_accuracy
from unveil.runs.reader import load

X, Y = blobs(5, 40)
GIVEN = np.where(Y < 3, Y, -1)


def quick(**options: object) -> NovelClassDiscovery:
    return NovelClassDiscovery(**{"n_novel": 2, "rehearsals": 0, "random_state": 0, **options})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def frame() -> tuple[pd.DataFrame, NDArray[np.int64], NovelClassDiscovery]:
    """A frame with names for its columns and rows, and a fit on it."""
    named = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])], index=[f"item {i}" for i in range(len(X))])
    return named, Y, quick().fit(named, GIVEN)


def test_column_names_survive_save_and_load(frame, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    named, _, found = frame
    found.save(tmp_path / "run", named)
    again = NovelClassDiscovery.load(tmp_path / "run")
    np.testing.assert_array_equal(again.feature_names_in_, named.columns)
    np.testing.assert_array_equal(again.predict(named), found.predict(named))
    for estimator in (found, again):
        with pytest.raises(ValueError, match="order"):
            estimator.predict(named[named.columns[::-1]])
    assert load(tmp_path / "run").ids[:2] == ("item 0", "item 1")  # the index names the rows


def test_features_have_names_and_come_as_a_frame(frame) -> None:  # type: ignore[no-untyped-def]
    named, _, found = frame
    names = found.get_feature_names_out()
    assert names[0] == "novelclassdiscovery0"
    found.set_output(transform="pandas")
    transformed = found.transform(named)
    found.set_output(transform="default")
    assert list(transformed.columns) == list(names)
    assert list(transformed.index) == list(named.index)


def test_classes_as_a_frame(frame) -> None:  # type: ignore[no-untyped-def]
    _, _, found = frame
    info = found.get_class_info()
    assert list(info.columns) == ["label", "kind", "size", "confidence", "representatives"]
    assert info["size"].sum() == len(X)
    assert info.set_index("label").loc[4, "kind"] == "novel"


def test_items_that_arrive_later_are_placed_or_set_aside() -> None:
    known, classes = blobs(7, 40)
    seen, strange = classes < 5, known[classes == 6]
    found = quick().fit(known[seen], np.where(classes[seen] < 3, classes[seen], -1))
    update = found.partial_update(known[seen][::4])
    assert clustering_accuracy(classes[seen][::4], update.labels) > 0.9
    few = found.partial_update(strange[:20])
    assert (few.labels == -1).mean() > 0.9
    assert set(few.kinds) <= {"neither", "novel", "known"}
    assert few.set_aside >= update.set_aside + 18
    assert 15 <= few.largest_group < few.needed == 40
    assert "40 would make a new class" in few.sentence()
    assert not few.enough
    many = found.partial_update(np.concatenate([strange[20:], strange]))
    assert many.enough
    assert "fit again with all items" in many.sentence()


def test_texts_are_a_list_of_strings() -> None:
    words = ["bill pay due money", "flight hotel trip rome", "song music play album", "rain cloud storm sun"]
    draw = np.random.default_rng(0)
    kinds = np.repeat(np.arange(4), 30)
    texts = [" ".join(draw.permutation(words[kind].split())[:3]) for kind in kinds]
    for given in (texts, np.array(texts), pd.Series(texts)):
        found = quick(encoder="tfidf").fit(given, np.where(kinds < 2, kinds, -1))
        assert clustering_accuracy(kinds, found.labels_) > 0.95
    assert found.predict(["a trip to rome by flight"])[0] == 1
    with pytest.raises(UnveilError, match=r"the fit was on texts, and X holds vectors"):
        found.predict(X)


def test_texts_are_saved_with_the_run(tmp_path: Path) -> None:
    texts = [f"{word} {word} {i % 3}" for word in ("red", "blue", "green", "black") for i in range(10)]
    labels = ["red"] * 10 + ["blue"] * 10 + [None] * 20
    found = quick(encoder="tfidf").fit(texts, labels)
    found.save(tmp_path / "run", texts)
    assert load(tmp_path / "run").texts == tuple(texts)
    again = NovelClassDiscovery.load(tmp_path / "run")
    assert again.predict(["blue blue 1"])[0] == "blue"


def test_mixed_frames_are_encoded() -> None:
    draw = np.random.default_rng(0)
    kind = np.repeat(np.arange(4), 30)
    mixed = pd.DataFrame(
        {
            "nr": np.arange(120),
            "color": np.array(["red", "blue"])[kind % 2],
            "size": np.where(kind < 2, 0, 30) + draw.normal(size=120),
            "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(60 * (kind % 2) + draw.integers(0, 3, 120), unit="D"),
        }
    )
    mixed.loc[5, "size"] = np.nan
    with pytest.warns(UserWarning, match="left out: nr|missing value of size"):
        found = quick().fit(mixed, np.where(kind < 2, kind, -1))
    assert clustering_accuracy(kind, found.labels_) > 0.95
    assert list(found.feature_names_in_) == ["color", "size", "seen"]
    shuffled = mixed[["seen", "size", "color"]]  # columns are taken by their names
    np.testing.assert_array_equal(found.predict(shuffled), found.predict(mixed))
    with pytest.raises(UnveilError, match="X lacks the column 'color'"):
        found.predict(mixed[["size", "seen"]])


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT, "", -1], ids=repr)
def test_every_sign_of_a_missing_label(missing: object) -> None:
    names = [f"class {label}" if label < 3 else missing for label in Y]
    for labels in (names, pd.Series(names, dtype=object), np.array(names, dtype=object)):
        found = quick().fit(X, labels)
        assert [str(name) for name in found.classes_] == ["class 0", "class 1", "class 2", "novel-0", "novel-1"]


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    found = quick(n_novel=np.int64(2), rehearsals=np.int32(0), random_state=np.int64(3)).fit(X, GIVEN)
    found.save(tmp_path / "run")
    assert NovelClassDiscovery.load(tmp_path / "run").get_params()["n_novel"] == 2


def test_a_fit_says_nothing_unless_asked(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    quick().fit(X, GIVEN)
    assert capfd.readouterr() == ("", "")
    with caplog.at_level(logging.INFO, logger="unveil"):
        quick().fit(X, GIVEN)
    assert any("clusterings, weighed by" in message for message in caplog.messages)
    assert capfd.readouterr() == ("", "")
    quick(verbose=True).fit(X, GIVEN)
    assert "clusterings, weighed by" in capfd.readouterr().err


def test_paths_are_not_taken_for_sentences(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match=r"2 of 2 image files do not exist, the first is a.png"):
        quick().fit(["a.png", "b.jpg"], [0, -1])
    with pytest.raises(UnveilError, match="image files do not exist"):
        quick().fit([pathlib.Path("a"), pathlib.Path("b")], [0, -1])


class ClassLabel:
    """Of the same name as the feature type of `datasets`."""


class Picture:
    """Stands for any other feature type."""


Picture.__name__ = "Image"


class SavedDataset:
    """What the estimator asks of a `datasets.Dataset`."""

    def __init__(self, **columns: list[object]) -> None:
        self.frame = pd.DataFrame(columns)
        self.features: dict[str, object] = dict.fromkeys(columns, "value")
        self.column_names = list(columns)

    def to_pandas(self) -> pd.DataFrame:
        return self.frame


def test_a_data_set_of_datasets_goes_in_as_it_is() -> None:
    given = SavedDataset(embedding=[row.tolist() for row in X], label=Y.tolist())
    given.features["label"] = ClassLabel()
    with pytest.warns(UserWarning, match=r"left out: label \(class labels\)"):
        found = quick().fit(given, GIVEN)
    assert clustering_accuracy(Y, found.labels_) > 0.95
    np.testing.assert_array_equal(found.predict(given), found.labels_)
    given.features["label"] = Picture()
    with pytest.raises(UnveilError, match="'label' of X holds image data: give images as an array"):
        quick().fit(given, GIVEN)


def test_a_column_that_is_a_sequence_of_its_own_is_a_list() -> None:
    class Column(UserList[str]):
        """`datasets` hands out columns as sequences that are no lists."""

    texts = Column(["my card", "a card", "rain today", "sun today"] * 10)
    found = quick(encoder="tfidf", n_novel=1).fit(texts, ["card", "card", "", ""] * 10)
    assert found.classes_.tolist() == ["card", "novel-0"]
