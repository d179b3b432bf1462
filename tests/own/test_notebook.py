"""A fitted estimator in a notebook: the page, plots, the summary, and labels after a review."""

import pickle
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from blobs import blobs
from sklearn.base import clone

from unveil import NovelClassDiscovery
from unveil.errors import UnveilError
from unveil.pages import colors
from unveil.pages.review.log import Log
from unveil.runs.reader import load

mpl.use("Agg")


@pytest.fixture(scope="module")
def fitted() -> NovelClassDiscovery:
    x, y = blobs(6, 20)
    labels = np.where(y < 3, y, -1)
    return NovelClassDiscovery(n_novel=3, method="kmeans", rehearsals=0, random_state=0).fit(x, labels)


def test_the_summary_is_shown_and_an_unfitted_one_has_none(fitted: NovelClassDiscovery) -> None:
    shown = fitted._repr_mimebundle_()["text/html"]
    assert "3 novel classes of" in shown
    assert "NovelClassDiscovery" in shown
    assert fitted._repr_html_().startswith("<ul>")
    assert "novel classes of" not in clone(fitted)._repr_html_()


def test_the_page_is_one_frame_that_needs_nothing(fitted: NovelClassDiscovery) -> None:
    page = fitted.show(height=500)
    frame = page._repr_html_()
    assert frame.startswith("<iframe")
    assert 'height="500"' in frame
    assert "3 novel classes in 60 new items" in page.html
    assert not re.search(r"(?i)https?://", re.sub(r"url\(data:[^)]*\)", "", page.html))
    assert "MB of HTML" in repr(page)
    assert pickle.loads(pickle.dumps(fitted)).n_novel_ == 3


def test_plots_return_their_axes(fitted: NovelClassDiscovery) -> None:
    sizes = fitted.plot_sizes()
    assert sorted(bar.get_width() for bar in sizes.patches) == sorted(
        int((fitted.labels_ == label).sum()) for label in fitted.novel_clusters_
    )
    assert fitted.plot_confidence(ax=sizes) is sizes
    drawn = fitted.plot_map()
    assert sum(len(points.get_offsets()) for points in drawn.collections) == 120
    with pytest.raises(UnveilError, match="was given, not estimated"):
        fitted.plot_classes_estimate()
    x, y = blobs(6, 20)
    counted = NovelClassDiscovery(method="kmeans", rehearsals=0, random_state=0).fit(x, np.where(y < 3, y, -1))
    axes = counted.plot_classes_estimate()
    assert any(f"estimate: {counted.n_novel_}" in text.get_text() for text in axes.get_legend().get_texts())


def test_a_review_is_readable(fitted: NovelClassDiscovery, tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="save the estimator first"):
        clone(fitted).fit(*_data()).review()
    model = clone(fitted).fit(*_data())
    model.save(tmp_path / "run")
    np.testing.assert_array_equal(model.review().astype(int), model.labels_)
    log = Log(load(tmp_path / "run"))
    rows = {int(c): np.flatnonzero(model.labels_ == c) for c in model.novel_clusters_}
    a, b, c = rows
    log.act("name", {"cluster": a, "text": "fox"}, 0)
    log.act("known", {"cluster": b, "class": 1}, 1)
    log.act("reject", {"rows": rows[c][:2].tolist()}, 2)
    found = NovelClassDiscovery.load(tmp_path / "run").review()
    assert set(found[rows[a]]) == {"fox"}
    assert set(found[rows[b]]) == {1}
    assert found[rows[c][:3]].tolist() == [None, None, c]
    assert "fox" in model.show().html
    assert "fox" in [label.get_text() for label in model.plot_sizes().get_yticklabels()]


def _data() -> tuple[np.ndarray, np.ndarray]:
    x, y = blobs(6, 20)
    return x, np.where(y < 3, y, -1)


def test_colors_are_those_of_the_page() -> None:
    np.testing.assert_allclose(colors.rgb(1, 0, 0), (1, 1, 1), atol=1e-3)
    np.testing.assert_allclose(colors.rgb(0, 0, 0), (0, 0, 0), atol=1e-3)
    np.testing.assert_allclose(colors.rgb(0.6279554, 0.2576833, 29.2338), (1, 0, 0), atol=2e-3)  # red
