"""The first-in-first-out memory of past normalized features."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Queue(nn.Module):
    """Holds the last `size` features. Losses see only the filled slots.

    With a `generator` all slots are filled from the start, by random vectors of about length 1 without a label. The
    state dict includes the write position: a resumed run continues with the same queue.
    """

    features: Tensor
    labels: Tensor

    def __init__(self, size: int, dim: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.size, self.starts_filled = size, generator is not None
        self.written = 0  # on the host, so that no step waits for the device
        features = torch.zeros(size, dim)
        if generator is not None:
            bound = (3 / dim) ** 0.5  # the mean square of each coordinate is 1 / dim
            features.uniform_(-bound, bound, generator=generator)
        self.register_buffer("features", features)
        self.register_buffer("labels", torch.full((size,), -1))

    def __len__(self) -> int:
        return self.size if self.starts_filled else min(self.written, self.size)

    @property
    def replaced(self) -> bool:
        """Whether every slot holds a feature that was pushed."""
        return self.written >= self.size

    def filled(self) -> Tensor:
        """The stored features, (len, D)."""
        return self.features[: len(self)]

    def filled_labels(self) -> Tensor:
        """The stored labels, (len,); -1 for unlabeled features."""
        return self.labels[: len(self)]

    def push(self, z: Tensor, y: Tensor | None = None) -> list[slice]:
        """Overwrite the oldest entries with the rows of `z`; returns the changed slots, two slices at the end."""
        z = F.normalize(z.detach()[-self.size :].to(self.features.dtype), dim=1)
        start, done, slots = self.written % self.size, 0, []
        while done < len(z):
            end = min(start + len(z) - done, self.size)
            part = slice(done, done + end - start)
            self.features[start:end] = z[part]
            self.labels[start:end] = -1 if y is None else y[-self.size :][part]
            slots.append(slice(start, end))
            start, done = 0, part.stop
        self.written += len(z)
        return slots

    def get_extra_state(self) -> Tensor:
        return torch.tensor(self.written)

    def set_extra_state(self, state: Tensor) -> None:
        self.written = int(state)


class Products(nn.Module):
    """u·l for every stored unlabeled u and labeled l, recomputed only where one of the queues changed.

    It is state rather than something to recompute on resume: another order of summation would round differently.
    """

    block: Tensor

    def __init__(self, size_u: int, size_l: int) -> None:
        super().__init__()
        self.register_buffer("block", torch.zeros(size_u, size_l))

    def fill(self, queue_u: Queue, queue_l: Queue) -> None:
        """Compute all products."""
        torch.mm(queue_u.features, queue_l.features.T, out=self.block)

    def refresh(
        self, queue_u: Queue, queue_l: Queue, slots_u: list[slice], slots_l: list[slice], stored: Tensor | None = None
    ) -> None:
        """Bring rows `slots_u` and columns `slots_l` up to date.

        To save work, a caller may pass `stored`: products of the new u with the previous labeled queue, (B, M_l).
        """
        done = 0
        for rows in slots_u:
            if stored is None:
                torch.mm(queue_u.features[rows], queue_l.features.T, out=self.block[rows])
            else:
                part = stored.detach()[done : done + rows.stop - rows.start]
                self.block[rows, : part.shape[1]] = part
                done += len(part)
        for columns in slots_l:
            self.block[:, columns] = queue_u.features @ queue_l.features[columns].T

    def filled(self, queue_u: Queue, queue_l: Queue) -> Tensor:
        """The products of the filled slots, (len(queue_u), len(queue_l))."""
        return self.block[: len(queue_u), : len(queue_l)]
