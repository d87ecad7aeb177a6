"""Write the test vectors anew: `python -m tests.vectors`, in the project's folder."""

from __future__ import annotations

from .files import VECTORS, make


def main() -> None:
    """Write every file."""
    for name, text in make().items():
        path = VECTORS / name
        path.write_bytes(text.encode())
        print(path)  # noqa: T201  what it has done


main()
