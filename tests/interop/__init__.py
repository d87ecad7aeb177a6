"""Our service under other people's clients, and our clients on other people's server."""
