"""Ways to cluster vectors without training."""
