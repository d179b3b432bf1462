"""Commands for experiments: run a recipe, repeat the paper's tables, measure speed."""

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from unveil import ranks
from unveil.cli.output import AsJson, print_json, print_table
from unveil.errors import UnveilError


def run(
    recipe: str,
    /,
    *,
    seed: int | None = None,
    set_: Annotated[list[str] | None, Parameter(name="--set", negative="", allow_leading_hyphen=False)] = None,
    out: Path | None = None,
    root: Path | None = None,
    store: Path | None = None,
    cache_gb: float | None = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
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
    data: str = "cifar10",
    scale: str = "desk",
    seeds: int | None = None,
    imbalance: float | None = None,
    jobs: int = 1,
    engine: Literal["local", "ray"] = "local",
    address: str | None = None,
    launcher: str | None = None,
    plan: Path | None = None,
    only: str | None = None,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    show: Annotated[bool, Parameter(negative="")] = False,
    out: Path = Path("results/paper"),
    runs: Path = Path("runs/paper"),
    root: Path | None = None,
    store: Path | None = None,
    json: AsJson = False,
) -> None:
    """Execute the missing runs of a table or figure of the paper, and show it beside the paper's numbers.

    Parameters
    ----------
    experiment
        table2, table3, table4, hng-variants, memory, … Default: list all experiments.
    data
        cifar10, cifar100, imagenet, cifar10-embedded, cifar100-embedded, omniglot, digits.
    scale
        desk: for a machine without an accelerator. paper: the published setting.
    seeds
        Number of seeds. Default: that of the scale.
    imbalance
        How many times more items the first class has than the last.
    jobs
        Number of runs at the same time.
    engine
        local: processes on this machine. ray: tasks on a Ray cluster (pip install 'unveil[ray]').
    address
        The address of a running Ray cluster. Default: one with as many CPUs as --jobs is started here.
    launcher
        Start every run as a command of its own after this one, for example --launcher "srun -n 1".
    plan
        Only write a file with one command for each missing run, for any scheduler.
    only
        Execute this run alone and print no table: what the commands of --plan and --launcher do.
    dry_run
        Only print the missing runs and an estimate of their time.
    show
        Run nothing: make the table of the runs that are done.
    out
        Directory of records, tables and pictures. Existing records are reused.
    runs
        Directory of the run directories; an interrupted run continues where it stopped.
    root
        Directory of the data sets. Default: UNVEIL_DATA, or ~/.cache/unveil/data.
    store
        Directory in which finished stages are stored for reuse. Default: UNVEIL_STORE, or ~/.cache/unveil/stages.
    json
        Print the rows of the table as JSON; what else is said goes to standard error.
    """
    from rich.console import Console

    from unveil.experiments import command

    if jobs < 1 or (seeds is not None and seeds < 1):
        raise UnveilError("--jobs and --seeds are counts: give 1 or more")
    if address is not None and engine != "ray":
        raise UnveilError("--address is that of a Ray cluster: add --engine ray")
    if experiment is None:
        found = command.overview()
        if json:
            print_json(found)
        else:
            print_table(("name", "what", "rows"), [tuple(one.values()) for one in found])
        return
    options = {
        "seeds": seeds,
        "imbalance": imbalance,
        "root": root and root.resolve(),
        "store": store and store.resolve(),
    }
    fixed = {"data": data, "scale": scale, "out": out.resolve(), "runs": runs.resolve()}
    given = [experiment, *(f"--{key}={value}" for key, value in (fixed | options).items() if value is not None)]
    rows = command.run(
        experiment,
        data=data,
        scale=scale,
        seeds=seeds,
        imbalance=imbalance,
        jobs=jobs,
        dry_run=dry_run,
        show=show,
        out=out,
        runs=runs,
        root=root,
        store=store,
        console=Console(markup=False, stderr=json),
        where=command.Where(
            engine=engine, address=address, launcher=launcher, plan=plan, only=only, command=tuple(given)
        ),
    )
    if json:
        print_json(rows)


def bench(
    recipe: str = "cifar10",
    /,
    *,
    device: str = "auto",
    set_: Annotated[list[str] | None, Parameter(name="--set", negative="", allow_leading_hyphen=False)] = None,
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
