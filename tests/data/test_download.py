"""Downloads from a real server on this machine that resumes, refuses to, and drops connections."""

import errno
import hashlib
import io
import socket
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from unveil.data.download import download, extract
from unveil.errors import UnveilError

BODY = bytes(range(256)) * 4000
MD5 = "md5:" + hashlib.md5(BODY).hexdigest()
SHA = "sha256:" + hashlib.sha256(BODY).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves BODY. What it does wrong is set by the test."""

    daemon_threads = True
    ranges = True
    lies_about_range = False
    drops: int = 0
    """How many answers break off in the middle."""
    failures: tuple[int, ...] = ()
    """Status codes of the first answers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/file.bin"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.asked.append(wanted)
        if self.server.failures:
            code, *rest = self.server.failures
            self.server.failures = tuple(rest)
            self.send_error(code)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.server.ranges else 0
        if start >= len(BODY):
            self.send_error(416)
            return
        body = BODY[start:]
        self.send_response(206 if start else 200)
        if start:
            first = 0 if self.server.lies_about_range else start
            self.send_header("Content-Range", f"bytes {first}-{len(BODY) - 1}/{len(BODY)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.server.drops:
            self.server.drops -= 1
            body = body[: len(body) // 2]
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


def part_of(to: Path) -> Path:
    return to.with_name(to.name + ".part")


@pytest.mark.parametrize("checksum", [MD5, SHA])
def test_a_file_arrives_whole_with_progress_and_no_part_left(server: Server, tmp_path: Path, checksum: str) -> None:
    seen: list[tuple[int, int | None]] = []
    to = tmp_path / "new" / "file.bin"
    download(server.url, to, checksum=checksum, progress=lambda done, total: seen.append((done, total)))
    assert to.read_bytes() == BODY
    assert list(to.parent.iterdir()) == [to]
    assert seen[0] == (0, len(BODY))
    assert seen[-1] == (len(BODY), len(BODY))
    assert seen == sorted(seen)


def test_a_part_is_resumed_where_it_ended(server: Server, tmp_path: Path) -> None:
    to = tmp_path / "file.bin"
    part_of(to).write_bytes(BODY[:1000])
    seen: list[int] = []
    download(server.url, to, checksum=MD5, progress=lambda done, total: seen.append(done))
    assert server.asked == ["bytes=1000-"]
    assert seen[0] == 1000
    assert to.read_bytes() == BODY


def test_a_server_that_ignores_ranges_makes_it_start_over(server: Server, tmp_path: Path) -> None:
    server.ranges = False
    to = tmp_path / "file.bin"
    part_of(to).write_bytes(BODY[:1000])
    download(server.url, to, checksum=MD5)
    assert server.asked == ["bytes=1000-"]
    assert to.read_bytes() == BODY


def test_a_part_longer_than_the_file_is_dropped(server: Server, tmp_path: Path) -> None:
    to = tmp_path / "file.bin"
    part_of(to).write_bytes(BODY + b"too much")
    download(server.url, to, checksum=MD5, pause=0)
    assert server.asked == [f"bytes={len(BODY) + 8}-", None]
    assert to.read_bytes() == BODY


def test_a_part_that_was_whole_is_kept(server: Server, tmp_path: Path) -> None:
    to = tmp_path / "file.bin"
    part_of(to).write_bytes(BODY)
    download(server.url, to, checksum=MD5, pause=0)
    assert len(server.asked) == 1
    assert to.read_bytes() == BODY


def test_an_answer_to_another_range_is_not_appended(server: Server, tmp_path: Path) -> None:
    server.lies_about_range = True
    to = tmp_path / "file.bin"
    part_of(to).write_bytes(BODY[:1000])
    download(server.url, to, checksum=MD5, pause=0)
    assert server.asked == ["bytes=1000-", None]
    assert to.read_bytes() == BODY


def test_a_part_of_another_file_is_replaced(server: Server, tmp_path: Path) -> None:
    to = tmp_path / "file.bin"
    part_of(to).write_bytes(b"something else")
    download(server.url, to, checksum=MD5)
    assert server.asked == ["bytes=14-", None]
    assert to.read_bytes() == BODY


def test_a_dropped_connection_is_taken_up_again(server: Server, tmp_path: Path) -> None:
    server.drops = 2
    to = tmp_path / "file.bin"
    download(server.url, to, checksum=MD5, pause=0)
    half, quarter = len(BODY) // 2, len(BODY) // 4
    assert server.asked == [None, f"bytes={half}-", f"bytes={half + quarter}-"]
    assert to.read_bytes() == BODY


def test_it_gives_up_after_so_many_drops_and_keeps_what_it_has(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    server.drops = 99
    to = tmp_path / "file.bin"
    with pytest.raises(UnveilError, match=r"gave up after 4 attempts .*go on from the \d+ bytes"):
        download(server.url, to, checksum=MD5, attempts=4, pause=0.5)
    assert pauses == [0.5, 1.0, 2.0]
    assert BODY.startswith(part_of(to).read_bytes())
    assert not to.exists()


@pytest.mark.parametrize("told", [True, False])
def test_a_file_that_is_too_large_is_refused_and_removed(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    if not told:  # the server does not say how much will come
        monkeypatch.setattr(Handler, "send_header", lambda self, key, value: None)
    with pytest.raises(UnveilError, match="more than 500,000 bytes"):
        download(server.url, tmp_path / "file.bin", checksum=MD5, most=500_000)
    assert list(tmp_path.iterdir()) == []


def test_an_archive_that_would_fill_the_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unveil.data.download.MOST_UNPACKED", 10_000)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(10**6))
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        info = tarfile.TarInfo("zeros")
        info.size = 10**6
        tar.addfile(info, io.BytesIO(bytes(10**6)))
    for name in ("a.zip", "a.tar.gz"):
        with pytest.raises(UnveilError, match="nothing was unpacked"):
            extract(tmp_path / name, tmp_path / "into")
        assert list((tmp_path / "into").iterdir()) == []


def test_a_busy_server_is_asked_again(server: Server, tmp_path: Path) -> None:
    server.failures = (503, 429)
    to = tmp_path / "file.bin"
    assert download(server.url, to, checksum=MD5, pause=0).read_bytes() == BODY


def test_a_file_that_is_not_there_fails_at_once(server: Server, tmp_path: Path) -> None:
    server.failures = (404, 404)
    with pytest.raises(UnveilError, match=r"file\.bin cannot be downloaded: the server answers 404"):
        download(server.url, tmp_path / "file.bin", checksum=MD5, pause=0)
    assert len(server.asked) == 1


def test_wrong_bytes_are_removed_and_reported(server: Server, tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match=r"not the file that was expected: 1024000 bytes .* md5:00"):
        download(server.url, tmp_path / "file.bin", checksum="md5:00")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_not_asked_for(server: Server, tmp_path: Path) -> None:
    to = tmp_path / "file.bin"
    to.write_bytes(BODY)
    download(server.url, to, checksum=MD5)
    assert server.asked == []


def test_a_wrong_file_that_is_there_is_replaced(server: Server, tmp_path: Path) -> None:
    to = tmp_path / "file.bin"
    to.write_bytes(b"wrong")
    download(server.url, to, checksum=MD5)
    assert to.read_bytes() == BODY


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("tried again"))


@pytest.mark.usefixtures("no_pause")
def test_no_connection_fails_at_once_and_says_so(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        url = f"http://127.0.0.1:{free.getsockname()[1]}/file.bin"
        with pytest.raises(UnveilError, match=r"cannot be reached \(no connection.*check the network"):
            download(url, tmp_path / "file.bin", checksum=MD5)


@pytest.mark.usefixtures("no_pause")
def test_an_unknown_host_fails_at_once_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match=r"no such host"):
        download("http://unveil.invalid/x", tmp_path / "x", checksum=MD5)


@pytest.mark.usefixtures("no_pause")
def test_a_full_disk_says_so(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    real = Path.open

    def full(self: Path, mode: str = "r") -> object:
        return Full() if self.suffix == ".part" and mode in ("ab", "wb") else real(self, mode)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(UnveilError, match=r"disk is full while writing .*file\.bin\.part"):
        download(server.url, tmp_path / "file.bin", checksum=MD5)


def test_a_place_that_cannot_be_written_says_so(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UnveilError, match="cannot write"):
        download(server.url, tmp_path / "file" / "file.bin", checksum=MD5)


def tar(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


Maker = Callable[[Path, dict[str, bytes]], Path]
MAKERS = pytest.mark.parametrize("make", [tar, zipped])


@MAKERS
def test_an_archive_is_unpacked_beside_what_is_there(tmp_path: Path, make: Maker) -> None:
    archive = make(tmp_path / "archive", {"top/a.txt": b"new", "top/deep/b.txt": b"b"})
    into = tmp_path / "into"
    (into / "top").mkdir(parents=True)
    (into / "top" / "a.txt").write_text("half wri")
    (into / "top" / "mine.txt").write_text("kept")
    extract(archive, into)
    files = {path.relative_to(into).as_posix(): path.read_text() for path in into.rglob("*") if path.is_file()}
    assert files == {"top/a.txt": "new", "top/deep/b.txt": "b", "top/mine.txt": "kept"}
    assert [path.name for path in into.iterdir()] == ["top"]


@MAKERS
@pytest.mark.parametrize("name", ["../outside.txt", "top/../../outside.txt", "/tmp/unveil-outside.txt"])
def test_an_archive_cannot_write_outside(tmp_path: Path, make: Maker, name: str) -> None:
    archive = make(tmp_path / "archive", {"fine.txt": b"", name: b"bad"})
    into = tmp_path / "into"
    if make is tar and name.startswith("/"):
        extract(archive, into)  # tarfile's "data" filter strips the leading slash
        assert (into / name[1:]).read_bytes() == b"bad"
    else:
        with pytest.raises(UnveilError, match="not safe"):
            extract(archive, into)
        assert list(into.iterdir()) == []
    assert not (tmp_path / "outside.txt").exists()
    assert not Path("/tmp/unveil-outside.txt").exists()


@MAKERS
def test_a_broken_archive_is_named_and_leaves_nothing(tmp_path: Path, make: Maker) -> None:
    archive = make(tmp_path / "archive", {"a.txt": bytes(range(256)) * 100})
    archive.write_bytes(archive.read_bytes()[:-60])
    with pytest.raises(UnveilError, match="archive cannot be unpacked"):
        extract(archive, tmp_path / "into")
    assert list((tmp_path / "into").iterdir()) == []


def test_an_archive_with_an_impossible_time_is_an_error(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        entry = tarfile.TarInfo("a")
        entry.mtime = 2**80
        tar.addfile(entry)
    with pytest.raises(UnveilError, match=r"a\.tar cannot be unpacked"):
        extract(tmp_path / "a.tar", tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
