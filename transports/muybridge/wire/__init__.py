"""Transports: bytes in and out over HTTP, with requests and with trio, and nothing else."""
