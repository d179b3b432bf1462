"""Access control of the review page: everything about the run needs a session, which a link opens once.

The printed link carries a code behind the `#`, which browsers never send. The page trades the code for a session key,
keeps the key in the storage of its own origin, and sends it as a header. There is no cookie: cookies ignore ports, so
that any other server on this machine would be given it.
"""

import hmac
import ipaddress
import secrets
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

KEY_HEADER = "X-Unveil-Key"
SESSION_PATH = "/api/session"  # trades the code of a link for a session key
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Access:
    """The hosts that requests may name, the code of the present link, and the keys of open sessions."""

    def __init__(self, *, port: int, hosts: frozenset[str], used: Callable[[], None] = lambda: None) -> None:
        self.port = port
        self.hosts = hosts  # values of the Host header, with the port
        self.used = used  # called after a link was used: there is a new one then
        self._lock = threading.Lock()
        self._code = secrets.token_urlsafe(32)
        self._keys: set[str] = set()

    @property
    def code(self) -> str:
        """The code of the link that was not used yet."""
        return self._code

    def open_session(self, code: object) -> str | None:
        """A session key for the code of the link, which can be used once; None for any other code."""
        with self._lock:
            if not isinstance(code, str) or not hmac.compare_digest(code.encode(), self._code.encode()):
                return None
            self._code = secrets.token_urlsafe(32)
            key = secrets.token_urlsafe(32)
            self._keys.add(key)
        self.used()
        return key

    def is_open(self, key: str) -> bool:
        """Whether this is the key of a session."""
        given = key.encode()
        return any(hmac.compare_digest(given, known.encode()) for known in tuple(self._keys))


class Guard:
    """Checks every request before the application, and adds the headers above to every response."""

    def __init__(self, app: ASGIApp, *, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no web sockets here

        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        answer = self._refusal(scope)
        await (self._app if answer is None else answer)(scope, receive, protected)

    def _refusal(self, scope: Scope) -> Response | None:
        """None for a request that is allowed."""
        headers, access = Headers(scope=scope), self._access
        if headers.get("host", "").lower() not in access.hosts:
            return PlainTextResponse("unveil: the review page has another address\n", 421)
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("unveil: GET or POST\n", 405)
        path: str = scope["path"]
        if not path.startswith("/api/"):
            return None  # the files of the page, which are the same for every run
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return PlainTextResponse("unveil: requests from other pages are refused\n", 403)
        if scope["method"] == "POST":
            if headers.get("origin", "").lower() != f"http://{headers['host'].lower()}":
                return PlainTextResponse("unveil: requests from other pages are refused\n", 403)
            if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
                return PlainTextResponse("unveil: send JSON\n", 415)
        if path != SESSION_PATH and not access.is_open(headers.get(KEY_HEADER, "")):
            message = "open the address that `unveil review` printed"
            return JSONResponse({"error": message, "trouble": "session"}, 401)
        return None


def allowed_hosts(host: str, port: int) -> frozenset[str]:
    """The values of the Host header that a server bound to `host` accepts."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        names: Iterable[str] = [host, *(["127.0.0.1", "::1"] if host == "localhost" else [])]
    else:
        if address.is_unspecified:
            names = ["localhost", "127.0.0.1", "::1", *_own_addresses()]
        elif address.is_loopback:
            names = ["localhost", str(address)]
        else:
            names = [str(address)]
    return frozenset(f"[{name}]:{port}" if ":" in name else f"{name}:{port}" for name in map(str.lower, names))


def _own_addresses() -> set[str]:
    """Names and addresses of this machine."""
    name = socket.gethostname()
    names = {name, socket.getfqdn()}
    with suppress(OSError):  # a machine may not know its own name
        names |= {str(info[4][0]).split("%")[0] for info in socket.getaddrinfo(name, None)}
    for family, outside in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((outside, 9))  # sends nothing: only selects the local address
                names.add(str(probe.getsockname()[0]))
        except OSError:
            continue
    return names
