"""What the environment says: which store, and which budget."""

from __future__ import annotations

import os
from typing import Any, Final

from muybridge.files.state import state_folder
from muybridge_protocol.errors import LocalError
from muybridge_protocol.purchases import Budget, Measure

_VARIABLES: Final = {measure: f"MUYBRIDGE_MAX_{measure.upper()}" for measure in Measure}
PERIOD_VARIABLE: Final = "MUYBRIDGE_BUDGET_PER"
STORE_VARIABLE: Final = "MUYBRIDGE_STORE"


def default_place() -> str:
    """Return where the store is: `MUYBRIDGE_STORE`, or a file in the user's state folder."""
    return os.environ.get(STORE_VARIABLE) or str(state_folder() / "store.sqlite3")


def place_in_commands(place: str) -> str:
    """Return how a command names the store at *place*, or "" if it uses that one anyway.

    Args:
        place: Where the store is, as `Store.place` says it: without a user and a password.
    """
    usual = default_place()
    if "://" not in place:
        return "" if os.path.realpath(usual) == place else place
    if "://" in usual:
        from muybridge.purchases.postgres_connections import named

        usual = named(usual)
    return "" if usual == place else "URL"


def budget_of_environment() -> Budget | None:
    """Return the budget that the environment sets, or None if it sets no limit.

    Raises:
        LocalError: A variable is not a number, or there is no such limit or period.
    """
    unknown = {
        name
        for name in os.environ
        if name.startswith("MUYBRIDGE_MAX_") and name not in _VARIABLES.values()
    }
    if unknown:  # a limit with a typo must not be taken for none
        raise LocalError(
            f"{', '.join(sorted(unknown))}: there is no such limit. Nothing was sent. The limits "
            f"are {', '.join(_VARIABLES.values())}.",
            argument=min(unknown),
        )
    limits: dict[Measure, Any] = {
        measure: os.environ[variable]
        for measure, variable in _VARIABLES.items()
        if os.environ.get(variable)
    }
    if not limits:
        return None
    for measure, limit in limits.items():
        try:
            Budget(**{measure: limit})
        except ValueError as error:
            raise _unreadable(_VARIABLES[measure], error) from None
    period: Any = os.environ.get(PERIOD_VARIABLE) or None
    try:
        return Budget(**limits, per=period)
    except ValueError as error:
        raise _unreadable(PERIOD_VARIABLE, error) from None


def _unreadable(variable: str, error: ValueError) -> LocalError:
    return LocalError(f"{variable}: {error}. Nothing was sent.", argument=variable)
