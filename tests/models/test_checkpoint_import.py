"""Published checkpoints: their layout, what is refused, and a run that starts from one."""

import copy
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import TINY
from rich.console import Console
from safetensors.torch import load_file
from torch import Tensor

from unveil import recipe, rng, settings
from unveil.errors import UnveilError
from unveil.models import build_encoder
from unveil.models.checkpoint_import import import_checkpoint
from unveil.models.encoder import Encoder, load_head
from unveil.models.heads import linear_head
from unveil.models.model import Model
from unveil.own.run import run_recipe

KNOWN, NOVEL = 5, 5


def encoder(name: Any = "resnet18", seed: int = 1) -> Encoder:
    return copy.deepcopy(drawn_encoder(name, seed))


@cache
def drawn_encoder(name: Any, seed: int) -> Encoder:
    return build_encoder(settings.Encoder(name=name), (3, 32, 32), torch.Generator().manual_seed(seed))


def published(name: Any = "resnet18", known: int = KNOWN) -> dict[str, Tensor]:
    """The weights of an encoder and of two heads by the names that they have in published files."""
    state: dict[str, Tensor] = {}
    for key, value in encoder(name).state_dict().items():
        if found := re.match(r"trunk\.0\.0\.(conv|norm)\.(\w+)", key):
            state[f"{ {'conv': 'conv1', 'norm': 'bn1'}[found[1]] }.{found[2]}"] = value
            continue
        found = re.match(r"(?:trunk\.(\d)|tail\.(0))\.(\d)\.(first|second|shortcut)\.(conv|norm)\.(\w+)", key)
        assert found, key
        group = 4 if found[1] is None else int(found[1])
        part = {"conv": "conv", "norm": "bn"}[found[5]]
        inner = (
            f"downsample.{0 if part == 'conv' else 1}"
            if found[4] == "shortcut"
            else f"{part}{1 if found[4] == 'first' else 2}"
        )
        state[f"layer{group}.{found[3]}.{inner}.{found[6]}"] = value
    generator = torch.Generator().manual_seed(2)
    for head, classes in (("head1", known), ("head2", NOVEL)):
        state |= {f"{head}.{part}": v for part, v in linear_head(512, classes, generator).state_dict().items()}
    return state


def saved(folder: Path, content: object) -> Path:
    torch.save(content, folder / "published.pth")
    return folder / "published.pth"


@pytest.mark.parametrize("name", ["resnet18", "resnet18-imagenet"])
def test_names_of_the_published_layout(name: str) -> None:
    names = set(published(name))
    assert {"conv1.weight", "bn1.running_mean", "layer1.0.conv1.weight", "layer4.1.bn2.bias", "head2.bias"} <= names
    assert any("downsample" in key for key in names) == (name == "resnet18-imagenet")


@pytest.mark.parametrize("name", ["resnet18", "resnet18-imagenet"])
@pytest.mark.parametrize("form", ["plain", "parallel", "wrapped", "without counters"])
def test_an_imported_encoder_computes_the_same(name: str, form: str, tmp_path: Path) -> None:
    state: Any = published(name)
    if form == "parallel":
        state = {f"module.{key}": value for key, value in state.items()}
    if form == "wrapped":
        state = {"epoch": 3, "state_dict": state, "optimizer": {"lr": 0.1}}
    if form == "without counters":
        state = {key: value for key, value in state.items() if "num_batches" not in key}
    target = tmp_path / "start.safetensors"
    imported = import_checkpoint(saved(tmp_path, state), target)
    assert (imported.encoder, imported.heads, imported.ignored) == (name, {"known_head": 5, "novel_head": 5}, ())
    config = settings.Encoder(name=name, weights=str(target))  # type: ignore[arg-type]
    loaded = build_encoder(config, (3, 32, 32), torch.Generator().manual_seed(9))
    x = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(loaded.eval()(x), encoder(name).eval()(x))
        assert not torch.equal(loaded(x), encoder(name, seed=9).eval()(x))
    head = linear_head(512, KNOWN, rng.generator(0, "x"))
    assert load_head(head, config, "known_head")
    assert torch.equal(head.weight, published(name)["head1.weight"])


def test_heads_may_be_left_out_and_other_weights_are_named(tmp_path: Path) -> None:
    state = {**published(), "linear.weight": torch.zeros(4, 512)}
    target = tmp_path / "start.safetensors"
    imported = import_checkpoint(saved(tmp_path, state), target, heads=False)
    assert imported.heads == {}
    assert imported.ignored == ("linear.weight",)
    assert not [key for key in load_file(target) if "head" in key or "linear" in key]
    config = settings.Encoder(weights=str(target))
    assert not load_head(linear_head(512, KNOWN, rng.generator(0, "x")), config, "known_head")


class Evil:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return Path.write_text, (self.path, "executed")


def test_nothing_is_executed(tmp_path: Path) -> None:
    source = saved(tmp_path, {**published(), "extra": Evil(tmp_path / "evil")})
    with pytest.raises(UnveilError, match="could execute code"):
        import_checkpoint(source, tmp_path / "start.safetensors")
    assert not (tmp_path / "evil").exists()
    assert not (tmp_path / "start.safetensors").exists()
    torch.load(source, weights_only=False)
    assert (tmp_path / "evil").exists()  # so it would have been


def broken(kind: str) -> object:
    state = published()
    match kind:
        case "list":
            return [1, 2]
        case "other network":
            return {"features.0.weight": torch.zeros(3)}
        case "half":
            return {key: value for key, value in state.items() if "layer3" not in key}
        case "narrow":
            return {**state, "layer2.0.conv1.weight": torch.zeros(32, 64, 3, 3)}
    raise AssertionError(kind)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("list", "no weights by name"),
        ("other network", "no first convolution"),
        ("half", "lacks 20 weights"),
        ("narrow", r"is \(32, 64, 3, 3\)"),
    ],
)
def test_other_files_are_refused(kind: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match=message):
        import_checkpoint(saved(tmp_path, broken(kind)), tmp_path / "start.safetensors")
    assert not (tmp_path / "start.safetensors").exists()


def test_no_file_and_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="no file"):
        import_checkpoint(tmp_path / "none.pth", tmp_path / "x")
    (tmp_path / "text.pth").write_text("hello")
    with pytest.raises(UnveilError, match=r"text\.pth"):
        import_checkpoint(tmp_path / "text.pth", tmp_path / "x")


def images(folder: Path) -> Path:
    """Forty small color images of ten classes."""
    draw = np.random.default_rng(0)
    x = draw.integers(0, 255, (40, 16, 16, 3), dtype=np.uint8)
    np.savez(folder / "data.npz", X=x, y=np.arange(40) % 10)
    return folder / "data.npz"


def start(folder: Path, *overrides: str) -> Model:
    given = ["encoder.name=resnet18", "rotation.epochs=0", "data.known=5", f"data.name={images(folder)}", *overrides]
    resolved = recipe.load("digits", recipe.parse_set(given), defaults=recipe.parse_set(TINY))
    run_recipe(resolved, out=folder / "run", stages=folder / "store", console=Console(quiet=True))
    return Model.load(folder / "run" / "model.safetensors")


def test_a_run_starts_from_a_published_checkpoint(tmp_path: Path) -> None:
    target = tmp_path / "start.safetensors"
    import_checkpoint(saved(tmp_path, published()), target)
    weights = f"encoder.weights={target}"
    model = start(tmp_path, weights, "discovery.epochs=0", "discovery.novel_head=weights")
    state = published()
    assert torch.equal(model.known_head.weight, state["head1.weight"])  # type: ignore[union-attr]
    assert torch.equal(model.novel_head.weight, state["head2.weight"])  # type: ignore[union-attr]
    assert torch.equal(model.encoder.state_dict()["tail.0.1.second.conv.weight"], state["layer4.1.conv2.weight"])


def test_heads_that_do_not_fit_the_task_are_told(tmp_path: Path) -> None:
    target = tmp_path / "start.safetensors"
    import_checkpoint(saved(tmp_path, published(known=4)), target)
    with pytest.raises(UnveilError, match=r"\(4, 512\), and \(5, 512\) is needed.*--no-heads"):
        start(tmp_path, f"encoder.weights={target}")
    with pytest.raises(UnveilError, match="no file with a novel head"):
        start(tmp_path, "discovery.novel_head=weights")


def test_the_command(unveil, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    saved(tmp_path, published())
    told = unveil("import-checkpoint", "published.pth", "start.safetensors")
    assert told.returncode == 0, told.stderr
    assert "resnet18, known_head of 5 classes, novel_head of 5 classes" in told.stdout
    assert "--set encoder.weights=start.safetensors --set rotation.epochs=0 --set supervised.epochs=0" in told.stdout
    told = unveil("import-checkpoint", "published.pth", "body.safetensors", "--no-heads")
    assert told.returncode == 0
    assert "head" not in told.stdout
    assert "supervised" not in told.stdout
