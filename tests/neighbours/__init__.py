"""Libraries that people have beside us: each works with the client, or is refused by name."""
