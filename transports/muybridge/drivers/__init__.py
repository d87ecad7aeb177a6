"""The driver, written once as coroutines, and what binds it to blocking code and event loops."""
