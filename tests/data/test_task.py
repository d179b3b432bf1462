"""Splitting a data set into known and novel classes."""

from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unveil.data.dataset import Dataset, Split
from unveil.data.items import Items
from unveil.data.task import Task, Truth, imbalanced, make_task
from unveil.errors import UnveilError
from unveil.settings import Data

CLASSES = ("ant", "bee", "cat", "dog", "eel")


def split(labels: list[int], prefix: str = "") -> Split:
    """An item's value is its row, its id names row and class."""
    items = np.arange(len(labels), dtype=np.float32)[:, None]
    ids = tuple(f"{prefix}{row}-{label}" for row, label in enumerate(labels))
    return Split(items=Items.of(items), labels=np.array(labels), ids=ids)


TRAIN = [4, 0, 1, 2, 3, 4, 0, 0, 2, 3, 1, 4]


def dataset(classes: tuple[str, ...] = CLASSES, train: list[int] = TRAIN, test: list[int] | None = None) -> Dataset:
    return Dataset(
        name="zoo", classes=classes, train=split(train), test=None if test is None else split(test, prefix="t")
    )


def make(data: Dataset | None = None, **options: Any) -> tuple[Task, Truth]:
    return make_task(data or dataset(), Data(name="zoo", **options))


@pytest.mark.parametrize(
    ("options", "known", "novel"),
    [
        ({"known": 2}, ("ant", "bee"), ("cat", "dog", "eel")),
        ({"known": 2, "novel": 2}, ("ant", "bee"), ("cat", "dog")),
        ({"known": ("dog", "ant")}, ("dog", "ant"), ("bee", "cat", "eel")),
        ({"known": ("dog", "ant"), "novel": ("eel",)}, ("dog", "ant"), ("eel",)),
        ({"known": 1, "novel": ("eel", "bee")}, ("ant",), ("eel", "bee")),
        ({"known": "list.txt"}, ("cat", "bee"), ("ant", "dog", "eel")),
        ({"known": "not list.txt"}, ("ant", "dog", "eel"), ("bee", "cat")),
        ({"known": "not list.txt", "novel": "list.txt"}, ("ant", "dog", "eel"), ("cat", "bee")),
        ({"known": ("ant",), "novel": "not list.txt"}, ("ant",), ("dog", "eel")),
    ],
    ids=str,
)
def test_forms_of_a_choice(
    options: dict[str, Any],
    known: tuple[str, ...],
    novel: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("list.txt").write_text("cat\n\n  bee \n")
    task, truth = make(**options)
    assert (task.known, truth.novel) == (known, novel)
    assert task.n_novel == len(novel)


@pytest.mark.parametrize("name", ["imagenet-novel-118", "imagenet-novel-30-A"])
def test_lists_that_come_with_unveil(name: str) -> None:
    listed = tuple((resources.files("unveil.data") / "splits" / f"{name}.txt").read_text().split())
    classes = (*sorted(listed), "other")
    data = dataset(classes, list(range(len(classes))))
    task, truth = make(data, known=f"not package:{name}")
    assert (task.known, set(truth.novel)) == (("other",), set(listed))
    task, truth = make(data, known=f"package:{name}")
    assert (task.known, truth.novel) == (listed, ("other",))


def test_lists_of_imagenet_fit_together() -> None:
    folder = resources.files("unveil.data") / "splits"
    lists = {name: set((folder / f"imagenet-{name}.txt").read_text().split()) for name in ("known-882", "novel-118")}
    assert not lists["known-882"] & lists["novel-118"]
    assert len(lists["known-882"] | lists["novel-118"]) == 1000
    for letter in "ABC":
        part = set((folder / f"imagenet-novel-30-{letter}.txt").read_text().split())
        assert len(part) == 30
        assert part <= lists["novel-118"]


@given(
    train=st.lists(st.integers(0, 4), min_size=1, max_size=40).map(lambda extra: [*range(5), *extra]),
    test=st.one_of(st.none(), st.lists(st.integers(0, 4), max_size=20)),
    order=st.permutations(CLASSES),
    known=st.integers(1, 3),
    novel=st.integers(1, 2),
    per_class=st.one_of(st.none(), st.integers(1, 3)),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_labels_and_truth_belong_to_their_items(
    train: list[int], test: list[int] | None, order: list[str], known: int, novel: int, per_class: int | None
) -> None:
    data = dataset(train=train, test=test)
    names = {"known": tuple(order[:known]), "novel": tuple(order[known : known + novel])}
    task, truth = make(data, per_class=per_class, **names)
    assert not set(task.known) & set(truth.novel)
    assert task.ids is not None
    assert sorted([*task.labeled, *task.unlabeled]) == list(range(len(task.ids)))
    assert len(task.labeled) + len(task.unlabeled) == len(task.labels) == len(task.items)
    origin = [int(name.split("-")[0]) for name in task.ids]
    assert origin == sorted(set(origin))  # in file order, each once
    assert task.items.array[:, 0].tolist() == origin

    def true_name(row: int) -> str:
        return CLASSES[train[origin[row]]]

    assert [true_name(row) for row in task.labeled] == [task.known[task.labels[row]] for row in task.labeled]
    assert [true_name(row) for row in task.unlabeled] == [truth.novel[label] for label in truth.unlabeled]
    kept = [CLASSES[train[row]] for row in origin]
    for index, name in enumerate(CLASSES):
        chosen = name in (*task.known, *truth.novel)
        assert kept.count(name) == (min(train.count(index), per_class or 99) if chosen else 0)
    if test is None:
        assert task.test_items is None
        assert len(truth.test) == len(task.test_ids) == 0
    else:
        both = (*task.known, *truth.novel)
        expected = [CLASSES[label] for label in test if CLASSES[label] in both]
        assert [both[label] for label in truth.test] == expected
        assert [CLASSES[int(name.split("-")[1])] for name in task.test_ids] == expected


def test_per_class_keeps_the_first_of_each() -> None:
    task, _ = make(known=2, per_class=1)
    assert task.ids == ("0-4", "1-0", "2-1", "3-2", "4-3")


def test_files_are_split_too() -> None:
    files = tuple(Path(f"{row}.png") for row in range(len(TRAIN)))
    train = Split(items=Items.of(files), labels=np.array(TRAIN), ids=tuple(map(str, files)))
    task, _ = make(Dataset(name="zoo", classes=CLASSES, train=train), known=1, novel=1)
    assert task.items.kind == "files"
    assert task.items.paths == tuple(files[row] for row in (1, 2, 6, 7, 10))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"known": 0}, "0 known and 5 novel classes of 5 in zoo"),
        ({"known": 5}, "5 known and 0 novel"),
        ({"known": 6}, "data.known asks for 6 classes, there are 5"),
        ({"known": -6}, "data.known asks for -6"),
        ({"known": 3, "novel": 3}, "data.novel asks for 3 classes, there are 2"),
        ({"known": 3, "novel": ("cat", "eel")}, r"1 class\(es\) are both known and novel \(cat\)"),
        ({"known": ("ant", "fox")}, "data.known names 'fox', which is no class"),
        ({"known": 1, "novel": ("fox",)}, "data.novel names 'fox'"),
        ({"known": ("ant", "ant")}, "data.known names a class twice"),
        ({"known": "f*"}, "data.known: no class matches 'f\\*'; there are ant, bee"),
        ({"known": "missing.txt"}, "data.known: no class list at missing.txt"),
        ({"known": "not missing.txt"}, "data.known: no class list at missing.txt"),
        ({"known": "package:missing"}, "no class list 'package:missing' comes with unveil"),
        ({"known": 2, "per_class": 0}, "per_class is 0: give 1 or more"),
    ],
    ids=str,
)
def test_choices_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnveilError, match=message):
        make(**options)


def test_a_class_without_items_is_an_error_where_it_is_used() -> None:
    data = dataset(train=[0, 1, 2, 4])
    with pytest.raises(UnveilError, match="no training items of class 'dog' in zoo"):
        make(data, known=2)
    task, truth = make(data, known=2, novel=("cat", "eel"))
    assert truth.unlabeled.tolist() == [0, 1]
    assert task.labels.tolist() == [0, 1, -1, -1]


@pytest.mark.parametrize("ratio", [1.0, 10.0])
def test_imbalance_thins_later_classes_out(ratio: float) -> None:
    labels = np.repeat(np.arange(6), 100)
    kept = imbalanced(labels, 3, ratio)
    counts = np.bincount(labels[kept])
    expected = [round(100 * ratio ** (-i / 2)) for i in range(3)]
    assert counts.tolist() == [*expected, *expected]
    assert np.all(np.diff(kept) > 0)  # in the order they were


def own_task() -> Task:
    items = Items.of(np.arange(8, dtype=np.float32).reshape(4, 2))
    return Task(name="own", items=items, labels=np.array([1, 0, -1, -1]), known=("b", 7), ids=("p", "q", "r", "s"))


def test_some_rows_of_a_task() -> None:
    task = own_task().take(np.array([3, 0]))
    assert task.ids == ("s", "p")
    assert task.labels.tolist() == [-1, 1]
    assert task.items.array.tolist() == [[6, 7], [0, 1]]
    assert task.known == ("b", 7)
    assert [task.id_of(row) for row in (0, 1)] == ["s", "p"]


def test_a_pattern_names_all_classes_that_match() -> None:
    task, truth = make(known="*e*", novel="[cd]*")
    assert task.known == ("bee", "eel")
    assert truth.novel == ("cat", "dog")


def test_further_labels_join_known_classes_or_make_new_ones() -> None:
    task = own_task().with_labels({"r": "new", "s": "7"})
    assert task.known == ("b", 7, "new")
    assert task.labels.tolist() == [1, 0, 2, 1]
    assert len(task.unlabeled) == 0


def test_clusters_count_known_classes_only_where_unlabeled_rows_may_be_of_them() -> None:
    task = replace(own_task(), n_novel=3)
    assert task.n_clusters == 3
    assert replace(task, known_in_unlabeled=True).n_clusters == 5
    assert replace(task, ids=None).id_of(2) == "2"


def test_a_sample_has_the_classes_of_its_rows() -> None:
    labels = np.array([0] * 30 + [1] + [2] * 30 + [-1] * 40)
    task = Task(
        name="x",
        items=Items.of(np.arange(101.0)[:, None]),
        labels=labels,
        known=("a", "b", "c"),
        ids=tuple(map(str, range(101))),
    )
    small = task.sampled(10)
    assert (len(small.labeled), len(small.unlabeled)) == (10, 10)
    assert small.known == ("a", "c")
    for row in small.labeled.tolist():
        assert small.known[small.labels[row]] == ("a" if int(small.id_of(row)) < 30 else "c")
    assert task.sampled(10).ids == small.ids
    assert len(task.sampled(1000)) == 101


def test_a_negative_number_means_the_last_classes() -> None:
    task, truth = make(known=1, novel=-2)
    assert task.known == ("ant",)
    assert truth.novel == ("dog", "eel")
