"""The literal procedure computes what unveil computes, and every benchmark runs. Speed is never asserted."""

import random
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from benchmarks import __main__ as command
from benchmarks import claims, literal, own_speed, parameters
from benchmarks.growth import Curve, Point
from benchmarks.literal_network import ResNet
from benchmarks.memory import peak_bytes
from benchmarks.timing import Timing, alternate, ratio
from PIL import Image
from torch import Tensor

from unveil import files, losses, recipe, rng, settings
from unveil.cli import main as cli
from unveil.data.augment import normalize, shift_flip
from unveil.errors import UnveilError
from unveil.experiments import bench
from unveil.experiments.peak import flops
from unveil.experiments.workload import Losses
from unveil.models import build_encoder

CPU = torch.device("cpu")


def unit(seed: int, rows: int, dim: int = 12) -> Tensor:
    """Rows of length 1; not negative, like the features of the network."""
    return F.normalize(torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed)).double().relu() + 0.01)


def agree(fast: Any, slow: Any, z: Tensor) -> None:
    """The same value and the same gradient."""
    z = z.clone().requires_grad_()
    torch.testing.assert_close(fast(z), slow(z))
    gradients = [torch.autograd.grad(loss(z), z)[0] for loss in (fast, slow)]
    assert float(gradients[0].abs().max()) > 1e-6
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("k", [1, 5, 30])
@pytest.mark.parametrize("with_hard", [False, True])
def test_neighborhood_contrastive(k: int, with_hard: bool) -> None:
    z_hat, queue = F.normalize(unit(0, 6) + 0.3 * unit(1, 6)), unit(2, 30)
    hard = 2 * torch.rand(6, 9, dtype=torch.float64) - 1 if with_hard else None
    agree(
        lambda z: losses.neighborhood_contrastive(z, z_hat, queue, k=k, hard=hard, view_among_neighbors=True),
        lambda z: literal.neighborhood(literal.unit(z), z_hat, queue, k=k, hard=hard),
        unit(0, 6),
    )


def test_hard_negatives() -> None:
    z, queue_u, queue_l = unit(0, 5), unit(1, 30), unit(2, 20)
    k, rounds = 7, 3
    easy = (z @ queue_u.T).topk(k, dim=1, largest=False, sorted=False).indices
    drawn = torch.randint(20, (5, rounds * k), generator=torch.Generator().manual_seed(3)).view(5, rounds, k)

    def weighted(cosines: Tensor) -> Tensor:
        ordered = cosines.sort(dim=1, descending=True).values
        return (ordered * torch.linspace(1, 2, ordered.shape[1], dtype=ordered.dtype)).sum()

    options: dict[str, Any] = {"k_easy": k, "k_hard": 11, "rounds": rounds}
    generators = (torch.Generator().manual_seed(3) for _ in range(2))  # for the value and for the gradient
    agree(
        lambda z: weighted(losses.hard_negatives(z, queue_u, queue_l, generator=next(generators), **options)),
        lambda z: weighted(
            literal.hard_negatives(literal.unit(z), queue_u, queue_l, easy=easy, drawn=drawn, **options)
        ),
        z,
    )


def test_hard_negatives_by_its_own_sort_and_draw() -> None:
    z, queue_u, queue_l = unit(0, 5), unit(1, 30), unit(2, 20)
    found = literal.hard_negatives(z, queue_u, queue_l, k_easy=7, k_hard=11, rounds=3)
    assert found.shape == (5, 11)
    one = unit(3, 1)  # a single labeled vector leaves nothing to draw
    options: dict[str, Any] = {"k_easy": 1, "k_hard": 4, "rounds": 2}
    agree(
        lambda z: losses.hard_negatives(z, queue_u, one, **options).sum(),
        lambda z: literal.hard_negatives(literal.unit(z), queue_u, one, **options).sum(),
        z,
    )


def test_supervised_contrastive() -> None:
    z_hat, queue = unit(1, 6), unit(2, 30)
    y, queue_y = torch.tensor([0, 1, 2, 0, 1, 3]), torch.arange(30) % 3
    agree(
        lambda z: losses.supervised_contrastive(z, z_hat, y, queue, queue_y),
        lambda z: literal.supervised(literal.unit(z), z_hat, y, queue, queue_y),
        unit(0, 6),
    )


def test_pairs_and_their_cross_entropy() -> None:
    z, q = unit(0, 8), unit(2, 8, 5).softmax(dim=1)
    z[4], z[5] = 3 * z[0], z[1] + 0.2 * unit(3, 1)[0]  # of cosine 1, and a little above the threshold
    same = losses.cosine_pairs(z)
    assert bool(same[1, 5])
    assert float(F.cosine_similarity(z[1], z[5], dim=0)) < 0.999
    assert int(same.sum()) == 8 + 2 * 2
    agree(
        lambda logits: losses.pairwise_bce(logits.softmax(dim=1), q, same),
        lambda logits: literal.pair_bce(literal.unit(z), logits.softmax(dim=1), q),
        unit(1, 8, 5),
    )


def test_the_network_is_the_same_network() -> None:
    config = settings.Encoder(name="compact", width=4, blocks=(2, 2, 2, 2), space_to_depth=1)
    encoder, net = build_encoder(config, (3, 32, 32), rng.generator(0, "encoder")).eval(), ResNet(3, 2, 4)
    names = [name for name in net.state_dict() if "head" not in name]
    net.load_state_dict(dict(zip(names, encoder.state_dict().values(), strict=True)), strict=False)
    x = torch.randn(2, 3, 32, 32, generator=rng.generator(0, "x"))
    with torch.no_grad():
        torch.testing.assert_close(net.eval()(x)[0], encoder(x))


def test_augmentation_draws_from_the_same_pictures() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (12, 12, 3), dtype=np.uint8)
    picture = Image.fromarray(pixels)
    draw = random.Random(0)
    slow = {np.asarray(literal.augment(picture, draw)).tobytes() for _ in range(3000)}
    many = torch.from_numpy(pixels).expand(3000, -1, -1, -1)
    fast = {view.numpy().tobytes() for view in shift_flip(many, 4, "reflect", True, rng.generator(0, "views"))}
    assert slow == fast
    assert len(slow) == 9 * 9 * 2


def test_views_are_normalized_alike() -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 3), dtype=np.uint8)
    expected = normalize(torch.from_numpy(pictures), torch.tensor(literal.MEAN), torch.tensor(literal.STD))
    found = torch.stack([literal.to_tensor(Image.fromarray(one)) for one in pictures])
    torch.testing.assert_close(found, expected.contiguous())


def test_the_literal_stage_learns() -> None:
    torch.manual_seed(0)
    work = literal.Discovery(known=2, novel=2, width=4, queue=20, k_easy=5, device=CPU, lr=0.02)
    pictures = np.random.default_rng(0).integers(0, 256, (8, 32, 32, 3), dtype=np.uint8)
    labels = torch.tensor([0, -1, 1, -1, 0, -1, 1, -1])
    before = {name: value.clone() for name, value in work.net.named_parameters()}
    seen = [float(work.step(pictures, labels)) for _ in range(3)]
    assert all(np.isfinite(seen))
    moved = {name for name, value in work.net.named_parameters() if not torch.equal(value, before[name])}
    assert moved == {name for name in before if "layer4" in name or "head" in name}
    assert work.queue_u.at == work.queue_l.at == 12
    assert sorted(work.queue_l.labels[:12].tolist()) == [0] * 6 + [1] * 6
    torch.testing.assert_close(work.queue_u.features[:12].norm(dim=1), torch.ones(12))


def test_alternating() -> None:
    calls: list[str] = []
    steps = {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}
    found = alternate(steps, CPU, rounds=3, warmup=0)
    assert calls == ["a", "b", "a", "b", "a", "b", "a", "b"]
    assert [len(timing.seconds) for timing in found.values()] == [3, 3]
    known = ratio(Timing((2.0, 4.0, 9.0)), Timing((1.0, 1.0, 3.0)))
    assert (known.median, known.low, known.high) == (3.0, 2.5, 3.5)


def test_exponent_of_a_known_curve() -> None:
    points = tuple(Point(n, 1e-6 * n**2, 8 * n, 100) for n in (10, 100, 1000))
    slopes = Curve("queue", points).record()["exponents"]
    assert slopes["seconds"] == pytest.approx({"fitted": 2.0, "last": 2.0})
    assert slopes["peak"]["fitted"] == pytest.approx(1.0)
    assert slopes["state"]["fitted"] == pytest.approx(0.0, abs=1e-6)


def test_peak_memory_and_work_of_a_known_step() -> None:
    a = torch.ones(100, 1000)
    assert 0.9e6 < peak_bytes(lambda: (a + 1) * (a + 2), CPU) < 1.7e6  # two or three times 400 kB at once
    assert flops(lambda: a @ a.T) == 2 * 100 * 100 * 1000


@pytest.mark.parametrize("what", ["step", "limits", "growth"])
def test_every_benchmark_runs(
    what: Literal["step", "limits", "growth"], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command.main(what, out=tmp_path / "record.json", quick=True)
    record = files.read_json(tmp_path / "record.json")
    assert record["machine"]["device"] == "cpu"
    assert record["quick"]
    shown = capsys.readouterr().out
    match what:
        case "step":
            rows = {row["name"] for row in record["rows"] if row["precision"] == "float32" and row["target"]}
            assert len(rows) == 9
            assert all(name in shown for name in rows)
        case "limits":
            for report in record["reports"]:
                assert {"matrix product 64", "convolution 8-8, 32x32, stride 1"} <= set(report["rates"])
                parts = {part["name"]: part["flops"] for part in report["parts"]}
                whole = sum(parts[name] for name in parts if not name.startswith("step"))
                assert parts["step, nothing cached"] == pytest.approx(whole, rel=0.01)
        case "growth":
            assert len(record["curves"]) == 8
            assert record["imagenet"]["holds"]


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(bench, "measure", partial(bench.measure, repeats=1, matrix=64))
    small = ["encoder.width=4", "discovery.batch=8", "method.queue=20", "machine.precision=float32"]
    given = ["bench", "cifar10-desk", "--device", "cpu", *(word for one in small for word in ("--set", one))]
    cli.app(given, exit_on_error=False, result_action="return_value")
    shown = capsys.readouterr().out
    assert "The discovery step, float32" in shown
    assert "step, trunk cached" in shown.replace("\n", " ")


def test_a_method_without_queues_is_not_measured() -> None:
    with pytest.raises(UnveilError, match="ncl-hng"):
        Losses(recipe.load("cifar10", {"discovery.method": "baseline"}), CPU)


def test_vectors_of_overlapping_classes(tmp_path: Path) -> None:
    y = own_speed.write(tmp_path / "x.npy", 300)
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert x.shape == (300, 512)
    assert set(y) == set(range(20))


@pytest.mark.parametrize(
    ("paper", "here", "chance", "said"),
    [
        (5.5, 4.0, 0.01, "reproduced"),
        (-5.5, -4.0, 0.01, "reproduced"),
        (5.5, 4.0, 0.2, "undecided"),
        (5.5, -4.0, None, "undecided"),
        (5.5, 0.8, 0.01, "in sign"),  # far smaller
        (5.5, -0.8, 0.01, "not"),
        (0.1, -0.8, 0.01, "no effect in the paper"),
    ],
)
def test_a_claim_is_reproduced_where_sign_size_and_seeds_agree(
    paper: float, here: float, chance: float | None, said: str
) -> None:
    assert claims.verdict(paper, here, chance) == said


def test_claims_show_effects_in_the_paper_and_here(tmp_path: Path) -> None:
    assert claims.table(tmp_path) == "*No records yet.*"
    head = "row,pairs,seeds,acc_mean,paper,beside,effect,paper_effect,p\n"
    for data in ("desk-cifar100", "desk-cifar100-embedded"):
        (tmp_path / data).mkdir()
        rows = "NCL + HNG,nearest,3,63.25000000000001,86.6,k-means,7.550000000000001,30.3,0.0141\n"
        rows += "MCL,learned,3,56.6,21.5,k-means,-20.0,-34.8,0.0001\n"
        (tmp_path / data / "table4.csv").write_text(head + rows)
    said, _, header, _, *lines = claims.table(tmp_path).splitlines()
    assert said == "Of 3 effects: 1 reproduced, 2 in sign, 0 not, 0 undecided, 0 no effect in the paper."
    assert header.endswith("| CIFAR-100: paper | from scratch | embeddings |")
    shown = "+30.3 | +7.6 **in sign** | +7.6 **in sign** |"
    assert lines[0] == f"| NCL + HNG is far ahead of k-means |  |  |  | {shown}"
    assert lines[1:] == ["| MCL is behind k-means |  |  |  | -34.8 | -20.0 **reproduced** |  |"]  # see claims.toml


def test_systems_stand_beside_each_other_on_every_data_set(tmp_path: Path) -> None:
    assert claims.across(tmp_path / "table4+table3") == "*No records yet.*"
    columns = "|  | pairs | seeds | ACC % | paper |\n|---|---|---|---|---|\n"
    for data, table, rows in (
        (
            "desk-cifar10",
            "table4",
            ["NCL | nearest | 3 | 86.9 ± 0.2 | 93.4 ± 0.2", "k-means on the inputs | – | 1 | 70.0 | "],
        ),
        (
            "desk-cifar10",
            "table3",
            ["NCL | nearest | 3 | 86.9 ± 0.2 | 93.4 ± 0.2", "NCL + HNG | nearest | 1 | 87.1 | 93.4 ± 0.1"],
        ),
        ("desk-cifar100-embedded", "table4", ["NCL | nearest | 3 | 68.4 ± 0.7 | 82.3 ± 2.6"]),
        ("desk-cifar10", "pair-rules", ["NCL, cosine above 0.95 | cosine 0.95 | 1 | 50.0 | "]),
        ("desk-cifar10-embedded", "table4", ["NCL, cosine above 0.95 | cosine 0.95 | 1 | 40.0 | "]),
    ):
        (tmp_path / data).mkdir(exist_ok=True)
        (tmp_path / data / f"{table}.md").write_text(columns + "".join(f"| {row} |\n" for row in rows))
    assert claims.across(tmp_path / "table4+table3").splitlines()[2:] == [
        "| k-means on the inputs |  | 70.0 |  |  |  |  |",
        "| NCL | 93.4 ± 0.2 | 86.9 ± 0.2 |  | 82.3 ± 2.6 |  | 68.4 ± 0.7 |",
        "| NCL + HNG | 93.4 ± 0.1 | 87.1 |  |  |  |  |",
    ]
    assert claims.across(tmp_path / "pair-rules").splitlines()[2:] == [
        "| NCL, cosine above 0.95 |  | 50.0 |  |  |  |  |"
    ]


def test_the_parameter_figures_in_one_table_and_one_picture(tmp_path: Path) -> None:
    assert parameters.table(tmp_path) == "*Not measured yet.*"
    head = "row,seeds,acc_mean,acc_std\n"
    (tmp_path / "k1.csv").write_text(f"{head}pseudo-positives k1 = 1,2,60.04,0.5\npseudo-positives k1 = 50,2,68.46,\n")
    (tmp_path / "rounds.csv").write_text(f"{head}iterations of HNG N = 0,1,68.0,\n")
    lines = parameters.table(tmp_path).splitlines()
    assert lines[2].startswith("| pseudo-positives k1 | 50")
    assert lines[2].endswith("| 1: 60.0, 50: **68.5** |")
    assert len(lines) == 4
    parameters.draw(tmp_path, tmp_path / "figures.png")
    with Image.open(tmp_path / "figures.png") as picture:
        assert picture.width > 1000
