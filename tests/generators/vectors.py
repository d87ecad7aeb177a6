"""The test vectors: `python -m tests.generators.vectors` writes them from the library's tables.

`tests/vectors/test_vectors.py` says where they differ.
"""

from __future__ import annotations

from tests.vectors.files import VECTORS, make


def main() -> None:
    """Write every file."""
    for name, text in make().items():
        path = VECTORS / name
        path.write_bytes(text.encode())
        print(path)  # noqa: T201  what it has done


if __name__ == "__main__":
    main()
