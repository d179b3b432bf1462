"""`unveil discover --continue RUN`: discover again, steered by what people decided on the review page."""

from pathlib import Path
from typing import Any

from unveil import recipe, storage
from unveil.data.sheets import Columns
from unveil.errors import UnveilError
from unveil.own.constraints import Corrections, decided, steered_labels
from unveil.own.run import run_own_data, run_recipe
from unveil.review.corrections import REJECTED, current_state
from unveil.review.edited_scores import EditedScores
from unveil.review.log import LOG
from unveil.runs.reader import load, verify_file


def continue_run(
    run: Path, *, out: Path, stages: Path, root: Path | None = None, n_novel: int | None = None
) -> dict[str, Any]:
    """A new run in `out`, in which everything holds that people decided.

    Named clusters become known classes. Clusters that were merged, split, filled or kept apart stay as people left
    them; the others are discovered again, and keep the names of those that they have most items of.
    """
    corrections, left = from_review(run)
    record = load(run).record
    source = record["source"]
    verify_file(run, record, "config.toml")
    changes = {"data.n_novel": n_novel or max(1, left)}
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
        sample=source.get("sample"),
        settings=settings,
        corrections=corrections,
    )


def from_review(run: Path) -> tuple[Corrections, int]:
    """What a review asks of the next fit, and how many clusters nobody decided about."""
    path = run / LOG
    if not path.exists():
        raise UnveilError(f"{run} has no review: name some clusters first, with `unveil review {run}`")
    original = load(run)
    state = current_state(original)
    about, labels = decided(state), steered_labels(state)
    if not about and not state.by_hand.any():
        advice = f"name some first, with `unveil review {run}`"
        raise UnveilError(f"the review of {run} says nothing about its clusters: {advice}")
    names = {cluster: state.name(cluster) for cluster in state.meanings}
    new = [row for row in range(len(labels)) if original.new[row]]
    is_known = [row for row in new if not state.is_novel(int(labels[row]))]
    is_decided = sorted((row for row in new if int(labels[row]) in about), key=lambda row: int(labels[row]))
    named = [row for row in is_decided if state.meanings[int(labels[row])].named]
    unnamed = [row for row in is_decided if not state.meanings[int(labels[row])].named]
    left = [row for row in new if state.is_novel(int(labels[row])) and int(labels[row]) not in about]
    rejected = {}
    for row in (state.labels == REJECTED).nonzero()[0]:
        before = int(state.rejected_from[row])
        rejected[original.ids[row]] = names.get(before, original.classes[min(before, len(original.classes) - 1)])
    scores = EditedScores(original).of(state)[0]
    given = (*is_known, *named, *unnamed)
    corrections = Corrections(
        labels={original.ids[row]: names[int(labels[row])] for row in given},
        confidence={original.ids[row]: float(scores[row]) for row in given},
        rejected=rejected,
        unnamed=tuple(dict.fromkeys(names[int(labels[row])] for row in unnamed)),
        clusters={original.ids[row]: names[int(labels[row])] for row in left},
        taken=tuple({*original.classes, *names.values()}),
        source=f"{run.resolve()} {storage.fingerprint_file(path)}",
    )
    return corrections, len(set(corrections.clusters.values()))
