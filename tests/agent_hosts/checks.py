"""What every agent has to show."""

from __future__ import annotations

import os
from pathlib import Path

from agent_hosts.script import Transcript
from agents.relay import Relay

FILM = Path(__file__).with_name("film.txt")
"""The two conversations, the same whoever runs the agent. WRITE_TRANSCRIPTS=1 writes them."""


def check_run(relay: Relay, folder: Path, *runs: Transcript) -> None:
    """Check that two tasks were paid for, both are saved, and the conversations are as expected."""
    assert relay.creates == 2
    results = folder / "results"
    assert (results / "still.png").read_bytes().startswith(b"\x89PNG")
    assert b"ftyp" in (results / "film.mp4").read_bytes()[:16]
    transcript = "\n".join(map(str, runs))
    assert transcript.count("over budget") == 4  # what the server says, and what the model repeats
    if "WRITE_TRANSCRIPTS" in os.environ:
        FILM.write_text(transcript, "utf-8")
    assert transcript == FILM.read_text("utf-8")
