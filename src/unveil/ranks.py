"""The processes that train together: `torchrun --nproc-per-node 2 -m unveil run …`.

Every rank runs the same program. It encodes its part of each batch, the features of all parts are gathered, and every
rank computes the losses of the whole batch: losses, queues, pairs and draws are those of one process with the same
batch. A process alone is rank 0 of 1, for which everything here does nothing.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from unveil.errors import UnveilError

if TYPE_CHECKING:
    from torch import Tensor, nn

T = TypeVar("T")
TIMEOUT = "UNVEIL_RANK_TIMEOUT"
"""The variable with the seconds after which a rank that gets no answer from another one gives up."""
TIMEOUT_SECONDS = 1800.0


@dataclass(frozen=True)
class Ranks:
    """This process among those that train together."""

    rank: int = 0
    count: int = 1
    local: int = 0  # its number among the ranks of its machine: the GPU that it uses

    @property
    def first(self) -> bool:
        """Whether this is the rank that writes files and prints."""
        return self.rank == 0

    def part(self, size: int) -> slice:
        """The rows of `size` rows that are this rank's. With fewer than two rows for each rank, all of them are: every
        rank does the same then."""
        return slice(0, size) if self._together(size) else self._bounds(size, self.rank)

    def gather(self, rows: "Tensor", size: int) -> "Tensor":
        """All `size` rows, in order, of which `rows` are this rank's `part`. No gradient."""
        import torch
        from torch import distributed

        if self._together(size):
            return rows
        sizes = [part.stop - part.start for part in (self._bounds(size, rank) for rank in range(self.count))]
        padded = rows.new_zeros(max(sizes), *rows.shape[1:])  # of the same shape on every rank
        padded[: len(rows)] = rows.detach()
        parts = [torch.empty_like(padded) for _ in sizes]
        distributed.all_gather(parts, padded)
        return torch.cat([part[:length] for part, length in zip(parts, sizes, strict=True)])

    def gather_with_gradient(self, rows: "Tensor", size: int) -> "Tensor":
        """As `gather`, with a gradient to this rank's rows.

        Every rank computes the same loss of all rows, of which each part has a gradient on its own rank alone. It is
        multiplied by the number of ranks, so that the mean over the ranks is the gradient of that loss.
        """
        if self._together(size) or not rows.requires_grad:
            return self.gather(rows, size)
        import torch

        whole, part = self.gather(rows, size), self.part(size)
        before, after = (rows.new_zeros(length, *rows.shape[1:]) for length in (part.start, size - part.stop))
        own = torch.cat([before, rows, after])
        return whole + self.count * (own - own.detach())  # the value of `whole`, the gradient of `rows`

    def averaging(self, losses: Callable[[Any], "dict[str, Tensor]"], trained: "list[nn.Parameter]") -> Any:
        """The function `losses`, after whose backward pass the gradients of all ranks are averaged (by torch's DDP)."""
        if self.count == 1:
            return losses
        from torch import nn

        class Losses(nn.Module):
            """A module with the trained parameters and nothing else: DDP would send queues in every step."""

            def __init__(self) -> None:
                super().__init__()
                self.trained = nn.ParameterList(trained)

            def forward(self, batch: Any) -> "dict[str, Tensor]":
                return losses(batch)

        # a loss that begins in a later epoch leaves the parameters of its head without a gradient until then
        return nn.parallel.DistributedDataParallel(Losses(), find_unused_parameters=True)

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any rank. Only the hosts wait, not the devices."""
        if self.count == 1:
            return flag
        import torch
        from torch import distributed

        flags = torch.tensor(int(flag))
        distributed.all_reduce(flags, distributed.ReduceOp.MAX)
        return bool(flags)

    def from_first(self, make: Callable[[], T]) -> T:
        """What `make` returns on the first rank, on all of them."""
        if self.count == 1:
            return make()
        from torch import distributed

        values = [make() if self.first else None]
        distributed.broadcast_object_list(values)
        return values[0]  # type: ignore[return-value]

    def equalize(self, module: "nn.Module") -> None:
        """Give every rank the BatchNorm statistics of the first: each has seen its own parts of the batches."""
        if self.count == 1:
            return
        from torch import distributed
        from torch.nn.modules.batchnorm import _NormBase

        for layer in module.modules():
            if isinstance(layer, _NormBase):
                for buffer in layer.buffers(recurse=False):
                    distributed.broadcast(buffer, 0)

    def sync_batchnorm(self, module: T) -> T:
        """The module with BatchNorm layers that take the statistics of the whole batch (torch's SyncBatchNorm)."""
        if self.count == 1:
            return module
        import torch

        if not torch.cuda.is_available():
            raise UnveilError(
                "machine.sync_batchnorm needs GPUs, torch has no SyncBatchNorm for CPUs: leave it out, or use one rank"
            )
        return torch.nn.SyncBatchNorm.convert_sync_batchnorm(module)  # type: ignore[no-any-return, no-untyped-call]

    def wait(self) -> None:
        """Wait until every rank is here."""
        self.any(False)

    def _together(self, size: int) -> bool:
        return self.count == 1 or size < 2 * self.count

    def _bounds(self, size: int, rank: int) -> slice:
        return slice(size * rank // self.count, size * (rank + 1) // self.count)


_current = Ranks()


def current() -> Ranks:
    """The ranks that this process has joined; alone until `join`."""
    return _current


def restarted() -> bool:
    """Whether torchrun has started this process again after a failure."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


def join() -> Ranks:
    """Join the other processes where torchrun (or anything that sets its variables) has started this one."""
    global _current
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1 or _current.count > 1 or not {"RANK", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys():
        return _current
    _check_restarts()
    import torch
    from torch import distributed

    local = int(os.environ.get("LOCAL_RANK", "0"))
    backend = "gloo"
    if torch.cuda.is_available():
        backend = "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(local)
    if not distributed.is_initialized():
        try:
            seconds = float(os.environ.get(TIMEOUT, TIMEOUT_SECONDS))
        except ValueError:
            raise UnveilError(f"{TIMEOUT} is '{os.environ[TIMEOUT]}': give a number of seconds") from None
        distributed.init_process_group(backend, timeout=timedelta(seconds=seconds))
    _current = Ranks(distributed.get_rank(), distributed.get_world_size(), local)
    return _current


def _check_restarts() -> None:
    """Raise an error where restarted ranks would share a store with the old ones: they would find dead addresses."""
    shared = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    if shared and int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0")) > 0:
        raise UnveilError(
            "with --max-restarts, restarted ranks would look for the addresses of the old ones: start torchrun with "
            "--standalone, or --rdzv-backend c10d on several machines, and set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"
        )


def leave() -> None:
    """Leave the other processes, once all of them are done."""
    global _current
    if _current.count > 1:
        from torch import distributed

        _current.wait()
        distributed.destroy_process_group()
        _current = Ranks()
