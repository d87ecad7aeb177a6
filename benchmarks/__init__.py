"""Speed, shown side by side with a floor or a peer: `python -m benchmarks`."""
