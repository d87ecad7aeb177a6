"""Whether a journal is correct: a test suite to inherit, for implementations of `Journal`.

    class TestMyJournal(JournalConformance):
        def make_journal(self, items):
            return MyJournal.create(..., SERVICE, items)

        def reopen(self, journal):
            return MyJournal(...)

If a registration is a lease, inherit `LeasedJournalConformance`, which needs `expire` as well. If
the journal is a `SharedJournal`, inherit `BudgetedJournalConformance`, which needs `make_budgeted`.
Each check is a pytest test. On failure it says what was expected, what the mistake would cost, and
where to look. `muybridge.batch.port` has the rules. It needs the extra `testing`.
"""

from __future__ import annotations

from muybridge.extras import missing_extra

try:
    from muybridge.testing.journal_conformance.any_journal import SERVICE
    from muybridge.testing.journal_conformance.budgets import BudgetedJournalConformance
    from muybridge.testing.journal_conformance.every_journal import JournalConformance
    from muybridge.testing.journal_conformance.leases import LeasedJournalConformance
except ModuleNotFoundError as _missing:
    if _missing.name not in ("pytest", "trustme"):
        raise
    raise missing_extra(__name__, _missing.name, "testing") from None

__all__ = [
    "SERVICE",
    "BudgetedJournalConformance",
    "JournalConformance",
    "LeasedJournalConformance",
]
