"""The run directory: write it, read it, correct it, export it. Nothing here imports torch."""
