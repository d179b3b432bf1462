"""`unveil doctor`: what is installed, on which device it computes, which encoders there are, where caches are."""

import os
import platform
import shutil
import sys
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from unveil import __version__
from unveil.cli.output import AsJson, print_json, size_text
from unveil.encoders import registry
from unveil.encoders.registry import EncoderEntry


def doctor(*, json: AsJson = False) -> None:
    """Say what is installed, which device is used, which encoders there are, and where caches are and how large.

    The exit code is 1 where something that every command needs does not work.

    Parameters
    ----------
    json
        Print JSON.
    """
    report = examine()
    if json:
        print_json(report)
    else:
        _print(report)
    if report["problems"]:
        sys.exit(1)


def examine() -> dict[str, Any]:
    """Everything that `unveil doctor` says."""
    problems: list[str] = []
    return {
        "unveil": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "torch": _torch(problems),
        "extras": _extras(),
        "encoders": _encoders(),
        "folders": _folders(problems),
        "problems": problems,
    }


def _torch(problems: list[str]) -> dict[str, Any]:
    """Device and precision that `auto` chooses."""
    try:
        from unveil import hardware
        from unveil.settings import Machine

        device = hardware.pick_device("auto")
        return hardware.describe(device, hardware.pick_precision(Machine(), device))
    except Exception as error:  # a broken installation can raise anything
        problems.append(f"torch does not work ({' '.join(str(error).split())[:200]}): install it again")
        return {}


def _extras() -> dict[str, list[str]]:
    """The packages that are missing of each extra; none are missing of one that is installed."""
    missing: dict[str, list[str]] = {}
    try:
        requirements = metadata.requires("unveil") or []
    except metadata.PackageNotFoundError:  # a source tree that is not installed
        return missing
    for requirement in requirements:
        name, _, condition = (part.strip() for part in requirement.partition(";"))
        extra = condition.rpartition("extra ==")[2].strip(" '\"()")
        if extra and extra not in ("all", "dev", "docs", "peers"):
            package = _package_of(name)
            missing.setdefault(extra, []).extend([] if _has(package) else [package])
    return missing


def _package_of(requirement: str) -> str:
    """The name of a package, without versions and options."""
    for position, letter in enumerate(requirement):
        if not (letter.isalnum() or letter in "-_."):
            return requirement[:position]
    return requirement


def _has(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def _encoders() -> dict[str, str]:
    """Every encoder: `ready`, or what is missing."""
    return {entry.name: _state(entry) for entry in registry.ENCODERS}


def _state(entry: EncoderEntry) -> str:
    """Whether the packages of an encoder are there; those that are built for a certain torch are imported, to see."""
    if entry.missing:
        return f"pip install {entry.install}"
    for module in entry.modules:
        if entry.built_for_torch:
            try:
                import_module(module)
            except Exception as error:  # RuntimeError and others
                reason = " ".join(str(error).split())[:100]
                return f"{module} does not work with this torch ({reason}): install the version that belongs to it"
    return "ready"


def _folders(problems: list[str]) -> dict[str, dict[str, Any]]:
    from unveil import storage
    from unveil.data.catalog import data_root

    named = {"stored embeddings and stages": storage.default_store(), "data sets": data_root()}
    return {title: _folder(path, problems) for title, path in named.items()}


def _folder(path: Path, problems: list[str]) -> dict[str, Any]:
    from unveil import storage

    there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not os.access(there, os.W_OK):
        problems.append(f"{path} cannot be written to: set UNVEIL_STORE or UNVEIL_DATA to a folder of yours")
    return {"path": path, "bytes": storage.size_of(path), "free": shutil.disk_usage(there).free}


def _print(report: dict[str, Any]) -> None:
    machine = report["torch"]
    print(f"unveil {report['unveil']}, Python {report['python']}, {report['system']}")
    if machine:
        print(
            f"torch {machine['torch']} on {machine['device']} in {machine['precision']}: {machine['processor']}, "
            f"{machine['cores']} cores, {machine['threads']} threads"
        )
    print("\nextras")
    for extra, missing in report["extras"].items():
        print(f"  {extra}: " + (f"pip install 'unveil[{extra}]' ({', '.join(missing)})" if missing else "installed"))
    print("\nencoders")
    for name, answer in report["encoders"].items():
        print(f"  {name}: {answer}")
    print("\nfolders")
    for title, folder in report["folders"].items():
        sizes = f"{size_text(folder['bytes'])}, {size_text(folder['free'])} free"
        print(f"  {title}: {folder['path']}, {sizes}")
    print("  delete old embeddings and stages: unveil cache clean")
    for problem in report["problems"]:
        print(f"\nproblem: {problem}")


COMMANDS = (doctor,)
