"""The learning rate at given times."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.settings import Stage
from unveil.training.loop import learning_rate


def test_steps_fall_at_the_start_of_their_epochs() -> None:
    config = Stage(epochs=200, lr=0.1, milestones=(60, 120), decay=0.1)
    times = (0, 59.99, 60, 119.99, 120, 199.99)
    assert [learning_rate(config, time) for time in times] == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.001, 0.001])


def test_a_cosine_goes_from_the_rate_to_zero() -> None:
    config = Stage(epochs=10, lr=0.4, schedule="cosine")
    expected = [0.4, 0.4 * (2 + 2**0.5) / 4, 0.2, 0.0]
    assert [learning_rate(config, time) for time in (0, 2.5, 5, 10)] == pytest.approx(expected)
    assert learning_rate(config, 11) == pytest.approx(0)  # never rises again


def test_warm_up_rises_linearly_and_the_cosine_has_the_rest() -> None:
    config = Stage(epochs=12, lr=0.4, schedule="cosine", warmup=2)
    assert [learning_rate(config, time) for time in (0, 0.5, 1, 2, 7, 12)] == pytest.approx([0, 0.1, 0.2, 0.4, 0.2, 0])


def test_constant_stays_after_warm_up() -> None:
    config = Stage(epochs=4, lr=0.3, schedule="constant", warmup=1, milestones=(2,))
    assert [learning_rate(config, time) for time in (0.5, 1, 3.9)] == pytest.approx([0.15, 0.3, 0.3])


@given(
    schedule=st.sampled_from(["step", "cosine", "constant"]),
    warmup=st.floats(0, 20),
    epochs=st.integers(1, 10),
    share=st.floats(0, 1),
)
def test_a_rate_is_never_negative_nor_above_the_one_set(
    schedule: str, warmup: float, epochs: int, share: float
) -> None:
    config = Stage(epochs=epochs, lr=0.1, schedule=schedule, warmup=warmup, milestones=(3,))  # type: ignore[arg-type]
    assert 0 <= learning_rate(config, share * epochs) <= 0.1
