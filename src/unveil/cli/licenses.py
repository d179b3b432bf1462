"""`unveil licenses`: the packages that unveil needs, and their licences. Reads installed metadata, no network."""

import re
from importlib import metadata

from unveil.cli.output import AsJson, print_json


def licenses(*, json: AsJson = False) -> None:
    """List the packages that unveil needs here, directly or not, with their versions and licences.

    Parameters
    ----------
    json
        Print JSON.
    """
    if json:
        keys = ("name", "version", "license")
        print_json([dict(zip(keys, package, strict=True)) for package in dependencies("unveil")])
        return
    for name, version, text in dependencies("unveil"):
        print(f"{name} {version}: {text}")


def dependencies(root: str) -> list[tuple[str, str, str]]:
    """(name, version, licence) of a package and all installed packages that it needs, by name."""
    found: dict[str, tuple[str, str, str]] = {}
    waiting = [root]
    while waiting:
        try:
            package = metadata.distribution(waiting.pop())
        except metadata.PackageNotFoundError:
            continue  # for another system or an option that is not installed
        name = str(package.metadata["Name"])
        if name.lower() in found:
            continue
        found[name.lower()] = (name, package.version, license_of(package))
        needed = (re.match(r"[\w.-]+", requirement) for requirement in package.requires or ())
        waiting += [match[0] for match in needed if match is not None]
    return [found[key] for key in sorted(found)]


def license_of(package: metadata.Distribution) -> str:
    """The licence as the package states it: an expression, a short text, or its classifiers."""
    fields = package.metadata
    short = [text for key in ("License-Expression", "License") for text in fields.get_all(key) or () if text]
    if short and "\n" not in short[0] and len(short[0]) < 100:
        return str(short[0])
    classifiers = [text.rpartition(":: ")[2] for text in fields.get_all("Classifier") or () if "License ::" in text]
    return ", ".join(classifiers) or (short[0].splitlines()[0].strip() if short else "not stated")


COMMANDS = (licenses,)
