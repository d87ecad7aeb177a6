"""Test vectors for other languages: how they are made, and how they are played to the core."""
