"""Mutation testing: `python -m tests.mutation`; CONTRIBUTING.md explains it."""
