"""Nothing but `data get`, `review` and distribution uses the network."""

import subprocess
import sys
from pathlib import Path

import numpy as np
from blobs import blobs
from review_runs import write_run

GUARD = """
import socket, sys
def refused(*arguments, **options):
    raise SystemExit(f"a socket was asked for: {arguments}")
socket.socket.connect = socket.socket.bind = socket.create_connection = socket.getaddrinfo = refused
sys.argv = ["unveil", *sys.argv[1:]]
from unveil.cli.main import main
main()
"""


def call(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", GUARD, *arguments], cwd=folder, capture_output=True, text=True)


def test_no_command_uses_the_network_unasked(tmp_path: Path) -> None:
    x, y = blobs(5, 12)
    np.savez(tmp_path / "known.npz", X=x[:36], y=y[:36])
    np.save(tmp_path / "new.npy", x[36:])
    write_run(tmp_path / "run")
    for arguments in (
        ["discover", "known.npz", "new.npy", "--n-novel", "2", "--rehearsals", "0", "--out", "out", "--store", "s"],
        ["predict", "out", "new.npy", "--store", "s"],
        ["report", "run", "--without-map"],
        ["export", "run"],
        ["data", "list"],
    ):
        result = call(tmp_path, *arguments)
        assert result.returncode == 0, (arguments, result.stderr)


def test_the_guard_works(tmp_path: Path) -> None:
    result = call(tmp_path, "data", "get", "mnist", "--root", str(tmp_path))
    assert "a socket was asked for" in result.stderr
