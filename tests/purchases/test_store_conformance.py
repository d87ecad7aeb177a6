"""Our databases pass the kit that checks other people's."""

from __future__ import annotations

from .kits import OnPostgres, OnSqlite


class TestSqlite(OnSqlite):
    """A file passes all of it."""


class TestPostgres(OnPostgres):
    """A database of a server passes all of it, and declares what a server does not show."""
