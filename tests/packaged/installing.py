"""Wheel and sdist as they are built, and virtual environments with one of them."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
import venv
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

EVERYTHING = "celery,httpx2,local,mcp,otel,postgres,s3,testing"
FOR_OURSELVES = {"dev", "bench", "interop", "neighbours", "docs", "browser", "queues"}
FOR_USERS = sorted(set(PROJECT["optional-dependencies"]) - FOR_OURSELVES)
EXTRAS = ["", *FOR_USERS, EVERYTHING]
FORMS = [("wheel", extra) for extra in EXTRAS]
"""What every run installs. The wheel is made from the sdist, which the nightly run installs too."""

_BINARIES = "Scripts" if os.name == "nt" else "bin"
_LONGEST = 3600
"""Seconds that a command may take: one runs all tests, at night and perhaps on a busy machine."""


def run(
    command: Sequence[str | Path], *, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run *command* with nothing of ours in the environment but *environment*."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MUYBRIDGE_", "PYTHON")) and not name.upper().endswith("_PROXY")
    }
    return subprocess.run(  # noqa: S603  # our own commands
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**inherited, **environment},
        timeout=_LONGEST,
    )


def succeed(command: Sequence[str | Path], *, cwd: Path | None = None, **environment: str) -> str:
    """Run *command*, which must succeed, and return what it prints."""
    done = run(command, cwd=cwd, **environment)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def install(python: Path, *what: str) -> None:
    """Install *what* for *python*, which needs no pip of its own."""
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    # PIP_... may stand for the reader's index, so that the environment is left as it is.
    done = subprocess.run(  # noqa: S603  # our own command
        [*pip, "--disable-pip-version-check", "--no-compile", *what],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, f"{what}\n{done.stdout}\n{done.stderr}"


def _by_suffix(folder: Path) -> list[Path]:
    """Return the files in *folder*, an sdist before a wheel."""
    return sorted(folder.iterdir(), key=lambda path: path.suffix)


class Built:
    """What `python -m build` makes of the checkout, or has made for a release.

    Attributes:
        wheel: The wheel, which is made from the sdist.
        sdist: The sdist.
        direct_wheel: A wheel that is made from the checkout.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.sdist, self.wheel = self._made() or self._build("from-sdist")
        (self.direct_wheel,) = self._build("direct", "--wheel")

    def _made(self) -> list[Path]:
        """Return sdist and wheel of the release that `.ci/release` tries, if it runs this."""
        release = os.environ.get("MUYBRIDGE_DIST")
        return [] if release is None else _by_suffix(Path(release))

    def _build(self, name: str, *options: str) -> list[Path]:
        folder = self._folder / name
        command = [sys.executable, "-m", "build", "--outdir", folder, *options, ROOT]
        done = subprocess.run(  # noqa: S603  # our own command
            [str(part) for part in command], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return _by_suffix(folder)

    @cached_property
    def unpacked(self) -> Path:
        """The folder that is in the sdist."""
        with tarfile.open(self.sdist) as archive:
            archive.extractall(self._folder, filter="data")
        return self._folder / self.sdist.name.removesuffix(".tar.gz")


class Environment:
    """A virtual environment with what is installed in it, and without pip."""

    def __init__(self, home: Path, *what: str) -> None:
        self.home = home
        venv.create(home, with_pip=False, symlinks=os.name != "nt")
        self.python = home / _BINARIES / "python"
        install(self.python, *what)

    def command(self, name: str) -> Path:
        """Return where the command *name* is installed."""
        return self.home / _BINARIES / name

    def run(self, program: Path, *arguments: str, **environment: str) -> str:
        """Run a program, which must succeed and sees nothing but what is installed."""
        python = [self.python, "-I", "-W", "error"]
        return succeed([*python, program, *arguments], cwd=self.home, **environment)


class Environments:
    """An environment for each form (`wheel` or `sdist`) and extra.

    Those of `.ci/run` are begun at once, two at a time; any other when it is asked for.
    """

    def __init__(self, folder: Path, built: Built) -> None:
        self._folder = folder
        self._packages = {"wheel": built.wheel, "sdist": built.sdist}
        self._workers = ThreadPoolExecutor(2)
        self._made: dict[tuple[str, str], Future[Environment]] = {}
        for form, extra in FORMS:
            self._begin(form, extra)

    def _begin(self, form: str, extra: str) -> None:
        if (form, extra) not in self._made:
            home = self._folder / f"{form}-{extra.replace(',', '-')}"
            what = f"{self._packages[form]}[{extra}]" if extra else str(self._packages[form])
            self._made[form, extra] = self._workers.submit(Environment, home, what)

    def get(self, extra: str, form: str = "wheel") -> Environment:
        """Return the environment with *extra*, as soon as it is made."""
        self._begin(form, extra)
        return self._made[form, extra].result()

    def close(self) -> None:
        """Begin no more."""
        self._workers.shutdown(cancel_futures=True)
