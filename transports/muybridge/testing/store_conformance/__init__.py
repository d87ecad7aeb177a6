"""Whether a database keeps the promises of a store: a test suite for its `Database` to pass.

    class TestMyDatabase(StoreConformance):
        def make_database(self):
            return MyDatabase(...)

        def reopen(self, database, now=None):
            return MyDatabase(...)

Each check is a pytest test. On failure it says what was expected, what the mistake would cost, and
where to look. Declare what the database cannot do or show: `capabilities = StoreCapabilities(...)`.
It needs a system with `fork`, and the extra `testing`. `docs/write-a-store.md` walks through it.
"""

from __future__ import annotations

from muybridge.extras import missing_extra

try:
    from muybridge.testing.store_conformance.durability import Durability
    from muybridge.testing.store_conformance.lessons import StoreCapabilities
    from muybridge.testing.store_conformance.owners import Owners
    from muybridge.testing.store_conformance.races import Races
    from muybridge.testing.store_conformance.statements import Statements
except ModuleNotFoundError as _missing:
    if _missing.name != "pytest":
        raise
    raise missing_extra(__name__, _missing.name, "testing") from None

__all__ = ["StoreCapabilities", "StoreConformance"]


class StoreConformance(Statements, Races, Owners, Durability):
    """The checks of a `Database`.

    Inherit it in a class whose name begins with `Test`, and override `make_database` and `reopen`.
    """
