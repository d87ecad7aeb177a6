"""pyright's language server, as an editor talks to it."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class LanguageServer:
    """A language server with one open file.

    Args:
        python: The interpreter whose packages the file imports.
        file: The file, which exists.
    """

    def __init__(self, python: Path, file: Path) -> None:
        self._python = python
        self._file = file
        self._lines = file.read_text("utf-8").splitlines()
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pyright.langserver", "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        folder = self._file.parent.as_uri()
        hover = {"hover": {"contentFormat": ["plaintext"]}}
        self._call(
            "initialize",
            processId=None,
            rootUri=folder,
            workspaceFolders=[{"uri": folder, "name": "a project"}],
            capabilities={"textDocument": hover, "workspace": {"configuration": True}},
        )
        self._send({"method": "initialized", "params": {}})
        document = {"uri": self._file.as_uri(), "languageId": "python", "version": 1}
        text = {"text": self._file.read_text("utf-8")}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": document | text}})
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def hover(self, line: int, word: str) -> str:
        """Return what an editor shows for *word* in *line*, counted from 1."""
        found = self._call(
            "textDocument/hover",
            textDocument={"uri": self._file.as_uri()},
            position={"line": line - 1, "character": self._lines[line - 1].index(word) + 1},
        )
        text: str = found["contents"]["value"] if found else ""
        return text

    def _call(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        self._send({"id": number, "method": method, "params": params})
        while (message := self._receive()).get("id") != number or "method" in message:
            if "id" in message:  # the server asks something
                self._send({"id": message["id"], "result": self._settings(message)})
        return message["result"]

    def _settings(self, message: dict[str, Any]) -> Any:
        if message["method"] != "workspace/configuration":
            return None
        python = {"pythonPath": str(self._python)}
        asked = message["params"]["items"]
        return [python if one.get("section") == "python" else {} for one in asked]

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        size = 0
        while line := self._process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            size = int(value) if name.lower() == b"content-length" else size
        assert size, "the language server has ended"
        message: dict[str, Any] = json.loads(self._process.stdout.read(size))
        return message
