"""The web application of the review page: its files, queries about the run, and actions."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from unveil.errors import UnveilError
from unveil.pages.review import parameters as asked
from unveil.pages.review.guard import SESSION_PATH, Access, Guard
from unveil.pages.review.log import ConflictError, TroubleError, check_present
from unveil.pages.review.review import PAGE, Review
from unveil.review.corrections import REJECTED
from unveil.review.export import export
from unveil.runs.reader import Run

STATIC = Path(__file__).parent / "static"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


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
        offset, limit = (
            asked.number(request.query_params, "offset", 0),
            asked.number(request.query_params, "limit", PAGE),
        )
        return JSONResponse(review.rows_of(asked.path_number(request, "cluster"), sort, offset, limit))

    def thumbs(request: Request) -> Response:
        side = asked.number(request.query_params, "side", review.pictures.sides[0])
        if side not in review.pictures.sides:
            raise UnveilError(f"side is one of {', '.join(map(str, review.pictures.sides))}")
        image, kind, sizes = review.pictures.sheet(asked.rows(request, run), side)
        return Response(image, media_type=kind, headers={"X-Sizes": sizes})

    def picture(request: Request) -> Response:
        image = review.pictures.large(asked.row(request, run))
        if image is None:
            raise HTTPException(404, "there is no picture of this item")
        return Response(image[0], media_type=image[1])

    def similar(request: Request) -> Response:
        check_present(run)
        count = min(max(asked.number(request.query_params, "count", 60), 1), 500)
        return JSONResponse(review.similar(asked.row(request, run), count))

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
            body = await asked.body(request)
            return JSONResponse(await run_in_threadpool(answer, body))

        return endpoint

    async def session(request: Request) -> Response:
        key = access.open_session((await asked.body(request)).get("code"))
        if key is None:
            message = "this link was used already: `unveil review` prints a new one"
            return JSONResponse({"error": message, "trouble": "session"}, 401)
        return JSONResponse({"key": key})

    routes = [
        Route("/", file),
        Route(SESSION_PATH, session, methods=["POST"]),
        Route("/api/log", posted(lambda b: review.log_again(asked.text(b, "do"))), methods=["POST"]),
        Route("/static/{name}", file),
        Route("/api/about", answered(review.about)),
        Route("/api/state", answered(review.state)),
        Route("/api/duplicates", lambda request: JSONResponse(review.duplicates(asked.alike(request)))),
        Route("/api/cluster/{cluster}", cluster),
        Route("/api/rejected", lambda request: JSONResponse(review.rows_of(REJECTED, "confidence", 0, PAGE))),
        Route("/api/thumbs", thumbs),
        Route("/api/items", lambda request: JSONResponse(review.items(asked.rows(request, run)))),
        Route("/api/item/{row}", picture),
        Route("/api/similar/{row}", similar),
        Route("/api/row/{row}", lambda request: JSONResponse(review.whole_row(asked.row(request, run)))),
        Route(
            "/api/profile/{cluster}",
            lambda request: JSONResponse(review.profile(asked.path_number(request, "cluster"))),
        ),
        Route("/api/list", posted(review.listed), methods=["POST"]),
        Route("/api/queue", answered(review.queue)),
        Route("/api/nearest", posted(review.nearest), methods=["POST"]),
        Route("/api/map", coordinates),
        Route("/api/map-state", answered(lambda: {"state": review.map.state()})),
        Route("/api/labels", labels),
        Route("/api/new", lambda request: Response(run.new.tobytes(), media_type="application/octet-stream")),
        Route(
            "/api/action",
            posted(lambda b: review.act(asked.text(b, "kind"), b, asked.whole(b, "base"))),
            methods=["POST"],
        ),
        Route("/api/undo", posted(lambda b: review.act("undo", {}, asked.whole(b, "base"))), methods=["POST"]),
        Route("/api/redo", posted(lambda b: review.act("redo", {}, asked.whole(b, "base"))), methods=["POST"]),
        Route(
            "/api/split-preview",
            posted(lambda b: review.split(asked.whole(b, "cluster"), asked.whole(b, "parts"))),
            methods=["POST"],
        ),
        Route(
            "/api/export",
            posted(lambda b: {"written": str(export(run.folder, asked.text(b, "format"), None).resolve())}),
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
