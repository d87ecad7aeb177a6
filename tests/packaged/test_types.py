"""What a type checker sees of the installed packages."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from .installing import EVERYTHING, Environments, run, succeed


@pytest.mark.parametrize("package", ["muybridge_protocol", "muybridge"])
def test_every_public_type_is_known(
    package: str, environments: Environments, scratch: Path
) -> None:
    """pyright knows the type of everything that can be imported, but for other people's own."""
    binaries = environments.get(EVERYTHING).python.parent
    told = succeed(
        [sys.executable, "-m", "pyright", "--ignoreexternal", "--verifytypes", package],
        cwd=scratch,  # where no settings are
        PATH=f"{binaries}{os.pathsep}{os.environ['PATH']}",
    )
    assert f"/{package}/py.typed" in told
    assert "Type completeness score: 100%" in told


FILES = """\
import muybridge
from muybridge import load_media

client = muybridge.Client()
photo = load_media("horse.png")
urls: list[str] = ["https://pictures.test/horse.png"]
muybridge.VidgRequest(model="vidg_video3", prompt="It gallops", image_urls=[photo])
muybridge.ImgaRequest(model="imga", prompt="-", image_urls=[*urls, photo])
muybridge.ImgaRequest(model="imga", prompt="-", image_urls=urls)
muybridge.VidcRequest(model="vidc_o3", prompt="-", first_image=photo, last_image=urls[0])
response = client.generate_content("textg-2.5-pro", [photo, "Which gait?"])
client.generate_content("textg-2.5-pro", photo)
talk = muybridge.Conversation().say([photo, "Which gait?"]).hear(response)
talk.hear(response.text).hear(response.content).hear(response.candidates[0])
muybridge.Part(inline_data=photo)
muybridge.VidgRequest(model="vidg_video3", prompt=photo)  # wrong
muybridge.ViddRequest(model="viddq3-pro", prompt="-", first_image=photo)  # wrong
client.generate_content("textg-2.5-pro", "Which gait?", system_instruction=photo)  # wrong
client.generate_content("textg-2.5-pro", "Which gait?", temperature=0.5)  # wrong
muybridge.Part(text=photo)  # wrong
muybridge.Conversation().hear(photo)  # wrong
client.messages({}, model="textg-2.5-pro")  # wrong
"""


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_file_is_no_text(checker: str, environments: Environments, tmp_path: Path) -> None:
    """Type checkers take a loaded file where files go, and refuse it, and typos, elsewhere."""
    (tmp_path / "program.py").write_text(FILES, encoding="utf-8")
    python = environments.get(EVERYTHING).python
    options = {
        "mypy": ("--strict", "--python-executable", python),
        "pyright": ("--pythonpath", python),
    }[checker]
    done = run([sys.executable, "-m", checker, *options, "program.py"], cwd=tmp_path)
    told = {int(line) for line in re.findall(r"program\.py:(\d+):.*error", done.stdout)}
    lines = enumerate(FILES.splitlines(), start=1)
    assert told == {number for number, line in lines if line.endswith("# wrong")}, done.stdout
