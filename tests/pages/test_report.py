"""The report of a run: one file that is safe, small and alive in a browser."""

import base64
import contextlib
import io
import itertools
import json
import re
import shutil
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blobs import blobs
from browsing import AXE, Browser, phone
from PIL import Image
from review_runs import made_run, seal_again
from sklearn.datasets import load_digits

from unveil import files
from unveil.cli.main import app
from unveil.errors import UnveilError
from unveil.own.predict_run import predict_run
from unveil.own.run import run_own_data
from unveil.pages import colors
from unveil.pages.report import clusters, curves, text
from unveil.pages.report.page import build, write
from unveil.pages.report.sprites import Sheet, draw
from unveil.pages.report.truth import compare
from unveil.pages.review.log import Log
from unveil.runs.map import Layout
from unveil.runs.reader import load

ATTACK = "<script>alert(1)</script>"


class Outline(HTMLParser):
    """What a browser would see: tags with attributes, headings, and the content of scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def count(self, tag: str) -> int:
        return sum(one == tag for one, _ in self.tags)


def discover(known: Path, new: Path, out: Path, n_novel: int, encoder: str = "auto") -> None:
    """k-means without rehearsals: quick."""
    changes = {"data.n_novel": n_novel, "discovery.method": "kmeans", "rehearsals": 0}
    run_own_data(known, new, out=out, stages=out.parent / "store", changes=changes, encoder=encoder)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Digits as files; a known class and new files have names that want to be code."""
    root = tmp_path_factory.mktemp("hostile")
    X, y = load_digits(return_X_y=True)
    for row in range(260):
        label = int(y[row])
        if label > 5:
            continue
        known = ["<script>alert(1)<", '"onmouseover="alert(2)', "class 2", "长" * 60][label] if label < 4 else ""
        folder = root / "known" / known if known else root / "new" / "<img src=x onerror=alert(3)>"
        folder.mkdir(parents=True, exist_ok=True)
        picture = Image.fromarray((X[row].reshape(8, 8) * 15.9).astype(np.uint8)).resize((24, 30))
        picture.save(folder / f"{row:03d} ' & $title.png")
    (root / "new" / "<b>broken.png").write_bytes(b"no picture")
    out = root / "run"
    discover(root / "known", root / "new", out, 2, encoder="pixels")
    return out


def test_names_are_never_code(run: Path) -> None:
    shutil.copytree(run, other := run.parent / "hostile" / "run")
    record = files.read_json(other / "record.json")
    record["summary"]["choice"] = ATTACK
    record["warnings"] += [ATTACK]
    record["source"]["known"] = ATTACK
    seal_again(other, **record)
    page = build(load(other))
    outline = Outline(page)
    assert outline.count("script") == 2
    assert outline.count("img") == 0
    assert not any(key.startswith("on") for _, attributes in outline.tags for key in attributes)
    assert ATTACK not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 3
    assert "$title" in page  # a name is not filled in either


def test_a_page_needs_nothing_from_elsewhere(run: Path) -> None:
    page = build(load(run))
    outline = Outline(page)
    assert not re.search(r"(?i)(https?:)?//[a-z0-9]", re.sub(r"url\(data:[^)]*\)", "", page))
    assert {attributes["href"][0] for _, attributes in outline.tags if attributes.get("href")} == {"#"}
    assert not any("src" in attributes for _, attributes in outline.tags)
    (policy,) = [a["content"] for tag, a in outline.tags if tag == "meta" and a.get("http-equiv")]
    assert policy is not None
    assert policy.startswith("default-src 'none'; img-src data:;")
    ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    levels = [int(tag[1]) for tag, _ in outline.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels)), "headings in order"


def test_what_a_page_says(run: Path) -> None:
    words = " ".join(Outline(build(load(run))).words)
    for part in ("2 novel classes of", "Most typical", "Most doubtful", "Nearest known class", "left out", "pixels"):
        assert part in words, part
    assert "2 novel classes in" in words  # the first sentence
    page = build(load(run), with_map=False)
    for empty in ("curves", "truth", "map"):
        assert f'href="#{empty}"' not in page
        assert f'id="{empty}"' not in page
    assert "…" in words  # of the long name


def test_five_thousand_thumbnails_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (5000, 24, 24, 3), dtype=np.uint8)  # nothing is harder to pack
    folder = made_run(tmp_path / "run", [20] * 250, known=50, pictures=noise)
    layout = Layout(xy=np.random.default_rng(1).random((5000, 2)).astype(np.float32), sample=np.arange(5000))
    monkeypatch.setattr("unveil.pages.report.page.layout_of", lambda run: layout)
    page = build(load(folder))
    assert 3_000_000 < len(page.encode()) < 5_000_000
    outline = Outline(page)
    assert outline.count("article") == 200
    assert page.count("url(data:image/webp") == 2
    (data,) = re.findall(r'id="data">(.*)</script>', page)
    assert len(json.loads(data)["points"]) == 5000


def test_pictures_that_are_gone_leave_a_gap(run: Path, tmp_path: Path) -> None:
    read_run = load(run)
    rows = tuple(np.flatnonzero(read_run.new)[:3].tolist())
    moved = replace(
        read_run, paths=tuple("/nowhere.png" if row == rows[1] else path for row, path in enumerate(read_run.paths))
    )
    rule, missing = draw(moved, Sheet(name="g", rows=rows), 100_000)
    assert missing == 1
    content = base64.b64decode(re.findall(r"base64,([^)]*)", rule)[0])
    sheet = np.asarray(Image.open(io.BytesIO(content)).convert("RGBA"))
    assert sheet.shape == (60, 60, 4)  # two by two, pictures of 24 x 30 whole
    assert sheet[:30, 30:, 3].max() == 0
    assert sheet[:30, 5:25, 3].min() == 255


def test_one_cluster_and_a_dead_one(tmp_path: Path) -> None:
    read_run = load(made_run(tmp_path / "run", [5, 4, 3, 2]))
    found = clusters.describe(read_run)
    assert [one.size for one in found] == [2]
    assert found[0].doubtful == ()
    assert Outline(build(read_run)).count("article") == 1
    read_run = load(made_run(tmp_path / "dead", [5, 4, 3, 6, 0]))
    assert [one.size for one in clusters.describe(read_run)] == [6, 0]
    assert "A dead cluster" in build(read_run, with_map=False)


def test_new_items_of_known_classes(tmp_path: Path) -> None:
    read_run = load(made_run(tmp_path / "run", [5, 4, 3, 2]))
    read_run = replace(read_run, new=read_run.new | (np.arange(14) < 2))
    words = " ".join(Outline(build(read_run, with_map=False)).words)
    assert "2 belong to known classes" in words
    assert "assigned to this class" in words


def test_nearest_class_typical_and_doubtful(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", [10, 10, 10, 30])
    features = np.load(folder / "features.npy")
    features[30:] = features[10:20].mean(axis=0) * 3 + 0.01 * features[30:]  # length must not count
    np.save(folder / "features.npy", features)
    seal_again(folder)
    read_run = load(folder)
    (one,) = clusters.describe(read_run)
    assert one.nearest == "known 1"
    assert one.cosine > 0.95
    assert set(one.neighbors) <= set(range(10, 20))
    assert one.typical[0] == 30 + int(read_run.typicality[30:].argmax())
    assert one.doubtful[0] == 30 + int(read_run.confidence[30:].argmin())
    assert not set(one.typical) & set(one.doubtful)


def test_vectors_show_names_and_telling_columns(tmp_path: Path) -> None:
    x, y = blobs(4, 30)
    x = x.astype(np.float32)
    x[y == 3, 1] += 1000
    np.savez(tmp_path / "known.npz", X=x[y < 3], y=y[y < 3])
    np.save(tmp_path / "new.npy", x[y == 3])
    discover(tmp_path / "known.npz", tmp_path / "new.npy", tmp_path / "run", 1)
    read_run = load(tmp_path / "run")
    (one,) = clusters.describe(read_run)
    assert one.columns[0].column == "column 2"
    assert one.columns[0].difference == pytest.approx(np.sqrt(3), abs=0.05)  # a quarter of the items, far away
    page = build(read_run)
    assert "column 2" in page
    assert "url(data:" not in page
    assert any(read_run.ids[row] in page for row in one.typical)


def test_texts_are_shown_in_place_of_names(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", [6, 6, 6, 6, 6])
    texts = [f"please  block <b>card</b> {row}, {'which was lost on a long journey ' * 4}" for row in range(30)]
    (folder / "texts.json").write_text(json.dumps(texts))
    run = load(folder)
    page = build(run)
    strips = page[page.index('<ul class="strips"') :].partition("</ul>")[0]
    assert len(re.findall(r"please block &lt;b&gt;card&lt;/b&gt; \d+, [^<]*…</bdi>", strips)) == 4
    assert not any(escaped_id in strips for escaped_id in run.ids)
    assert "<b>card" not in page


def test_columns_have_the_names_of_the_table(tmp_path: Path) -> None:
    x, y = blobs(4, 30)
    x = x[:, :3].copy()
    x[y == 3, 1] += 1000
    names = ["<b>height", "width", "weight"]

    def table(path: Path, rows: np.ndarray, columns: list[int], labels: list[str]) -> None:
        lines = [",".join([*(names[c] for c in columns), *(["label"] if labels else [])])]
        for i, row in enumerate(rows):
            lines.append(",".join([*(str(row[c]) for c in columns), *labels[i : i + 1]]))
        path.write_text("\n".join(lines))

    known, new = tmp_path / "known.csv", tmp_path / "new.csv"
    table(known, x[y < 3], [0, 1, 2], [f"kind {label}" for label in y[y < 3]])
    table(new, x[y == 3], [2, 0, 1], [])  # in another order
    discover(known, new, tmp_path / "run", 1)
    read_run = load(tmp_path / "run")
    assert read_run.inputs is not None
    np.testing.assert_allclose(read_run.inputs[-30:], x[y == 3], rtol=1e-5)
    (one,) = clusters.describe(read_run)
    assert one.columns[0].column == "width"
    page = build(read_run, with_map=False)
    assert "<span>width</span>" in page
    assert "&lt;b&gt;height" in page
    assert "<b>height" not in page
    labels = [label for _, label, _, _ in predict_run(tmp_path / "run", new, coverage=None)[0]]
    assert len(set(labels)) == 1
    new.write_text("weight,<b>height,length\n1,2,3\n")
    with pytest.raises(UnveilError, match=r"lacks 'width': give the same columns"):
        predict_run(tmp_path / "run", new, coverage=None)
    new.write_text("weight,<b>height,width,id\n1,2,3,a\n4,5,6,a\n")
    with pytest.raises(UnveilError, match="the id 'a' occurs in more than one row"):
        predict_run(tmp_path / "run", new, coverage=None)


def test_curves() -> None:
    history = [
        {"epoch": 0, "lr": 1.0, "bce": 2.0, "ncl": float("nan")},
        {"epoch": 0, "bce": 1.0},
        {"epoch": 1, "bce": 0.5, "ncl": 3.0, "clusters_used": 5, "note": "text"},
    ]
    found = curves.series(history)
    assert found == {"bce": [(0, 1.0), (1, 0.5)], "ncl": [(1, 3.0)], "clusters_used": [(1, 5.0)]}
    assert list(found)[-1] == "clusters_used"
    drawn = curves.curve([(0, 1.0), (1, 1.0), (2, 1.0)], "flat")
    ((_, points),) = re.findall(r'(polyline) points="([^"]*)"', drawn)
    heights = {place.split(",")[1] for place in points.split()}
    assert len(heights) == 1
    falling = re.findall(r'polyline points="([^"]*)"', curves.curve(found["bce"], "b"))[0].split()
    (x0, y0), (x1, y1) = (tuple(map(float, place.split(","))) for place in falling)
    assert x0 < x1
    assert y0 < y1  # down on the screen
    whole = curves.section(history)
    assert whole.count("<svg") == 1
    assert "clusters in use" in whole
    assert curves.section([]) == ""


@pytest.mark.parametrize(("value", "shown"), [(0, "0"), (0.25, "0.25"), (0.00012, "1.2e-4"), (123456, "1.2e5")])
def test_numbers_are_short(value: float, shown: str) -> None:
    assert curves.number(value) == shown


def test_text() -> None:
    assert text.short("a" * 100, 20) == "a" * 6 + "…" + "a" * 13
    assert len(text.short("x" * 99, 40)) == 40
    assert text.escaped("\x00\ud800<'\">") == "\ufffd\ufffd&lt;&#x27;&quot;&gt;"
    assert text.as_json({"a": "</script>"}) == '{"a":"\\u003c/script>"}'
    assert json.loads(text.as_json(["<!--"])) == ["<!--"]


def test_truth(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", [5, 5, 5, 10, 8])
    assert compare(load(folder)) is None
    told = {15 + i: "cat" for i in range(10)} | {25 + i: "dog" for i in range(8)} | {15: "dog", 16: ATTACK}
    (folder / "truth.csv").write_text("id,label\nsomebody,cat\n" + "".join(f"item {r},{t}\n" for r, t in told.items()))
    read_run = load(folder)
    found = compare(read_run)
    assert found is not None
    assert (found.items, found.unknown_ids) == (18, 1)
    assert found.scores["acc"] == pytest.approx(16 / 18)
    assert found.counts.tolist() == [[8, 1, 1], [0, 8, 0]]
    assert found.classes == ("cat", "dog", ATTACK)
    assert {row: (true, stands) for row, true, stands in found.misplaced} == {15: ("dog", "cat"), 16: (ATTACK, "cat")}
    page = build(read_run, with_map=False)
    assert "88.9\u00a0%" in page
    assert ATTACK not in page
    (folder / "truth.csv").write_text("name,class\n")
    with pytest.raises(UnveilError, match="id,label"):
        compare(read_run)
    (folder / "truth.csv").write_text("id,label\nnobody,cat\n")
    with pytest.raises(UnveilError, match="has no id of a new item"):
        compare(read_run)


def reviewed_run(folder: Path) -> Path:
    """Three known classes, five clusters: named, merged, recognized, split, moved, rejected."""
    made_run(folder, [10, 10, 10, 12, 12, 12, 12, 12])
    log = Log(load(folder))
    log.act("name", {"cluster": 3, "text": "fox <b>"}, 0)
    log.act("merge", {"clusters": [4, 5]}, 1)
    log.act("known", {"cluster": 6, "class": 1}, 2)
    log.act("split", {"cluster": 7, "parts": [list(range(78, 84)), list(range(84, 90))]}, 3)
    log.act("move", {"rows": [30, 31], "to": 4}, 4)
    log.act("reject", {"rows": [32]}, 5)
    log.act("accept", {"cluster": 3}, 6)
    return folder


def data_of(page: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(re.findall(r'id="data">(.*)</script>', page)[0])
    return found


def test_the_report_tells_what_people_decided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = reviewed_run(tmp_path / "run")
    layout = Layout(xy=np.random.default_rng(1).random((90, 2)).astype(np.float32), sample=np.arange(0, 90, 2))
    monkeypatch.setattr("unveil.pages.report.page.layout_of", lambda run: layout)
    page = write(folder).read_text(encoding="utf-8")
    words = " ".join(Outline(page).words)
    assert "4 novel classes in 60 new items, beside 3 known classes; 12 belong to known classes and 1 was" in words
    assert "Reviewed by people:" in words
    assert "17\u00a0%" in words  # nine items of fox and the rejected one, of 60
    listed = "1 class named, 1 recognized as a known class, 1 merge, 1 split, 2 items moved, 1 item rejected"
    assert listed in words
    assert "fox &lt;b&gt;" in page
    assert "novel-0" not in page
    assert "novel-3" not in page  # it is the known class 1 now
    sizes = dict(re.findall(r'href="#class-(\d+)">.*?<b>(\d+) items</b>', page.split("<nav")[0]))
    assert sizes == {"3": "9", "4": "26", "7": "6", "8": "6"}
    data = data_of(page)
    assert len(data["points"]) == 44  # one of the sample is rejected
    assert data["sizes"] == [10, 22, 10, 9, 26, 0, 0, 6, 6]  # of the classes, not of the sample
    assert data["hues"][4 - 3] == colors.hue(1)  # a class keeps its color
    original = write(folder, original=True).read_text(encoding="utf-8")
    assert "novel-0" in original
    assert "Reviewed by people" not in original


def test_truth_is_compared_with_the_corrected_classes(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", [5, 5, 5, 10, 10])
    lines = [f"item {row},{'cat' if row < 34 else 'dog'}\n" for row in range(15, 35)]
    (folder / "truth.csv").write_text("id,label\n" + "".join(lines))
    before = " ".join(Outline(write(folder, with_map=False).read_text()).words)
    assert "55.0\u00a0%" in before
    log = Log(load(folder))
    log.act("merge", {"clusters": [3, 4]}, 0)
    log.act("reject", {"rows": [34]}, 1)
    after = " ".join(Outline(write(folder, with_map=False).read_text()).words)
    assert "100.0\u00a0%" in after
    assert "1 rejected item not counted" in after
    log.act("reject", {"rows": list(range(15, 35))}, 2)
    assert "No novel classes in 20 new items" in write(folder, with_map=False).read_text()


def test_hidden_characters_of_the_data_are_shown() -> None:
    assert text.escaped("a\u202eb\u200bc") == "a⟨202e⟩b⟨200b⟩c"


def test_truth_of_many_classes_is_a_list(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", [2] + [4] * 40, known=1)
    lines = [f"item {row},class {(row - 2) // 4 if row % 9 else 39}\n" for row in range(2, 162)]
    (folder / "truth.csv").write_text("id,label\n" + "".join(lines))
    page = build(load(folder), with_map=False)
    assert "only the largest confusions" in page
    assert page.count('class="matrix"') == 0


def test_without_opentsne(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openTSNE", None)
    folder = made_run(tmp_path / "run", [5, 4, 3, 2])
    with pytest.raises(UnveilError, match=r"pip install unveil\[review\].*--without-map"):
        write(folder)
    assert not (folder / "report.html").exists()
    assert 'id="canvas"' not in write(folder, with_map=False).read_text(encoding="utf-8")


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_run(tmp_path / "run", [5, 4, 3, 2])
    out = tmp_path / "there" / "page.html"
    with contextlib.suppress(SystemExit):  # some versions end with the exit code
        app(["report", str(tmp_path / "run"), "--out", str(out), "--without-map"], exit_on_error=False)
    assert f"written: {out}" in capsys.readouterr().out
    assert out.stat().st_size > 5000
    with pytest.raises(UnveilError, match="no finished discovery"):
        app(["report", str(tmp_path / "nowhere")], exit_on_error=False)


@pytest.fixture
def driver(browser: Browser) -> Any:
    return browser.driver


def test_it_prints_on_few_pages_and_folds_what_experts_want(driver: Any, tmp_path: Path) -> None:
    pytest.importorskip("openTSNE")
    pixels = np.random.default_rng(0).integers(0, 256, (300, 16, 16, 3), dtype=np.uint8)
    folder = made_run(tmp_path / "run", [30] * 10, known=5, pictures=pixels)
    driver.get(write(folder).resolve().as_uri())
    pdf = base64.b64decode(driver.print_page())
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 2
    bottom = (
        "return Math.max(...[...document.querySelectorAll('.strips li')].map(e => e.getBoundingClientRect().bottom))"
    )
    assert driver.execute_script(bottom) < 900, "all classes are on the first screen"
    folded = driver.find_elements("css selector", "section.folded > details")
    assert len(folded) >= 3
    assert not any(one.get_attribute("open") for one in folded)
    driver.find_element("css selector", ".strips a").click()
    assert driver.execute_script("return document.querySelector('#clusters > details').open")
    assert driver.find_element("css selector", ".card:target").is_displayed()
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    )
    try:
        wide = "return document.documentElement.scrollWidth"
        assert driver.execute_script(wide) <= 390
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.skipif(AXE is None, reason="needs axe-core: npm install --no-save axe-core, or its file in UNVEIL_AXE")
def test_axe_finds_nothing_in_a_report(browser: Browser, run: Path) -> None:
    browser.driver.get(write(run).resolve().as_uri())
    browser.driver.execute_script("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert browser.axe() == []
    with browser.colors("dark"):
        assert browser.axe("color-contrast") == []
    with phone(browser):
        assert browser.axe() == []
        assert browser.fits()


def test_in_a_browser(driver: Any, run: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    pytest.importorskip("openTSNE")
    driver.get(write(run).resolve().as_uri())
    canvas, tip = driver.find_element("id", "canvas"), driver.find_element("id", "tip")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas)
    deadline = time.monotonic() + 5
    spot = None
    while spot is None and time.monotonic() < deadline:
        spot = driver.execute_script(PAINTED, canvas)
    assert spot is not None, "nothing was painted"
    assert not tip.is_displayed()
    box = canvas.size
    move = ActionChains(driver, duration=0)
    move.move_to_element_with_offset(canvas, spot[0] - box["width"] // 2, spot[1] - box["height"] // 2).perform()
    assert tip.is_displayed()
    assert "novel-" in tip.text
    assert "confidence" in tip.text
    assert "<img src=x" in tip.text, "the name, as text"
    image = driver.execute_script("return getComputedStyle(arguments[0].firstChild).backgroundImage", tip)
    assert image.startswith('url("data:image/webp')
    seen = tip.text
    canvas.send_keys(Keys.ARROW_RIGHT)
    assert tip.text != seen
    choice = driver.find_element("css selector", "#legend button")
    choice.click()
    assert choice.get_attribute("aria-pressed") == "true"
    canvas.send_keys(Keys.ARROW_LEFT)
    assert tip.text.startswith("novel-0"), "only its items are gone to"
    canvas.send_keys(Keys.ENTER)
    assert driver.current_url.endswith("#class-4")
    thumb = driver.find_element("css selector", ".card .t")
    assert thumb.size["width"] >= 58
    assert [line for line in driver.get_log("browser") if line["level"] == "SEVERE"] == []
    assert driver.title.startswith("run")


PAINTED = """
const canvas = arguments[0], ratio = devicePixelRatio;
const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
for (let i = 0; i < pixels.length; i += 4) {
  const [r, g, b] = [pixels[i], pixels[i + 1], pixels[i + 2]];
  // a color, so a novel class: known ones are gray
  if (pixels[i + 3] > 200 && Math.max(r, g, b) - Math.min(r, g, b) > 60) {
    return [Math.round((i / 4 % canvas.width) / ratio), Math.round(Math.floor(i / 4 / canvas.width) / ratio)];
  }
}
return null;
"""
