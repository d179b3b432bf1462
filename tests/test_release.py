"""What is published beside the code: versions, extras, links, and the files that hosts of repositories look for."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from unveil import __version__

ROOT = Path(__file__).resolve().parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_version_is_the_same_everywhere() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_all_has_every_extra_that_people_use() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    (everything,) = extras["all"]
    named = set(re.fullmatch(r"unveil\[(.*)\]", everything)[1].split(","))  # type: ignore[index]
    assert named == set(extras) - {"all", "dev", "docs", "peers"}


def test_extras_that_people_are_told_to_install_exist() -> None:
    """Every `unveil[…]` in messages and pages."""
    extras = PROJECT["project"]["optional-dependencies"]
    pages = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "Dockerfile"]
    told = re.compile(r"(?:unveil|\.)\[([a-z, ]+)\]")
    named = {
        (page.name, name.strip())
        for page in pages
        for match in told.findall(page.read_text(encoding="utf-8"))
        for name in match.split(",")
    }
    assert named
    assert [pair for pair in sorted(named) if pair[1] not in extras] == []


def test_the_page_on_a_package_index_has_no_relative_link() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    hook = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    for substitution in hook["substitutions"]:
        text = re.sub(substitution["pattern"], substitution["replacement"], text)
    assert re.findall(r"\]\((?!https://|#)[^)]*\)", text) == []
    assert "](https://raw.githubusercontent.com/unveil-ncd/unveil/main/docs/pictures/" in text


@pytest.mark.parametrize("page", ["SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_of_further_pages_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / page).read_text(encoding="utf-8"))
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_source_distribution_leaves_out_the_records() -> None:
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert "/results" not in included
    assert {"/src", "/tests", "/docs", "/benchmarks", "/*.md"} <= set(included)
