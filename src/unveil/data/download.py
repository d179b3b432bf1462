"""Download and unpack files. A file gets its final name only when it is complete and verified."""

import errno
import hashlib
import http
import http.client
import socket
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from unveil.errors import UnveilError

Progress = Callable[[int, int | None], None]
"""Called with the number of bytes received so far and, if the server says it, the total."""

_CHUNK = 1 << 18
MOST_BYTES = 4 * 10**9  # most bytes of a download: every data set of the catalog is smaller
MOST_UNPACKED = 20 * 10**9  # most bytes of what an archive holds
_DROPPED = (ConnectionError, TimeoutError, http.client.HTTPException)


class _StartOverError(Exception):
    """The server cannot resume from the partial file."""


def download(
    url: str,
    to: Path,
    *,
    checksum: str,
    progress: Progress | None = None,
    attempts: int = 5,
    pause: float = 1.0,
    most: int = MOST_BYTES,
) -> Path:
    """Download `url` to the file `to`, resuming from `to.part`. `checksum` is `md5:…` or `sha256:…`.

    A file of more than `most` bytes is refused. A dropped connection is tried again, `attempts` times in all, after
    `pause`, 2·`pause`, 4·`pause`, … seconds.
    """
    if to.exists() and matches(to, checksum):
        return to
    partial, progress = to.with_name(to.name + ".part"), progress or (lambda done, total: None)
    with _writing(partial):
        to.parent.mkdir(parents=True, exist_ok=True)
        resumed = partial.exists()
    _fetch(url, partial, checksum, progress, attempts, pause, most)
    if resumed and not matches(partial, checksum):  # it may have been of another version: start over
        partial.unlink()
        _fetch(url, partial, checksum, progress, attempts, pause, most)
    if not matches(partial, checksum):
        size = partial.stat().st_size
        partial.unlink()
        raise UnveilError(
            f"{url} is not the file that was expected: {size} bytes that do not have {checksum}; they were removed. "
            "Try again; if it happens twice, the file has changed or something on the way (a proxy?) alters it"
        )
    with _writing(to):
        partial.replace(to)
    return to


def matches(path: Path, checksum: str) -> bool:
    """Whether the file has that `md5:…` or `sha256:…`."""
    algorithm, _, expected = checksum.partition(":")
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest() == expected


def extract(archive: Path, into: Path) -> None:
    """Unpack a tar or zip file. Nothing lands outside `into`, and no half-written file under its final name."""
    with _writing(into):
        into.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=into, prefix=".extract-") as scratch:
            try:
                _unpack(archive, Path(scratch))
            except (UnveilError, OSError):
                raise
            except Exception as error:  # a damaged archive can raise nearly anything
                raise UnveilError(f"{archive} cannot be unpacked ({error}); delete it and download it again") from error
            _move(Path(scratch), into)


def _fetch(url: str, partial: Path, checksum: str, progress: Progress, attempts: int, pause: float, most: int) -> None:
    for attempt in range(attempts):
        if attempt:
            time.sleep(pause * 2 ** (attempt - 1))
        try:
            _fetch_once(url, partial, progress, most)
            return
        except _StartOverError:
            if matches(partial, checksum):  # it was complete already: the server has no more bytes
                return
            partial.unlink()
            problem: Exception | str = "the server would not resume"
        except urllib.error.HTTPError as error:
            error.close()
            problem = error
            if error.code < 500 and error.code != 429:
                answer = f"{error.code} {error.reason}"
                raise UnveilError(f"{url} cannot be downloaded: the server answers {answer}") from None
        except urllib.error.URLError as error:
            problem = error
            if not isinstance(error.reason, _DROPPED) or isinstance(error.reason, ConnectionRefusedError):
                where = "no such host" if isinstance(error.reason, socket.gaierror) else "no connection"
                raise UnveilError(
                    f"{url} cannot be reached ({where}: {error.reason}); check the network and try again, "
                    f"or download it elsewhere to {partial.with_suffix('')}"
                ) from None
        except _DROPPED as error:
            problem = error
    hint = f", and go on from the {partial.stat().st_size} bytes that are there" if partial.exists() else ""
    raise UnveilError(f"{url}: gave up after {attempts} attempts ({problem}); try again later{hint}")


def _fetch_once(url: str, partial: Path, progress: Progress, most: int) -> None:
    received = partial.stat().st_size if partial.exists() else 0
    headers = {"User-Agent": "unveil"} | ({"Range": f"bytes={received}-"} if received else {})
    try:
        response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30)
    except urllib.error.HTTPError as error:
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and received:
            error.close()
            raise _StartOverError from None
        raise
    with response:
        if response.status != http.HTTPStatus.PARTIAL_CONTENT:
            received = 0  # the server ignores the range and sends the whole file
        elif not response.headers.get("Content-Range", "").startswith(f"bytes {received}-"):
            raise _StartOverError
        length = response.headers.get("Content-Length")
        total = received + int(length) if length and length.isdecimal() else None
        _check_size(url, partial, total or 0, most)
        with _writing(partial), partial.open("ab" if received else "wb") as file:
            progress(received, total)
            while chunk := _read(response):
                file.write(chunk)
                received += len(chunk)
                _check_size(url, partial, received, most)
                progress(received, total)
    if total is not None and received < total:
        raise ConnectionError(f"the connection ended at {received} of {total} bytes")


def _check_size(url: str, partial: Path, size: int, most: int) -> None:
    if size > most:
        partial.unlink(missing_ok=True)
        raise UnveilError(f"{url} sends more than {most:,} bytes, which is not the file that was expected: stopped")


def _read(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read(_CHUNK)
    except OSError as error:  # so that it is not mistaken for a disk error
        raise ConnectionError(str(error)) from error


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn disk errors into an UnveilError."""
    try:
        yield
    except _DROPPED:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UnveilError(f"the disk is full while writing {path}; free space, or use another --root") from error
        raise UnveilError(f"cannot write {path}: {error.strerror or error}; use another --root") from error


def _unpack(archive: Path, into: Path) -> None:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            for name in zipped.namelist():
                path = PurePosixPath(name.replace("\\", "/"))
                if path.is_absolute() or ".." in path.parts:
                    raise UnveilError(f"{archive} is not safe: {name!r} is outside its folder; nothing was unpacked")
            _check_unpacked(archive, sum(info.file_size for info in zipped.infolist()))
            zipped.extractall(into)
        return
    with tarfile.open(archive) as tar:
        _check_unpacked(archive, sum(member.size for member in tar))
        try:
            tar.extractall(into, filter="data")
        except tarfile.FilterError as error:
            raise UnveilError(f"{archive} is not safe ({error}); nothing was unpacked") from error


def _check_unpacked(archive: Path, size: int) -> None:
    if size > MOST_UNPACKED:
        raise UnveilError(f"{archive} is not safe: it holds {size / 1e9:.0f} GB; nothing was unpacked")


def _move(source: Path, into: Path) -> None:
    """Move the contents of `source` into `into`; folders that exist in both are merged."""
    for path in sorted(source.iterdir()):
        target = into / path.name
        if path.is_dir() and target.is_dir():
            _move(path, target)
        else:
            path.replace(target)
