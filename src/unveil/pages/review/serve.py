"""`unveil review RUN`: binds a port, prints the address and serves until it is stopped."""

import html
import os
import socket
import tempfile
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvicorn

from unveil.errors import UnveilError
from unveil.pages.review.guard import Access, allowed_hosts
from unveil.pages.review.server import application
from unveil.review.log import LOG
from unveil.runs.reader import Run, load

EVERYWHERE = ("0.0.0.0", "::")
OPENER = "open-review.html"  # a page for the browser of the person who started the server, which leads to the address


def serve(folder: Path, *, host: str, port: int, browser: bool) -> None:
    """Serve the review page of a run until Ctrl-C."""
    server, bound, links = prepare(load(folder), host=host, port=port, browser=browser)
    links.say = True
    print(f"review of {folder}: {links.address}", flush=True)
    if host not in ("127.0.0.1", "::1", "localhost"):
        print("whoever has this address can open it from other machines, and nothing is encrypted", flush=True)
    print("it opens once; stop with Ctrl-C; every action is saved at once", flush=True)
    try:
        server.run(sockets=[bound])
    finally:
        links.clean()
    print(f"the review is in {folder / LOG}; next: unveil export {folder}")


class Links:
    """The address with the code that opens a session. A code works once; then there is another one."""

    def __init__(self, base: str, folder: Path) -> None:
        self.base = base
        self.say = False  # print the next address when one was used
        self.access: Access | None = None
        self._folder = folder
        self._opener: Path | None = None

    @property
    def address(self) -> str:
        assert self.access is not None
        return f"{self.base}/#open={self.access.code}"

    def used(self) -> None:
        self.clean()
        if self.say:
            print(f"opened; for another browser: {self.address}", flush=True)

    def open_browser(self) -> None:
        """Open the address through a file that only this user can read: command lines can be read by everybody."""
        content = (
            f'<!doctype html><meta charset="utf-8"><title>unveil review</title>'
            f'<meta http-equiv="refresh" content="0; url={html.escape(self.address)}">'
            f'<a href="{html.escape(self.address)}">Open the review page</a>'
        )
        try:
            self._opener = _private_file(self._folder.resolve() / OPENER, content)
        except OSError:  # a run on a read-only disk
            self._opener = _private_file(Path(tempfile.mkdtemp(prefix="unveil-")) / OPENER, content)
        webbrowser.open(self._opener.as_uri())

    def clean(self) -> None:
        """Delete the file for the browser."""
        if self._opener is not None:
            with suppress(OSError):
                self._opener.unlink()
                if self._opener.parent != self._folder.resolve():
                    self._opener.parent.rmdir()
            self._opener = None


def _private_file(path: Path, content: str) -> Path:
    path.unlink(missing_ok=True)  # never write into a file that somebody else has made
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(content)
    return path


def prepare(run: Run, *, host: str, port: int, browser: bool = False) -> tuple[uvicorn.Server, socket.socket, Links]:
    """A server that is ready to run, its socket, and its addresses."""
    bound = _bind(host, port)
    port = bound.getsockname()[1]
    shown = "127.0.0.1" if host in EVERYWHERE else host
    links = Links(f"http://{f'[{shown}]' if ':' in shown else shown}:{port}", run.folder)
    links.access = Access(port=port, hosts=allowed_hosts(host, port), used=links.used)
    config = uvicorn.Config(
        application(run, links.access),
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="off",
        timeout_graceful_shutdown=2,
    )
    return _Server(config, links if browser else None), bound, links


class _Server(uvicorn.Server):
    """Opens the browser when the server is ready."""

    def __init__(self, config: uvicorn.Config, links: Links | None) -> None:
        super().__init__(config)
        self._links = links

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self._links is not None:
            self._links.open_browser()


def _bind(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise UnveilError(f"--port is {port}: give 1 to 65535, or none for a free one")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)  # with the protocol, asyncio sends small answers at once
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(128)  # connections that come before the server is ready wait
    except OSError as error:
        raise UnveilError(f"{host}:{port} cannot be used ({error.strerror}): choose another --port or --host") from None
    return bound
