"""Mistakes in a command line: the error says what would be right, and nothing is sent."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from media.corpus import picture
from muybridge.cli import mistakes
from muybridge.local import LocalService

from .conftest import Invoke
from .crooked_service import RESET, CrookedService, always

VIDSB = ("run", "vidsb", "--model", "vidsb_2_0", "--prompt", "-a")

MISTAKES: dict[str, tuple[tuple[str, ...], str]] = {
    "a file where none is taken": (
        (*VIDSB, "--reference-images", "@photo.png", "--allow-inline"),
        "<photo.png: PNG, 640x480 px (",
    ),
    "a permission that is close": (
        (*VIDSB, "--allow-plain"),
        "No such option '--allow-plain'. (see",
    ),
    "a field of another family": (
        (*VIDSB, "--image-urls", "https://a.example.com/a.png"),
        "No such option '--image-urls'. Did you mean '--reference-images'?",
    ),
    "a prompt without its option": (
        ("run", "imga", "a horse"),
        "Give the prompt as --prompt, in quotes if it has spaces: `muybridge run imga --model",
    ),
    "no family": (
        ("run", "--prompt", "-a"),
        (
            "The family comes before --prompt. Write muybridge run FAMILY --prompt ..., with one "
            "of imga, imgb,"
        ),
    ),
    "nothing after run": (("run",), "The command is incomplete. Write `muybridge run imga --model"),
    "a prompt as the family": (("run", "a horse"), "vidv. Write `muybridge run imga --model"),
    "a family as the command": (
        ("imgb", "--prompt", "-a"),
        "imgb is a family. Write `muybridge run imgb --model imgb-2 --prompt",
    ),
    "a model as the command": (
        ("vidg_video3", "--prompt", "-a"),
        "vidg_video3 is a model of family vidg. Write `muybridge run vidg --model",
    ),
    "a signed link as the command": (
        ("https://a.example/b.png?X-Amz-Signature=abc",),
        "There is no command 'https://a.example/b.png'. Use run",
    ),
    "a close family": (("run", "imgaa"), "vidr, vidsa, vidsb, vidv. Write `muybridge run imga"),
    "a close model": (("models", "imga-9"), "did you mean imga? Write `muybridge models imga"),
    "a text model as the command": (
        ("textg-2.5-pro", "Hello"),
        "textg-2.5-pro is a text model. Write `muybridge text textg-2.5-pro",
    ),
    "a file as the command": (
        ("requests.jsonl",),
        "There is no command 'requests.jsonl'. Write `muybridge batch run requests.jsonl --out",
    ),
    "a model as the family": (
        ("run", "vidg_video3", "--prompt", "-a"),
        "there is no family 'vidg_video3': vidg_video3 is a model of family vidg; give 'vidg'",
    ),
    "a command of another tool": (
        ("generate", "a horse"),
        "Use run for pictures and videos, and text for text. Write `muybridge run imga --model",
    ),
    "short names": (("run", "imga", "-m", "imga"), "No such option '-m'. Write --model."),
    "options first": (
        ("--base-url", "http://127.0.0.1:9", "run", "imga"),
        "No such option '--base-url'. Options come after the command. Write `muybridge run",
    ),
    "a flag and no command": (("-v",), "No such option '-v'. Options come after the command."),
    "a flag first that its command does not have": (
        ("--local", "create", "imga", "--model", "imga", "--prompt", "-a"),
        "No such option '--local'. Write `muybridge run imga",
    ),
    "a flag first and a missing value last": (
        ("--json", "run", "imga", "--model", "imga", "--prompt"),
        "Option '--prompt' requires an argument.",
    ),
    "a flag first and an unknown family": (
        ("--json", "run", "a horse"),
        "there is no family 'a horse'",
    ),
    "a create that is to wait": (
        ("create", "imga", "-o", "horse.png"),
        "create does not wait for a result. Write `muybridge run",
    ),
    "no model": (("text",), "Missing argument 'MODEL'. Write `muybridge text textg-2.5-pro"),
    "no prompt": (("text", "textg-2.5-pro"), "Missing argument 'PROMPT'. Write `muybridge text"),
    "a prompt without quotes": (
        ("text", "textg-2.5-pro", "tell", "me", "a", "joke"),
        "The prompt has several words. Put it in quotes: `muybridge text",
    ),
    "a file after the prompt": (
        ("text", "textg-2.5-pro", "What is this?", "photo.png"),
        "Unexpected argument 'photo.png'. To send the file, write --image before it.",
    ),
    "a prompt as an option": (
        ("text", "textg-2.5-pro", "--prompt", "Hello"),
        "No such option '--prompt'. The prompt comes after the model. Write `muybridge text",
    ),
    "a model as an option": (
        ("text", "--model", "textg-2.5-pro", "Hello"),
        "No such option '--model'. The model comes first. Write `muybridge text",
    ),
    "a document": (
        ("text", "textg-2.5-pro", "Hello", "--pdf", "horse.pdf"),
        "No such option '--pdf'. Write --image, which takes pictures, videos, sounds and PDF",
    ),
    "a key as an option": (
        ("text", "textg-2.5-pro", "Hello", "--api-key", "sk-1"),
        "No such option '--api-key'. Set MUYBRIDGE_API_KEY, or give a file that has the key",
    ),
    "a batch without run": (
        ("batch", "requests.jsonl"),
        "There is no command 'requests.jsonl'. Write `muybridge batch run requests.jsonl --out",
    ),
    "nothing after batch": (("batch",), "The command is incomplete. Write `muybridge batch run"),
    "another command after batch": (("batch", "rnu"), "no command 'rnu'; did you mean run?"),
    "a batch without a folder": (
        ("batch", "run", "requests.jsonl"),
        "Missing option '--out'. Write `muybridge batch run requests.jsonl --out pictures`.",
    ),
    "no batch": (("batch", "status"), "Missing argument 'BATCH'. Write `muybridge batch status"),
    "nothing after budget": (("budget",), "The command is incomplete. Write `muybridge budget"),
    "nothing after store": (("store",), "The command is incomplete. Write `muybridge store"),
    "nothing after asset": (("asset",), "The command is incomplete. Write `muybridge asset"),
    "a missing file": (
        ("validate", "missing.jsonl"),
        "error: 'missing.jsonl': No such file or directory (see",
    ),
    "no task": (("get",), "Missing argument 'ID|TOKEN'. Write `muybridge get ID`."),
    "no task to wait for": (("wait",), "Missing argument 'ID|TOKEN'. Write `muybridge wait ID"),
    "nowhere to download to": (("download", "x"), "Write `muybridge download ID -o horse.png`."),
    "a local task": (
        ("get", "x", "--local"),
        "The local service of another command has ended. To keep one running, see `muybridge serve",
    ),
    "a task to save": (("get", "x", "-o", "a.png"), "option '-o'. Write `muybridge wait ID -o"),
    "a family as an option": (("models", "--family", "imga"), "Write `muybridge models imga`."),
    "an unknown model to list": (("models", "qqqq"), "To see all models, write `muybridge models`"),
    "a model to list that is close": (("models", "imgb-3"), "Write `muybridge models imgb-2`."),
    "a flag with a value": (
        ("run", "vidsb", "--generate-audio", "true"),
        "Flags take no value: write --generate-audio or --no-generate-audio.",
    ),
    "a file without its option": (
        ("run", "imga", "photo.png"),
        "To send the file, write --image-urls @photo.png --allow-inline.",
    ),
    "a file to check without its option": (
        ("check", "imga", "photo.png"),
        "Give a file as --file FIELD=PATH: `muybridge check imga --file",
    ),
    "text as a family": (("run", "text", "Hello"), "Write `muybridge text textg-2.5-pro"),
    "a family in capitals": (("run", "IMGB", "Hello"), "Write `muybridge run imgb --model imgb-2"),
    "help on families": (("run", "help"), "Write `muybridge run --help`."),
    "help on a batch": (("batch", "help"), "Write `muybridge batch --help`."),
    "a family for text": (
        ("text", "imga", "a horse"),
        "imga is a family. Write `muybridge run imga --model",
    ),
    "a model of a family for text": (
        ("text", "imgb-2", "a horse"),
        "imgb-2 is a model of family imgb. Write `muybridge run imgb --model",
    ),
    "several results": (
        ("run", "imga", "-n", "2"),
        "No such option '-n'. Each request has one result. For several, write a file of requests",
    ),
    "a demo without a charge": (("demo", "--local"), "Leave it out: the demo uses the local"),
    "a misspelt option that costs": (
        ("demo", "--reall"),
        "No such option '--reall'. Did you mean '--help'?",
    ),
    "a request to estimate": (("estimate", "imga", "--prompt", "-a"), "estimate requests.jsonl`."),
    "a batch to resume": (("batch", "resume", "x"), "`muybridge batch run --out pictures`."),
    "a batch to show": (("batch", "show", "x"), "Write `muybridge batch status pictures`."),
    "nothing to submit": (("batch", "submit"), "Missing argument 'FILE'"),
    "a key where none is used": (
        ("estimate", "--key", "sk-1"),
        "No such option '--key'. (see `muybridge estimate",
    ),
    "a limit with a currency": (
        ("run", "imga", "--model", "imga", "--prompt", "a", "--max-cost", "1EUR"),
        "--max-cost: a limit must be a number of at least 0 (got '1EUR'). Nothing was sent.",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    """What somebody types who comes from elsewhere is answered with what would be right."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photo.png").write_bytes(picture("PNG", 640, 480))
    (tmp_path / "requests.jsonl").touch()
    words, said = MISTAKES[mistake]
    with CrookedService(always(RESET)) as service:
        done = invoke(*words, env=service.settings | service.text_settings)
        assert service.requests == []
    assert done.exit_code == 2
    assert said in done.stderr
    assert "plain-http" not in done.stderr
    if "--json" in words:
        assert json.loads(done.stdout)["error"]["exit_code"] == 2


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("image", "muybridge run imga --model"),
        ("chat", "muybridge text textg-2.5-pro"),
        ("status", "muybridge get ID"),
        ("show", "muybridge get ID"),
        ("result", "muybridge get ID"),
        ("watch", "muybridge wait ID -o horse.png"),
        ("save", "muybridge download ID -o horse.png"),
        ("list", "muybridge spent --by purchase"),
        ("cancel", "No command cancels a task."),
        ("usage", "muybridge spent"),
        ("resolve", "muybridge decide --help"),
        ("cost", "muybridge estimate requests.jsonl"),
        ("lint", "muybridge validate requests.jsonl"),
        ("login", "The key comes from MUYBRIDGE_API_KEY or --api-key-file."),
        ("version", "muybridge --version"),
    ],
)
def test_words_of_other_tools(invoke: Invoke, word: str, said: str) -> None:
    """What other tools call a command leads to ours."""
    done = invoke(word, "x")
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: There is no command '{word}'. ")
    assert said in done.stderr


@pytest.fixture
def begun(
    invoke: Invoke, tmp_path: Path, settings: Mapping[str, str], service: LocalService
) -> Mapping[str, str]:
    """The environment in which the lines work that hints name: a batch is done, and files exist."""
    (tmp_path / "horse.png").write_bytes(picture("PNG", 640, 480))
    (tmp_path / "requests.jsonl").write_text(
        '{"family": "imga", "model": "imga", "prompt": "A horse", "name": "horse"}\n'
    )
    env = {**settings, "MUYBRIDGE_TEXT_BASE_URL": service.text_base_url}
    env["MUYBRIDGE_STORE"] = str(tmp_path / "store")
    done = invoke(
        "batch", "run", "requests.jsonl", "--out", "pictures", "--poll-interval", "0.05", env=env
    )
    assert done.exit_code == 0, done.stderr
    return env


def test_the_lines_work(invoke: Invoke, tmp_path: Path, begun: Mapping[str, str]) -> None:
    """Each line that a hint names does its work when it is pasted."""
    (tmp_path / "photo.png").write_bytes(picture("PNG", 640, 480))
    task = invoke("create", "imga", "--model", "imga", "--prompt", "-a", env=begun).stdout.strip()
    said = [invoke(*words, env=begun).stderr for words, _ in MISTAKES.values()]
    said += [one for words in mistakes.COMMANDS.values() for one in words.values()]
    said += [one for options in mistakes.OPTIONS.values() for one in options.values()]
    lines = set(re.findall(r"`muybridge ([^`]+)`", "\n".join(said)))
    assert len(lines) > 30
    wrong: dict[str, str] = {}
    for line in sorted(lines):
        words = shlex.split(line.replace(" ID", f" {task}"))
        waits = words[0] in ("run", "wait") and "--help" not in words
        hurry = ("--poll-interval", "0.05") if waits else ()
        done = invoke(*words, *hurry, env=begun)
        if done.exit_code != 0:
            wrong[line] = done.stderr
    assert wrong == {}


def test_the_options_exist(invoke: Invoke) -> None:
    """Each option that a hint names is one of the command that it is for."""
    for command, options in mistakes.OPTIONS.items():
        words = (command, "imga") if command in ("run", "create", "check") else (command,)
        known = invoke(*words, "--help").stdout
        for option, said in options.items():
            assert not re.search(rf"(?<!\S){option}\b(?!-)", known), (command, option)
            for named in re.findall(r"Write (-[-a-z]+)", said):
                assert re.search(rf"{named}\b", known), (command, named)


@pytest.mark.parametrize("flags", [("--json",), ("--local", "--json"), ("--json", "--local")])
def test_flags_before_the_command(invoke: Invoke, flags: tuple[str, ...]) -> None:
    """Flags may come before the command."""
    local = () if "--local" in flags else ("--local",)
    done = invoke(*flags, "run", "imga", "--model", "imga", "--prompt", "-a", *local)
    assert done.exit_code == 0
    assert json.loads(done.stdout)["result"]["status"] == "completed"
    done = invoke(*flags, "text", "textg-2.5-pro", "Hello", *local)
    assert "Hello" in json.loads(done.stdout)["text"]


def test_verbose_before_the_command(invoke: Invoke) -> None:
    """-v before the command logs, and so does it before a command in a group."""
    done = invoke("-v", "run", "imga", "--model", "imga", "--prompt", "-a", "--local")
    assert "POST" in done.stderr
    done = invoke("-v", "batch", "run", "missing.jsonl", "--out", "x")
    assert done.stderr.startswith("error: File 'missing.jsonl' does not exist.")


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (("help",), ("--help",)),
        (("help", "text"), ("text", "--help")),
        (("help", "run", "imga"), ("run", "imga", "--help")),
        (("-V",), ("--version",)),
    ],
)
def test_help(invoke: Invoke, words: tuple[str, ...], same: tuple[str, ...]) -> None:
    """`help` is the same as --help after the command."""
    done = invoke(*words)
    assert done.exit_code == 0
    assert done.stdout == invoke(*same).stdout


@pytest.mark.parametrize(
    ("name", "shown", "hidden"),
    [
        ("imga-pro", "imga-pro", "imga-2"),
        ("vidg_video3_max", "vidg_video3_max", "vidg_video3_pro"),
        ("textg-2.5-pro", "textg-2.5-pro", "textg-2.5-flash-lite"),
    ],
)
def test_one_model(invoke: Invoke, name: str, shown: str, hidden: str) -> None:
    """`models MODEL` shows this model alone."""
    done = invoke("models", name)
    assert done.exit_code == 0
    assert shown in done.stdout
    assert hidden not in done.stdout
    listed = json.loads(invoke("models", name, "--json").stdout)["models"]
    assert [model["name"] for model in listed] == [name]


def test_a_picture_is_no_file_of_requests(invoke: Invoke, tmp_path: Path) -> None:
    """A picture is reported as a binary file."""
    (tmp_path / "photo.png").write_bytes(picture("PNG", 640, 480))
    done = invoke("validate", "photo.png")
    assert done.exit_code == 1
    (error,) = json.loads(done.stdout)["errors"]
    assert error["message"].startswith("it is a binary file, and its name does not end with one of")


def test_the_option_for_a_file_works(
    invoke: Invoke, tmp_path: Path, settings: Mapping[str, str]
) -> None:
    """The words that send a file are accepted as they are."""
    (tmp_path / "photo.png").write_bytes(picture("PNG", 640, 480))
    imga = ("run", "imga", "--model", "imga", "--prompt", "-a", "--poll-interval", "0.05")
    said = invoke(*imga, "photo.png", env=settings).stderr
    (words,) = re.findall(r"write (.*)\. \(see", said)
    assert invoke(*imga, *shlex.split(words), env=settings).exit_code == 0
    image = ("text", "textg-2.5-pro", "Hello", "--local", "--image", "photo.png")
    assert "image/png" in invoke(*image).stdout
