"""What a request asks for, checked: numbers, texts and rows of the address or of the body."""

import json
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from unveil.errors import UnveilError
from unveil.pages.review.pictures import MOST_ROWS
from unveil.pages.review.similar import ALIKE, LEAST_ALIKE
from unveil.runs.reader import Run

LARGEST_BODY = 8_000_000


async def body(request: Request) -> dict[str, Any]:
    """The JSON object that was sent."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > LARGEST_BODY:
            raise HTTPException(413, f"at most {LARGEST_BODY} bytes")
    try:
        sent = json.loads(content)
        json.dumps(sent, ensure_ascii=False, allow_nan=False).encode()  # rejects lone surrogates and infinities
    except (ValueError, RecursionError):
        raise UnveilError("the request is not JSON") from None
    if not isinstance(sent, dict):
        raise UnveilError("send a JSON object")
    return sent


def whole(body: dict[str, Any], key: str) -> int:
    """A whole number of the body, 0 or more."""
    value = body.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UnveilError(f"{key} must be a whole number")
    return value


def text(body: dict[str, Any], key: str) -> str:
    """A text of the body."""
    if not isinstance(value := body.get(key), str):
        raise UnveilError(f"{key} must be a text")
    return value


def is_whole(text: str) -> bool:
    """Whether a text is a whole number of reasonable length."""
    return text.isascii() and text.isdecimal() and len(text) < 12


def number(request: Request, key: str, default: int) -> int:
    """A whole number of the address."""
    value = request.query_params.get(key, str(default))
    if not is_whole(value):
        raise UnveilError(f"{key} must be a whole number")
    return int(value)


def alike(request: Request) -> float:
    """The least cosine of duplicates."""
    try:
        cosine = float(request.query_params.get("alike", ALIKE))
    except ValueError:
        cosine = 0.0
    if not LEAST_ALIKE <= cosine <= 1:
        raise UnveilError(f"alike is a cosine from {LEAST_ALIKE} to 1")
    return cosine


def path_number(request: Request, key: str) -> int:
    """A whole number of the path."""
    value: str = request.path_params[key]
    if not is_whole(value):
        raise HTTPException(404, f"there is no such {key}")
    return int(value)


def row(request: Request, run: Run) -> int:
    """The item that the path is about."""
    found = path_number(request, "row")
    if found >= len(run.ids):
        raise HTTPException(404, "there is no such item")
    return found


def rows(request: Request, run: Run) -> list[int]:
    """The items that the address is about."""
    texts = request.query_params.get("rows", "").split(",")
    if len(texts) > MOST_ROWS or not all(map(is_whole, texts)):
        raise UnveilError(f"rows must be 1 to {MOST_ROWS} numbers, separated by commas")
    found = [int(one) for one in texts]
    if max(found) >= len(run.ids):
        raise HTTPException(404, "there is no such item")
    return found
