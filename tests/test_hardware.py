"""Threads: one for few rows, as many as usual for more."""

import torch

from unveil.hardware import ONE_THREAD_ROWS, threads_for


def test_few_rows_are_computed_in_one_thread_and_more_in_as_many_as_usual() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with threads_for(100):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
        with threads_for(ONE_THREAD_ROWS + 1):
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
