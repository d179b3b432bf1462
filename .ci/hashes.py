"""The hashes of all files of the packages that CI needs, so that it installs these files and no others.

    .venv/bin/python .ci/hashes.py [WHEEL ...]

Writes .ci/hashes.txt: what `make test` has installed here, in the versions of constraints.txt. Asks the package index
that pip uses for those that are new. A wheel that is given as a file is allowed in place of those of the index: torch
without CUDA, whose dependencies are not pinned. Run it whenever constraints.txt has changed; a test compares the two.
"""

import hashlib
import re
import sys
import tomllib
import urllib.request
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from pip._internal.models.index import PyPI
from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
KNOWN = ROOT / ".ci" / "hashes.txt"


def pinned() -> list[tuple[str, str]]:
    """(name, version) of every package that CI needs."""
    makefile = (ROOT / "Makefile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = re.findall(r"-e \.\[([\w,]+)\]", makefile)[-1].split(",")
    wanted = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    wanted += [line for extra in extras for line in project["project"]["optional-dependencies"][extra]]
    needed = closure([line for line in wanted if not line.startswith("unveil[")])
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line]
    pairs = [(name, version) for name, _, version in (line.partition("==") for line in lines)]
    if missing := needed - {canonicalize_name(name) for name, _ in pairs}:
        sys.exit(f"constraints.txt does not pin {', '.join(sorted(missing))}: add them")
    return [(name, version) for name, version in pairs if canonicalize_name(name) in needed]


def closure(wanted: list[str]) -> set[str]:
    """The names of packages and of all that they need here, as their installed metadata say."""
    seen: set[tuple[str, str]] = set()
    waiting = [(Requirement(line), "") for line in wanted]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        for part in ("", *requirement.extras):
            if (name, part) not in seen:
                seen.add((name, part))
                with suppress(metadata.PackageNotFoundError):
                    waiting += [(Requirement(line), part) for line in metadata.requires(name) or ()]
    return {str(name) for name, _ in seen}


def before() -> dict[str, list[str]]:
    """The hashes that are known already: those of a version never change."""
    lines = KNOWN.read_text().replace("\\\n", "").splitlines() if KNOWN.exists() else []
    return {line.split()[0]: re.findall(r"sha256:(\w+)", line) for line in lines if "==" in line}


def of_index(name: str, version: str) -> list[str]:
    """The SHA-256 of all files of a version."""
    with urllib.request.urlopen(f"{PyPI.simple_url}/{re.sub('[-_.]+', '-', name).lower()}/") as answer:
        links = re.findall(r'href="[^"]*/([^"/]+)#sha256=([0-9a-f]{64})', answer.read().decode())
    ends = (f"-{version}-", f"-{version}.tar.gz", f"-{version}.zip")
    return [found for file, found in links if any(end in file for end in ends)]


def main() -> None:
    given = {Path(path).name.partition("-")[0].lower(): path for path in sys.argv[1:]}
    lines = ["# Made by .ci/hashes.py from constraints.txt."]
    known = before()
    for name, version in pinned():
        if path := given.get(name.lower()):
            hashes = [hashlib.sha256(Path(path).read_bytes()).hexdigest()]
        else:
            hashes = known.get(f"{name}=={version}") or of_index(name, version)
        if not hashes:
            sys.exit(f"the index has no file of {name} {version}: give its wheel as an argument")
        lines.append(
            " \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{value}" for value in sorted(set(hashes)))])
        )
    KNOWN.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
