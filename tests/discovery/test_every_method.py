"""A run of every method can be reported, exported, used for prediction and continued."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from conftest import TINY
from rich.console import Console
from sklearn.datasets import load_digits

from unveil import recipe
from unveil.methods.catalog import names
from unveil.own.continue_run import continue_run, from_review
from unveil.own.predict_run import predict_run
from unveil.own.run import run_recipe
from unveil.pages.report.page import write
from unveil.review.export import export
from unveil.runs.reader import load

QUICK = [*TINY, "data.per_class=12", "rotation.epochs=1", "discovery.epochs=1", "method.similarity.epochs=1"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All methods share the pre-training."""
    return tmp_path_factory.mktemp("store")


@pytest.mark.parametrize("method", names())
def test_a_run_can_be_used_whatever_its_method(
    method: str, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = recipe.load("digits", {"discovery.method": method}, defaults=recipe.parse_set(QUICK))
    out = tmp_path / "run"
    record = run_recipe(settings, out=out, stages=store, console=Console(quiet=True))
    assert record["method"] == method

    def refuse(*_: object) -> None:
        raise AssertionError("a recipe is read")

    monkeypatch.setattr(recipe, "_layers", refuse)  # a run needs none: shipped recipes may change or go
    run = load(out)
    assert run.new.sum() == (~run.new).sum() == 60
    assert method in write(out, with_map=False).read_text()
    with export(out, "csv", tmp_path / "labels.csv").open() as file:
        assert [row["id"] for row in csv.DictReader(file)] == [
            name for name, new in zip(run.ids, run.new, strict=True) if new
        ]
    X, _ = load_digits(return_X_y=True)
    np.savez(tmp_path / "more.npz", X=(X[:10].reshape(10, 8, 8) * 15.9).astype(np.uint8))
    lines, _ = predict_run(out, tmp_path / "more.npz")
    assert {label for _, label, _, _ in lines} <= set(run.classes)

    rejected = int(np.flatnonzero(run.new)[0])
    others = [label for label in range(5, 10) if label != run.labels[rejected]]
    named = max(others, key=lambda label: int((run.labels == label).sum()))
    actions = [
        ("name", {"cluster": named, "text": "mine"}),
        ("reject", {"rows": [rejected]}),
    ]
    (out / "review.jsonl").write_text(
        "".join(
            json.dumps({"number": number, "time": "", "kind": kind, "data": data}) + "\n"
            for number, (kind, data) in enumerate(actions, start=1)
        )
    )
    again = continue_run(out, out=tmp_path / "second", stages=store)
    assert again["known"] == ["0", "1", "2", "3", "4", "mine"]
    left = from_review(out)[1]  # clusters without a name that have items
    assert again["n_novel"] == max(1, left)
    kept = np.delete(run.labels[run.new], 0)  # without the rejected item
    assert left == len({*kept.tolist()} - {named})
    second = load(tmp_path / "second")
    assert second.ids == run.ids
    before, now = run.labels == named, second.labels == 5
    assert (now[before]).all()
    assert again["items"] == {"known": 60, "new": 60}
