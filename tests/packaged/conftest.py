"""What is built once, and the environments that everything here looks at."""

from __future__ import annotations

import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from .installing import Built, Environment, Environments

_SERVE = Path(__file__).parent / "jobs" / "serve.py"


@pytest.fixture(scope="session")
def scratch() -> Iterator[Path]:
    """A folder outside the checkout, for this run."""
    with TemporaryDirectory() as folder:
        yield Path(folder).resolve()


@pytest.fixture(scope="session")
def built(scratch: Path) -> Built:
    """Wheel and sdist."""
    return Built(scratch / "dist")


@pytest.fixture(scope="session")
def environments(scratch: Path, built: Built) -> Iterator[Environments]:
    """A virtual environment for each extra."""
    environments = Environments(scratch / "environments", built)
    yield environments
    environments.close()


@contextmanager
def serving(environment: Environment) -> Generator[dict[str, str], None, None]:
    """Run the service in a process of *environment*, and yield the settings for its clients."""
    process = subprocess.Popen(  # noqa: S603  # our own program
        [environment.python, "-I", _SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        key, base_url, text_base_url = process.stdout.readline().split()
        yield {
            "MUYBRIDGE_API_KEY": key,
            "MUYBRIDGE_BASE_URL": base_url,
            "MUYBRIDGE_TEXT_BASE_URL": text_base_url,
        }
        process.communicate("", timeout=60)
    assert process.returncode == 0


@pytest.fixture(scope="session")
def service(environments: Environments) -> Iterator[dict[str, str]]:
    """The settings of a service that runs in a process and an environment of its own."""
    with serving(environments.get("local")) as settings:
        yield settings
