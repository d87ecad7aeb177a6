"""API keys, and what each is provisioned for (spec, "Authentication")."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from muybridge_protocol.emulator.refused import Refused
from muybridge_protocol.families import Family
from muybridge_protocol.http import Headers

# One space, and nothing around: the specification calls extra white space malformed, and the
# scheme is compared exactly.
_AUTHORIZATION = re.compile(r"Bearer ([\x21-\x7e]+)", re.ASCII)


@attrs.frozen(kw_only=True)
class Access:
    """What a key may use; None means everything.

    Args:
        families: Names of the families whose create call it may use.
        models: Names of the models that it may ask for.
        assets: Whether it may delete assets.
        text: Whether it may use the text endpoints.
    """

    families: frozenset[str] | None = None
    models: frozenset[str] | None = None
    assets: bool = True
    text: bool = True

    def allows_family(self, family: Family) -> bool:
        """Whether the key may create tasks of *family*."""
        return self.families is None or family.name in self.families

    def allows_model(self, model: object) -> bool:
        """Whether the key may ask for *model*, the value found in a request."""
        return self.models is None or not isinstance(model, str) or model in self.models


def check_model(access: Access, model: object) -> None:
    """Check that a key with *access* may ask for *model*, the value found in a request.

    Raises:
        Refused: It may not.
    """
    if not access.allows_model(model):
        raise forbidden("the account plan does not include the requested model", field="model")


def forbidden(message: str, *, field: str | None = None) -> Refused:
    """Return the refusal of a request whose key may not make it."""
    return Refused(403, message, "forbidden", field=field)


def unauthorized() -> Refused:
    """Return the refusal of a request without a valid key."""
    return Refused(
        401,
        "send the header Authorization: Bearer <API_KEY> with a valid key",
        "unauthorized",
        headers=(("WWW-Authenticate", "Bearer"),),
    )


def authenticate(keys: Mapping[str, Access], headers: Headers) -> Access | None:
    """Return what the key in *headers* may use, or None if there is no valid key."""
    given = [value for name, value in headers if name.lower() == "authorization"]
    match = _AUTHORIZATION.fullmatch(given[0]) if len(given) == 1 else None
    return keys.get(match[1]) if match else None
