"""`pip install unveil` alone: neither Ray nor pyarrow is needed, and what needs them says so."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
WITHOUT = """
import sys
from importlib.machinery import PathFinder
class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, *given):
        return None if name.partition(".")[0] in ("ray", "pyarrow", "pandas") else super().find_spec(name, *given)
sys.meta_path[sys.meta_path.index(PathFinder)] = Without
"""
EVERY_MODULE = """
import importlib, pkgutil, unveil
for module in pkgutil.walk_packages(unveil.__path__, "unveil."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""
COMMAND = "from unveil.cli.main import main\nmain()\n"


def call(program: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "UNVEIL_STORE": str(folder / "store")}
    command = [sys.executable, "-c", WITHOUT + program, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def test_the_package_requires_no_cluster() -> None:
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert required
    assert not [one for one in required if one.startswith(("ray", "pyarrow", "dask", "kubernetes"))]


def test_every_module_is_imported_and_a_discovery_runs_without_them(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    y = np.arange(120) % 6
    X = (10 * np.eye(6)[y] + draw.normal(size=(120, 6))).astype(np.float32)
    np.savez(tmp_path / "known.npz", X=X[y < 3], y=y[y < 3])
    np.save(tmp_path / "new.npy", X[y >= 3])
    words = ("discover", "known.npz", "new.npy", "--n-novel", "3", "--method", "kmeans", "--rehearsals", "0")
    done = call(EVERY_MODULE + COMMAND, *words, "--out", "run", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "record.json").exists()
    shards = call(COMMAND, "predict", "run", "new.npy", "labels", folder=tmp_path)
    assert shards.returncode == 2
    assert "pip install pyarrow" in shards.stderr
