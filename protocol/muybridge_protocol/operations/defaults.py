"""What calls and connections may take unless told otherwise.

It is loaded by itself, for clients' signatures.
"""

from __future__ import annotations

from typing import Final

DOWNLOAD_TIMEOUT: Final = 3600.0
"""Seconds that a download may take."""
SIZE_LIMIT: Final = 4 * 1024**3
"""Most bytes that a download may have: 4 GiB."""
LONGEST_IDLE: Final = 300.0
"""Seconds for which an idle connection is kept. Result queries come up to a minute apart."""
CONCURRENCY: Final = 8
"""Most requests that a fleet has under way at once."""
