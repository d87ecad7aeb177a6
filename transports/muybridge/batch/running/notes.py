"""What the errors of a run say besides."""

from __future__ import annotations

from typing import Final

KEPT: Final = (
    "Responses to creates whose outcome the store could not record are in files of the batch's "
    "folder. Keep them: the next run reads them."
)
TO_RESUME: Final = "The batch is in its store: run it again to resume."
HOW_TO_GO_ON: Final = f"No create was interrupted. {TO_RESUME}"
