"""The directory of a run, and checks that it can be used."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unveil import files, recipe
from unveil.errors import DamagedError, UnveilError
from unveil.runs import thumbnails
from unveil.settings import Settings
from unveil.storage import identity


def default_folder(settings: Settings, changed: bool) -> Path:
    """runs/RECIPE-METHOD-seedN, with a hash of the settings where the recipe was changed."""
    mark = f"-{identity(settings=recipe.to_table(settings))[:6]}" if changed else ""
    return Path("runs") / f"{settings.name}-{settings.discovery.method}-seed{settings.seed}{mark}"


def check_directory(out: Path, settings: Settings, *, resume: bool) -> None:
    """Raise an error unless the directory is empty or holds this run."""
    config = out / "config.toml"
    if is_unused(out):
        return
    if not config.exists():
        raise UnveilError(f"{out} is not empty and not a run directory: choose another --out")
    if difference := recipe.difference(_stored(out), settings):
        raise UnveilError(f"{out} holds a run with other settings ({difference}): choose another --out")
    if not resume:
        raise UnveilError(f"{out} already holds this run: add --resume to go on with it, or choose another --out")


def check_request(out: Path, settings: Settings, request: Mapping[str, Any]) -> None:
    """Raise an error unless the directory is empty or holds a discovery of the same data and settings."""
    if is_unused(out):
        return
    if not (out / "request.json").exists():
        raise UnveilError(f"{out} is not empty and holds no discovery: choose another --out")
    try:
        same = files.read_json(out / "request.json") == request
    except DamagedError as error:
        raise _unknown(out, error) from None
    if not same or ((out / "config.toml").exists() and recipe.difference(_stored(out), settings)):
        raise UnveilError(f"{out} holds a discovery of other data or settings: choose another --out")


def _stored(out: Path) -> Settings:
    """The settings of the run in a directory."""
    try:
        return recipe.read(out / "config.toml")
    except UnveilError as error:
        raise _unknown(out, error) from None


def _unknown(out: Path, error: UnveilError) -> UnveilError:
    problem = str(error).rpartition(": ")[0] or str(error)
    return UnveilError(f"{problem}, so it is not known what run {out} holds: choose another --out, or delete {out}")


def is_unused(out: Path) -> bool:
    """Whether nothing is there, or a directory with what embedding alone leaves: thumbnails, and hidden files (a lock,
    or what a killed process has left)."""
    if not out.exists() and not out.is_symlink():
        return True
    if not out.is_dir():
        raise UnveilError(f"{out} is a file, expected a directory for the run: choose another --out")
    return all(path.name.startswith((".", thumbnails.FILE)) for path in out.iterdir())
