"""Classes to add."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
from review_runs import make_run

from unveil.pages.report.parts import classes_to_add as section
from unveil.pages.review.log import Log
from unveil.review.edited_scores import reviewed
from unveil.review.suggestions import suggestions
from unveil.runs.reader import load

Call = Callable[..., subprocess.CompletedProcess[str]]


def test_each_class_has_what_a_person_needs_to_decide(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", pictures="none")
    words = ["zebra", "tulip", "violin", "glacier"]
    texts = [words[label - run.n_known] if label >= run.n_known else "cat" for label in run.labels]
    (run.folder / "texts.json").write_text(json.dumps([f"a {text} here" for text in texts]))
    found = suggestions(load(run.folder))
    assert sorted(one.cluster for one in found) == [f"novel-{i}" for i in range(4)]
    assert [one.confidence for one in found] == sorted((one.confidence for one in found), reverse=True)
    one = next(one for one in found if one.cluster == "novel-2")
    assert one.size == 12
    assert "violin" in one.name
    assert one.nearest_known in run.classes[: run.n_known]
    rows = np.flatnonzero(run.labels == run.n_known + 2)
    assert one.examples[0] == run.ids[rows[run.typicality[rows].argmax()]]
    assert one.texts[0] == "a violin here"
    assert "violin" in section(load(run.folder))


def test_a_name_from_the_review_is_kept(tmp_path: Path, unveil: Call) -> None:
    run = make_run(tmp_path / "run", pictures="none")
    Log(run).act("name", {"cluster": run.n_known, "text": "fox"}, 0)
    assert "fox" in [one.name for one in suggestions(reviewed(load(run.folder))[0])]
    result = unveil("suggest", "run", "--json")
    assert "fox" in [one["name"] for one in json.loads(result.stdout)], result.stderr
    assert "nearest known" in unveil("suggest", "run").stdout
