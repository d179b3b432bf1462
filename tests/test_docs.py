"""Pages tell the truth: their tables are what the records say, and their links lead somewhere."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
spec = importlib.util.spec_from_file_location("render", ROOT / "docs" / "render.py")
assert spec is not None
assert spec.loader is not None
render = importlib.util.module_from_spec(spec)
spec.loader.exec_module(render)


@pytest.mark.parametrize("page", render.PAGES, ids=lambda page: page.name)
def test_tables_are_rendered_from_the_records(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert render.rendered(text) == text, "run `make docs`"


@pytest.mark.parametrize("page", render.PAGES, ids=lambda page: page.name)
def test_links_to_files_exist(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_a_table_shows_mean_and_spread_of_its_records(tmp_path: Path) -> None:
    for seed, acc in ((0, 0.8), (1, 0.9)):
        scores = {"acc": acc, "nmi": 0.5, "ari": 0.5}
        record = {"seed": seed, "metrics": scores, "kmeans": scores, "seconds": {"rotation": 10.0, "discovery": 5.0}}
        (tmp_path / f"ncl-seed{seed}.json").write_text(render.json.dumps(record))
    line = next(line for line in render.table(tmp_path).splitlines() if line.startswith("| ncl "))
    assert "| 2 | 85.0 ± 7.1 |" in line


def test_the_method_of_the_how_to_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy method of docs/add-a-method.md: registered, run by its recipe, saved, loaded; and its own test passes."""
    from conftest import TINY
    from rich.console import Console

    from unveil import recipe
    from unveil.errors import UnveilError
    from unveil.methods.catalog import METHODS
    from unveil.models.model import Model
    from unveil.own.run import run_recipe

    page = (ROOT / "docs" / "add-a-method.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:python|toml)\n(# (\S+)\n.*?)```", page, re.DOTALL)
    paths = {Path(name).name: tmp_path / Path(name).name for _, name in blocks}
    for text, name in blocks:
        paths[Path(name).name].write_text(text, encoding="utf-8")
    assert set(paths) == {"sharpen.py", "sharpen-digits.toml", "test_sharpen.py"}

    sharpen = imported("unveil.methods.sharpen", paths["sharpen.py"], monkeypatch)
    assert len(paths["sharpen.py"].read_text().splitlines()) <= 62
    imported("test_sharpen", paths["test_sharpen.py"], monkeypatch).test_entropy_has_its_closed_forms()
    monkeypatch.setitem(METHODS, "sharpen", sharpen.Sharpen)
    quick = ["discovery.epochs=3", "rotation.epochs=1"]
    settings = recipe.load(str(paths["sharpen-digits.toml"]), recipe.parse_set(quick), defaults=recipe.parse_set(TINY))
    assert settings.method == sharpen.SharpenSettings(balance=3.0)
    record = run_recipe(settings, out=tmp_path / "run", stages=tmp_path / "store", console=Console(quiet=True))
    assert record["method"] == "sharpen"
    assert {"ce", "sharp", "balance", "consistency"} <= set(record["metrics"])
    assert record["metrics"]["acc"] > 0.25
    Model.load(tmp_path / "run" / "model.safetensors")
    with pytest.raises(UnveilError, match="'alpha' is a setting of ncl, ncl-hng; the method is sharpen"):
        recipe.load(str(paths["sharpen-digits.toml"]), {"method.alpha": 1})


def test_the_clusterer_of_the_how_to_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mixture of docs/howto/clusterer.md: registered, asked for by name, with its setting, saved and loaded."""
    import numpy as np
    from blobs import blobs

    from unveil import NovelClassDiscovery
    from unveil.clustering.catalog import CLUSTERERS
    from unveil.metrics import clustering_accuracy

    page = (ROOT / "docs" / "howto" / "clusterer.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(text.splitlines()) <= 42
    (tmp_path / "mixture.py").write_text(text, encoding="utf-8")
    mixture = imported("unveil.clustering.mixture", tmp_path / "mixture.py", monkeypatch)
    monkeypatch.setitem(CLUSTERERS, "mixture", mixture.Mixture)
    x, y = blobs(8, 40, apart=6.0)
    given = np.where(y < 5, y, -1)
    fit = NovelClassDiscovery(n_novel=3, method="mixture", rehearsals=1, random_state=0).fit(x, given)
    assert clustering_accuracy(y, fit.labels_) == 1.0
    assert "Gaussian mixture" in fit.choice_
    fit.save(tmp_path / "run", x)
    np.testing.assert_array_equal(NovelClassDiscovery.load(tmp_path / "run").predict(x), fit.predict(x))


def test_the_encoder_of_the_how_to_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The colors of docs/howto/encoder.md: a file and an entry, asked for by name, saved and loaded."""
    import numpy as np

    from unveil import NovelClassDiscovery
    from unveil.encoders import registry

    page = (ROOT / "docs" / "howto" / "encoder.md").read_text(encoding="utf-8")
    _, module, entry = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "colors.py").write_text(module, encoding="utf-8")
    imported("unveil.encoders.colors", tmp_path / "colors.py", monkeypatch)
    importing, _, made = entry.partition("\n\n")
    names: dict[str, Any] = {}
    exec(importing, names)
    monkeypatch.setattr(registry, "ENCODERS", (*registry.ENCODERS, eval(made, names)))
    kinds, draw = np.repeat(np.arange(6), 25), np.random.default_rng(0)
    shades = np.array([[20, 20, 20], [220, 20, 20], [20, 220, 20], [20, 20, 220], [220, 220, 20], [20, 220, 220]])
    noise = draw.integers(-15, 60, size=(len(kinds), 40, 40, 3)) * (draw.random((len(kinds), 40, 40, 1)) < 0.7)
    images = np.clip(shades[kinds][:, None, None] + noise, 0, 255).astype(np.uint8)
    fit = NovelClassDiscovery(2, encoder="colors", rehearsals=0, random_state=0)
    fit.fit(images, np.where(kinds < 4, kinds, -1))
    assert len(set(fit.labels_[kinds == 4])) == len(set(fit.labels_[kinds == 5])) == 1
    fit.save(tmp_path / "run", images)
    np.testing.assert_array_equal(NovelClassDiscovery.load(tmp_path / "run").predict(images), fit.predict(images))


def imported(name: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A file as a module of this name, for the length of a test."""
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    monkeypatch.setitem(sys.modules, name, module)
    found.loader.exec_module(module)
    return module


def test_the_starts_on_clusters_are_valid_shell_and_yaml() -> None:
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    scripts, manifests = (re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("bash", "yaml"))
    assert len(scripts) >= 7
    for script in scripts:
        checked = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stderr
    kinds = [yaml.safe_load(manifest) for manifest in manifests]
    assert [one["kind"] for one in kinds] == ["PyTorchJob", "RayJob"]
    workers = kinds[0]["spec"]["pytorchReplicaSpecs"]["Worker"]
    assert workers["replicas"] == 7
    assert workers["template"]["spec"]["containers"][0]["command"][:3] == ["python", "-m", "unveil"]
