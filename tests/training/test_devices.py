"""A step stays on its device: everything runs on torch's `meta` device, whose tensors have no values.

There a value that is read on the host (`.item()`, `.tolist()`, `if tensor`, a mask as an index) is an error. A
forgotten CPU tensor would be copied to a GPU in every step: here each operation is checked to see and to make tensors
of the device alone. On a GPU both would make every step wait.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from unveil import recipe, rng, settings
from unveil.data import augment
from unveil.data.cached_views import CachedViews, Layout, build
from unveil.data.items import Items
from unveil.data.loader import Batch, Loader
from unveil.data.views import make_views
from unveil.hardware import pick_precision
from unveil.methods.catalog import METHODS, make_method
from unveil.methods.method import Context, Method
from unveil.methods.rotation import Rotation
from unveil.methods.similarity import LearnSimilarity, similarity_of
from unveil.methods.supervised import Supervised
from unveil.models import build_encoder
from unveil.models.heads import linear_head
from unveil.models.inference import features
from unveil.models.model import Model
from unveil.training.loop import step_on

META = torch.device("meta")
KNOWN, NOVEL, ITEMS = 3, 2, 60
NETWORKS = {
    "images": (settings.Encoder(name="compact", width=4), (3, 8, 8)),
    "vectors": (settings.Encoder(name="mlp", width=8), (6,)),
    "resnet18": (settings.Encoder(name="resnet18"), (3, 32, 32)),
    "resnet18-imagenet": (settings.Encoder(name="resnet18-imagenet"), (3, 64, 64)),
}
TRAINED = list(METHODS)
SMALL = ["method.queue=20", "method.k_easy=5", "method.k_hard=7", "method.ncl_start=0", "method.scl_start=0"]
NOW = ["method.hng_start=0", "method.warmup_epochs=0"]
PUBLISHED = ["method.separate_views=true", "method.queue_start=random", "method.partners=distinct"]
SETTINGS = [
    *([f"discovery.method={name}"] for name in TRAINED),
    *(["discovery.method=ncl-hng", f"method.pairs={pairs}"] for pairs in ("rank", "calibrated", "ranking")),
    *(["discovery.method=ncl-hng", f"method.variant=v{number}"] for number in range(1, 7)),
    *(["discovery.method=dtc", f"method.variant={name}"] for name in ("baseline", "te", "tep")),
    ["discovery.method=ncl-hng", "method.consistency_rows=all", "method.view_among_neighbors=true", *PUBLISHED],
    ["discovery.method=ncl-hng", "discovery.trunk_batchnorm=training", *PUBLISHED],
    ["discovery.method=uno", "method.overclustering=0"],
]
PAPER = [
    *([f"discovery.method={name}"] for name in ("kcl", "dtc", "rs", "baseline", "ncl-hng")),
    ["discovery.method=ncl-hng", "discovery.trunk_batchnorm=training", *PUBLISHED],
]


class Strict(TorchDispatchMode):
    """Refuses every operation that sees or makes a tensor of another device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for value in tree_leaves((args, kwargs, out)):
            if isinstance(value, Tensor) and value.device != META:
                raise AssertionError(f"{func} has a tensor {tuple(value.shape)} on {value.device}")
        return out


@contextmanager
def device_alone(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """No CPU tensors, and generators of the device alone; `meta` has none of its own, and one of the CPU stands in."""

    def seeded(seed: int, device: torch.device | str) -> torch.Generator:
        assert torch.device(device) == META, f"a generator on {device}"
        return torch.Generator().manual_seed(seed)

    with patch.context() as patched, Strict():
        patched.setattr(rng, "seeded", seeded)
        yield


def model_of(kind: str) -> Model:
    return copy.deepcopy(drawn_model(kind))


@cache
def drawn_model(kind: str) -> Model:
    config, shape = NETWORKS[kind]
    generator = torch.Generator().manual_seed(0)
    encoder = build_encoder(config, shape, generator)
    heads = linear_head(encoder.dim, KNOWN, generator), linear_head(encoder.dim, NOVEL, generator)
    return Model(encoder, *heads, torch.float32).to(META)


def batch(
    kind: str,
    labeled: int = 5,
    unlabeled: int = 7,
    views: int = 2,
    step: int = 0,
    trunk_output: tuple[tuple[int, ...], torch.dtype] | None = None,
) -> Batch:
    count = labeled + unlabeled
    shape, dtype = (NETWORKS[kind][1], torch.float32) if trunk_output is None else trunk_output
    return Batch(
        views=tuple(torch.empty(count, *shape, dtype=dtype, device=META) for _ in range(views)),
        y=torch.empty(labeled, dtype=torch.int64, device=META),
        epoch=0,
        step=step,
        rows=torch.empty(count, dtype=torch.int64, device=META),
    )


def run(method: Method, batches: list[Batch], patch: pytest.MonkeyPatch) -> None:
    method.train()
    # the optimizers of a stage are fused, and `meta` has no fused kernels
    optimizer = torch.optim.SGD(method.trained(), lr=0.1, momentum=0.9, weight_decay=1e-4, foreach=False)
    with device_alone(patch):
        for given in batches:
            losses = step_on(given, method, optimizer)
    assert losses
    assert all(value.device == META and value.shape == () for value in losses.values())
    changed = [parameter for parameter in method.trained() if parameter.grad is not None]
    assert changed


STEPS = [
    *((kind, overrides) for kind in ("images", "vectors") for overrides in SETTINGS),
    *((kind, overrides) for kind in ("resnet18", "resnet18-imagenet") for overrides in PAPER),
]


@pytest.mark.parametrize(
    ("kind", "overrides"), STEPS, ids=lambda given: given if isinstance(given, str) else " ".join(given)
)
def test_a_discovery_step_of_every_method(kind: str, overrides: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(kind)
    if "discovery.trunk_batchnorm=training" in overrides:
        model.freeze_trunk_weights()
    else:
        model.freeze_trunk()
    method = method_of(model, overrides)
    run(method, batches_of(kind, method), monkeypatch)


@pytest.mark.parametrize("name", TRAINED)
def test_a_discovery_step_on_cached_trunk_outputs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float16, as the cache of a model in float32 holds them."""
    model = model_of("images")
    shape = tuple(model.trunk(torch.empty(2, *NETWORKS["images"][1], device=META))[0].shape)
    model.skip_trunk()
    method = method_of(model, [f"discovery.method={name}"])
    run(method, batches_of("images", method, trunk_output=(shape, torch.float16)), monkeypatch)


def batches_of(kind: str, method: Method, **options: Any) -> list[Batch]:
    """As many as it takes to fill queues of 20 rows, to wrap around in them, and to go on with full ones."""
    labeled = 0 if method.unlabeled_only else 9
    return [batch(kind, labeled, 11, step=step, **options) for step in range(4)]


def method_of(model: Model, overrides: list[str]) -> Method:
    resolved = recipe.load("digits", recipe.parse_set(overrides), defaults=recipe.parse_set([*SMALL, *NOW]))
    generator = torch.Generator().manual_seed(0)
    name = resolved.discovery.method
    context = Context(
        settings=resolved.method,
        seed=1,
        labels=np.repeat([0, -1], [ITEMS, ITEMS]),
        features=lambda rows: torch.empty(len(rows), model.encoder.dim, device=META),
        similarity=similarity_of(model, generator).to(META) if METHODS[name].needs_similarity else None,
    )
    return make_method(name, model, context).to(META)


@pytest.mark.parametrize("rotations", ["all", "one"])
@pytest.mark.parametrize("known_weight", [0.0, 1.0])
def test_a_step_of_rotation(rotations: Any, known_weight: float, monkeypatch: pytest.MonkeyPatch) -> None:
    config = settings.Rotation(rotations=rotations, known_weight=known_weight)
    run(Rotation(model_of("images"), config).to(META), [batch("images", views=1)] * 2, monkeypatch)


@pytest.mark.parametrize("rotations", ["one", "upright"])
def test_a_step_of_rotation_with_two_views(rotations: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    config = settings.Rotation(rotations=rotations, known_weight=1.0, views_weight=1.0)
    run(Rotation(model_of("images"), config).to(META), [batch("images", views=2)] * 2, monkeypatch)


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("frozen", [False, True])
def test_a_step_of_supervised_training(kind: str, frozen: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(kind)
    if frozen:
        model.freeze_trunk()
    run(Supervised(model), [batch(kind, 6, 0, views=1)] * 2, monkeypatch)


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_step_of_the_similarity_network(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(kind)
    model.freeze_trunk()
    network = similarity_of(model, torch.Generator()).to(META)
    run(LearnSimilarity(model, network), [batch(kind, 6, 0, views=1)] * 2, monkeypatch)


VIEWS = {
    "images": (np.zeros((ITEMS, 8, 8, 3), dtype=np.uint8), {"shift": 1, "flip": True}),
    "zero padding": (np.zeros((ITEMS, 8, 8, 3), dtype=np.uint8), {"shift": 1, "flip": True, "padding": "zero"}),
    "crops": (
        np.zeros((ITEMS, 8, 8, 3), dtype=np.uint8),
        {"crop": (0.5, 1.0), "jitter": 0.2, "gray": 0.2, "noise": 0.1},
    ),
    "vectors": (np.zeros((ITEMS, 6), dtype=np.float32), {"noise": 0.5, "dropout": 0.1, "mix": 0.5}),
    "own views": (np.zeros((ITEMS, 3, 6), dtype=np.float32), {}),
}


@pytest.mark.parametrize("kind", VIEWS)
def test_views_are_drawn_on_the_device(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows and labels come from the host; drawing a view makes nothing there."""
    items, options = VIEWS[kind]
    views = make_views(Items.of(items), settings.Data(name="x"), settings.Augment(**options), META, 0)
    loader = Loader(
        views=views, labels=np.repeat([0, -1], [ITEMS // 2] * 2), rows=np.arange(ITEMS), batch=20, seed=0, device=META
    )
    with monkeypatch.context() as patched:
        patched.setattr(
            rng, "seeded", lambda seed, device: torch.Generator().manual_seed(seed) if device == META else 0
        )
        for given in loader.epoch(0):
            assert {x.device for x in (*given.views, given.y, given.rows) if x is not None} == {META}


@pytest.mark.parametrize(
    "options", [{"shift": 1, "flip": True}, {"crop": (0.5, 1.0)}, {"jitter": 0.2}, {"gray": 0.2}], ids=str
)
def test_augmentation_makes_nothing_on_the_host(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.empty(5, 8, 8, 3, dtype=torch.uint8, device=META)
    with device_alone(monkeypatch):
        drawn = augment.draw(x, settings.Augment(**options), rng.seeded(0, META))
    assert drawn.shape == x.shape


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "uint8"])
def test_cached_trunk_outputs_come_to_the_device(
    dtype: Literal["float16", "bfloat16", "uint8"], tmp_path: Path
) -> None:
    layout = Layout(items=ITEMS, views=2, shape=(4, 4, 8), dtype=dtype)
    outputs = torch.rand(ITEMS, 8, 4, 4, generator=torch.Generator().manual_seed(0))
    build(tmp_path / "cache", layout, ((0, view, outputs) for view in range(3)), outputs if dtype == "uint8" else None)
    views = CachedViews(tmp_path / "cache", META)
    loader = Loader(
        views=views, labels=np.repeat([0, -1], [ITEMS // 2] * 2), rows=np.arange(ITEMS), batch=20, seed=0, device=META
    )
    for given in loader.epoch(0):
        assert [view.shape[1:] for view in given.views] == [(8, 4, 4)] * 2
        assert {x.device for x in (*given.views, given.y, given.rows) if x is not None} == {META}


def test_features_of_no_rows_are_on_the_device() -> None:
    views = make_views(
        Items.of(np.zeros((9, 6), dtype=np.float32)), settings.Data(name="x"), settings.Augment(), META, 0
    )
    assert features(model_of("vectors"), views, np.arange(0)).device == META
    assert features(model_of("vectors"), views, np.arange(9)).device == META


def test_the_precision_is_that_of_the_chosen_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two GPUs the second computes in bfloat16."""
    current = [torch.device("cuda:0")]

    @contextmanager
    def chosen(device: torch.device) -> Iterator[None]:
        before = current[0]
        current[0] = device
        yield
        current[0] = before

    monkeypatch.setattr(torch.cuda, "device", chosen)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: current[0].index == 1)
    auto, pinned = settings.Machine(), settings.Machine(precision="float32")
    assert pick_precision(auto, torch.device("cuda:0")) == torch.float32
    assert pick_precision(auto, torch.device("cuda:1")) == torch.bfloat16
    assert pick_precision(pinned, torch.device("cuda:1")) == torch.float32


def test_these_tests_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    class Careless(Supervised):
        fault = ""

        def losses(self, batch: Batch) -> dict[str, Tensor]:
            losses = super().losses(batch)
            match self.fault:
                case "read":
                    losses["ce"] = losses["ce"] * losses["ce"].item()
                case "asked":
                    losses["ce"] = losses["ce"] if losses["ce"] > 0 else -losses["ce"]
                case "cpu":
                    losses["ce"] = losses["ce"] * torch.tensor(2.0)
                case "index":
                    losses["ce"] = losses["ce"] + self.model.known_head.bias[torch.zeros(1, dtype=torch.int64)].sum()
                case "generator":
                    rng.generator(0, "x")
            return losses

    for fault in ("read", "asked", "cpu", "index", "generator"):
        method = Careless(model_of("vectors"))
        method.fault = fault
        with pytest.raises((AssertionError, RuntimeError, NotImplementedError)):
            run(method, [batch("vectors", 6, 0, views=1)], monkeypatch)
