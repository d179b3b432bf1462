"""`unveil discover --continue RUN`: discover again, with the corrections of the review page."""

from pathlib import Path
from typing import Any

from unveil import recipe, storage
from unveil.data.sheets import Columns
from unveil.discovery.run import Corrections, run_own_data, run_recipe
from unveil.errors import UnveilError
from unveil.runs.corrections import REJECTED, current_state
from unveil.runs.edited_scores import EditedScores
from unveil.runs.reader import load, verify_file
from unveil.runs.review_log import LOG


def continue_run(
    run: Path, *, out: Path, stages: Path, root: Path | None = None, n_novel: int | None = None
) -> dict[str, Any]:
    """A new run in `out`: named clusters become known classes, and rejected items stay out of their previous class."""
    corrections, unnamed = from_review(run)
    record = load(run).record
    source = record["source"]
    verify_file(run, record, "config.toml")
    changes = {"data.n_novel": n_novel or max(1, unnamed)}
    settings = recipe.changed_at(recipe.read(run / "config.toml"), changes)
    if source["kind"] == "data set":
        return run_recipe(settings, out=out, stages=stages, root=root, corrections=corrections)
    if source["kind"] != "files":
        raise UnveilError(f"{run} was made from {source['kind']} in memory, which were not stored: fit again")
    return run_own_data(
        Path(source["known"]),
        None if source["new"] is None else Path(source["new"]),
        out=out,
        stages=stages,
        columns=Columns.from_json(source.get("columns", {})),
        settings=settings,
        corrections=corrections,
    )


def from_review(run: Path) -> tuple[Corrections, int]:
    """Labels and rejections of a review, and how many clusters have no name yet."""
    path = run / LOG
    if not path.exists():
        raise UnveilError(f"{run} has no review: name some clusters first, with `unveil review {run}`")
    original = load(run)
    state = current_state(original)
    named = {
        cluster
        for cluster, meaning in state.meanings.items()
        if not state.is_novel(cluster) or meaning.named or meaning.known is not None
    }
    labels = {
        original.ids[row]: state.name(int(label))
        for row, label in enumerate(state.labels)
        if original.new[row] and int(label) in named
    }
    if not labels:
        raise UnveilError(f"no cluster of {run} has a name: name some first, with `unveil review {run}`")
    scores = EditedScores(original).of(state)[0]
    confidence = {name: float(scores[row]) for row, name in enumerate(original.ids) if name in labels}
    rejected = {}
    for row in (state.labels == REJECTED).nonzero()[0]:
        before = int(original.labels[row])  # the class that the fit had given it
        rejected[original.ids[row]] = state.name(before) if before in state.meanings else original.classes[before]
    source = f"{run.resolve()} {storage.fingerprint_file(path)}"
    unnamed = [cluster for cluster in state.meanings if state.is_novel(cluster) and cluster not in named]
    return Corrections(labels, rejected, confidence, source), len(unnamed)
