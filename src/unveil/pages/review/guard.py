"""Access control of the review page: a request needs the token of its address and must come from its own page."""

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
    """The hosts and the token that requests must have."""

    port: int
    hosts: frozenset[str]
    """Values of the Host header, with the port."""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def cookie(self) -> str:
        return f"unveil-{self.port}"  # all ports of a host share cookies, and two reviews may be open

    def is_token(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.token.encode())


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

        answer = self._answer(scope)
        await (self._app if answer is None else answer)(scope, receive, protected)

    def _answer(self, scope: Scope) -> Response | None:
        """A refusal, or the cookie of the first visit; None for a request that is allowed."""
        headers, access = Headers(scope=scope), self._access
        if headers.get("host", "").lower() not in access.hosts:
            return PlainTextResponse("unveil: the review page has another address\n", 421)
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("unveil: GET or POST\n", 405)
        token = QueryParams(scope["query_string"]).get("token")
        if token is not None and scope["path"] == "/" and scope["method"] == "GET" and access.is_token(token):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(access.cookie, access.token, httponly=True, samesite="strict", path="/")
            return answer
        if not access.is_token(cookie_parser(headers.get("cookie", "")).get(access.cookie, "")):
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
                probe.connect((outside, 9))  # sends nothing: only selects the local address
                names.add(str(probe.getsockname()[0]))
        except OSError:
            continue
    return names


def _with_port(name: str, port: int) -> str:
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
