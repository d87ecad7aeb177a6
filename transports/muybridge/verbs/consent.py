"""A person's consent to requests that cost money: what the command does before it sends one.

It is kept per user, in the state folder, and per account, which the API key stands for. Whoever has
never chosen has chosen `always`. Whoever has chosen for one account has to choose for each other
one: a new key must not be a way around.

Consent is a courtesy among those who keep to it. A program with the user's shell can do what the
user can: change the file, or use the library. What holds is a budget in a database whose settings
that program cannot write.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from muybridge.credentials import fingerprint_of
from muybridge.files.durable import make_folders, sync_folders, write_all
from muybridge.files.state import state_folder
from muybridge.purchases.errors import StoreUnusable
from muybridge.signals import genuine, ignoring_errors
from muybridge_protocol.errors import MuybridgeError
from muybridge_protocol.local_errors import NOTHING_SENT
from muybridge_protocol.purchases import Amounts, StoredBudget, Tags, labels_of
from muybridge_protocol.records.json import InvalidJson, read_object, readable

if TYPE_CHECKING:
    from muybridge.purchases.store import Store

MARK: Final = "muybridge_consent"
VERSION: Final = 1
_LARGEST: Final = 1024 * 1024
"""Most bytes of the file. A larger one counts as damaged."""


class Consent(StrEnum):
    """When the command sends a request that costs money."""

    ALWAYS = "always"
    """Without asking."""
    ASK = "ask"
    """If a person agrees, or a budget in the store covers the request."""
    BUDGET = "budget"
    """If a budget in the store covers the request."""


class ConsentRequired(MuybridgeError):
    """A person has not agreed to the request, or nobody can tell. Nothing was sent.

    Args:
        parts: The message.
        consent: What is stored, or None if that is for another account or cannot be read.
        amounts: What the request consumes, if that is known.
    """

    def __init__(
        self, *parts: Any, consent: Consent | None = None, amounts: Amounts | None = None
    ) -> None:
        super().__init__(*parts)
        self.consent: Consent | None = consent
        self.amounts: Amounts | None = amounts


def consent_file() -> Path:
    """Return where consent is stored; the file may not exist."""
    return state_folder() / "consent.json"


def has_chosen() -> bool:
    """Whether anything is stored, readable or not."""
    try:
        consent_file().lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # nobody can tell
        return True
    return True


def stored_consent(api_key: str) -> Consent | None:
    """Return what is stored for the account of *api_key*, or None if nothing is.

    Raises:
        ConsentRequired: The file cannot be read.
    """
    salt, accounts = _read()
    return accounts.get(fingerprint_of(api_key, salt.encode()))


def consent_to_use(api_key: str) -> Consent:
    """Return the consent for the account of *api_key*.

    Raises:
        ConsentRequired: It is stored for other accounts alone, or the file cannot be read.
    """
    if not has_chosen():
        return Consent.ALWAYS
    consent = stored_consent(api_key)
    if consent is None:
        raise ConsentRequired(
            f"Consent is stored in {_shown()}, but for another account: not for this API key.",
            NOTHING_SENT,
            "Choose for this one, on a terminal: muybridge consent always|ask|budget",
        )
    return consent


def store_consent(api_key: str, consent: Consent) -> None:
    """Store *consent* for the account of *api_key*, whole or not at all.

    Raises:
        ConsentRequired: The file cannot be read.
        StoreUnusable: It cannot be written. It is as it was.
    """
    salt, accounts = _read()
    accounts = {**accounts, fingerprint_of(api_key, salt.encode()): consent}
    record = {MARK: VERSION, "salt": salt, "accounts": accounts}
    path = consent_file()
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
    try:
        make_folders(path.parent, mode=0o700)
        try:
            with new.open("xb", buffering=0) as file:
                new.chmod(0o600)
                write_all(file, json.dumps(record, indent=2).encode() + b"\n")
                os.fsync(file.fileno())
            new.replace(path)
        finally:
            with ignoring_errors(OSError):
                new.unlink(missing_ok=True)
        sync_folders(path.parent)
    except genuine(OSError) as error:
        raise StoreUnusable(
            f"Consent cannot be stored in {_shown()}: {error.strerror or error}.",
            "It is as it was before.",
        ) from None


def uncovered(store: Store, amounts: Amounts, tags: Tags) -> str | None:
    """Return why no budget in *store* covers a request, or None if one does.

    A budget covers a request if it limits something that the request consumes, and has enough left
    of it. Whatever else limits the request is checked when that is recorded, and this once more.

    Args:
        store: The store.
        amounts: What the request consumes.
        tags: Its tags.

    Raises:
        StoreUnusable: It cannot be read.
    """
    reasons: list[str] = []
    for stored, tag in budgets_for(store, tags):
        if not any(amounts[measure] != 0 for measure in stored.budget.limits):
            continue
        spent = store.spent(stored.label_of(tag), stored.budget)
        reason = stored.budget.exceeded_by(amounts, spent)
        if reason is None:
            return None
        reasons.append(f"{stored.called(tag)}: {reason}")
    return "; ".join(reasons) or "none limits such a request"


def budgets_for(store: Store, tags: Tags) -> list[tuple[StoredBudget, str]]:
    """Return the budgets in *store* that limit requests with these tags, each with its tag.

    Raises:
        StoreUnusable: It cannot be read.
    """
    # If the request lacks a key that one needs, the store says so when it records the request.
    budgets = ((stored, stored.tag_of(labels_of(tags))) for stored in store.limits())
    return [(stored, tag) for stored, tag in budgets if tag is not None]


def _read() -> tuple[str, Mapping[str, Consent]]:
    """Return the salt and the consent of each account. Without a file, they are new and none."""
    try:
        with consent_file().open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        if not has_chosen():
            return secrets.token_hex(16), {}
        raise _unusable(error.strerror or str(error)) from None
    try:
        return _parsed(data)
    except (AttributeError, InvalidJson, KeyError, TypeError, ValueError):
        raise _unusable("it is damaged, or a newer muybridge has written it") from None


def _parsed(data: bytes) -> tuple[str, Mapping[str, Consent]]:
    record = read_object(data)
    salt, accounts = record["salt"], record["accounts"]
    if record.get(MARK) != VERSION or not isinstance(salt, str) or len(data) > _LARGEST:
        raise ValueError
    return salt, {account: Consent(consent) for account, consent in accounts.items()}


def _unusable(reason: str) -> ConsentRequired:
    return ConsentRequired(
        f"The consent in {_shown()} cannot be read: {reason}.",
        NOTHING_SENT,
        "Repair the file. If a person removes it, every request is sent without asking.",
    )


def _shown() -> str:
    return readable(str(consent_file()), 500)
