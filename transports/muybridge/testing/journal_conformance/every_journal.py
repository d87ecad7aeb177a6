"""The checks of every journal."""

from __future__ import annotations

from muybridge.testing.journal_conformance.freshness import Freshness
from muybridge.testing.journal_conformance.items import Items
from muybridge.testing.journal_conformance.late_responses import LateResponses
from muybridge.testing.journal_conformance.rates import Rates
from muybridge.testing.journal_conformance.steps import Steps


class JournalConformance(Items, Steps, LateResponses, Rates, Freshness):
    """The checks of a journal.

    Inherit it in a class whose name begins with `Test`, and override `make_journal` and `reopen`.
    """
