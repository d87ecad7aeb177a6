"""Whole worlds in virtual time, judged by what the service charged and what the user was told."""
