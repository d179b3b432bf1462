"""Scores and warnings: the test split is encoded once, and warnings advise nothing that is set already."""

import numpy as np
import pytest
import torch
from conftest import TINY

from unveil import recipe, settings
from unveil.data import catalog
from unveil.data.task import make_task
from unveil.data.views import Views
from unveil.methods.baseline import Baseline, BaselineSettings, Pairs
from unveil.methods.method import Context
from unveil.models import build_encoder
from unveil.models.heads import linear_head
from unveil.models.model import Model
from unveil.settings import Discovery
from unveil.training import stages
from unveil.training import training as training_module
from unveil.training.evaluation import warnings
from unveil.training.training import Training


def baseline(pairs: Pairs = "cosine") -> Baseline:
    draw = torch.Generator().manual_seed(0)
    encoder = build_encoder(settings.Encoder(name="mlp", width=4), (3,), draw)
    model = Model(encoder, linear_head(4, 2, draw), linear_head(4, 5, draw), torch.float32)
    labels = np.zeros(0, dtype=np.int64)
    config = BaselineSettings(pairs=pairs)
    return Baseline(model, Context(settings=config, seed=0, labels=labels, features=lambda rows: torch.zeros(0, 4)))


FINE = {"clusters_used": 5, "mean_cosine": 0.3, "pair_density": 0.1}


@pytest.mark.parametrize(
    ("wrong", "name"),
    [({"clusters_used": 3}, "dead clusters"), ({"mean_cosine": 0.99}, "collapsed"), ({"pair_density": 0.0}, "no pos")],
)
def test_each_fault_has_its_warning(wrong: dict[str, float], name: str) -> None:
    assert warnings(FINE, 5, Discovery(), baseline()) == []
    (told,) = warnings({**FINE, **wrong}, 5, Discovery(), baseline())
    assert told.startswith(name)


def test_nothing_is_advised_that_is_set_already() -> None:
    bad = {**FINE, "clusters_used": 3, "pair_density": 0.0}
    both = " ".join(warnings(bad, 5, Discovery(), baseline()))
    assert "novel_head=kmeans" in both
    assert "pairs=rank" in both
    told = " ".join(warnings(bad, 5, Discovery(novel_head="kmeans"), baseline("rank")))
    assert "novel_head" not in told
    assert "pairs=rank" not in told
    assert "discovery.batch=256" in told


def test_the_test_split_is_encoded_once_per_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = ["data.per_class=6", "rotation.epochs=0", "discovery.epochs=2", "discovery.evaluate_every=1"]
    config = recipe.load("digits", recipe.parse_set(quick), defaults=recipe.parse_set(TINY))
    task, truth = make_task(catalog.load("digits"), config.data)
    training = Training(config, task, truth)
    encoded: list[int] = []
    original = training_module.features

    def counted(model: Model, views: Views, rows: np.ndarray) -> torch.Tensor:
        if views is training.test_views:
            encoded.append(len(rows))
        return original(model, views, rows)

    monkeypatch.setattr(training_module, "features", counted)
    history = stages.discovery_stage(training)
    assert {"test_acc", "known_acc", "open_all"} <= history[-1].keys()
    assert task.test_items is not None
    assert encoded == [len(task.test_items)] * 2
