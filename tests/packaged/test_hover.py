"""What an editor shows of the installed packages."""

from __future__ import annotations

import re
from pathlib import Path

from .installing import EVERYTHING, Environments
from .language_server import LanguageServer

SOURCE = """\
import muybridge
request = muybridge.VidcRequest(model="vidc_o3", prompt="A horse", duration=4)
print(request.reference_images, request.extra)
print(muybridge.Client().run(request).actual_duration)
client = muybridge.Client("key", timeout=60, budget=None)
client.run_all([], concurrency=8)
event_client = muybridge.AsyncClient("key", account="studio")
trio_client = muybridge.TrioClient("key", on_submitted=print)
trio_client.run_all([], concurrency=8)
"""
ARGUMENTS = (
    (5, "timeout"), (5, "budget"), (6, "concurrency"), (7, "account"), (8, "on_submitted"),
    (9, "concurrency"),
)  # fmt: skip


def test_requests_explain_themselves(environments: Environments, scratch: Path) -> None:
    """Hovering a class, an argument or an attribute shows meaning, unit, limits and default."""
    folder = scratch / "editor"
    folder.mkdir()
    file = folder / "program.py"
    file.write_text(SOURCE, encoding="utf-8")
    with LanguageServer(environments.get(EVERYTHING).python, file) as server:
        shown = {
            word: " ".join(server.hover(line, word).split())
            for line, words in (
                (2, ("VidcRequest", "model", "duration")),
                (3, ("reference_images", "extra")),
                (4, ("actual_duration",)),
            )
            for word in words
        }
        arguments = {(line, word): server.hover(line, word) for line, word in ARGUMENTS}
    duration = "Length in seconds; ignored with reference_videos (use 3 to 15 s). Default 3."
    signature, _, text = shown["VidcRequest"].partition(") ")
    assert re.search(r"model: .*, prompt: str, .*, extra: Mapping\[str, object\] = \{\}", signature)
    assert "A video with family `vidc`" in text
    assert "duration is ignored with reference_videos" in text
    assert duration in shown["duration"]
    assert "use vidc_o3" in shown["model"]
    assert "at most 4 with reference_videos (use 1 to 7" in shown["reference_images"]
    assert "Fields that are sent unchecked" in shown["extra"]
    assert "The video's real length in seconds." in shown["actual_duration"]
    assert "one request and its response may take; 60 by default" in arguments[5, "timeout"]
    assert "What may be spent" in arguments[5, "budget"]
    assert "Maximum number of tasks in progress at once" in arguments[6, "concurrency"]
    assert "Your name for the key's account" in arguments[7, "account"]
    assert "as soon as its id is known" in arguments[8, "on_submitted"]
    assert "Maximum number of tasks in progress at once" in arguments[9, "concurrency"]
