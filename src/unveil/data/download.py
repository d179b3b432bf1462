"""Fetch a file so that what lies under its final name is always whole and right; unpack archives the same way."""

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
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from unveil.errors import UnveilError

Progress = Callable[[int, int | None], None]
"""Called with the bytes that are there and, if the server says it, the bytes there will be."""

_CHUNK = 1 << 18
_DROPPED = (ConnectionError, TimeoutError, http.client.HTTPException)


class _StartOverError(Exception):
    """The partial file is of no use to the server."""


def download(
    url: str,
    to: Path,
    *,
    checksum: str,
    progress: Progress | None = None,
    attempts: int = 5,
    pause: float = 1.0,
) -> Path:
    """`url` as the file `to`. `checksum` is `md5:…` or `sha256:…`. What an earlier call left in `to.part` is used.

    A connection that drops is taken up again up to `attempts` times, after `pause`, 2·`pause`, 4·`pause`, … seconds.
    """
    if to.exists() and matches(to, checksum):
        return to
    part = to.with_name(to.name + ".part")
    with _writing(part):
        to.parent.mkdir(parents=True, exist_ok=True)
        resumed = part.exists()
    _fetch(url, part, checksum, progress or (lambda done, total: None), attempts, pause)
    if resumed and not matches(part, checksum):  # the old half may be of another file; once more without it
        part.unlink()
        _fetch(url, part, checksum, progress or (lambda done, total: None), attempts, pause)
    if not matches(part, checksum):
        size = part.stat().st_size
        part.unlink()
        raise UnveilError(
            f"{url} is not the file that was expected: {size} bytes that do not have {checksum}; they were removed. "
            "Try again; if it happens twice, the file has changed or something on the way (a proxy?) alters it"
        )
    with _writing(to):
        part.replace(to)
    return to


def matches(path: Path, checksum: str) -> bool:
    """Whether the file has that `md5:…` or `sha256:…`."""
    algorithm, _, expected = checksum.partition(":")
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest() == expected


def extract(archive: Path, into: Path) -> None:
    """Unpack a tar or zip file. Nothing lands outside `into`, and no half-written file under its final name."""
    with _writing(into):
        into.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=into, prefix=".extract-") as scratch:
            try:
                _unpack(archive, Path(scratch))
            except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError) as error:
                raise UnveilError(f"{archive} cannot be unpacked ({error}); delete it and download it again") from error
            _move(Path(scratch), into)


def _fetch(url: str, part: Path, checksum: str, progress: Progress, attempts: int, pause: float) -> None:
    for attempt in range(attempts):
        if attempt:
            time.sleep(pause * 2 ** (attempt - 1))
        try:
            _fetch_once(url, part, progress)
            return
        except _StartOverError:
            if matches(part, checksum):  # it was whole already: there is nothing after its end
                return
            part.unlink()
            problem: Exception | str = "the server would not resume"
        except urllib.error.HTTPError as error:
            error.close()
            problem = error
            if error.code < 500 and error.code != 429:
                raise UnveilError(
                    f"{url} cannot be downloaded: the server answers {error.code} {error.reason}"
                ) from None
        except urllib.error.URLError as error:
            problem = error
            if not isinstance(error.reason, _DROPPED) or isinstance(error.reason, ConnectionRefusedError):
                where = "no such host" if isinstance(error.reason, socket.gaierror) else "no connection"
                raise UnveilError(
                    f"{url} cannot be reached ({where}: {error.reason}); check the network and try again, "
                    f"or download it elsewhere to {part.with_suffix('')}"
                ) from None
        except _DROPPED as error:
            problem = error
    kept = f", and go on from the {part.stat().st_size} bytes that are there" if part.exists() else ""
    raise UnveilError(f"{url}: gave up after {attempts} attempts ({problem}); try again later{kept}")


def _fetch_once(url: str, part: Path, progress: Progress) -> None:
    have = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "unveil"} | ({"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30)
    except urllib.error.HTTPError as error:
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            error.close()
            raise _StartOverError from None
        raise
    with response:
        if response.status != http.HTTPStatus.PARTIAL_CONTENT:
            have = 0  # the server sends everything, asked or not
        elif not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            raise _StartOverError
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else None
        with _writing(part), part.open("ab" if have else "wb") as file:
            progress(have, total)
            while chunk := _read(response):
                file.write(chunk)
                have += len(chunk)
                progress(have, total)
    if total is not None and have < total:
        raise ConnectionError(f"the connection ended at {have} of {total} bytes")


def _read(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read(_CHUNK)
    except OSError as error:  # so that it is not taken for a fault of the disk
        raise ConnectionError(str(error)) from error


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Faults of the disk, as one sentence."""
    try:
        yield
    except _DROPPED:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UnveilError(
                f"the disk is full while writing {path}; free some space, or use another --root"
            ) from error
        raise UnveilError(f"cannot write {path}: {error.strerror or error}; use another --root") from error


def _unpack(archive: Path, into: Path) -> None:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            for name in zipped.namelist():
                path = PurePosixPath(name.replace("\\", "/"))
                if path.is_absolute() or ".." in path.parts:
                    raise UnveilError(
                        f"{archive} is not safe: it holds {name!r}, which lies outside; nothing was unpacked"
                    )
            zipped.extractall(into)
        return
    with tarfile.open(archive) as tar:
        try:
            tar.extractall(into, filter="data")
        except tarfile.FilterError as error:
            raise UnveilError(f"{archive} is not safe ({error}); nothing was unpacked") from error


def _move(source: Path, into: Path) -> None:
    """Each thing in `source` by one rename where nothing is in its way, else file by file."""
    for path in sorted(source.iterdir()):
        target = into / path.name
        if path.is_dir() and target.is_dir():
            _move(path, target)
        else:
            path.replace(target)
