"""What to say where the library of an extra is not installed.

The command must work where it is read. The package may be on no index, so the command names what
this copy was installed from. And the `pip` of the shell may belong to another environment than the
interpreter that runs this, or there may be none.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import Distribution, PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

_NAME: Final = "muybridge"


def missing_extra(user: str, library: str, extra: str) -> ModuleNotFoundError:
    """Return the error for a *library* that is not installed.

    Args:
        user: What needs it.
        library: The name of the missing library.
        extra: The extra that installs it.
    """
    return ModuleNotFoundError(f"{user} needs {library}: {install_command(extra)}", name=library)


def install_command(extra: str = "") -> str:
    """Return the command that adds *extra*, or what every copy needs, to this environment."""
    return f"{_installer()} {_source(extra)}"


def _installer() -> str:
    if find_spec("pip") is None:  # as in the environments that uv makes
        return f"uv pip install --python {_quoted(sys.executable)}"
    pip = which("pip")
    if pip is not None and Path(pip).parent == Path(sys.executable).parent:
        return "pip install"
    return f"{_quoted(sys.executable)} -m pip install"


def _source(extra: str) -> str:
    """Return what to install: this copy's own source with *extra*."""
    extras = f"[{extra}]" if extra else ""
    url, is_editable = _direct_url()
    if url is None:
        return _quoted(f"{_NAME}{extras}")
    if urlsplit(url).scheme != "file":
        return _quoted(f"{_NAME}{extras} @ {url}")
    path = url2pathname(urlsplit(url).path)
    return f"{'-e ' if is_editable else ''}{_quoted(f'{path}{extras}')}"


def _direct_url() -> tuple[str | None, bool]:
    """Return the URL that this copy was installed from, if any, and whether it is editable."""
    try:
        text = Distribution.from_name(_NAME).read_text("direct_url.json")
    except PackageNotFoundError:
        # Nothing is installed: this is a checkout on the path.
        root = Path(__file__).parents[2]
        return (root.as_uri() if (root / "pyproject.toml").exists() else None), False
    if text is None:
        return None, False
    record: dict[str, Any] = json.loads(text)
    url: str = record["url"]
    if "vcs_info" in record:
        version = record["vcs_info"]
        url = f"{version['vcs']}+{url}@{version['commit_id']}"
    return url, bool(record.get("dir_info", {}).get("editable"))


def _quoted(word: str) -> str:
    """Return *word* in double quotes, which mean the same in every shell."""
    return f'"{word}"' if set(word) & set(" []'@") else word
