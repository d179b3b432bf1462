"""What the report and the review page share: colors, orientation of the map, titles."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from review_runs import make_run

from unveil.methods.catalog import method_title
from unveil.pages import colors, words
from unveil.pages.report.page import GRID, build
from unveil.pages.review.review import Review
from unveil.pages.review.server import STATIC
from unveil.runs import map as maps
from unveil.runs.map import Layout, projected, quick_layout
from unveil.runs.reader import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return make_run(tmp_path / "run")


def data_of(page: str) -> dict[str, object]:
    (data,) = re.findall(r'id="data">(.*)</script>', page)
    parsed: dict[str, object] = json.loads(data)
    return parsed


def test_successive_classes_have_distant_hues() -> None:
    hues = np.array([colors.hue(number) for number in range(6)])
    apart = np.abs(hues[:, None] - hues)
    apart = np.minimum(apart, 360 - apart) + 360 * np.eye(6)
    assert apart.min() > 20
    assert apart[0, 1] > 90
    assert colors.class_color(2, 3) == colors.KNOWN
    light, dark = colors.class_color(3, 3).values()
    assert light == f"oklch(0.6 0.16 {colors.hue(0)})"
    assert dark != light


def test_report_and_page_have_the_same_colors(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = quick_layout(run)
    monkeypatch.setattr("unveil.pages.report.page.layout_of", lambda _: layout)
    page = build(run)
    assert colors.css_variables() in page
    sent = {one["id"]: one["color"] for one in Review(run).state()["classes"]}
    hues = data_of(page)["hues"]
    assert isinstance(hues, list)
    for number, hue in enumerate(hues):
        assert sent[run.n_known + number]["light"].endswith(f" {hue})")
        assert f"--h:{hue}" in page
    assert sent[0] == Review(run).about()["known_color"]
    assert not any("hsl(" in path.read_text() for path in STATIC.glob("map*.js"))


def test_report_and_page_have_the_same_map(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    xy = np.random.default_rng(0).random((len(run.ids), 2)).astype(np.float32)
    layout = Layout(xy=xy, sample=np.arange(0, len(xy), 2))
    monkeypatch.setattr("unveil.pages.report.page.layout_of", lambda _: layout)
    monkeypatch.setattr("unveil.pages.review.map.stored_layout", lambda _: layout)
    points = data_of(build(run))["points"]
    assert isinstance(points, list)
    sent, state = Review(run).map.coordinates()
    assert state == "fine"
    shown = np.frombuffer(sent, dtype="<f4").reshape(-1, 2)[::2]
    np.testing.assert_allclose([point[:2] for point in points], shown * GRID, atol=0.51)


def test_a_layout_fills_the_square_and_keeps_its_shape() -> None:
    square = maps._to_square(np.array([[-1, 0], [3, 2], [1, 1]], dtype=np.float32))
    np.testing.assert_allclose(square, [[0, 0.75], [1, 0.25], [0.5, 0.5]], atol=1e-6)  # y points down
    assert maps._to_square(np.ones((3, 2), dtype=np.float32)).tolist() == [[0.5, 0.5]] * 3


def test_projections_keep_near_items_near(run: Run) -> None:
    features = np.asarray(run.features)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    full = np.linalg.norm(unit[:, None] - unit, axis=2)
    for dimensions in (2, 8, 20):
        points = projected(run.features, np.flatnonzero(run.new), dimensions)
        assert points.shape == (len(unit), dimensions)
        assert (np.linalg.norm(points[:, None] - points, axis=2) <= full + 1e-5).all()


def test_sentences_are_shown_by_their_keys(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.record["summary"] = {"unknown": "not shown", "accuracy": "expected 9 of 10", "result": "4 novel classes"}
    page = build(run, with_map=False)
    assert page.index("<dt>Result</dt>") < page.index("<dt>Forecast</dt><dd>Expected 9 of 10</dd>")
    assert "not shown" not in page
    about = Review(run).about()
    assert list(about["summary"]) == ["result", "accuracy"]
    assert about["titles"]["accuracy"] == "Forecast"


def test_two_kinds_of_kmeans_are_told_apart() -> None:
    scores = {"acc": 0.5, "nmi": 0.5, "ari": 0.5}
    record = {"method": "kmeans", "method_title": method_title("kmeans")}
    record |= {"metrics": scores, "kmeans": scores, "kmeans_inputs": scores}
    assert [title for _, title, _ in words.score_rows(record)] == [
        "k-means on the inputs",
        "k-means on features of unit length",
        "k-means on the features as they are",
    ]
    assert [title for _, title, _ in words.score_rows({"method": "ncl", "metrics": scores})] == ["ncl"]
    assert words.score_rows({"metrics": {"confidence": 0.9}}) == []


def test_the_page_offers_only_formats_that_work(tmp_path: Path) -> None:
    assert "folders" in Review(make_run(tmp_path / "files", pictures="files")).about()["formats"]
    assert "folders" not in Review(make_run(tmp_path / "array")).about()["formats"]


def test_words_and_colors_need_nothing() -> None:
    code = "import sys, unveil.pages.words, unveil.pages.colors; print('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
