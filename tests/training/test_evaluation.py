"""Warnings say what looks wrong and what to try that is not set already."""

import pytest

from unveil.settings import Discovery
from unveil.training.evaluation import warnings

FINE = {"clusters_used": 5, "mean_cosine": 0.3, "pair_density": 0.1}


@pytest.mark.parametrize(
    ("wrong", "name"),
    [({"clusters_used": 3}, "dead clusters"), ({"mean_cosine": 0.99}, "collapsed"), ({"pair_density": 0.0}, "no pos")],
)
def test_each_fault_has_its_warning(wrong: dict[str, float], name: str) -> None:
    assert warnings(FINE, 5, Discovery()) == []
    (told,) = warnings({**FINE, **wrong}, 5, Discovery())
    assert told.startswith(name)


def test_nothing_is_advised_that_is_set_already() -> None:
    bad = {**FINE, "clusters_used": 3, "pair_density": 0.0}
    both = " ".join(warnings(bad, 5, Discovery()))
    assert "novel_head=kmeans" in both
    assert "pairs=rank" in both
    told = " ".join(warnings(bad, 5, Discovery(novel_head="kmeans", pairs="rank")))
    assert "novel_head" not in told
    assert "pairs=rank" not in told
    assert "discovery.batch=256" in told
