"""A restored optimizer and model go on exactly where the stored ones were."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from unveil.errors import UnveilError
from unveil.models.queue import Queue
from unveil.settings import Discovery
from unveil.training import checkpoint
from unveil.training.loop import make_optimizer


class Net(nn.Module):
    """Channels-last convolutions, BatchNorm's counters and a queue: all kinds of state there are."""

    def __init__(self, seed: int, dim: int = 4) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.conv = nn.Conv2d(3, dim, 3).to(memory_format=torch.channels_last)
            self.norm = nn.BatchNorm2d(dim)
            self.head = nn.Linear(dim, 2)
        self.queue = Queue(6, dim)

    def forward(self, x: Tensor) -> Tensor:
        z: Tensor = self.norm(self.conv(x)).mean(dim=(2, 3))
        self.queue.push(z.detach())
        return self.head(z)  # type: ignore[no-any-return]


def make(seed: int) -> tuple[Net, torch.optim.SGD]:
    net = Net(seed)
    return net, torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3, fused=True)


def step(net: Net, optimizer: torch.optim.Optimizer, seed: int) -> None:
    x = torch.randn(4, 3, 5, 5, generator=torch.Generator().manual_seed(seed))
    optimizer.zero_grad()
    net(x.contiguous(memory_format=torch.channels_last)).square().sum().backward()
    optimizer.step()


def same(a: nn.Module, b: nn.Module) -> bool:
    first, second = a.state_dict(), b.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def test_a_restored_run_takes_exactly_the_same_steps(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    net, optimizer = make(0)
    for seed in range(3):
        step(net, optimizer, seed)
    progress = {"epoch": 1, "step": 2, "sums": {"ce": 0.1}, "seconds": 3.5, "history": [{"acc": 1 / 3}]}
    checkpoint.save(path, net, optimizer, progress)
    other, other_optimizer = make(1)
    step(other, other_optimizer, 9)  # its momentum is overwritten
    assert not same(net, other)
    assert checkpoint.restore(path, other, other_optimizer) == progress
    assert same(net, other)
    assert len(other.queue) == len(net.queue) == 6
    assert other.queue.written == 12
    for seed in range(3, 6):
        step(net, optimizer, seed)
        step(other, other_optimizer, seed)
        assert same(net, other)


def test_restored_momentum_is_laid_out_as_its_parameter(tmp_path: Path) -> None:
    net, optimizer = make(0)
    step(net, optimizer, 0)
    checkpoint.save(tmp_path / "c", net, optimizer, checkpoint.fresh())
    other, other_optimizer = make(1)
    checkpoint.restore(tmp_path / "c", other, other_optimizer)
    momentum = other_optimizer.state[other.conv.weight]["momentum_buffer"]
    assert momentum.stride() == other.conv.weight.stride() != momentum.contiguous().stride()
    assert torch.equal(momentum, optimizer.state[net.conv.weight]["momentum_buffer"])
    assert not momentum.requires_grad


def test_nothing_stored_restores_nothing(tmp_path: Path) -> None:
    net, optimizer = make(0)
    assert checkpoint.restore(tmp_path / "none", net, optimizer) is None
    assert same(net, make(0)[0])


def broken(path: Path, how: str) -> None:
    content = path.read_bytes()
    match how:
        case "truncated":
            path.write_bytes(content[: len(content) // 2])
        case "empty":
            path.write_bytes(b"")
        case "no checkpoint":
            path.write_bytes(b"something else" * 100)
        case "weights alone":
            checkpoint.save_model(path, nn.Linear(2, 2))
        case "other network":
            net = Net(0, dim=5)
            checkpoint.save(path, net, torch.optim.SGD(net.parameters(), lr=0.1), checkpoint.fresh())


@pytest.mark.parametrize("how", ["truncated", "empty", "no checkpoint", "weights alone", "other network"])
def test_a_bad_checkpoint_says_what_to_do(tmp_path: Path, how: str) -> None:
    path = tmp_path / "checkpoint.safetensors"
    net, optimizer = make(0)
    checkpoint.save(path, net, optimizer, checkpoint.fresh())
    broken(path, how)
    with pytest.raises(UnveilError, match="delete it to start this stage over") as caught:
        checkpoint.restore(path, net, optimizer)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_weights_alone_come_back(tmp_path: Path) -> None:
    net, other = Net(0), Net(1)
    parts = nn.ModuleDict({"conv": net.conv, "norm": net.norm})
    checkpoint.save_model(tmp_path / "m", parts)
    checkpoint.load_model(tmp_path / "m", nn.ModuleDict({"conv": other.conv, "norm": other.norm}))
    assert torch.equal(net.conv.weight, other.conv.weight)
    assert not torch.equal(net.head.weight, other.head.weight)


@pytest.mark.parametrize("how", ["truncated", "empty", "no checkpoint", "other network"])
def test_bad_weights_say_what_to_do(tmp_path: Path, how: str) -> None:
    checkpoint.save_model(tmp_path / "m", nn.ModuleDict({"conv": Net(0).conv}))
    broken(tmp_path / "m", how)
    with pytest.raises(UnveilError, match="delete it to train again") as caught:
        checkpoint.load_model(tmp_path / "m", nn.ModuleDict({"conv": Net(0).conv}))
    assert str(tmp_path / "m") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_restored_adam_takes_exactly_the_same_steps(tmp_path: Path) -> None:
    config = Discovery(optimizer="adam", lr=0.01, weight_decay=1e-3)
    net, other = Net(0), Net(1)
    optimizer, other_optimizer = (make_optimizer(config, list(one.parameters())) for one in (net, other))
    assert isinstance(optimizer, torch.optim.Adam)
    for seed in range(3):
        step(net, optimizer, seed)
    checkpoint.save(tmp_path / "c", net, optimizer, checkpoint.fresh())
    checkpoint.restore(tmp_path / "c", other, other_optimizer)
    assert all(state["step"].shape == () for state in other_optimizer.state.values())
    for seed in range(3, 6):
        step(net, optimizer, seed)
        step(other, other_optimizer, seed)
        assert same(net, other)
