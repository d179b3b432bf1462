"""The map of a run: made once, stored, and found again by the content of the features."""

from pathlib import Path

import numpy as np
import pytest
from review_runs import made_run, seal_again

from unveil.pages.report.page import build
from unveil.runs.map import layout_of, quick_layout, stored_layout
from unveil.runs.reader import load


def test_map_is_kept_and_found_by_content(tmp_path: Path) -> None:
    pytest.importorskip("openTSNE")
    folder = made_run(tmp_path / "run", [10, 10, 10, 20, 20])
    found = layout_of(load(folder), most=40)
    rows = found.sample
    assert len(rows) == 40
    assert len(found.xy) == 70
    assert (np.diff(rows) > 0).all()
    assert (rows >= 30).sum() == 30, "new items get three quarters"
    assert np.isfinite(found.xy).all()
    groups = np.repeat(np.arange(5), [10, 10, 10, 20, 20])
    for shown in (rows, np.arange(70)):  # those that t-SNE placed, and the others among them
        some, own = found.xy[shown], groups[shown]
        away = np.linalg.norm(some[:, None] - some[None], axis=-1) + 1e9 * np.eye(len(some))
        assert (own[away.argmin(axis=1)] == own).mean() > 0.9
    written = (folder / "map.npz").stat().st_mtime_ns
    again = layout_of(load(folder), most=40)
    assert (folder / "map.npz").stat().st_mtime_ns == written
    np.testing.assert_array_equal(again.xy, found.xy)
    np.save(folder / "features.npy", np.load(folder / "features.npy")[:, ::-1])
    seal_again(folder)
    layout_of(load(folder), most=40)
    assert (folder / "map.npz").stat().st_mtime_ns != written
    for damaged in (b"broken", b"", b"PK\x03\x04broken"):
        (folder / "map.npz").write_bytes(damaged)
        assert stored_layout(load(folder)) is None
    assert len(layout_of(load(folder)).sample) == 70


@pytest.mark.parametrize("sizes", [[1, 1, 0, 1], [3, 3, 3, 3]])
def test_map_of_few_and_of_equal_items(tmp_path: Path, sizes: list[int]) -> None:
    pytest.importorskip("openTSNE")
    folder = made_run(tmp_path / "run", sizes)
    np.save(folder / "features.npy", np.ones((sum(sizes), 1), dtype=np.float32))
    seal_again(folder)
    assert np.isfinite(layout_of(load(folder)).xy).all()
    assert build(load(folder))


def test_quick_and_fine_maps_fill_the_same_square(tmp_path: Path) -> None:
    pytest.importorskip("openTSNE")
    run = load(made_run(tmp_path / "run", [10, 10, 10, 20]))
    for layout in (quick_layout(run), layout_of(run)):
        assert layout.xy.dtype == np.float32
        assert layout.xy.min() >= 0
        assert layout.xy.max() <= 1
        assert np.ptp(layout.xy, axis=0).max() == pytest.approx(1, abs=1e-5)
        np.testing.assert_allclose((layout.xy.min(axis=0) + layout.xy.max(axis=0)) / 2, 0.5, atol=1e-5)
