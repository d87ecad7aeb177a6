"""What a client reports about its work: the facts that may be shown, log records and spans."""
