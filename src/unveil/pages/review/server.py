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
        offset, limit = asked.number(request, "offset", 0), asked.number(request, "limit", PAGE)
        return JSONResponse(review.rows_of(asked.path_number(request, "cluster"), sort, offset, limit))

    def thumbs(request: Request) -> Response:
        side = asked.number(request, "side", review.pictures.sides[0])
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
        count = min(max(asked.number(request, "count", 60), 1), 500)
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

    get: dict[str, Callable[[Request], Any]] = {
        "/": file,
        "/static/{name}": file,
        "/api/about": answered(review.about),
        "/api/state": answered(review.state),
        "/api/duplicates": lambda request: JSONResponse(review.duplicates(asked.alike(request))),
        "/api/cluster/{cluster}": cluster,
        "/api/rejected": answered(lambda: review.rows_of(REJECTED, "confidence", 0, PAGE)),
        "/api/thumbs": thumbs,
        "/api/items": lambda request: JSONResponse(review.items(asked.rows(request, run))),
        "/api/item/{row}": picture,
        "/api/similar/{row}": similar,
        "/api/row/{row}": lambda request: JSONResponse(review.whole_row(asked.row(request, run))),
        "/api/profile/{cluster}": lambda request: JSONResponse(review.profile(asked.path_number(request, "cluster"))),
        "/api/queue": answered(review.queue),
        "/api/map": coordinates,
        "/api/map-state": answered(lambda: {"state": review.map.state()}),
        "/api/labels": labels,
        "/api/new": lambda request: Response(run.new.tobytes(), media_type="application/octet-stream"),
    }
    post: dict[str, Callable[[dict[str, Any]], Any]] = {
        "/api/log": lambda body: review.log_again(asked.text(body, "do")),
        "/api/list": review.listed,
        "/api/nearest": review.nearest,
        "/api/action": lambda body: review.act(asked.text(body, "kind"), body, asked.whole(body, "base")),
        "/api/undo": lambda body: review.act("undo", {}, asked.whole(body, "base")),
        "/api/redo": lambda body: review.act("redo", {}, asked.whole(body, "base")),
        "/api/split-preview": lambda body: review.split(asked.whole(body, "cluster"), asked.whole(body, "parts")),
        "/api/export": lambda body: {"written": str(export(run.folder, asked.text(body, "format"), None).resolve())},
    }
    routes = [Route(path, answer) for path, answer in get.items()]
    routes += [Route(path, posted(answer), methods=["POST"]) for path, answer in post.items()]
    routes.append(Route(SESSION_PATH, session, methods=["POST"]))
    handlers: Mapping[Any, Any] = {
        ConflictError: _refused(409),
        TroubleError: _trouble,
        UnveilError: explained(_refused(400)),
        HTTPException: lambda request, error: JSONResponse({"error": error.detail}, error.status_code),
        OSError: explained(_disk),
    }
    return Guard(Starlette(routes=routes, exception_handlers=handlers), access=access)


def _refused(status: int) -> Callable[[Request, Exception], Response]:
    return lambda request, error: JSONResponse({"error": str(error)}, status)


def _trouble(request: Request, error: TroubleError) -> Response:
    return JSONResponse({"error": str(error), "trouble": error.trouble}, 503)


def _disk(request: Request, error: OSError) -> Response:
    return JSONResponse({"error": f"a file cannot be read or written ({error.strerror or error})"}, 503)
