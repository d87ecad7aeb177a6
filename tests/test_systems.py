"""What some systems lack: each use of it in the packages, and what happens there instead.

Linux alone runs these tests here. So a new use of something that Windows or macOS lacks is noticed
by its name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from test_import_cycles import MODULES as SOURCES

MODULES = {"fcntl", "grp", "msvcrt", "pty", "pwd", "resource", "syslog", "termios", "tty", "winreg"}
"""Modules that one of the systems lacks."""
NAMES = {
    "os": {
        "O_CLOEXEC", "O_DIRECTORY", "O_DSYNC", "O_NOFOLLOW", "O_NONBLOCK", "O_PATH", "O_TMPFILE",
        "WEXITSTATUS", "chown", "chroot", "copy_file_range", "eventfd", "fchmod", "fchown",
        "fdatasync", "fork", "forkpty", "getegid", "geteuid", "getgid", "getloadavg", "getpgid",
        "getuid", "killpg", "lchown", "memfd_create", "mkfifo", "mknod", "openpty",
        "pidfd_open", "pipe2", "posix_fadvise", "posix_fallocate", "posix_spawn", "pread",
        "pwrite", "register_at_fork", "sched_getaffinity", "sched_setaffinity", "sendfile",
        "setpgid", "setsid", "splice", "statvfs", "sync", "uname", "wait", "waitid", "waitpid",
    },
    "select": {"devpoll", "epoll", "kqueue", "poll"},
    "signal": {
        "SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGUSR1", "SIGUSR2",
        "SIGXCPU", "alarm", "pause", "pthread_kill", "pthread_sigmask", "setitimer",
        "siginterrupt", "sigpending", "sigtimedwait", "sigwait",
    },
    "socket": {
        "AF_NETLINK", "AF_UNIX", "AF_VSOCK", "MSG_DONTWAIT", "MSG_NOSIGNAL", "SO_BINDTODEVICE",
        "SO_PEERCRED", "SO_REUSEPORT", "TCP_CORK", "TCP_KEEPCNT", "TCP_KEEPIDLE", "TCP_KEEPINTVL",
        "TCP_QUICKACK", "TCP_USER_TIMEOUT", "recv_fds", "send_fds", "sethostname", "socketpair",
    },
    "time": {"CLOCK_BOOTTIME", "clock_gettime", "pthread_getcpuclockid", "tzset"},
}  # fmt: skip
"""Names of the standard library that Windows or macOS lacks."""

_NO_FORK = "Windows has no fork, so that nothing has to be done in a child"
_KIT = "this kit says that it needs a system with fork; clients do without it"
_SIGNALS = "this check is skipped where there is no pthread_kill"
FALLBACKS = {
    ("muybridge.drivers.pauses", "time.clock_gettime"): "the monotonic clock",
    ("muybridge.files.locks", "fcntl"): "msvcrt on Windows",
    ("muybridge.files.locks", "msvcrt"): "fcntl elsewhere",
    ("muybridge.purchases.postgres", "os.register_at_fork"): _NO_FORK,
    ("muybridge.purchases.sqlite", "os.register_at_fork"): _NO_FORK,
    ("muybridge.purchases.store", "os.register_at_fork"): _NO_FORK,
    ("muybridge.testing.conformance.interrupted", "signal.SIGALRM"): _SIGNALS,
    ("muybridge.testing.conformance.interrupted", "signal.pthread_kill"): _SIGNALS,
    ("muybridge.testing.store_conformance.checks", "os.fork"): _KIT,
    ("muybridge.testing.store_conformance.checks", "os.waitpid"): _KIT,
    ("muybridge.testing.store_conformance.checks", "signal.SIGKILL"): _KIT,
    ("muybridge.testing.store_conformance.checks", "signal.pause"): _KIT,
    ("muybridge.testing.store_conformance.durability", "os.fork"): _KIT,
    ("muybridge.testing.store_conformance.durability", "os.waitpid"): _KIT,
    ("muybridge.testing.store_conformance.durability", "signal.SIGKILL"): _KIT,
}
"""What happens elsewhere, for each use in the packages."""


def uses(source: str) -> Iterator[str]:
    """Yield each thing that *source* uses and some system lacks."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names):
                yield from (one.name for one in names if one.name in MODULES)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (module for _ in names[:1] if module in MODULES)
                known = NAMES.get(module, set())
                yield from (f"{module}.{one.name}" for one in names if one.name in known)
            case ast.Attribute(ast.Name(module), name) if name in NAMES.get(module, ()):
                yield f"{module}.{name}"
            case ast.Constant(str(text)) if text.startswith(("/proc/", "/sys/", "/etc/", "/dev/")):
                yield text
            case _:
                pass


def test_each_has_a_fallback() -> None:
    """Whatever one of the systems lacks is listed with what happens there."""
    found = {
        (module, use) for module, path in SOURCES.items() for use in uses(path.read_text("utf-8"))
    }
    assert found == set(FALLBACKS)


def test_it_would_be_noticed() -> None:
    """The search finds imports, attributes and paths."""
    program = "import fcntl, os\nfrom signal import SIGHUP\nos.fork()\nopen('/proc/self/fd')\n"
    assert sorted(uses(program)) == ["/proc/self/fd", "fcntl", "os.fork", "signal.SIGHUP"]
