"""What must be true of results and sidecars under their final names, at any time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .service import Service


def faults_of_files(
    folder: Path, service: Service, saved: Iterable[str] = (), sidecars: Iterable[str] = ()
) -> list[str]:
    """Return what is wrong with the results in *folder*.

    Args:
        folder: The folder, which may be missing.
        service: Whose results they are.
        saved: The names of results that must be there.
        sidecars: The names of results whose sidecars must be there.
    """
    whole = {
        hashlib.sha256(service.picture(task, version)).hexdigest()
        for tasks in service.accepted.values()
        for task in tasks
        for version in range(service.versions[task] + 1)
    }
    found = {path.name: _digest(path) for path in folder.glob("*.png")}
    described = {path.name.removesuffix(".json"): path for path in folder.glob("*.png.json")}
    return [
        *(f"{name} is not whole" for name, digest in found.items() if digest not in whole),
        *(f"{name} is gone" for name in saved if name not in found),
        *(f"the sidecar of {name} is gone" for name in sidecars if name not in described),
        *(
            f"the sidecar of {name} is not that of the file"
            for name, path in described.items()
            if _described(path) != found.get(name)
        ),
    ]


def _described(sidecar: Path) -> str | None:
    """Return the checksum in a sidecar, or None if it is not whole."""
    try:
        record: dict[str, Any] = json.loads(sidecar.read_bytes())
    except ValueError:
        return None
    return str(record["sha256"])


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
