"""What each stage optimizes. A method has `losses(batch)`, the weighted terms of its objective by name."""
