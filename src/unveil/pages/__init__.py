"""The report and the review page of a run. Nothing here imports torch."""
