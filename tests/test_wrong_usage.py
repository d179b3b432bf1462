"""Mistakes that people make: each is answered in one line that says what to do."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from blobs import blobs

from unveil import NovelClassDiscovery
from unveil.errors import UnveilError

Call = Callable[..., subprocess.CompletedProcess[str]]
X, Y = blobs(4, 10)
GIVEN = np.where(Y < 3, Y, -1)
TEXTS = [f"some words about thing {i}" for i in range(len(X))]
MIXED = pd.DataFrame({"a": X[:, 0], "word": TEXTS})

FIT: list[tuple[dict[str, Any], Any, Any, str]] = [
    ({"n_novel": None}, X, GIVEN, "n_novel is None: give a whole number of 1 or more, or 'auto'"),
    ({"n_novel": 2.5}, X, GIVEN, "n_novel is 2.5: give a whole number"),
    ({"n_novel": True}, X, GIVEN, "n_novel is True: give a whole number"),
    ({"n_novel": 0}, X, GIVEN, "n_novel is 0: give a whole number of 1 or more"),
    ({"n_novel": "five"}, X, GIVEN, "n_novel is 'five': give a whole number"),
    ({"n_novel": 11}, X, GIVEN, "11 novel classes in 10 unlabeled items"),
    ({"rehearsals": 2.5}, X, GIVEN, "rehearsals is 2.5: give a whole number of 0 or more, or None"),
    ({"rehearsals": -1}, X, GIVEN, "rehearsals is -1: give a whole number of 0 or more"),
    ({"steps": 0}, X, GIVEN, "steps is 0: give a whole number of 1 or more"),
    ({"steps": "many"}, X, GIVEN, "steps is 'many': give a whole number"),
    ({"method": None}, X, GIVEN, "method is None: give the name of a method"),
    ({"method": "ncl_hng"}, X, GIVEN, "did you mean 'ncl-hng'"),
    ({"encoder": "minilm"}, X, GIVEN, "needs images or texts, and these are vectors: leave it out"),
    ({"encoder": 3}, X, GIVEN, "encoder is 3: give the name of an encoder"),
    ({"encoder": "efficientnet-lite0"}, TEXTS, GIVEN, "the items are texts: there is minilm, multilingual"),
    ({"scaling": "minmax"}, X, GIVEN, "scaling is 'minmax': give 'auto', 'unit', 'standard' or 'none'"),
    ({"recipe": "imags"}, X, GIVEN, "did you mean 'images'"),
    ({"recipe": 3}, X, GIVEN, "recipe is 3: give the name of a recipe"),
    ({"random_state": "zero"}, X, GIVEN, "random_state is 'zero': give a whole number"),
    ({"device": "gpu"}, X, GIVEN, "device is 'gpu': give 'auto', 'cpu', 'cuda'"),
    ({"known_in_unlabeled": "yes"}, X, GIVEN, "known_in_unlabeled is 'yes': give True or False"),
    ({"verbose": "loud"}, X, GIVEN, "verbose is 'loud': give True or False"),
    ({"store": 3}, X, GIVEN, "store is 3: give a directory, or None"),
    ({"text": "word"}, X, GIVEN, "text names a column of a data frame, and X is none: leave text out"),
    ({"text": "words"}, MIXED, GIVEN, "did you mean 'word'"),
    ({}, MIXED[["word"]], GIVEN, "X has no columns of numbers: name the column of texts with text='COLUMN'"),
    ({}, [*TEXTS[:-1], 3.5], GIVEN, "row 39 is 3.5: give a text for every item"),
    ({}, [""] * 40, GIVEN, "every text of X is empty: give sentences"),
    ({}, ["a.png"] * 40, GIVEN, "40 of 40 image files do not exist, the first is a.png: correct the paths"),
    ({}, X, GIVEN[:-1], "X has 40 items and y has 39 labels: give one label for each item"),
    ({}, X, GIVEN + 0.5, "classes are whole numbers or text"),
    ({}, X, np.stack([GIVEN, GIVEN], axis=1), "give one label for each item"),
    ({}, X * np.nan, GIVEN, "contains NaN"),
    ({}, X[0], GIVEN, "Reshape your data"),
]
AFTER: list[tuple[Callable[[NovelClassDiscovery], Any], str]] = [
    (
        lambda found: found.fit(X, GIVEN, sample_weight=np.ones(len(X))),
        "no sample_weight: every item has the same weight",
    ),
    (lambda found: found.predict(X, coverage=95), "coverage is 95: give a share, above 0 and at most 1"),
    (lambda found: found.predict(X, coverage="high"), "coverage is 'high': give a share"),
    (lambda found: found.predict(X[:, :3]), "X has 3 features"),
    (lambda found: found.predict(TEXTS), "the fit was on vectors, and X holds texts: give their vectors"),
    (lambda found: found.representatives("cats"), "there is no class 'cats': the labels are 0, 1, 2"),
    (lambda found: found.save("somewhere", X[:3]), "X has 3 rows and the fit had 40: give the items of the fit"),
    (lambda found: NovelClassDiscovery.load("nowhere"), "give the run directory"),
]
CALLS: list[tuple[tuple[str, ...], str]] = [
    (("discover", "texts.csv", "--label", "topic"), "add --text message"),
    (("discover", "texts.csv", "--text", "message"), "name the column of the labels with --label COLUMN"),
    (("discover", "texts.csv", "--text", "massage", "--label", "topic"), "did you mean 'message'"),
    (("discover", "texts.csv", "--text", "message", "--label", "topik"), "did you mean 'topic'"),
    (("discover", "known.csv"), "has a label in every row: leave the label of new rows empty, or give NEW"),
    (("discover", "known.csv", "new.csv", "--encoder", "minilm"), "these are vectors: leave it out"),
    (("discover", "known.csv", "new.csv", "--columns", "c0,c9"), "has no column 'c9' (--columns)"),
    (("discover", "known.csv", "new.csv", "--device", "cuda:7"), "not available here: use auto or cpu"),
    (("discover", "known.csv", "new.csv", "--seed", "one"), "seed"),
    (("discover", "known.csv", "new.csv", "--n-novel", "0"), "give a whole number of 1 or more, or auto"),
    (("discover", "known.csv", "new.csv", "--metod", "ncl"), "Did you mean"),
    (("discover", "folder"), "give KNOWN and NEW"),
    (("discover", "known.csv", "folder"), "holds no images"),
    (("discover", "known.csv", "notes.docx"), "is a .docx file; expected one of .npz, .npy, .csv"),
    (("predict", "folder", "new.csv"), "holds no finished discovery"),
    (("export", "folder"), "holds no finished discovery"),
]


def one_line(message: str) -> bool:
    return len(message.strip().splitlines()) == 1


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("options", "x", "y", "message"), FIT, ids=[case[3][:40] for case in FIT])
def test_a_wrong_fit_says_what_to_do(options: dict[str, Any], x: Any, y: Any, message: str) -> None:
    values = {"rehearsals": 0, "steps": 5, "random_state": 0, "device": "cpu", **options}
    with pytest.raises(ValueError, match=r".") as error:
        NovelClassDiscovery(**values).fit(x, y)
    assert message in str(error.value)
    assert isinstance(error.value, UnveilError) or "NaN" in message or "Reshape" in message  # scikit-learn's own words


@pytest.fixture(scope="module")
def found() -> NovelClassDiscovery:
    return NovelClassDiscovery(n_novel=1, rehearsals=0, random_state=0).fit(X, GIVEN)


@pytest.mark.parametrize(("call", "message"), AFTER, ids=[case[1][:40] for case in AFTER])
def test_wrong_use_of_a_fit_says_what_to_do(
    found: NovelClassDiscovery, call: Callable[[NovelClassDiscovery], Any], message: str
) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        call(found)
    assert message in str(error.value)
    assert one_line(str(error.value))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wrong")
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    frame.assign(label=Y).to_csv(place / "known.csv", index=False)
    frame.to_csv(place / "new.csv", index=False)
    topics = ["thing" if i < 30 else "" for i in range(len(TEXTS))]
    pd.DataFrame({"message": TEXTS, "topic": topics}).to_csv(place / "texts.csv", index=False)
    (place / "folder").mkdir()
    (place / "notes.docx").write_text("no table")
    return place


@pytest.mark.filterwarnings("ignore:Cyclopts application invoked")
@pytest.mark.parametrize(("args", "message"), CALLS, ids=[" ".join(case[0])[:60] for case in CALLS])
def test_a_wrong_command_says_what_to_do(
    folder: Path,
    args: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from unveil.cli.main import main

    monkeypatch.chdir(folder)
    monkeypatch.setenv("UNVEIL_STORE", str(folder / "store"))
    monkeypatch.setattr("sys.argv", ["unveil", *args])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    told = capsys.readouterr().err.strip().splitlines()[-1]
    assert told.startswith("unveil: ")
    assert message in told


def test_there_are_forty() -> None:
    assert len(FIT) + len(AFTER) + len(CALLS) >= 40
