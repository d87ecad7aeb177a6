"""Transports: bytes in and out over HTTP, with requests and with h11, and nothing else."""
