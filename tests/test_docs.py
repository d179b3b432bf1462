"""Pages tell the truth: their tables are what the records say, and their links lead somewhere."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
spec = importlib.util.spec_from_file_location("render", ROOT / "docs" / "render.py")
assert spec is not None
assert spec.loader is not None
render = importlib.util.module_from_spec(spec)
spec.loader.exec_module(render)


@pytest.mark.parametrize("page", render.PAGES, ids=lambda page: page.name)
def test_tables_are_rendered_from_the_records(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert render.rendered(text) == text, "run `make docs`"


@pytest.mark.parametrize("page", render.PAGES, ids=lambda page: page.name)
def test_links_to_files_exist(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_a_table_shows_mean_and_spread_of_its_records(tmp_path: Path) -> None:
    for seed, acc in ((0, 0.8), (1, 0.9)):
        scores = {"acc": acc, "nmi": 0.5, "ari": 0.5}
        record = {"seed": seed, "metrics": scores, "kmeans": scores, "seconds": {"rotation": 10.0, "discovery": 5.0}}
        (tmp_path / f"ncl-seed{seed}.json").write_text(render.json.dumps(record))
    line = next(line for line in render.table(tmp_path).splitlines() if line.startswith("| ncl "))
    assert "| 2 | 85.0 ± 7.1 |" in line


def test_own_data_beside_others_and_forecasts_beside_the_truth(tmp_path: Path) -> None:
    for seed, low in ((0, 0.85), (1, 0.95)):
        record = {
            "task": "some",
            "classes": {"known": 4, "novel": 5},
            "accuracy": {"unveil": 0.9, "kmeans": 0.8, "semi_kmeans": 0.7, "supervised_kmeans": 0.85},
            "expected": {"accuracy": low + 0.04, "low": low, "high": 1.0},
            "counted": {"number": 6 + seed},
            "seconds": {"fit": 30.0},
        }
        (tmp_path / f"some-seed{seed}.json").write_text(render.json.dumps(record))
    assert "| some | 4 + 5 | 2 | 90.0 ± 0.0 |" in render.own(tmp_path)
    assert "| +5.0 | 30 |" in render.own(tmp_path)
    assert "| 1 of 2 | 5 | 6, 7 | 1 of 2 |" in render.trust(tmp_path)
    assert "Not measured" in render.own(tmp_path / "nothing")
    assert "Not measured" in render.trust(tmp_path / "nothing")
