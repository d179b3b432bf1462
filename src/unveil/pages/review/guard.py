"""Who may talk to the review page: people who were given its address, in a page that came from it."""

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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


@dataclass(frozen=True, kw_only=True)
class Access:
    """What a request must show."""

    port: int
    hosts: frozenset[str]
    """Values of the Host header, with the port."""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def cookie(self) -> str:
        return f"unveil-{self.port}"  # cookies do not know ports, and two reviews may be open

    def right(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.token.encode())


class Guard:
    """Stands before the whole application; what it lets through carries the headers above."""

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

        answer = self._answer(scope)
        await (self._app if answer is None else answer)(scope, receive, protected)

    def _answer(self, scope: Scope) -> Response | None:
        """A refusal, or the first visit's cookie; None for a request that may pass."""
        headers, access = Headers(scope=scope), self._access
        if headers.get("host", "").lower() not in access.hosts:
            return PlainTextResponse("unveil: this address is not mine\n", 421)
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("unveil: GET or POST\n", 405)
        token = QueryParams(scope["query_string"]).get("token")
        if token is not None and scope["path"] == "/" and scope["method"] == "GET" and access.right(token):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(access.cookie, access.token, httponly=True, samesite="strict", path="/")
            return answer
        if not access.right(cookie_parser(headers.get("cookie", "")).get(access.cookie, "")):
            return PlainTextResponse("unveil: open the address that `unveil review` printed\n", 403)
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return PlainTextResponse("unveil: requests from other pages are refused\n", 403)
        if scope["method"] == "POST":
            if headers.get("origin", "").lower() != f"http://{headers['host'].lower()}":
                return PlainTextResponse("unveil: requests from other pages are refused\n", 403)
            if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
                return PlainTextResponse("unveil: send JSON\n", 415)
        return None


def allowed_hosts(host: str, port: int) -> frozenset[str]:
    """The names under which a server bound to `host` may be asked for."""
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
    return frozenset(_with_port(name.lower(), port) for name in names)


def _own_addresses() -> set[str]:
    """Names and addresses of this machine."""
    name = socket.gethostname()
    names = {name, socket.getfqdn()}
    with suppress(OSError):  # a machine may not know its own name
        names |= {str(info[4][0]).split("%")[0] for info in socket.getaddrinfo(name, None)}
    for family, outside in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((outside, 9))  # sends nothing: only asks which way it would go
                names.add(str(probe.getsockname()[0]))
        except OSError:
            continue
    return names


def _with_port(name: str, port: int) -> str:
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
