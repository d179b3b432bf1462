"""The server of the review page: who is let in, what it answers, and that actions end in the export."""

import csv
import io
import json
import shutil
import subprocess
import sys
import time
import unicodedata
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
from PIL import Image
from review_runs import KNOWN, make_run, seal_again
from starlette.testclient import TestClient

from unveil.errors import UnveilError
from unveil.pages.review import parameters, server
from unveil.pages.review.guard import HEADERS, KEY_HEADER, Access, Guard, allowed_hosts
from unveil.pages.review.map import LiveMap
from unveil.pages.review.pictures import Pictures
from unveil.pages.review.serve import prepare, serve
from unveil.pages.review.similar import SimilarItems
from unveil.pages.review.split import split
from unveil.pages.review.summary import Summary
from unveil.review.edited_scores import rising_curve
from unveil.review.names import telling_words
from unveil.runs.reader import Run, load

A, B, C, D = 2, 3, 4, 5
HOST = "127.0.0.1:8123"


def new_access() -> Access:
    return Access(port=8123, hosts=allowed_hosts("127.0.0.1", 8123))


def signed_in(run: Run) -> TestClient:
    """Somebody who opened the address that was printed."""
    access = new_access()
    app = server.application(run, access)
    key = access.open_session(access.code)
    assert key is not None
    return visitor(app, origin=f"http://{HOST}", **{KEY_HEADER: key})


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return make_run(tmp_path / "run")


def visitor(app: Guard, **headers: str) -> TestClient:
    return TestClient(app, base_url=f"http://{HOST}", headers=headers, follow_redirects=False)


@pytest.fixture
def page(run: Run) -> TestClient:
    return signed_in(run)


def act(page: TestClient, kind: str, base: int, **data: Any) -> dict[str, Any]:
    answer = page.post("/api/action", json={"kind": kind, "base": base, **data})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


PATHS = ["/api/state", "/api/about", "/api/item/30", "/api/thumbs?rows=1", "/api/labels", "/api/new", "/api/map"]


@pytest.mark.parametrize("path", PATHS)
def test_nothing_of_the_run_without_a_session(run: Run, path: str) -> None:
    access = new_access()
    app = server.application(run, access)
    key = access.open_session(access.code)
    assert visitor(app).get(path).status_code == 401
    assert visitor(app, **{KEY_HEADER: "wrong"}).get(path).status_code == 401
    assert visitor(app, **{KEY_HEADER: access.code}).get(path).status_code == 401
    assert visitor(app, cookie=f"unveil-8123={key}").get(path).status_code == 401
    joined = "&" if "?" in path else "?"
    assert visitor(app).get(f"{path}{joined}key={key}").status_code == 401
    assert visitor(app, **{KEY_HEADER: str(key)}).get(path).status_code == 200
    answer = visitor(app).get(path)
    assert answer.json()["trouble"] == "session"
    page = visitor(app).get("/")
    assert page.content == (server.STATIC / "index.html").read_bytes()  # the same for every run


def test_a_link_opens_once_and_sets_no_cookie(run: Run) -> None:
    access = new_access()
    client = visitor(server.application(run, access), origin=f"http://{HOST}")
    for wrong in ("wrong", None, 3, ["x"], ""):
        assert client.post("/api/session", json={"code": wrong}).status_code == 401
    code = access.code
    answer = client.post("/api/session", json={"code": code})
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers
    again = client.post("/api/session", json={"code": code})
    assert again.status_code == 401
    assert "prints a new one" in again.json()["error"]
    assert access.code != code
    assert client.post("/api/session", json={"code": access.code}).status_code == 200  # another browser
    stranger = visitor(client.app, origin="http://127.0.0.1:9999")  # type: ignore[arg-type]
    assert stranger.post("/api/session", json={"code": access.code}).status_code == 403


def test_codes_and_keys_are_long_and_not_repeated() -> None:
    access = new_access()
    codes = {access.code, *(new_access().code for _ in range(20))}
    assert len(codes) == 21
    key = access.open_session(access.code)
    assert key is not None
    assert min(map(len, [key, *codes])) >= 40
    assert key not in codes
    assert key not in repr(access)


def test_no_secret_in_a_command_line(run: Run, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Everybody on a machine can read command lines, so the browser is given a file that only its owner can read."""
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    _, bound, links = prepare(run, host="127.0.0.1", port=0, browser=True)
    bound.close()
    links.say = True
    links.open_browser()
    assert links.access is not None
    code = links.access.code
    assert code not in opened[0]
    path = Path(unquote(opened[0].removeprefix("file://")))
    assert links.address in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert links.access.open_session(code)
    assert not path.exists()
    assert links.access.code in capsys.readouterr().out  # a link for another browser
    run.folder.joinpath("open-review.html").mkdir()  # nothing can be written there
    links.open_browser()
    path = Path(unquote(opened[1].removeprefix("file://")))
    assert path.parent != run.folder
    assert path.parent.stat().st_mode & 0o777 == 0o700
    links.clean()
    assert not path.parent.exists()


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
    access = new_access()
    app = server.application(run, access)
    body = {"kind": "accept", "cluster": A, "base": 0, "parts": 2, "format": "csv"}
    key = {KEY_HEADER: str(access.open_session(access.code))}
    for origin in [None, "null", "http://evil.example", "https://127.0.0.1:8123", f"http://{HOST}.evil.example"]:
        headers = key if origin is None else {**key, "origin": origin}
        assert visitor(app, **headers).post(path, json=body).status_code == 403, origin
    at_home = {**key, "origin": f"http://{HOST}"}
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]:
        assert visitor(app, **at_home, **{"content-type": kind}).post(path, content="{}").status_code == 415
    assert visitor(app, **at_home, **{"sec-fetch-site": "cross-site"}).post(path, json=body).status_code == 403
    assert visitor(app, origin=f"http://{HOST}").post(path, json=body).status_code == 401
    assert visitor(app, **at_home).get(path).status_code == 405
    assert visitor(app, **at_home).put(path, json=body).status_code == 405
    assert not (run.folder / "review.jsonl").exists()


def test_every_answer_is_fenced(page: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger = visitor(page.app)  # type: ignore[arg-type]
    monkeypatch.setattr(Pictures, "sheet", lambda *_: 1 / 0)
    broken = TestClient(page.app, base_url=f"http://{HOST}", headers=page.headers, raise_server_exceptions=False)
    paths = [path for path in PATHS if "thumbs" not in path]
    answers = [page.get(path) for path in [*paths, "/nowhere", "/api/cluster/99"]]
    answers += [
        broken.get("/api/thumbs?rows=1"),
        stranger.get("/"),
        stranger.get("/api/state"),
        page.post("/api/session", json={"code": "wrong"}),
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
        f"/api/cluster/{'9' * 5000}",
        f"/api/item/{'9' * 5000}",
        f"/api/similar/{'9' * 5000}",
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
    monkeypatch.setattr(parameters, "LARGEST_BODY", 1000)
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
    page = signed_in(run)
    assert page.get("/api/thumbs?rows=30,31").headers["x-sizes"] == "16x16,0x0"
    assert page.get("/api/item/31").status_code == 404
    assert page.get("/api/items?rows=30").json()[0]["id"] == "<script>alert(1)</script>/0030.png"


def test_items_without_pictures_tell_their_numbers(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", pictures="none")
    page = signed_in(run)
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
    assert sorted(similar.duplicates()) == [[30, 40], [33, 71], [50, 60]]


def test_the_map_is_quick_at_first_and_fine_when_it_is_drawn(run: Run) -> None:
    pytest.importorskip("openTSNE")
    found = LiveMap(run)
    quick, state = found.coordinates()
    assert state == "drawing"
    places = np.frombuffer(quick, dtype="<f4").reshape(-1, 2)
    assert len(places) == len(run.ids)
    assert places.min() >= 0
    assert places.max() <= 1
    until = time.monotonic() + 300
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
        monkeypatch.setattr("unveil.pages.review.map.in_background", lambda module, run: subprocess.Popen(failing))
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


def test_a_row_that_is_repeated_is_stored_once(page: TestClient, run: Run) -> None:
    act(page, "reject", 0, rows=[30] * 100_000)
    state = act(page, "split", 1, cluster=C, parts=[[50, 50, 49] * 1000, [51] * 1000])
    assert state["rejected"] == 1
    lines = (run.folder / "review.jsonl").read_text().splitlines()
    assert max(map(len, lines)) < 200
    assert json.loads(lines[1])["data"]["parts"] == [[50, 49], [51]]


@pytest.mark.parametrize(
    "name",
    [
        "fo\u200bx",
        "\u202exof",
        "fox\u200d",
        "f\u200dox",
        "\u2066fox\u2069",
        "\u3164",
        "fox\ufeff",
        "a\u00adb",
        "\u2800",
    ],
)
def test_names_that_look_like_others_are_refused(page: TestClient, name: str) -> None:
    answer = page.post("/api/action", json={"kind": "name", "cluster": A, "text": name, "base": 0})
    assert answer.status_code == 400
    assert "cannot be seen (U+" in answer.json()["error"]


@pytest.mark.parametrize("name", ["👩‍🔬", "می‌خواهم", "क्‍ष", "été", "猫", "שועל"])
def test_names_of_all_scripts_are_taken(page: TestClient, name: str) -> None:
    state = act(page, "name", 0, cluster=A, text=name)
    assert state["classes"][A]["name"] == unicodedata.normalize("NFC", name)


def test_an_old_log_with_a_hidden_character_still_works(run: Run) -> None:
    data = {"cluster": A, "text": "fo\u200bx"}
    line = json.dumps({"number": 1, "time": "", "kind": "name", "data": data})
    (run.folder / "review.jsonl").write_text(line + "\n")
    assert signed_in(run).get("/api/state").json()["classes"][A]["name"] == "fo\u200bx"


def test_a_log_that_cannot_be_read_or_written_is_said(page: TestClient, run: Run) -> None:
    log = run.folder / "review.jsonl"
    log.mkdir()
    for answer in (page.get("/api/state"), page.post("/api/action", json={"kind": "accept", "cluster": A, "base": 0})):
        assert answer.status_code == 503
        assert answer.json()["trouble"] in ("log", "read-only")
    log.rmdir()
    act(page, "accept", 0, cluster=A)


def test_a_deleted_log_is_said_and_can_be_written_again(page: TestClient, run: Run) -> None:
    log = run.folder / "review.jsonl"
    act(page, "name", 0, cluster=A, text="fox")
    content = log.read_bytes()
    log.unlink()
    answer = page.get("/api/state")
    assert answer.status_code == 503
    assert answer.json()["trouble"] == "log"
    refused = page.post("/api/action", json={"kind": "name", "cluster": B, "text": "owl", "base": 1})
    assert refused.json()["trouble"] == "log"
    assert not log.exists()
    state = page.post("/api/log", json={"do": "restore"}).json()
    assert state["classes"][A]["name"] == "fox"
    assert log.read_bytes() == content
    act(page, "name", 1, cluster=B, text="owl")
    log.unlink()
    assert page.post("/api/log", json={"do": "forget"}).json()["length"] == 0
    assert page.post("/api/log", json={"do": "x"}).status_code == 400
    act(page, "name", 0, cluster=B, text="owl")


PATHS_WITH_FILES = ["/api/state", "/api/map", "/api/duplicates", "/api/similar/30", "/api/items?rows=30", "/api/labels"]


@pytest.mark.parametrize("path", PATHS_WITH_FILES)
def test_a_run_that_is_gone_is_said(page: TestClient, run: Run, path: str) -> None:
    shutil.rmtree(run.folder)
    answer = page.get(path)
    assert answer.status_code == 503, answer.text
    assert answer.json()["trouble"] == "missing"


def test_sure_after_merge_split_and_move(run: Run) -> None:
    review = server.Review(run)
    first = run.confidence.copy()

    def confidence(cluster: int) -> Any:
        review.state()
        with review.log.reading() as state:
            return review.summary.confidence[state.labels == cluster]

    review.act("merge", {"clusters": [A, B]}, 0)
    assert len(confidence(A)) == 24
    assert (confidence(A) != first[np.isin(run.labels, [A, B])]).any()
    assert (confidence(C) == first[run.labels == C]).all()
    review.act("undo", {}, 1)
    assert (review.summary.confidence == first).all()
    parts = [part.tolist() for part in split(run, np.flatnonzero(run.labels == C), 2)]
    review.act("split", {"cluster": C, "parts": parts}, 2)
    assert (confidence(C) != first[parts[0]]).any()
    moved = [int(row) for row in np.flatnonzero(run.labels == A)[:2]]
    review.act("move", {"rows": moved, "to": D}, 3)
    assert review.items(moved)[0]["by_hand"]
    assert (review.summary.confidence[moved] == 1).all()  # a person said so
    shown = review.rows_of(D, "confidence", 0, 100)
    assert shown["confidence"][: len(moved)] == [100] * len(moved)
    review.act("undo", {}, 4)
    assert (review.summary.confidence[moved] == first[moved]).all()


def test_a_merged_class_of_two_halves_is_surer_than_its_halves(tmp_path: Path) -> None:
    """Items between two halves of one class are doubtful until the halves are merged."""
    run = make_run(tmp_path / "run", each=40)
    features = np.array(run.features)
    rng = np.random.default_rng(3)
    center = rng.normal(size=16)
    for cluster, shift in ((A, 0.15), (B, -0.15)):
        rows = run.labels == cluster
        features[rows] = center + shift * np.eye(16)[0] + 0.1 * rng.normal(size=(40, 16))
    np.save(run.folder / "features.npy", features)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    means = np.stack([unit[run.labels == c].mean(axis=0) for c in range(6)])
    cosines = unit @ (means / np.linalg.norm(means, axis=1, keepdims=True)).T
    own = cosines[np.arange(len(unit)), run.labels]
    cosines[np.arange(len(unit)), run.labels] = -1
    margin = own - cosines.max(axis=1)
    with np.load(run.folder / "rows.npz") as stored:
        rows = {**stored, "confidence": np.clip(0.5 + margin, 0, 1).astype(np.float32)}
    np.savez(run.folder / "rows.npz", **rows)
    seal_again(run.folder)
    review = server.Review(load(run.folder))
    before = review.state()["classes"]
    after = review.act("merge", {"clusters": [A, B]}, 0)["classes"]
    assert max(before[A]["confidence"], before[B]["confidence"]) < 0.65
    assert after[A]["confidence"] > 0.8


def test_a_rising_curve_pools_what_falls() -> None:
    x, y = rising_curve(np.array([0, 1, 2, 3], dtype="f4"), np.array([0.1, 0.6, 0.4, 0.9], dtype="f4"))
    np.testing.assert_allclose(x, [0, 1.5, 3])
    np.testing.assert_allclose(y, [0.1, 0.5, 0.9], atol=1e-6)


def test_numbers_are_shown_in_full(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", pictures="none")
    inputs = np.array(run.inputs)
    inputs[30, 3] = 177713
    np.save(run.folder / "inputs.npy", inputs)
    seal_again(run.folder)
    columns = signed_in(load(run.folder)).get("/api/items?rows=30").json()[0]["columns"]
    assert columns[0] == {"column": "column 4", "value": 177713, "deviations": columns[0]["deviations"]}


def test_the_headline_assumes_no_guessed_number(run: Run) -> None:
    forecast = {"accuracy": 0.89, "low": 0.77, "high": 0.97}
    run.record.update(forecast=forecast, warnings=["the classes look unbalanced"])
    assert server.Review(run).about()["headline"] == "Expected accuracy 89 % (90 % interval 77-97 %)."
    assert server.Review(run).about()["warnings"] == ["the classes look unbalanced"]
    run.record["estimate"] = {"number": 4, "low": 3, "high": 6}
    about = server.Review(run).about()
    assert (
        about["headline"]
        == "Expected accuracy 89 % if there are 4 novel classes, which is an estimate, between 3 and 6."
    )
    assert about["edited_headline"].endswith("between 3 and 6; before the review.")
    run.record["forecast"] = {"accuracy": None, "reason": "nothing was rehearsed"}
    assert server.Review(run).about()["headline"] == "Expected accuracy unknown: nothing was rehearsed."


def test_the_server_starts_without_heavy_packages(run: Run) -> None:
    code = (
        "import sys; from pathlib import Path; from unveil.pages.review.review import Review\n"
        "from unveil.runs.reader import load; review = Review(load(Path(sys.argv[1])))\n"
        "review.state(), review.about()\n"
        "import unveil.pages.review.serve\n"
        "heavy = {'torch', 'sklearn', 'scipy.sparse', 'pandas', 'matplotlib', 'openTSNE'} & set(sys.modules)\n"
        "status = Path('/proc/self/status')\n"
        "memory = status.read_text().split('VmHWM:')[1] if status.exists() else '0'\n"
        "print(sorted(heavy), int(memory.split()[0]) // 1000)"
    )
    out = subprocess.run([sys.executable, "-c", code, str(run.folder)], capture_output=True, text=True, check=True)
    heavy, memory = out.stdout.rsplit(" ", 1)
    assert heavy == "[]"
    assert int(memory) < 120


def test_classes_by_similarity_and_what_to_look_at(page: TestClient, run: Run) -> None:
    features = np.asarray(run.features)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    means = np.stack([unit[run.labels == c].mean(axis=0) for c in range(6)])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    cosines = means @ means[A]
    near = page.post("/api/nearest", json={"cluster": A}).json()["classes"]
    assert [one["id"] for one in near] == np.argsort(-cosines).tolist()
    assert near[1]["cosine"] == pytest.approx(np.sort(cosines)[-2], abs=1e-4)
    rows = np.flatnonzero(run.labels == B).tolist()
    assert page.post("/api/nearest", json={"rows": rows}).json()["classes"][0]["id"] == B
    assert page.post("/api/nearest", json={"cluster": 99}).status_code == 404
    assert page.post("/api/nearest", json={"rows": []}).status_code == 400
    profile = page.get(f"/api/profile/{A}").json()
    order = np.argsort(-cosines)
    assert profile["known"]["id"] == next(c for c in order if c < 2)
    assert profile["cluster"]["id"] == next(c for c in order if c > 2)
    worst = np.flatnonzero(run.labels == A)[np.argsort(run.confidence[run.labels == A])]
    assert profile["doubtful"] == worst.tolist()
    assert page.get("/api/profile/99").status_code == 404


def test_rejected_items_are_restored_to_the_class_they_were_in(page: TestClient, run: Run) -> None:
    rows = np.flatnonzero(run.labels == A)[:3].tolist()
    act(page, "move", 0, rows=rows[:1], to=B)
    act(page, "reject", 1, rows=rows)
    state = act(page, "restore", 2, rows=rows)
    assert state["rejected"] == 0
    assert [one["class"] for one in page.get(f"/api/items?rows={','.join(map(str, rows))}").json()] == [B, A, A]
    again = page.post("/api/action", json={"kind": "restore", "rows": rows, "base": 3})
    assert "not rejected" in again.json()["error"]
    act(page, "reject", 3, rows=rows)
    act(page, "merge", 4, clusters=[C, B])
    gone = page.post("/api/action", json={"kind": "restore", "rows": rows, "base": 5})
    assert "the class of 1 of these items does not exist any more" in gone.json()["error"]


def test_duplicates_by_similarity(run: Run) -> None:
    review = server.Review(run)
    strict, loose = review.duplicates(0.9999)["groups"], review.duplicates(0.95)["groups"]
    assert len(strict) < len(loose)
    page = signed_in(run)
    for wrong in ("2", "x", "0.1", "nan"):
        assert page.get(f"/api/duplicates?alike={wrong}").status_code == 400


def test_thumbnails_of_a_run_that_cannot_be_written(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", pictures="files")
    (run.folder / "thumbnails.sqlite").write_bytes(b"no database" * 100)
    page = signed_in(run)
    assert page.get("/api/thumbs?rows=30&side=224").status_code == 200
    assert page.get("/api/thumbs?rows=30&side=7").status_code == 400


def test_names_are_suggested(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    names = signed_in(run).get(f"/api/profile/{A}").json()["names"]
    assert names[-1].startswith("like ")
    assert KNOWN[0] in names[-1]

    words = ["deer", "horse", "owl", "fox", "boat", "truck"]
    (run.folder / "words.json").write_text(json.dumps([f"{word} grass" for word in words for _ in range(12)]))
    assert signed_in(load(run.folder)).get(f"/api/profile/{B}").json()["names"][0] == "fox"
    texts = [
        f"please {word} my card today"
        for word in ("block", "pay", "lost", "order", "cancel", "freeze")
        for _ in range(12)
    ]
    (run.folder / "texts.json").write_text(json.dumps(texts))
    page = signed_in(load(run.folder))
    assert page.get(f"/api/profile/{B}").json()["names"][0] == "order"
    act(page, "name", 0, cluster=A, text="order")
    assert page.get(f"/api/profile/{A}").json()["names"] == []  # it has a name
    assert page.get(f"/api/profile/{B}").json()["names"][0] == "order 2"  # names are different
    assert page.get("/api/row/30").json()["text"] == texts[30]
    assert page.get("/api/items?rows=30").json()[0]["text"] == texts[30]
    assert page.get(f"/api/profile/{B}").json()["words"] == ["order"]
    halves = [f"a {'red' if row % 2 else 'blue'} thing" for row in range(72)]  # parts differ by even and odd rows
    (run.folder / "texts.json").write_text(json.dumps(halves))
    split = signed_in(load(run.folder)).post("/api/split-preview", json={"cluster": A, "parts": 2}).json()
    assert sorted(split["telling"]) == [["blue"], ["red"]]

    table = make_run(tmp_path / "table", pictures="none")
    inputs = np.array(table.inputs)
    inputs[table.labels == C, 3] += 50
    np.save(table.folder / "inputs.npy", inputs)
    seal_again(table.folder, columns=[f"width {number}" for number in range(16)])
    named = signed_in(load(table.folder))
    assert named.get(f"/api/profile/{C}").json()["names"][0].startswith("high width 3")
    assert len(named.get("/api/row/30").json()["columns"]) == 16
    parts = named.post("/api/split-preview", json={"cluster": C, "parts": 2}).json()["telling"]
    assert sorted(part[0] for part in parts) == ["high width 15", "low width 15"]  # what sets the parts apart


def test_telling_words_are_those_of_one_class() -> None:
    words = [
        frozenset(text.split()) for text in ["a common fox", "a common fox den", "a common owl", "a common owl nest"]
    ]
    assert telling_words(words, np.array([0, 0, 1, 1]), 0)[0] == "fox"
    assert "common" not in telling_words(words, np.array([0, 0, 1, 1]), 0)
    assert telling_words([frozenset()] * 4, np.array([0, 0, 1, 1]), 0) == []


def test_a_selection_as_a_table(page: TestClient, run: Run) -> None:
    act(page, "name", 0, cluster=A, text="fox, red")
    text = page.post("/api/list", json={"rows": [30, 2, 30]}).json()["csv"]
    assert list(csv.reader(io.StringIO(text))) == [
        ["id", "label", "path"],
        [run.ids[2], "cat", ""],
        [run.ids[30], "fox, red", ""],
    ]


def test_questions_are_about_what_is_wrong(tmp_path: Path) -> None:
    """A cluster that is a known class, two halves of one class, and a mixture of two are asked about first."""
    run = make_run(tmp_path / "run", each=40, clusters=6)
    draw = np.random.default_rng(5)
    centers = np.eye(8, 16)
    places = np.array([0, 1, 0, 3, 3, 4, 6, 7])[run.labels]  # 2 is the known class 0; 3 and 4 are one class
    places[(run.labels == 5) & (np.arange(len(places)) % 2 == 0)] = 5  # 5 is two classes
    features = centers[places] + 0.08 * draw.normal(size=(len(places), 16))
    np.save(run.folder / "features.npy", features.astype(np.float32))
    seal_again(run.folder)
    page = signed_in(load(run.folder))
    queue = page.get("/api/queue").json()
    asked = [(one["kind"], one["clusters"]) for one in queue["questions"][:3]]
    assert sorted(asked) == [("known", [2, 0]), ("merge", [3, 4]), ("split", [5])]
    assert all(one["probability"] > 0.5 for one in queue["questions"][:3])
    split_question = next(one for one in queue["questions"] if one["kind"] == "split")
    assert sorted(len({int(places[row]) for row in part}) for part in split_question["parts"]) == [1, 1]
    assert queue["left"] >= 3
    doubtful = next(one for one in queue["questions"] if one["kind"] == "doubtful")
    here, there = doubtful["clusters"]
    assert here != there
    assert len(doubtful["parts"][0]) <= 12
    assert {int(run.labels[row]) for row in doubtful["parts"][0]} == {here}
    state = act(page, "no", 0, question="merge", clusters=[4, 3])
    assert state["undo"] == "no"
    kinds = [(one["kind"], one["clusters"]) for one in page.get("/api/queue").json()["questions"]]
    assert ("merge", [3, 4]) not in kinds
    page.post("/api/undo", json={"base": 1})
    kinds = [(one["kind"], one["clusters"]) for one in page.get("/api/queue").json()["questions"]]
    assert ("merge", [3, 4]) in kinds
    act(page, "split", 2, cluster=5, parts=split_question["parts"])
    for wrong in (
        {"question": "x", "clusters": [2]},
        {"question": "merge", "clusters": [2]},
        {"question": "split", "clusters": [99]},
    ):
        assert page.post("/api/action", json={"kind": "no", "base": 3, **wrong}).status_code == 400
