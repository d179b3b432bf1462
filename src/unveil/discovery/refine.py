"""`unveil discover --continue RUN`: fit again with what people said on the review page. Look, name, refine."""

from pathlib import Path
from typing import Any

from unveil import files
from unveil import storage as store
from unveil.discovery.own_data import Given, Request, discover
from unveil.errors import UnveilError
from unveil.runs.corrections import REJECTED, current_state
from unveil.runs.reader import load
from unveil.runs.review_log import LOG


def refine(run: Path, *, out: Path, classes: int | None = None, store: Path | None = None) -> dict[str, Any]:
    """A new discovery in `out`: named clusters are known classes now, rejected items stay out of theirs."""
    given, unnamed = from_review(run)
    told = files.read_json(run / "request.json")
    kept = ("encoder", "method", "may_contain_known", "rehearsals", "seed", "device")
    request = Request(
        known=Path(told["known"]),
        new=Path(told["new"]),
        classes=classes or max(1, unnamed),
        **{key: told[key] for key in kept},
    )
    return discover(request, out=out, store=store, given=given)


def from_review(run: Path) -> tuple[Given, int]:
    """Labels and rejections of a review, and how many clusters have no name yet."""
    path = run / LOG
    if not path.exists():
        raise UnveilError(f"{run} has no review: name some clusters first, with `unveil review {run}`")
    stored = load(run)
    state = current_state(stored)
    named = {
        c
        for c, meaning in state.meanings.items()
        if not state.is_novel(c) or meaning.named or meaning.known is not None
    }
    labels = {
        stored.ids[row]: state.name(int(label))
        for row, label in enumerate(state.labels)
        if stored.new[row] and int(label) in named
    }
    if not labels:
        raise UnveilError(f"no cluster of {run} has a name: name some first, with `unveil review {run}`")
    never = {}
    for row in (state.labels == REJECTED).nonzero()[0]:
        before = int(stored.labels[row])  # where the fit had put it
        never[stored.ids[row]] = state.name(before) if before in state.meanings else stored.classes[before]
    source = f"{run.resolve()} {store.fingerprint_file(path)}"
    return Given(labels, never, source), len([c for c in state.meanings if state.is_novel(c) and c not in named])
