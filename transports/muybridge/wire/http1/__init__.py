"""HTTP/1.1 over byte streams, for any event loop."""
