"""The version, in a module that whatever the package offers can import."""

from __future__ import annotations

from typing import Final

__version__: Final = "1.0.0rc1"
