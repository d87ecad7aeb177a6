"""Default limits of calls and connections.

They are apart from the operations because the signatures of the clients need nothing else of them.
"""

from __future__ import annotations

from typing import Final

DOWNLOAD_TIMEOUT: Final = 3600.0
"""Timeout of a download, in seconds."""
CHECK_TIMEOUT: Final = 60.0
"""Timeout of fetching the headers of a request's media, in seconds."""
SIZE_LIMIT: Final = 4 * 1024**3
"""Largest download, in bytes: 4 GiB."""
READ_LIMIT: Final = 256 * 1024**2
"""Largest download that is kept in memory, in bytes: 256 MiB."""
LONGEST_IDLE: Final = 300.0
"""Seconds before an idle connection is closed. Polls come up to a minute apart."""
CONCURRENCY: Final = 32
"""Largest number of tasks in progress at once, each from its create to its end."""
CONNECTIONS: Final = 32
"""Largest number of exchanges at once, however many tasks are in progress."""
