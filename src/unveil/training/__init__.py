"""The training loop, the stages, evaluation, checkpoints and progress."""
