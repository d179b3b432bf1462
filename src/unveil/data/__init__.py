"""Data: readers, the catalog, tasks, views, batches, the trunk cache."""
