"""Text generation: what goes out, what comes back, and how a streamed reply is read."""
