"""Data: readers, the catalog, tasks with their truth kept apart, views, batches, the trunk cache."""
