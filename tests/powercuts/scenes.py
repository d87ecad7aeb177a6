"""What is recorded, how it continues after a power cut, and what must be true then."""

from __future__ import annotations

from typing import Final

from .batches import Batch, BatchAgain, Crowd
from .names import Names, NamesAgain
from .pictures import Pictures
from .scene import Scene

SCENES: Final[dict[str, Scene]] = {
    scene.name: scene
    for scene in (Batch(), BatchAgain(), Crowd(), Names(), NamesAgain(), Pictures())
}
"""All scenes, by their names."""

__all__ = ["SCENES", "Scene"]
