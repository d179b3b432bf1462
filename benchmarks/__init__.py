"""Speed, measured as ratios of two things run side by side: `python -m benchmarks step|limits|growth`."""
