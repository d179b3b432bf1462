"""The server of the review page: who is let in, what it answers, and that actions end in the export."""

import csv
import io
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from review_runs import KNOWN, make_run, seal_again
from starlette.testclient import TestClient

from unveil.errors import UnveilError
from unveil.pages.review import server
from unveil.pages.review.guard import HEADERS, Access, Guard, allowed_hosts
from unveil.pages.review.map import LiveMap
from unveil.pages.review.pictures import Pictures
from unveil.pages.review.serve import serve
from unveil.pages.review.similar import SimilarItems
from unveil.pages.review.split import split
from unveil.pages.review.summary import Summary
from unveil.runs.reader import Run, load

A, B, C, D = 2, 3, 4, 5
HOST = "127.0.0.1:8123"
ACCESS = Access(port=8123, hosts=allowed_hosts("127.0.0.1", 8123), token="right")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return make_run(tmp_path / "run")


def visitor(app: Guard, **headers: str) -> TestClient:
    return TestClient(app, base_url=f"http://{HOST}", headers=headers, follow_redirects=False)


@pytest.fixture
def page(run: Run) -> TestClient:
    """Somebody who opened the address that was printed."""
    found = visitor(server.application(run, ACCESS), origin=f"http://{HOST}")
    found.cookies.set("unveil-8123", "right")
    return found


def act(page: TestClient, kind: str, base: int, **data: Any) -> dict[str, Any]:
    answer = page.post("/api/action", json={"kind": kind, "base": base, **data})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


PATHS = ["/", "/static/app.js", "/api/state", "/api/about", "/api/item/30", "/api/thumbs?rows=1", "/api/labels"]


@pytest.mark.parametrize("path", PATHS)
def test_nothing_without_the_token(run: Run, path: str) -> None:
    app = server.application(run, ACCESS)
    assert visitor(app).get(path).status_code == 403
    assert visitor(app, cookie="unveil-8123=wrong").get(path).status_code == 403
    assert visitor(app, cookie="unveil-9=right").get(path).status_code == 403
    assert visitor(app, cookie="unveil-8123=right").get(path).status_code == 200
    joined = "&" if "?" in path else "?"
    if path != "/":
        assert visitor(app).get(f"{path}{joined}token=right").status_code == 403


def test_the_first_visit_sets_a_cookie_and_cleans_the_address(run: Run) -> None:
    client = visitor(server.application(run, ACCESS))
    assert client.get("/?token=wrong").status_code == 403
    answer = client.get("/?token=right")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert client.get("/").status_code == 200


def test_tokens_are_long_and_not_repeated() -> None:
    tokens = {Access(port=1, hosts=frozenset()).token for _ in range(20)}
    assert len(tokens) == 20
    assert min(map(len, tokens)) >= 40
    assert "right" not in repr(ACCESS)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8123", "127.0.0.1", "127.0.0.1:80", "127.0.0.2:8123", ""]
)
def test_other_names_for_this_address_are_refused(page: TestClient, host: str) -> None:
    assert page.get("/api/state", headers={"host": host}).status_code == 421
    assert page.get("/api/state", headers={"host": "localhost:8123"}).status_code == 200


def test_hosts_follow_what_is_bound() -> None:
    assert allowed_hosts("127.0.0.1", 5) == {"127.0.0.1:5", "localhost:5"}
    assert allowed_hosts("::1", 5) == {"[::1]:5", "localhost:5"}
    assert allowed_hosts("192.0.2.7", 5) == {"192.0.2.7:5"}
    assert allowed_hosts("box.example", 5) == {"box.example:5"}
    assert "127.0.0.1:5" in allowed_hosts("0.0.0.0", 5)
    assert not any("evil" in host for host in allowed_hosts("0.0.0.0", 5))


@pytest.mark.parametrize("path", ["/api/action", "/api/undo", "/api/redo", "/api/split-preview", "/api/export"])
def test_actions_come_from_the_page_itself(run: Run, path: str) -> None:
    app = server.application(run, ACCESS)
    body = {"kind": "accept", "cluster": A, "base": 0, "parts": 2, "format": "csv"}
    cookie = "unveil-8123=right"
    for origin in [None, "null", "http://evil.example", "https://127.0.0.1:8123", f"http://{HOST}.evil.example"]:
        headers = {"cookie": cookie} if origin is None else {"cookie": cookie, "origin": origin}
        assert visitor(app, **headers).post(path, json=body).status_code == 403, origin
    at_home = {"cookie": cookie, "origin": f"http://{HOST}"}
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]:
        assert visitor(app, **at_home, **{"content-type": kind}).post(path, content="{}").status_code == 415
    assert visitor(app, **at_home, **{"sec-fetch-site": "cross-site"}).post(path, json=body).status_code == 403
    assert visitor(app, origin=f"http://{HOST}").post(path, json=body).status_code == 403
    assert visitor(app, **at_home).get(path).status_code == 405
    assert visitor(app, **at_home).put(path, json=body).status_code == 405
    assert not (run.folder / "review.jsonl").exists()


def test_every_answer_is_fenced(page: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger = visitor(page.app)  # type: ignore[arg-type]
    monkeypatch.setattr(Pictures, "sheet", lambda *_: 1 / 0)
    broken = TestClient(page.app, base_url=f"http://{HOST}", cookies=page.cookies, raise_server_exceptions=False)
    paths = [path for path in PATHS if "thumbs" not in path]
    answers = [page.get(path) for path in [*paths, "/nowhere", "/api/cluster/99"]]
    answers += [
        broken.get("/api/thumbs?rows=1"),
        stranger.get("/"),
        stranger.get("/?token=right"),
        page.post("/api/undo", json={"base": 0}),
    ]
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers[name] == value, answer.url
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/..%2fserver.py",
        "/static/%2e%2e/server.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/index.html%00",
        "/static/",
        "/api/item/../../etc/passwd",
        "/api/item/-1",
        "/api/item/999",
        "/api/item/1.5",
        "/api/cluster/-1",
        "/api/cluster/99",
        "/api/similar/100000",
        "/items.csv",
        "/review.jsonl",
    ],
)
def test_no_path_leaves_its_place(page: TestClient, path: str) -> None:
    answer = page.get(path)
    assert answer.status_code in (400, 404), answer.text
    assert "root:" not in answer.text


@pytest.mark.parametrize("rows", ["", "a", "-1", "1,,2", "1;2", "٣", "9" * 30, ",".join(["1"] * 65), "../../x", "1.0"])
def test_rows_are_numbers_of_items(page: TestClient, rows: str) -> None:
    for path in ("/api/thumbs", "/api/items"):
        assert page.get(path, params={"rows": rows}).status_code in (400, 404)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "3",
        "nonsense",
        "[" * 100_000,
        '{"kind": "accept"}',
        '{"kind": 3, "base": 0}',
        '{"kind": "x", "base": -1}',
        '{"kind": "name", "cluster": 2, "base": 0, "text": "\\ud800"}',
        '{"kind": "accept", "base": 0, "cluster": NaN}',
        '{"kind": "reject", "base": 0, "rows": [1e400]}',
        '{"kind": "accept", "base": true, "cluster": 2}',
    ],
)
def test_nonsense_is_refused_in_words(page: TestClient, body: str) -> None:
    answer = page.post("/api/action", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"]
    assert page.get("/api/state").json()["length"] == 0


def test_a_body_has_a_largest_size(page: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LARGEST_BODY", 1000)
    body = {"kind": "reject", "rows": list(range(1000)), "base": 0}
    assert page.post("/api/action", json=body).status_code == 413


def test_names_stay_data(page: TestClient, run: Run) -> None:
    hostile = "<script>alert(1)</script>"
    state = act(page, "name", 0, cluster=A, text=hostile)
    assert state["classes"][A]["name"] == hostile
    assert state["classes"][1]["name"] == KNOWN[1]
    answer = page.get("/api/state")
    assert answer.headers["content-type"] == "application/json"
    assert hostile not in page.get("/").text
    with (Path(page.post("/api/export", json={"format": "csv"}).json()["written"])).open() as file:
        assert [row["label"] for row in csv.DictReader(file)].count(hostile) == 12


def test_the_page_itself_has_nothing_from_elsewhere() -> None:
    for path in server.STATIC.iterdir():
        text = path.read_text()
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", ""), path.name
        assert "https://" not in text, path.name
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert word not in text, f"{word} in {path.name}"
    page = (server.STATIC / "index.html").read_text()
    assert "style=" not in page
    assert page.count("<script") == 1


def test_all_actions_and_the_export(page: TestClient, run: Run) -> None:
    state = page.get("/api/state").json()
    assert [one["size"] for one in state["classes"]] == [12] * 6
    assert len(state["classes"][A]["typical"]) == 8
    act(page, "name", 0, cluster=A, text="fox")
    act(page, "known", 1, cluster=B, **{"class": 0})
    preview = page.post("/api/split-preview", json={"cluster": C, "parts": 2}).json()
    assert sorted(map(len, preview["parts"])) == [6, 6]
    assert page.get("/api/state").json()["length"] == preview["length"] == 2
    state = act(page, "split", 2, cluster=C, parts=preview["parts"])
    assert state["undo"] == "split"
    assert page.get("/api/cluster/6").json()["total"] == 6
    act(page, "merge", 3, clusters=[D, 6])
    rows = page.get(f"/api/cluster/{A}?sort=typicality").json()["rows"]
    act(page, "move", 4, rows=rows[:2], to=None, text="owl")
    act(page, "reject", 5, rows=rows[2:3])
    state = act(page, "accept", 6, cluster=A)
    assert state["items"] == {"all": 72, "new": 48, "reviewed": 10}
    assert page.get("/api/rejected").json()["rows"] == rows[2:3]
    assert page.post("/api/undo", json={"base": 7}).json()["items"]["reviewed"] == 1
    assert page.post("/api/redo", json={"base": 8}).json()["items"]["reviewed"] == 10
    written = Path(page.post("/api/export", json={"format": "csv"}).json()["written"])
    assert written.parent == run.folder.resolve()
    with written.open() as file:
        found = list(csv.DictReader(file))
    labels = np.array([row["label"] for row in found])
    assert {name: int((labels == name).sum()) for name in np.unique(labels)} == {
        "": 1,
        "cat": 12,
        "fox": 9,
        "novel-2": 6,
        "novel-3": 18,
        "owl": 2,
    }
    assert {row["kind"] for row in found if row["label"] == "cat"} == {"known"}
    assert page.post("/api/export", json={"format": "../../x"}).status_code == 400


def test_two_tabs(page: TestClient) -> None:
    act(page, "name", 0, cluster=A, text="fox")
    answer = page.post("/api/action", json={"kind": "name", "cluster": A, "text": "owl", "base": 0})
    assert answer.status_code == 409
    assert "another window" in answer.json()["error"]
    act(page, "name", 0, cluster=B, text="owl")
    assert page.post("/api/undo", json={"base": 1}).status_code == 409
    assert page.post("/api/undo", json={"base": 99}).status_code == 409


def test_pictures_come_in_sheets(page: TestClient, run: Run) -> None:
    answer = page.get("/api/thumbs?rows=30,31,2,3,4,5,6,7,8")
    sheet = Image.open(io.BytesIO(answer.content))
    assert sheet.size == (8 * 16, 2 * 16)
    assert answer.headers["x-sizes"] == ",".join(["16x16"] * 9)
    assert run.pictures is not None
    assert np.array_equal(np.asarray(sheet)[:16, 16:32], run.pictures[31])
    assert Image.open(io.BytesIO(page.get("/api/item/31").content)).size == (16, 16)


def test_files_that_are_gone_leave_a_gap(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", pictures="files")
    Path(run.paths[31]).unlink()
    page = visitor(server.application(run, ACCESS), cookie="unveil-8123=right")
    assert page.get("/api/thumbs?rows=30,31").headers["x-sizes"] == "16x16,0x0"
    assert page.get("/api/item/31").status_code == 404
    assert page.get("/api/items?rows=30").json()[0]["id"] == "<script>alert(1)</script>/0030.png"


def test_items_without_pictures_tell_their_numbers(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", pictures="none")
    page = visitor(server.application(run, ACCESS), cookie="unveil-8123=right")
    assert page.get("/api/about").json()["pictures"] is False
    columns = page.get("/api/items?rows=30").json()[0]["columns"]
    assert len(columns) == 4
    assert run.inputs is not None
    strange = np.abs((run.inputs[30] - run.inputs.mean(axis=0)) / run.inputs.std(axis=0))
    assert [one["column"] for one in columns] == [f"column {c + 1}" for c in np.argsort(-strange)[:4]]


def test_similar_and_duplicates(run: Run) -> None:
    features = np.array(run.features)
    features[40], features[60] = features[30] * 3, features[50] + 1e-3
    np.save(run.folder / "features.npy", features)
    assert run.pictures is not None
    pictures = np.array(run.pictures)
    pictures[33] = pictures[71]
    np.save(run.folder / "pictures.npy", pictures)
    seal_again(run.folder)
    changed = load(run.folder)
    similar = SimilarItems(changed)
    rows, cosines = similar.similar(30, 5)
    assert rows[:2].tolist() == [30, 40]
    assert cosines[1] == pytest.approx(1)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    assert set(rows.tolist()) == set(np.argsort(-(unit @ unit[30]))[:5].tolist())
    assert sorted(similar.duplicates) == [[30, 40], [33, 71], [50, 60]]


def test_the_map_is_quick_at_first_and_fine_when_it_is_drawn(run: Run) -> None:
    pytest.importorskip("openTSNE")
    found = LiveMap(run)
    quick, state = found.coordinates()
    assert state == "drawing"
    places = np.frombuffer(quick, dtype="<f4").reshape(-1, 2)
    assert len(places) == len(run.ids)
    assert places.min() >= 0
    assert places.max() <= 1
    until = time.monotonic() + 60
    while found.state() == "drawing":
        assert time.monotonic() < until
        time.sleep(0.1)
    fine, state = found.coordinates()
    assert state == "fine"
    assert len(fine) == len(quick)
    assert fine != quick
    assert LiveMap(run).coordinates() == (fine, "fine")  # kept in the run


@pytest.mark.parametrize("fault", ["missing", "failing"])
def test_without_a_finer_map_the_quick_one_stays(run: Run, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    if fault == "missing":
        monkeypatch.setattr("unveil.pages.review.map.can_use_tsne", lambda: False)
    else:
        monkeypatch.setattr("unveil.pages.review.map.can_use_tsne", lambda: True)
        failing = [sys.executable, "-c", "raise SystemExit(1)"]
        monkeypatch.setattr("unveil.pages.review.map._start_drawing", lambda run: subprocess.Popen(failing))
    found = LiveMap(run)
    found.coordinates()
    until = time.monotonic() + 20
    while found.state() == "drawing":
        assert time.monotonic() < until
        time.sleep(0.05)
    assert found.coordinates()[1] == "quick"


def test_splits_that_cannot_be(run: Run) -> None:
    with pytest.raises(UnveilError, match="give 2 to 6"):
        split(run, np.arange(30, 40), 7)
    with pytest.raises(UnveilError, match="2 items cannot be split into 3 parts"):
        split(run, np.arange(30, 32), 3)


def test_moved_items_are_typical_of_their_new_class(run: Run) -> None:
    review = server.Review(run)
    summary: Summary = review.summary
    rows = [int(row) for row in np.flatnonzero(run.labels == A)[:3]]
    review.act("move", {"rows": rows, "to": B}, 0)
    moved = summary.typicality[rows]
    assert (moved < summary.typicality[np.flatnonzero(run.labels == B)].max()).all()
    assert (moved != run.typicality[rows]).all()
    review.act("undo", {}, 1)
    assert (summary.typicality == run.typicality).all()


def test_mistakes_of_the_command_are_told(run: Run) -> None:
    with pytest.raises(UnveilError, match="no finished discovery"):
        serve(run.folder / "nowhere", host="127.0.0.1", port=0, browser=False)
    with pytest.raises(UnveilError, match="--port is 70000"):
        serve(run.folder, host="127.0.0.1", port=70000, browser=False)
    with pytest.raises(UnveilError, match="choose another --port or --host"):
        serve(run.folder, host="192.0.2.1", port=0, browser=False)
