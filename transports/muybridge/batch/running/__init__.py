"""Running a batch: what takes its items, sends them, and saves their results."""
