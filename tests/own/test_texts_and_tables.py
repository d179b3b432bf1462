"""Texts and mixed tables from files to a run directory, and back to labels of new rows."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from blobs import blobs
from rich.console import Console

from unveil.data.sheets import Columns
from unveil.errors import UnveilError
from unveil.metrics import clustering_accuracy
from unveil.own.continue_run import continue_run
from unveil.own.estimates import count_classes, rehearse_known
from unveil.own.parameters import FileOptions
from unveil.own.predict_run import predict_run
from unveil.own.run import run_own_data
from unveil.runs.reader import load

WORDS = {
    "card": "card lost stolen block bank visa",
    "trip": "flight hotel rome ticket luggage train",
    "food": "pizza recipe oven dinner salt soup",
    "time": "clock hour minute late zone alarm",
    "song": "music singer guitar album radio play",
    "rain": "weather cloud storm umbrella sunny forecast",
}
QUIET = Console(quiet=True)


def sentences(each: int = 25) -> tuple[list[str], list[str]]:
    draw = np.random.default_rng(0)
    pairs = [
        (" ".join(["please", *draw.permutation(words.split())[:4], "now"]), topic)
        for topic, words in WORDS.items()
        for _ in range(each)
    ]
    return [text for text, _ in pairs], [topic for _, topic in pairs]


def write(path: Path, header: list[str], rows: list[list[object]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=";").writerows([header, *rows])
    return path


@pytest.fixture(scope="module")
def tickets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tickets")
    rows = [[text, topic if topic in list(WORDS)[:4] else ""] for text, topic in zip(*sentences(), strict=True)]
    return write(folder / "all.csv", ["message", "topic"], rows)


def test_texts_of_one_file_become_classes(tickets: Path, tmp_path: Path) -> None:
    columns = Columns(text="message", label="topic")
    record = run_own_data(
        tickets,
        None,
        out=tmp_path / "run",
        stages=tmp_path / "store",
        changes={"rehearsals": 0, "data.n_novel": 2},
        encoder="tfidf",
        columns=columns,
        console=QUIET,
    )
    run = load(tmp_path / "run")
    texts, topics = sentences()
    assert set(run.texts) == set(texts)
    topic_of = dict(zip(texts, topics, strict=True))
    new = np.flatnonzero(run.new)
    assert clustering_accuracy([topic_of[run.texts[row]] for row in new], run.labels[new]) > 0.95
    assert record["source"]["new"] is None
    assert record["warnings"] == []  # TF-IDF was asked for
    lines, _ = predict_run(tmp_path / "run", tickets, console=QUIET)
    assert np.mean([line[1] == topic for line, topic in zip(lines, topics[:100], strict=False)]) > 0.9
    named = {"number": 1, "time": "2026-01-01T00:00:00+00:00", "kind": "name", "data": {"cluster": 4, "text": "named"}}
    (tmp_path / "run" / "review.jsonl").write_text(json.dumps(named) + "\n")
    again = continue_run(tmp_path / "run", out=tmp_path / "more", stages=tmp_path / "store")
    assert "named" in again["known"]


def test_it_is_told_where_texts_are_compared_by_words(
    tickets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unveil.encoders.registry.usual", lambda kind, **_: "tfidf")
    record = run_own_data(
        tickets,
        None,
        out=tmp_path / "run",
        stages=tmp_path / "store",
        changes={"rehearsals": 0, "data.n_novel": 2},
        columns=Columns(text="message", label="topic"),
        console=QUIET,
    )
    assert "texts are compared by their words (TF-IDF)" in record["warnings"][0]
    assert "pip install 'unveil[text]'" in record["warnings"][0]


def test_the_number_and_the_forecast_for_texts(tickets: Path, tmp_path: Path) -> None:
    options = FileOptions(encoder="tfidf", device="cpu", store=tmp_path, text="message", label="topic")
    assert count_classes(tickets, None, options).number >= 1
    forecast = rehearse_known(tickets, options, {"rehearsals": 1}, n_novel=2)
    assert len(forecast.rehearsals) == 1


def test_a_mixed_table(tmp_path: Path) -> None:
    """Color and size tell the classes apart, and neither does alone; the text says nothing."""
    draw = np.random.default_rng(0)
    kinds = [(color, size) for color in ("red", "blue", "green") for size in (0, 20)]
    rows, truth = [], []
    for number in range(180):
        kind = int(draw.integers(len(kinds)))
        color, size = kinds[kind]
        height = "" if number == 7 else f"{size + draw.normal():.2f}".replace(".", ",")
        rows.append(
            [
                number,
                color,
                height,
                f"a thing that is made of {('oak', 'pine', 'beech')[number % 3]}, number {number}",
                f"kind {kind}" if kind < 4 else "",
            ]
        )
        truth.append(kind)
    path = write(tmp_path / "all.csv", ["nr", "color", "size", "note", "label"], rows)
    options = {"stages": tmp_path / "store", "changes": {"rehearsals": 0, "data.n_novel": 2}, "console": QUIET}
    record = run_own_data(path, None, out=tmp_path / "run", **options)
    assert record["columns"] == ["color=blue", "color=green", "color=red", "size"]
    assert any("left out: nr" in note for note in record["warnings"])
    assert any("missing value of size" in note for note in record["warnings"])
    run = load(tmp_path / "run")
    found = [int(run.labels[run.ids.index(f"row/{row:05d}")]) for row in range(180) if truth[row] >= 4]
    assert clustering_accuracy([kind for kind in truth if kind >= 4], found) > 0.95
    assert run.inputs is not None
    assert abs(run.inputs[:, 3].max() - 20) < 4  # sizes as they were given
    lines, _ = predict_run(tmp_path / "run", path, console=QUIET)
    known = [(line[1], f"kind {kind}") for line, kind in zip(lines, truth, strict=True) if kind < 4]
    assert np.mean([label == kind for label, kind in known]) > 0.9
    write(tmp_path / "less.csv", ["color"], [["red"]])
    with pytest.raises(UnveilError, match="lacks the column 'size'"):
        predict_run(tmp_path / "run", tmp_path / "less.csv", console=QUIET)
    mixed = run_own_data(
        path,
        None,
        out=tmp_path / "mixed",
        encoder="tfidf",
        columns=Columns(text="note", used=("color", "size")),
        **options,
    )
    assert mixed["columns"] == record["columns"]
    assert json.loads((tmp_path / "mixed" / "texts.json").read_text())[0].startswith("a thing that is made of")
    assert len(predict_run(tmp_path / "mixed", path, console=QUIET)[0]) == 180


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder": "efficientnet-lite0", "columns": Columns(text="message", label="topic")}, "the items are texts"),
        (
            {"encoder": "minilm", "columns": Columns(label="topic", used=("size",))},
            "without text: leave it out|vectors",
        ),
        ({"recipe_name": "images", "columns": Columns(text="message", label="topic")}, "leave the recipe out"),
        ({"columns": Columns(label="topic")}, "add --text message"),
    ],
)
def test_what_does_not_fit_the_items_is_told(tmp_path: Path, options: dict[str, object], message: str) -> None:
    rows = [
        [f"{text} {number}", number % 7, topic if number > 3 else ""]
        for number, (text, topic) in enumerate(zip(*sentences(4), strict=True))
    ]
    path = write(tmp_path / "all.csv", ["message", "size", "topic"], rows)
    if options == {"columns": Columns(label="topic")}:
        path = write(path, ["message", "topic"], [[row[0], row[2]] for row in rows])
    with pytest.raises(UnveilError, match=message):
        run_own_data(path, None, out=tmp_path / "run", stages=tmp_path / "store", console=QUIET, **options)  # type: ignore[arg-type]


def test_a_first_look_takes_a_sample(tmp_path: Path) -> None:
    x, y = blobs(5, 40)
    np.savez(tmp_path / "known.npz", X=x[y < 3], y=y[y < 3])
    np.save(tmp_path / "new.npy", x[y >= 3])
    options = {"stages": tmp_path / "s", "changes": {"data.n_novel": 2, "rehearsals": 0}, "console": QUIET}
    record = run_own_data(tmp_path / "known.npz", tmp_path / "new.npy", out=tmp_path / "run", sample=50, **options)
    assert (record["items"]["known"], record["items"]["new"]) == (50, 50)
    assert record["source"]["sample"] == 50
