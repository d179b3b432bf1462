"""Two processes that train together give what one process gives: losses, queues, scores, runs, and after a kill too."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rank_program
import torch
from rank_program import ALONE, ELASTIC, METHODS

from unveil import ranks
from unveil.errors import UnveilError
from unveil.ranks import Ranks
from unveil.storage import locked

PROGRAM = Path(rank_program.__file__)
TOLERANCE = 1e-4


def environment(**more: str) -> dict[str, str]:
    paths = os.pathsep.join([str(PROGRAM.parent), *sys.path])
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths, "TORCH_CPP_LOG_LEVEL": "ERROR", **more}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "ranks"


@pytest.fixture(scope="module")
def outcomes(folder: Path) -> list[dict[str, Any]]:
    """Of one process, and of ranks 0 and 1 of two; computed once for all processes that run tests."""
    names = ["alone.json", "rank0.json", "rank1.json"]
    with locked(folder):
        if not (folder / names[0]).exists():
            compute(folder)
    return [json.loads((folder / name).read_text()) for name in names]


def compute(folder: Path) -> None:
    port = str(free_port())
    processes = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(folder)],
            env=environment(
                RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port
            ),
            stderr=subprocess.PIPE,
        )
        for rank in range(2)
    ]
    try:
        alone = json.dumps(rank_program.main(folder / "alone"))
        errors = [process.communicate(timeout=540)[1].decode() for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], "\n".join(errors)
    assert not errors[1]  # the first rank alone says something
    (folder / "alone.json").write_text(alone)


def assert_same_losses(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for stage, steps in one.items():
        assert len(steps) == len(other[stage])
        for step, (expected, given) in enumerate(zip(steps, other[stage], strict=True)):
            assert given.keys() == expected.keys()
            for name, value in expected.items():
                assert abs(given[name] - value) < TOLERANCE, (stage, step, name)


def test_twenty_steps_of_every_stage_have_the_losses_of_one_process(outcomes: list[dict[str, Any]]) -> None:
    alone, first, second = (outcome["ncl-hng"] for outcome in outcomes)
    assert [outcome["count"] for outcome in outcomes] == [1, 2, 2]
    assert {stage: len(steps) for stage, steps in alone["losses"].items()} == {
        "rotation": 10,
        "supervised": 9,
        "discovery": 20,
    }
    assert set(alone["losses"]["discovery"][-1]) == {"bce", "consistency", "ce", "ncl", "scl"}
    assert_same_losses(alone["losses"], first["losses"])
    assert first["losses"] == second["losses"]


def test_every_rank_has_the_queues_of_one_process(outcomes: list[dict[str, Any]]) -> None:
    alone, first, second = (outcome["ncl-hng"] for outcome in outcomes)
    assert first["queues"] == second["queues"]
    assert first["queue_labels"] == alone["queue_labels"]
    for expected, given in zip(alone["queues"], first["queues"], strict=True):
        np.testing.assert_allclose(given, expected, atol=2e-3)
    assert [len(queue) for queue in alone["queues"]] == [150, 150]


def test_features_and_scores_count_every_item_once(outcomes: list[dict[str, Any]]) -> None:
    alone, first, second = (outcome["ncl-hng"] for outcome in outcomes)
    assert first["features"] == second["features"]
    np.testing.assert_allclose(first["features"], alone["features"], atol=5e-3)
    assert first["acc"] == pytest.approx(alone["acc"], abs=0.02)
    assert first["known_acc"] == pytest.approx(alone["known_acc"], abs=0.02)


@pytest.mark.parametrize("method", [*METHODS, "one rotation", "two views"])
def test_every_method_has_the_losses_of_one_process(method: str, outcomes: list[dict[str, Any]]) -> None:
    alone, first, second = (outcome[method]["losses"] for outcome in outcomes)
    assert_same_losses(alone, first)
    assert first == second


def test_the_trunk_cache_is_that_of_one_process(outcomes: list[dict[str, Any]]) -> None:
    alone, first, _ = (outcome["cached"] for outcome in outcomes)
    assert_same_losses({"discovery": alone}, {"discovery": first})


def test_a_checkpoint_of_two_ranks_goes_on_in_one(outcomes: list[dict[str, Any]], folder: Path) -> None:
    alone, first, second = outcomes
    assert "stopped" in first["interrupted"]
    assert "stopped" in second["interrupted"]  # though the other rank was asked
    assert len(first["interrupted"]["discovery"]) == ALONE
    rest = rank_program.interrupted(folder / "interrupted", at=None)["discovery"]
    assert_same_losses({"discovery": alone["whole"]["discovery"][ALONE:]}, {"discovery": rest})


def test_the_estimator_and_discover_agree_on_all_ranks(outcomes: list[dict[str, Any]], folder: Path) -> None:
    _, first, second = outcomes
    assert first["own"] == second["own"]  # even without a seed
    assert len(set(first["own"]["labels"])) == 10
    assert json.loads((folder / "own" / "record.json").read_text())["n_novel"] == 5


def test_a_killed_rank_is_restarted_and_the_result_is_the_same(outcomes: list[dict[str, Any]], folder: Path) -> None:
    """torchrun starts all ranks again; they go on from the last checkpoint, without --resume."""
    killed = folder / "killed.py"
    killed.write_text(
        "import os, signal, sys\n"
        "from unveil.cli.main import main\n"
        "from unveil.training import loop\n"
        "step_on, done = loop.step_on, []\n"
        "def deadly(batch, *given):\n"
        "    done.append(batch)\n"
        "    if len(done) == 12 and os.environ['RANK'] == '1' and os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return step_on(batch, *given)\n"
        "loop.step_on = deadly\n"
        "main()\n"
    )
    settings = [argument for override in ELASTIC for argument in ("--set", override)]
    elastic = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "1"]
    arguments = ["run", "digits", *settings, "--out", "disturbed", "--store", "elastic"]
    done = subprocess.run(
        [sys.executable, "-m", *elastic, str(killed), *arguments],
        env=environment(TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1"),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert "resumed at step 11" in done.stderr
    assert done.stdout.count("run directory: disturbed") == 1  # one rank prints
    for name in ("predictions.csv", "rows.npz"):
        assert (folder / "disturbed" / name).read_bytes() == (folder / "undisturbed" / name).read_bytes()


def test_one_process_has_all_rows() -> None:
    alone, rows = ranks.current(), torch.arange(6.0, requires_grad=True)
    assert alone.first
    assert alone.part(6) == slice(0, 6)
    assert alone.gather(rows, 6) is rows
    assert alone.any(True)
    assert not alone.any(False)
    assert ranks.join() is alone  # nothing has started others


@pytest.mark.parametrize(("size", "count"), [(4, 2), (7, 3), (8, 4), (1000, 64)])
def test_parts_cover_every_row_once_and_are_of_equal_size(size: int, count: int) -> None:
    parts = [range(size)[Ranks(rank, count).part(size)] for rank in range(count)]
    assert [row for part in parts for row in part] == list(range(size))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_too_few_rows_to_divide_are_everybodys() -> None:
    assert [Ranks(rank, 4).part(7) for rank in range(4)] == [slice(0, 7)] * 4


def test_restarts_that_would_find_dead_addresses_are_an_error_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    torchrun = {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_MAX_RESTARTS": "3"}
    for name, value in (found | torchrun).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UnveilError, match="TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"):
        ranks.join()


def test_synchronous_batchnorm_without_a_gpu_is_an_error_for_people() -> None:
    with pytest.raises(UnveilError, match="needs GPUs"):
        Ranks(0, 2).sync_batchnorm(torch.nn.BatchNorm1d(3))
