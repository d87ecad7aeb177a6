"""What a client tells of its work: which facts may be shown, in log records and in spans."""
