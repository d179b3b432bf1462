"""The web application of the review page: its files, queries about the run, and actions."""

import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from unveil.errors import UnveilError
from unveil.files import csv_text
from unveil.pages import words
from unveil.pages.colors import class_color
from unveil.pages.report.clusters import unusual_columns
from unveil.pages.review.guard import SESSION_PATH, Access, Guard
from unveil.pages.review.log import ConflictError, Log, TroubleError, check_present
from unveil.pages.review.map import LiveMap
from unveil.pages.review.pictures import MOST_ROWS, Pictures
from unveil.pages.review.similar import ALIKE, LEAST_ALIKE, SimilarItems
from unveil.pages.review.split import split
from unveil.pages.review.summary import Summary
from unveil.runs.corrections import REJECTED, State
from unveil.runs.export import export, formats_for
from unveil.runs.names import Names, free_name
from unveil.runs.questions import Questions
from unveil.runs.reader import Run
from unveil.runs.review_log import LONGEST_NAME, hidden_characters

STATIC = Path(__file__).parent / "static"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
LARGEST_BODY = 8_000_000
PAGE = 20_000
"""Most items in a response about one class."""
DOUBTFUL = 12
SHOWN_QUESTIONS = 12
LEAST_GAIN = 0.5
"""Questions whose answer is expected to put fewer items right are not asked."""
FIELDS = ("question", "cluster", "clusters", "class", "text", "parts", "rows", "to", "reviewed")


class Review:
    """One run under review: the state that all requests share."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.log = Log(run)
        self.summary = Summary(run)
        self.pictures = Pictures(run)
        self.similar_items = SimilarItems(run)
        self.map = LiveMap(run)
        self.names = Names(run)
        self.questions = Questions(run, self.summary.scores)

    def prepare(self) -> None:
        """Compute what the first edit needs while somebody looks at the first page."""
        with suppress(UnveilError, OSError), self.log.reading():
            self.summary.scores.prepare()

    def state(self) -> dict[str, Any]:
        with self.log.reading() as state:
            return self.summary.state(state)

    def about(self) -> dict[str, Any]:
        run = self.run
        summary = run.record.get("summary") or {}
        return {
            "run": run.name,
            "headline": words.headline(run.record),
            "edited_headline": words.headline(run.record, edited=True),
            "warnings": [str(warning) for warning in run.record.get("warnings") or ()],
            "pictures": run.has_pictures,
            "sides": self.pictures.sides,
            "summary": {key: summary[key] for key in words.SUMMARY if summary.get(key)},
            "titles": words.SUMMARY,
            "known_color": class_color(0, 1),
            "formats": formats_for(run),
        }

    def rows_of(self, cluster: int, sort: str, offset: int, limit: int) -> dict[str, Any]:
        with self.log.reading() as state:
            if cluster != REJECTED and cluster not in state.meanings:
                raise HTTPException(404, "there is no such class any more")
            rows = self.summary.ordered(state, cluster, sort)
        part = rows[offset : offset + min(limit, PAGE)]
        return {"total": len(rows), "offset": offset, **self._described(part)}

    def _described(self, rows: Any) -> dict[str, Any]:
        confidence = np.round(self.summary.confidence[rows] * 100).astype(int)
        return {
            "rows": rows.tolist(),
            "confidence": confidence.tolist(),
            "new": self.run.new[rows].astype(int).tolist(),
        }

    def items(self, rows: list[int]) -> list[dict[str, Any]]:
        with self.log.reading() as state:
            labels, by_hand = state.labels[rows].tolist(), state.by_hand[rows].tolist()
            self.summary.follow(state)
        run, confidence = self.run, self.summary.confidence
        return [
            {
                "row": row,
                "id": run.ids[row],
                "class": label,
                "first": run.classes[int(run.labels[row])],
                "new": bool(run.new[row]),
                "confidence": round(float(confidence[row]), 4),
                "by_hand": placed,
                "columns": columns,
            }
            for row, label, placed, columns in zip(rows, labels, by_hand, self.pictures.columns(rows), strict=True)
        ]

    def similar(self, row: int, count: int) -> dict[str, Any]:
        rows, cosines = self.similar_items.similar(row, count)
        return {**self._described(rows), "cosines": np.round(cosines, 4).tolist()}

    def nearest(self, body: dict[str, Any]) -> dict[str, Any]:
        """All classes, the most similar to a class or to items first."""
        with self.log.reading() as state:
            if "rows" in body:
                query = self.summary.mean_of(state.rows(body["rows"]))
            else:
                query = self.summary.mean(state, self._existing(state, _whole(body, "cluster")))
            classes = self.summary.nearest(state, query)
        return {"classes": [{"id": cluster, "cosine": round(cosine, 6)} for cluster, cosine in classes]}

    def profile(self, cluster: int) -> dict[str, Any]:
        """What to look at in a class: doubtful items, the nearest known class and cluster, unusual columns."""
        with self.log.reading() as state:
            self._existing(state, cluster)
            rows = self.summary.ordered(state, cluster, "confidence")
            rows = rows[self.run.new[rows]]
            near = self.summary.nearest(state, self.summary.mean(state, cluster)) if len(rows) else []
            others = [(other, cosine) for other, cosine in near if other != cluster]
            known = next((one for one in others if not state.is_novel(one[0])), None)
            novel = next((one for one in others if state.is_novel(one[0])), None)
            names = self._suggested(state, cluster, [one for one, _ in others if not state.is_novel(one)])
        columns = () if self.run.has_pictures else unusual_columns(self.run, rows)
        return {
            "names": names,
            "text": bool(self.run.texts),
            "doubtful": rows[::-1][:DOUBTFUL].tolist(),
            "known": None if known is None else {"id": known[0], "cosine": round(known[1], 3)},
            "cluster": None if novel is None else {"id": novel[0], "cosine": round(novel[1], 3)},
            "columns": [
                {"column": c.column, "mean": float(f"{c.mean:.5g}"), "deviations": round(c.difference, 1)}
                for c in columns
            ],
        }

    def _suggested(self, state: State, cluster: int, known: list[int]) -> list[str]:
        """Names to suggest for a cluster that nobody has named."""
        meaning = state.meanings[cluster]
        if not state.is_novel(cluster) or meaning.named or meaning.known is not None:
            return []
        taken = [state.name(other) for other in state.meanings if other != cluster]
        suggested = self.names.suggest(state.labels, cluster, [state.name(other) for other in known])
        names = [free_name("".join(name.split("\n"))[:LONGEST_NAME], taken) for name in suggested]
        return [name for name in names if not hidden_characters(name)]

    def queue(self) -> dict[str, Any]:
        """The most useful questions, how many there are, and what all of them are worth."""
        with self.log.reading() as state:
            questions = self.questions.about(state) if self.run.has_features else []
            length = state.length
        useful = [question for question in questions if question.gain >= LEAST_GAIN]
        return {
            "length": length,
            "left": len(useful),
            "gain": round(sum(question.gain for question in useful), 1),
            "questions": [question.to_json() for question in useful[:SHOWN_QUESTIONS]],
        }

    def whole_row(self, row: int) -> dict[str, Any]:
        return {"columns": self.pictures.whole_row(row), "text": self.run.texts[row] if self.run.texts else ""}

    def listed(self, body: dict[str, Any]) -> dict[str, Any]:
        """Items as a table: to be kept or used elsewhere."""
        with self.log.reading() as state:
            rows = state.rows(body.get("rows")).tolist()
            names = {c: state.name(c) for c in state.meanings}
            lines = [(self.run.ids[row], names.get(int(state.labels[row]), ""), self.run.paths[row]) for row in rows]
        return {"csv": csv_text(("id", "label", "path"), lines)}

    def _existing(self, state: State, cluster: int) -> int:
        if cluster not in state.meanings:
            raise HTTPException(404, "there is no such class any more")
        return cluster

    def duplicates(self, alike: float) -> dict[str, Any]:
        with self.log.reading() as state:
            accepted = state.labels != REJECTED
        remaining = [[row for row in group if accepted[row]] for group in self.similar_items.duplicates(alike)]
        groups = [group for group in remaining if len(group) > 1]
        return {
            "groups": groups,
            **self._described(np.array([row for group in groups for row in group], dtype=np.int64)),
        }

    def act(self, kind: str, data: dict[str, Any], base: int) -> dict[str, Any]:
        self.log.act(kind, {key: data[key] for key in FIELDS if key in data}, base)
        return self.state()

    def log_again(self, do: str) -> dict[str, Any]:
        """After the log was deleted: write it again, or begin without it."""
        if do not in ("restore", "forget"):
            raise UnveilError("restore or forget")
        (self.log.restore if do == "restore" else self.log.forget)()
        return self.state()

    def split(self, cluster: int, parts: int) -> dict[str, Any]:
        with self.log.reading() as state:
            if cluster not in state.meanings or not state.is_novel(cluster):
                raise UnveilError("only a cluster can be split")
            rows, length = np.flatnonzero(state.labels == cluster), state.length
        return {"length": length, "parts": [part.tolist() for part in split(self.run, rows, parts)]}


def application(run: Run, access: Access) -> Guard:
    """The application and its error handlers, behind the guard."""
    review = Review(run)
    review.pictures.prepare()
    threading.Thread(target=review.prepare, daemon=True).start()
    files = {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in TYPES}

    def file(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in files:
            raise HTTPException(404, "there is no such file")
        return Response(files[name], media_type=TYPES[Path(name).suffix])

    def cluster(request: Request) -> Response:
        sort = request.query_params.get("sort", "confidence")
        if sort not in ("confidence", "typicality"):
            raise UnveilError("sort by confidence or typicality")
        offset, limit = _number(request.query_params, "offset", 0), _number(request.query_params, "limit", PAGE)
        return JSONResponse(review.rows_of(_path_number(request, "cluster"), sort, offset, limit))

    def thumbs(request: Request) -> Response:
        side = _number(request.query_params, "side", review.pictures.sides[0])
        if side not in review.pictures.sides:
            raise UnveilError(f"side is one of {', '.join(map(str, review.pictures.sides))}")
        image, kind, sizes = review.pictures.sheet(_rows(request, run), side)
        return Response(image, media_type=kind, headers={"X-Sizes": sizes})

    def picture(request: Request) -> Response:
        image = review.pictures.large(_row(request, run))
        if image is None:
            raise HTTPException(404, "there is no picture of this item")
        return Response(image[0], media_type=image[1])

    def similar(request: Request) -> Response:
        check_present(run)
        count = min(max(_number(request.query_params, "count", 60), 1), 500)
        return JSONResponse(review.similar(_row(request, run), count))

    def coordinates(request: Request) -> Response:
        check_present(run)
        points, state = review.map.coordinates()
        return Response(points, media_type="application/octet-stream", headers={"X-Map": state})

    def labels(request: Request) -> Response:
        with review.log.reading() as state:
            return Response(state.labels.astype("<i4").tobytes(), media_type="application/octet-stream")

    def explained(answer: Callable[[Request, Any], Response]) -> Callable[[Request, Any], Response]:
        """Say that the run is gone, where that is why something failed."""

        def handler(request: Request, error: Exception) -> Response:
            try:
                check_present(run)
            except TroubleError as missing:
                return _trouble(request, missing)
            return answer(request, error)

        return handler

    def answered(answer: Callable[[], Any]) -> Callable[[Request], Response]:
        return lambda request: JSONResponse(answer())

    def posted(answer: Callable[[dict[str, Any]], Any]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            body = await _body(request)
            return JSONResponse(await run_in_threadpool(answer, body))

        return endpoint

    async def session(request: Request) -> Response:
        key = access.open_session((await _body(request)).get("code"))
        if key is None:
            message = "this link was used already: `unveil review` prints a new one"
            return JSONResponse({"error": message, "trouble": "session"}, 401)
        return JSONResponse({"key": key})

    routes = [
        Route("/", file),
        Route(SESSION_PATH, session, methods=["POST"]),
        Route("/api/log", posted(lambda b: review.log_again(_text(b, "do"))), methods=["POST"]),
        Route("/static/{name}", file),
        Route("/api/about", answered(review.about)),
        Route("/api/state", answered(review.state)),
        Route("/api/duplicates", lambda request: JSONResponse(review.duplicates(_alike(request)))),
        Route("/api/cluster/{cluster}", cluster),
        Route("/api/rejected", lambda request: JSONResponse(review.rows_of(REJECTED, "confidence", 0, PAGE))),
        Route("/api/thumbs", thumbs),
        Route("/api/items", lambda request: JSONResponse(review.items(_rows(request, run)))),
        Route("/api/item/{row}", picture),
        Route("/api/similar/{row}", similar),
        Route("/api/row/{row}", lambda request: JSONResponse(review.whole_row(_row(request, run)))),
        Route("/api/profile/{cluster}", lambda request: JSONResponse(review.profile(_path_number(request, "cluster")))),
        Route("/api/list", posted(review.listed), methods=["POST"]),
        Route("/api/queue", answered(review.queue)),
        Route("/api/nearest", posted(review.nearest), methods=["POST"]),
        Route("/api/map", coordinates),
        Route("/api/map-state", answered(lambda: {"state": review.map.state()})),
        Route("/api/labels", labels),
        Route("/api/new", lambda request: Response(run.new.tobytes(), media_type="application/octet-stream")),
        Route("/api/action", posted(lambda b: review.act(_text(b, "kind"), b, _whole(b, "base"))), methods=["POST"]),
        Route("/api/undo", posted(lambda b: review.act("undo", {}, _whole(b, "base"))), methods=["POST"]),
        Route("/api/redo", posted(lambda b: review.act("redo", {}, _whole(b, "base"))), methods=["POST"]),
        Route(
            "/api/split-preview",
            posted(lambda b: review.split(_whole(b, "cluster"), _whole(b, "parts"))),
            methods=["POST"],
        ),
        Route(
            "/api/export",
            posted(lambda b: {"written": str(export(run.folder, _text(b, "format"), None).resolve())}),
            methods=["POST"],
        ),
    ]
    handlers: Mapping[Any, Any] = {
        ConflictError: _refused(409),
        TroubleError: _trouble,
        UnveilError: explained(_refused(400)),
        HTTPException: _http,
        OSError: explained(_disk),
    }
    return Guard(Starlette(routes=routes, exception_handlers=handlers), access=access)


def _refused(status: int) -> Callable[[Request, Exception], Response]:
    return lambda request, error: JSONResponse({"error": str(error)}, status)


def _trouble(request: Request, error: TroubleError) -> Response:
    return JSONResponse({"error": str(error), "trouble": error.trouble}, 503)


def _disk(request: Request, error: OSError) -> Response:
    return JSONResponse({"error": f"a file cannot be read or written ({error.strerror or error})"}, 503)


def _http(request: Request, error: HTTPException) -> Response:
    return JSONResponse({"error": error.detail}, error.status_code)


async def _body(request: Request) -> dict[str, Any]:
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > LARGEST_BODY:
            raise HTTPException(413, f"at most {LARGEST_BODY} bytes")
    try:
        body = json.loads(content)
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()  # rejects lone surrogates and infinities
    except (ValueError, RecursionError):
        raise UnveilError("the request is not JSON") from None
    if not isinstance(body, dict):
        raise UnveilError("send a JSON object")
    return body


def _whole(body: dict[str, Any], key: str) -> int:
    value = body.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UnveilError(f"{key} must be a whole number")
    return value


def _text(body: dict[str, Any], key: str) -> str:
    if not isinstance(value := body.get(key), str):
        raise UnveilError(f"{key} must be a text")
    return value


def _number(query: Mapping[str, str], key: str, default: int) -> int:
    text = query.get(key, str(default))
    if not (text.isascii() and text.isdecimal()) or len(text) > 12:
        raise UnveilError(f"{key} must be a whole number")
    return int(text)


def _alike(request: Request) -> float:
    """The least cosine of duplicates."""
    try:
        alike = float(request.query_params.get("alike", ALIKE))
    except ValueError:
        alike = 0.0
    if not LEAST_ALIKE <= alike <= 1:
        raise UnveilError(f"alike is a cosine from {LEAST_ALIKE} to 1")
    return alike


def _path_number(request: Request, key: str) -> int:
    text: str = request.path_params[key]
    if not (text.isascii() and text.isdecimal()) or len(text) > 12:
        raise HTTPException(404, f"there is no such {key}")
    return int(text)


def _row(request: Request, run: Run) -> int:
    row = _path_number(request, "row")
    if row >= len(run.ids):
        raise HTTPException(404, "there is no such item")
    return row


def _rows(request: Request, run: Run) -> list[int]:
    texts = request.query_params.get("rows", "").split(",")
    if len(texts) > MOST_ROWS or not all(text.isascii() and text.isdecimal() and len(text) < 12 for text in texts):
        raise UnveilError(f"rows must be 1 to {MOST_ROWS} numbers, separated by commas")
    rows = [int(text) for text in texts]
    if max(rows) >= len(run.ids):
        raise HTTPException(404, "there is no such item")
    return rows
