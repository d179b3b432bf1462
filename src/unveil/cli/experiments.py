"""Commands for experiments: run a recipe, repeat the paper's tables, measure speed."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from unveil import ranks
from unveil.cli.output import AsJson, print_json, print_table
from unveil.experiments.options import PaperOptions

PAPER = PaperOptions()
Set = Annotated[list[str] | None, Parameter(name="--set", allow_leading_hyphen=False)]


def run(
    recipe: str,
    /,
    *,
    seed: int | None = None,
    set_: Set = None,
    out: Path | None = None,
    root: Path | None = None,
    store: Path | None = None,
    cache_gb: float | None = None,
    resume: bool = False,
    json: AsJson = False,
) -> None:
    """Run all stages of a recipe: pre-training (reused where it is already stored), then discovery.

    Parameters
    ----------
    recipe
        A recipe that comes with unveil (cifar10-desk, digits, …) or a TOML file.
    seed
        Seed of the discovery stage.
    set_
        Change a setting, for example --set method.alpha=0.3; may be given several times.
    out
        The run directory. Default: runs/RECIPE-METHOD-seedN, with a hash of the settings where --set is used.
    root
        Directory of the data sets. Default: UNVEIL_DATA, or ~/.cache/unveil/data.
    store
        Directory in which finished stages are stored for reuse. Default: UNVEIL_STORE, or ~/.cache/unveil/stages.
    cache_gb
        Largest size of the trunk cache. A cache that does not fit stores one byte per value, then fewer views.
    resume
        Continue an interrupted run.
    json
        Print the scores as JSON.
    """
    from unveil import recipe as recipes

    given = {"seed": seed, "machine.cache_gb": cache_gb}
    changes = recipes.parse_set(set_ or []) | {key: value for key, value in given.items() if value is not None}
    settings = recipes.load(recipe, changes)  # before torch is imported: a mistyped key is reported at once

    from unveil.own.directories import default_folder
    from unveil.own.run import run_recipe
    from unveil.storage import default_store

    folder = out or default_folder(settings, changed=bool(set_))
    record = run_recipe(settings, out=folder, stages=store or default_store(), root=root, resume=resume)
    if ranks.current().first:
        _print_scores(record, folder, json)
    ranks.leave()


def demo(*, out: Path | None = None, seed: int = 0, json: AsJson = False) -> None:
    """Find the handwritten digits 5-9 when only 0-4 are known, beside k-means (and UMAP where it is installed).

    Parameters
    ----------
    out
        Keep the result as a run directory, for `unveil report`, `review`, `export` and `predict`.
    seed
        Seed of all of them.
    json
        Print JSON.
    """
    from rich.console import Console

    from unveil.experiments.demo import compare

    rows = compare(seed, out, Console(quiet=json))
    if json:
        print_json([row.__dict__ for row in rows])
    elif out is not None:
        print(f"Look at it: unveil report {out}, or unveil review {out}")


def _print_scores(record: dict[str, Any], folder: Path, json: bool) -> None:
    from unveil.pages.words import score_rows

    seconds = record["seconds"]
    pretraining = sum(value for stage, value in seconds.items() if stage != "discovery")
    spent = {"kmeans_inputs": 0.0, "kmeans": pretraining, "metrics": pretraining + seconds["discovery"]}
    scored = [(title, scores, spent[key]) for key, title, scores in score_rows(record)]
    if json:
        rows = [{"name": title, "seconds": time, **scores} for title, scores, time in scored]
        print_json({"run": folder, "recipe": record["recipe"], "scores": rows})
        return
    cells = [(t, f"{100 * s['acc']:.1f}", f"{s['nmi']:.3f}", f"{s['ari']:.3f}", f"{time:.0f}") for t, s, time in scored]
    title = f"{record['recipe']}, unlabeled training items"
    print_table(("", "ACC %", "NMI", "ARI", "seconds"), cells, title=title)
    print(f"run directory: {folder}")
    print(f"next: unveil review {folder}, or unveil report {folder}")


def paper(
    experiment: str | None = None,
    /,
    *,
    options: Annotated[PaperOptions, Parameter(name="*")] = PAPER,
    json: AsJson = False,
) -> None:
    """Execute the missing runs of a table or figure of the paper, and show it beside the paper's numbers.

    Parameters
    ----------
    experiment
        table2, table3, table4, hng-variants, memory, … Default: list all experiments.
    json
        Print the rows of the table as JSON; what else is said goes to standard error.
    """
    options.check()  # before torch is imported
    from rich.console import Console

    from unveil.experiments import command

    if experiment is not None:
        rows = command.run(experiment, options, Console(markup=False, stderr=json))
    else:
        rows = command.overview()
    if json:
        print_json(rows)
    elif experiment is None:
        print_table(("name", "what", "rows"), [tuple(one.values()) for one in rows])


def bench(
    recipe: str = "cifar10",
    /,
    *,
    device: str = "auto",
    set_: Set = None,
    json: AsJson = False,
) -> None:
    """Measure discovery steps on this machine: the time of each part, and its lower limit at the peak rate.

    Parameters
    ----------
    recipe
        The recipe whose network and settings are measured; images are random, so no data set is needed.
    device
        auto, cpu, cuda, cuda:1, mps.
    set_
        Change a setting, for example --set machine.precision=float32; may be given several times.
    json
        Print JSON.
    """
    from unveil import recipe as recipes

    settings = recipes.load(recipe, {**recipes.parse_set(set_ or []), "machine.device": device})

    from rich.console import Console

    from unveil import hardware
    from unveil.experiments import bench

    where = hardware.pick_device(settings.machine.device)
    report = bench.measure(settings, where, hardware.pick_precision(settings.machine, where))
    if json:
        print_json(report.record())
        return
    console = Console()
    for table in bench.tables(report):
        console.print(table)


def import_checkpoint(
    source: Path, target: Path, /, *, heads: Annotated[bool, Parameter(negative="--no-heads")] = True
) -> None:
    """Turn a published ResNet-18 checkpoint (AutoNovel, NCL) into a file to start from.

    Parameters
    ----------
    source
        A file that torch.save wrote. It is loaded as tensors alone: nothing in it is executed.
    target
        The safetensors file to write, for --set encoder.weights=TARGET.
    heads
        Also keep the heads for known and novel classes.
    """
    from unveil.models.checkpoint_import import import_checkpoint

    imported = import_checkpoint(source, target, heads=heads)
    kept = [f"{name} of {count} classes" for name, count in imported.heads.items()]
    print(f"{target}: {', '.join([imported.encoder, *kept])}")
    if imported.ignored:
        print(f"not used: {', '.join(imported.ignored[:5])}" + (", …" if len(imported.ignored) > 5 else ""))
    recipe = "imagenet" if imported.encoder == "resnet18-imagenet" else "cifar10"
    without = ["rotation.epochs=0", *(["supervised.epochs=0"] if "known_head" in imported.heads else [])]
    changes = " ".join(f"--set {change}" for change in (f"encoder.weights={target}", *without))
    print(f"next: unveil run {recipe} {changes}")


COMMANDS = (demo, run, paper, bench, import_checkpoint)
