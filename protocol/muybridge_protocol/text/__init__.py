"""Text generation: what goes out, what comes back, and how a streamed response is read."""
