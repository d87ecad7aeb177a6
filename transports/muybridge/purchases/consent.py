"""What a person has to say before a decision that may cost them money is recorded."""

from __future__ import annotations

from collections.abc import Container

from muybridge_protocol.purchases import CannotDecide, Choice
from muybridge_protocol.remedies import Remedy, RemedyKind


def check_consent(
    choices: Container[Choice | None], which: str, *, not_charged: bool, i_may_pay_twice: bool
) -> None:
    """Check that a person has said what *choices* require.

    Args:
        choices: What was decided.
        which: What they are about, for messages.
        not_charged: Whether the account shows that what is released was not charged.
        i_may_pay_twice: Whether what is resubmitted may be paid twice.

    Raises:
        CannotDecide: They have not.
    """
    if Choice.RELEASE in choices and not not_charged:
        raise CannotDecide(
            f"{which} may have been accepted and charged. Once released, it can be sent again, and "
            "does not count as spent. If your account shows that it was not charged:",
            Remedy(kind=RemedyKind.ALLOW, option="not_charged"),
        )
    if Choice.RESUBMIT in choices and not i_may_pay_twice:
        raise CannotDecide(
            f"{which} may have been accepted and charged. If it is sent again, you may pay twice. "
            "If you accept that:",
            Remedy(kind=RemedyKind.ALLOW, option="i_may_pay_twice"),
        )
