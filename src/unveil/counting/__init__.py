"""The number of novel classes."""
