"""The parts of a discovery step and of pre-training, against the literal procedure in the same process.

Every ratio of the rows marked float32 compares float32 with float32. Where the machine computes in bfloat16 there are
rows of their own for it; their reference is still the literal procedure in float32.
"""

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks import literal, pretraining
from benchmarks.rows import KNOWN, NOVEL, SIDE, Row, Sizes, against, name_of, overhead
from benchmarks.timing import alternate
from unveil import rng
from unveil.data.items import Items
from unveil.data.views import Draw, make_views
from unveil.experiments.peak import Call
from unveil.experiments.workload import Workload, make_model, make_objective
from unveil.losses.contrastive import _neighborhood_contrastive, _supervised_contrastive
from unveil.losses.mixing import _hard_negatives
from unveil.models import build_encoder


def run(sizes: Sizes, device: torch.device, precisions: list[torch.dtype]) -> Iterator[Row]:
    """All rows."""
    yield from contrastive(sizes, device)
    yield from augmentation(sizes, device)
    yield from discovery(sizes, device, precisions)
    yield from pretraining.rotation(sizes, device, precisions)
    yield from pretraining.compact(sizes, device, precisions)


def contrastive(sizes: Sizes, device: torch.device) -> Iterator[Row]:
    """NCL with hard negatives, and supervised contrastive: forward, backward and the upkeep of the queues."""
    config, half = sizes.settings().method, sizes.batch // 2
    encoder = build_encoder(sizes.settings().encoder, (3, SIDE, SIDE), rng.generator(0, "encoder"))
    dim = encoder.dim
    fast = make_objective(make_model(encoder, (KNOWN, NOVEL), device, torch.float32), sizes.settings(), device)
    queue_u, queue_l = (literal.Memory(sizes.queue, dim, device) for _ in range(2))
    for memory, queue in ((queue_u, fast.queue_u), (queue_l, fast.queue_l)):
        memory.push(queue.features.clone(), queue.labels)
    draw = rng.generator(0, "features", device=device)
    z, z_hat = torch.randn(2, half, dim, generator=draw, device=device).relu_()
    y = torch.randint(KNOWN, (half,), generator=draw, device=device)
    z.requires_grad_()

    def literal_ncl() -> None:
        q, k = literal.unit(z), literal.unit(z_hat)
        hard = literal.hard_negatives(q, queue_u.features, queue_l.features, k_easy=config.k_easy)
        literal.neighborhood(q, k, queue_u.features, k=fast.k1, hard=hard).backward()  # type: ignore[no-untyped-call]
        queue_u.push(q.detach())
        queue_l.push(k, y)

    def unveil_ncl() -> None:
        assert fast.products is not None
        q, queues = F.normalize(z, dim=1), (fast.queue_u.filled(), fast.queue_l.filled())
        cosines, to_labeled = (q @ queue.T for queue in queues)
        hard = _hard_negatives(
            cosines,
            to_labeled,
            queues,
            k_easy=config.k_easy,
            k_hard=config.k_hard,
            rounds=config.rounds,
            mixes=config.mixes,
            generator=rng.generator(0, "hard negatives", device=device),
            products=fast.products.filled(fast.queue_u, fast.queue_l),
        )
        _neighborhood_contrastive(  # type: ignore[no-untyped-call]
            q,
            z_hat,
            cosines,
            k=fast.k1,
            alpha=config.alpha,
            temperature=config.temperature,
            hard=hard,
            view_among_neighbors=False,
        ).backward()
        fast.push(z.detach(), z_hat, y, to_labeled.detach())

    times = alternate({"literal": literal_ncl, "unveil": unveil_ncl}, device, rounds=sizes.rounds)
    yield against("NCL + HNG, forward + backward", times, "unveil", 25)

    def literal_scl() -> None:
        q, k = literal.unit(z), literal.unit(z_hat)
        literal.supervised(q, k, y, queue_l.features, queue_l.labels).backward()  # type: ignore[no-untyped-call]

    def unveil_scl() -> None:
        stored, labels = fast.queue_l.filled(), fast.queue_l.filled_labels()
        loss = _supervised_contrastive(z, z_hat, y, stored, labels, temperature=config.temperature)
        loss.backward()  # type: ignore[no-untyped-call]

    def products() -> None:
        """What no form of this loss can do without: cosines to the queue, and their gradient."""
        stored = fast.queue_l.filled()
        z.detach() @ stored.T @ stored

    steps = {"literal": literal_scl, "unveil": unveil_scl, "products": products}
    times = alternate(steps, device, rounds=sizes.rounds)
    yield against("supervised contrastive, forward + backward", times, "unveil", 2.2)
    yield against("supervised contrastive, its two matrix products alone", times, "products", None)


def augmentation(sizes: Sizes, device: torch.device) -> Iterator[Row]:
    """Two augmented views of a batch, normalized."""
    config = sizes.settings()
    pictures = rng.numpy(0, "pictures").integers(0, 256, (sizes.items, SIDE, SIDE, 3), dtype=np.uint8)
    views = make_views(Items.of(pictures), config.data, config.augment, device, workers=0)
    rows, draw = rng.numpy(0, "rows").permutation(sizes.items)[: sizes.batch], random.Random(0)
    times = alternate(
        {
            "literal": lambda: [view.to(device) for view in literal.views(pictures[rows], draw)],
            "unveil": lambda: next(iter(views.stream([Draw(rows, (1, 2))]))),
        },
        device,
        rounds=sizes.rounds,
    )
    yield against("two augmented views of a batch", times, "unveil", 14)


def discovery(sizes: Sizes, device: torch.device, precisions: list[torch.dtype]) -> Iterator[Row]:
    """The frozen trunk and whole steps, and what is left of a step without the network."""
    config = sizes.settings()
    slow = literal.Discovery(
        known=KNOWN, novel=NOVEL, width=sizes.width, queue=sizes.queue, k_easy=sizes.k_easy, device=device, lr=1e-6
    )
    draw = rng.numpy(0, "rows")
    pictures = draw.integers(0, 256, (sizes.batch, SIDE, SIDE, 3), dtype=np.uint8)
    labels = torch.from_numpy(np.where(np.arange(sizes.batch) % 2, draw.integers(0, KNOWN, sizes.batch), -1))
    x, x_hat = (view.to(device) for view in literal.views(pictures, random.Random(0)))
    trunks: dict[str, Call] = {"literal": lambda: (slow.net.trunk(x), slow.net.trunk(x_hat))}
    steps: dict[str, Call] = {"literal": lambda: slow.step(pictures, labels)}
    with tempfile.TemporaryDirectory() as folder:
        for precision in precisions:
            name = name_of(precision)
            fresh = Workload(config, device, precision, items=sizes.items)
            stored = Workload(config, device, precision, items=sizes.items, cache=Path(folder, name))
            trunks[name] = both_views(fresh)
            steps |= {name: fresh.step, f"{name} cached": stored.step}
            steps |= {f"{name} network": network(fresh), f"{name} tail": network(stored)}
        trunk = alternate(trunks, device, rounds=sizes.network_rounds)
        step = alternate(steps, device, rounds=sizes.network_rounds)
    for precision in precisions:
        name = name_of(precision)
        yield against("frozen trunk, both views", trunk, name, 1.9, precision=name)
        yield against("discovery step, nothing cached", step, name, 1.6, precision=name)
        yield against("discovery step, trunk cached", step, f"{name} cached", 2.6, precision=name)
        title = "all but trunk and tail, share of the step"
        yield overhead(f"{title}, nothing cached", step[name], step[f"{name} network"], 5, name)
        yield overhead(f"{title}, trunk cached", step[f"{name} cached"], step[f"{name} tail"], None, name)


def both_views(work: Workload) -> Call:
    """The trunk as a step runs it."""
    views = next(work.batches).views
    return lambda: work.model.trunk(torch.cat(views))


def network(work: Workload) -> Call:
    """Trunk and tail alone: forward, and backward to the tail's weights."""
    views, weights = next(work.batches).views, list(work.model.encoder.tail.parameters())
    return lambda: torch.autograd.grad(work.model.encode(torch.cat(views)).sum(), weights)
