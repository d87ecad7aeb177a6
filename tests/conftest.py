"""What every test stands on: repeatable examples, and an environment without settings."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator
from itertools import count
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings

# Suites with environments and settings of their own.
collect_ignore = ["agent_hosts", "browser", "interop", "neighbours", "packaged", "queues"]

# Examples are the same in every run, so that a failure is one for everybody. The nightly run
# draws new ones, and many more.
settings.register_profile(
    "default",
    derandomize=True,
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "nightly",
    deadline=None,
    max_examples=1_000,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# A shell that starts tests in the background makes them ignore Ctrl-C and Ctrl-\, and nohup makes
# them ignore hang-ups. The programs that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if sys.platform != "win32":
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_numbers = count(1)


@pytest.fixture(autouse=True)
def _bare_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Take this library's settings and proxies out of the environment, and the user's store."""
    settings = [name for name in os.environ if name.startswith("MUYBRIDGE_")]
    for name in (*settings, *_PROXIES, *(proxy.lower() for proxy in _PROXIES)):
        if not name.startswith("MUYBRIDGE_TEST_"):
            monkeypatch.delenv(name, raising=False)
    state = tmp_path_factory.getbasetemp() / "state" / str(next(_numbers))
    monkeypatch.setenv("XDG_STATE_HOME", str(state))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what is collected out of every garbage collection: it stays to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable(report: object) -> Generator[None, Any, Any]:
    """Escape lone surrogates in what a failed test shows: xdist ends the whole run on them."""
    data = yield
    return _encodable(data) if getattr(report, "failed", False) else data


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {name: _encodable(field) for name, field in fields.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in cast("list[Any]", value)]
    return value
