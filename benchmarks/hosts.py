"""Two hosts of which one is cut off: `sudo python -m benchmarks.hosts --out results/hosts.json`.

The hosts are two network namespaces with a cable (veth) between them and one directory in common; each starts torchrun
for one rank. In the middle of the discovery the cable is pulled. Needs root and iproute2, so it is no test of CI.

- back: the cable is plugged in again after some seconds. The result must be that of an undisturbed run, byte for byte.
- away, 1 to 2 hosts: it is not. The other host must go on alone.
- away, 2 hosts: it is not, and both are needed. The command must end with an error.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from unveil import files, hardware

HOSTS, CABLE = ("unveil-one", "unveil-two"), ("unveil-a", "unveil-b")
ADDRESSES = ("10.83.0.1", "10.83.0.2")
ROOT = Path(__file__).resolve().parent.parent
CUT_AT, AWAY = 12, 45
"""The step at which the cable is pulled, and after how many seconds it is plugged in again."""
RANK_TIMEOUT, JOIN_TIMEOUT, READ_TIMEOUT, LIMIT = 30, 120, 300, 900
SETTINGS = [
    "data.per_class=20",
    "rotation.epochs=1",
    "supervised.epochs=1",
    "discovery.epochs=6",
    "discovery.evaluate_every=3",
    "machine.checkpoint_seconds=0",
    "machine.precision=float32",
    "machine.device=cpu",
]
SCENARIOS: dict[str, dict[str, Any]] = {
    "undisturbed": {},
    "back": {"cut": True, "back": True},
    "away, 1 to 2 hosts": {"cut": True, "nodes": "1:2"},
    "away, 2 hosts": {"cut": True},
}
PROGRAM = f"""
import os, time
from pathlib import Path
from unveil.cli.main import main
from unveil.training import loop
step_on, done = loop.step_on, []
def slow(batch, *given):
    mark = Path(os.environ["CUT"])
    if len(batch.views) == 2:  # of the discovery
        done.append(batch)
        if len(done) >= {CUT_AT} and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and not mark.exists():
            mark.touch()
            time.sleep(3)
    return step_on(batch, *given)
loop.step_on = slow
main()
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def connect() -> None:
    """Two hosts and a cable between them."""
    for host in HOSTS:
        ip("netns", "add", host)
    ip("link", "add", CABLE[0], "type", "veth", "peer", "name", CABLE[1])
    for host, end, address in zip(HOSTS, CABLE, ADDRESSES, strict=True):
        ip("link", "set", end, "netns", host)
        ip("-n", host, "addr", "add", f"{address}/24", "dev", end)
        ip("-n", host, "link", "set", "lo", "up")
        ip("-n", host, "link", "set", end, "up")


def disconnect() -> None:
    for host in HOSTS:
        subprocess.run(["ip", "netns", "del", host], check=False, capture_output=True)


def start(number: int, folder: Path, name: str, nodes: str) -> subprocess.Popen[str]:
    """torchrun on one of the hosts."""
    conf = f"is_host={int(number == 0)},join_timeout={JOIN_TIMEOUT},last_call_timeout=5,read_timeout={READ_TIMEOUT}"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes", nodes, "--nproc-per-node", "1"]
    torchrun += ["--max-restarts", "3", "--rdzv-backend", "c10d", "--rdzv-id", name, "--rdzv-conf", conf]
    torchrun += ["--rdzv-endpoint", f"{ADDRESSES[0]}:29500", "--local-addr", ADDRESSES[number]]
    arguments = ["run", "digits", "--out", name, "--store", "stages"]
    arguments += [word for setting in SETTINGS for word in ("--set", setting)]
    environment = {
        "PYTHONPATH": str(ROOT / "src"),
        "OMP_NUM_THREADS": "1",
        "TORCH_CPP_LOG_LEVEL": "ERROR",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        "UNVEIL_RANK_TIMEOUT": str(RANK_TIMEOUT),
        "GLOO_SOCKET_IFNAME": CABLE[number],
        "CUT": str(folder / f"{name}.cut"),
    }
    log = (folder / f"{name}-{number}.log").open("w")
    return subprocess.Popen(
        ["ip", "netns", "exec", HOSTS[number], *torchrun, str(folder / "program.py"), *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=log,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def scenario(folder: Path, name: str, *, cut: bool = False, back: bool = False, nodes: str = "2") -> dict[str, Any]:
    """Run both hosts; pull the cable when the training has come to a step."""
    name = name.replace(",", "").replace(" ", "-")
    mark = folder / f"{name}.cut"
    if not cut:
        mark.touch()  # nothing waits for it then
    begun = time.monotonic()
    processes = [start(number, folder, name, nodes) for number in range(2)]
    try:
        if cut:
            while not mark.exists() and time.monotonic() - begun < LIMIT:
                time.sleep(0.2)
            ip("-n", HOSTS[1], "link", "set", CABLE[1], "down")
            print(f"{name}: cut after {time.monotonic() - begun:.0f} s", flush=True)
            if back:
                time.sleep(AWAY)
                ip("-n", HOSTS[1], "link", "set", CABLE[1], "up")
        codes = [wait(process, LIMIT - (time.monotonic() - begun)) for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        if cut and not back:
            ip("-n", HOSTS[1], "link", "set", CABLE[1], "up")
    texts = [(folder / f"{name}-{number}.log").read_text() for number in range(2)]
    return {
        "nodes": nodes,
        "exit_codes": codes,
        "seconds": round(time.monotonic() - begun, 1),
        "resumed": [line.strip() for text in texts for line in text.splitlines() if "resumed at step" in line],
        "last_error": [next((line for line in reversed(text.splitlines()) if "Error" in line), "") for text in texts],
        "result": (folder / name / "record.json").exists(),
    }


def wait(process: subprocess.Popen[str], seconds: float) -> int | str:
    """Its exit code; `still there` after that many seconds."""
    try:
        return process.wait(max(1.0, seconds))
    except subprocess.TimeoutExpired:
        return "still there"


def same(folder: Path, one: str, other: str) -> bool:
    """Whether two runs have the same predictions and rows, byte for byte."""
    names = ("predictions.csv", "rows.npz")
    return all((folder / one / name).read_bytes() == (folder / other / name).read_bytes() for name in names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", nargs="*", default=list(SCENARIOS))
    args = parser.parse_args()
    disconnect()
    connect()
    try:
        folder = args.folder or Path(tempfile.mkdtemp())
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "program.py").write_text(PROGRAM)
        before = files.read_json(args.out)["scenarios"] if args.out and args.out.exists() else {}
        found = {name: scenario(folder, name, **SCENARIOS[name]) for name in args.only}
        if "back" in found:
            found["back"]["same_bytes"] = found["back"]["result"] and same(folder, "undisturbed", "back")
    finally:
        disconnect()
    record = {
        "scenarios": {**before, **found},
        "cut_at_step": CUT_AT,
        "away_seconds": AWAY,
        "rank_timeout": RANK_TIMEOUT,
        "join_timeout": JOIN_TIMEOUT,
        "read_timeout": READ_TIMEOUT,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": hardware.commit(),
        "machine": hardware.describe(torch.device("cpu"), torch.float32),
    }
    print(json.dumps(record, indent=1))
    if args.out:
        files.write_json(args.out, record)


if __name__ == "__main__":
    main()
