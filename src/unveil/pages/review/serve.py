"""`unveil review RUN`: binds a port, prints the address and serves until it is stopped."""

import socket
import webbrowser
from pathlib import Path
from typing import Any

import uvicorn

from unveil.errors import UnveilError
from unveil.pages.review.guard import Access, allowed_hosts
from unveil.pages.review.server import application
from unveil.runs.reader import Run, load
from unveil.runs.review_log import LOG

EVERYWHERE = ("0.0.0.0", "::")


def serve(folder: Path, *, host: str, port: int, browser: bool) -> None:
    """Serve the review page of a run until Ctrl-C."""
    server, bound, address = prepare(load(folder), host=host, port=port, browser=browser)
    print(f"review of {folder}: {address}", flush=True)
    if host not in ("127.0.0.1", "::1", "localhost"):
        print("whoever has this address can open it from other machines, and nothing is encrypted", flush=True)
    print("stop with Ctrl-C; every action is saved at once", flush=True)
    server.run(sockets=[bound])
    print(f"the review is in {folder / LOG}; next: unveil export {folder}")


def prepare(run: Run, *, host: str, port: int, browser: bool = False) -> tuple[uvicorn.Server, socket.socket, str]:
    """A server that is ready to run, its socket, and its address with the access token."""
    bound = _bind(host, port)
    port = bound.getsockname()[1]
    access = Access(port=port, hosts=allowed_hosts(host, port))
    shown = "127.0.0.1" if host in EVERYWHERE else host
    address = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/?token={access.token}"
    config = uvicorn.Config(
        application(run, access),
        log_level="warning",
        access_log=False,  # addresses carry the token
        server_header=False,
        ws="none",
        lifespan="off",
        timeout_graceful_shutdown=2,
    )
    return _Server(config, address if browser else None), bound, address


class _Server(uvicorn.Server):
    """Opens the browser when the server is ready."""

    def __init__(self, config: uvicorn.Config, address: str | None) -> None:
        super().__init__(config)
        self._address = address

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self._address is not None:
            webbrowser.open(self._address)


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
