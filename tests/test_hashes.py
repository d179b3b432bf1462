"""The hashes of pinned packages, which CI installs and no others."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def hashed() -> dict[str, list[str]]:
    """The hashes of each NAME==VERSION."""
    lines = (ROOT / ".ci" / "hashes.txt").read_text().replace("\\\n", " ").splitlines()
    return {line.split()[0]: line.split()[1:] for line in lines if not line.startswith("#")}


def test_hashes_are_of_the_pinned_versions() -> None:
    pinned = re.findall(r"^[\w.-]+==\S+", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert set(hashed()) <= set(pinned), "run .ci/hashes.py again"
    assert all(hashed().values())
    assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", value) for values in hashed().values() for value in values)


def test_everything_that_ci_needs_has_hashes() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = re.findall(r"-e \.\[([\w,]+)\]", (ROOT / "Makefile").read_text())[-1].split(",")
    wanted = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    wanted += [line for extra in extras for line in project["project"]["optional-dependencies"][extra]]
    found = (re.match(r"[\w.-]+", line) for line in wanted if not line.startswith("unveil["))
    names = {match[0].lower() for match in found if match is not None}
    assert names - {name.partition("==")[0].lower() for name in hashed()} == set(), "run .ci/hashes.py"
