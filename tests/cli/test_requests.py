"""How a command line becomes a request, and what is said of a wrong one."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from muybridge.cli.options import option_name
from muybridge.local import LocalService
from muybridge_protocol.families import FAMILIES, Family

from .conftest import Invoke
from .crooked_service import RESET, CrookedService, always, record, reply

FRAME = "https://example.com/a.png"


def sent(invoke: Invoke, monkeypatch: pytest.MonkeyPatch, *words: str, **more: object) -> object:
    """Return the body of the request that a command line makes."""
    bodies: list[object] = []

    def create(_: object, request: object) -> object:
        bodies.append(request.to_body())  # type: ignore[attr-defined]  # a MediaRequest
        raise KeyboardInterrupt

    monkeypatch.setattr("muybridge.Client.create", create)
    settings = {"MUYBRIDGE_API_KEY": "a-key", "MUYBRIDGE_BASE_URL": "http://127.0.0.1:9"}
    ended = invoke("create", *words, env=settings, **more)
    assert bodies, ended.output
    return bodies[0]


def test_every_kind_of_field(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options become wire fields of the right JSON type, and only what was given is sent."""
    body = sent(
        invoke, monkeypatch, "vidsb", "--model", "vidsb_2_0_pro", "--prompt", "A horse",
        "--duration", "5", "--no-generate-audio", "--reference-images", FRAME,
        "--reference-images", "asset://asset-1", "--extra", '{"seed": 7}',
    )  # fmt: skip
    assert body == {
        "model": "vidsb_2_0_pro",
        "prompt": "A horse",
        "duration": 5,
        "generateAudio": False,
        "referenceImages": [FRAME, "asset://asset-1"],
        "seed": 7,
    }


@pytest.mark.parametrize(("text", "number"), [("2.5", 2.5), ("3", 3)])
def test_numbers(invoke: Invoke, monkeypatch: pytest.MonkeyPatch, text: str, number: float) -> None:
    """A field of type number takes whole and broken numbers."""
    words = ("vidd", "--model", "viddq3-pro", "--prompt", "A horse", "--duration", text)
    body = sent(invoke, monkeypatch, *words)
    assert body == {"model": "viddq3-pro", "prompt": "A horse", "duration": number}


def test_the_prompt_may_come_from_stdin(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--prompt -` reads the whole of stdin; the last line end is not part of it."""
    words = ("imga", "--model", "imga", "--prompt", "-")
    body = sent(invoke, monkeypatch, *words, input="A horse\nat a gallop\n")
    assert body == {"model": "imga", "prompt": "A horse\nat a gallop"}


@pytest.mark.parametrize("verb", ["create", "run"])
def test_a_prompt_that_is_no_text_is_refused(invoke: Invoke, verb: str) -> None:
    """Bytes on stdin that are not UTF-8 are reported as such."""
    ended = invoke(verb, "imga", "--model", "imga", "--prompt", "-", input=b"caf\xe9")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "the prompt on stdin is not UTF-8. Nothing was sent." in ended.stderr


def test_the_text_base_url_is_not_looked_at(invoke: Invoke, settings: dict[str, str]) -> None:
    """MUYBRIDGE_TEXT_BASE_URL, whatever it is, never stops a request that is not for text."""
    words = ("imga", "--model", "imga", "--prompt", "A horse")
    ended = invoke("create", *words, env={**settings, "MUYBRIDGE_TEXT_BASE_URL": "nonsense"})
    assert ended.exit_code == 0
    settings["MUYBRIDGE_TEXT_BASE_URL"] = settings.pop("MUYBRIDGE_BASE_URL")
    ended = invoke("create", *words, env=settings)
    assert ended.exit_code == 2
    assert "Set MUYBRIDGE_BASE_URL, or give --base-url. Nothing was sent." in ended.stderr


@pytest.mark.muybridge_paid_requests  # by a proxy on this machine
def test_a_key_that_a_proxy_would_read_is_not_sent(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a proxy plain http is refused with the option that allows it, which is carried on."""
    option = "--allow-plain-http-proxy"
    words = ("imga", "--model", "imga", "--prompt", "A horse", "--allow-plain-http")
    where = ("--base-url", "http://service.test")
    with CrookedService(always(reply(200, record()))) as proxy:
        monkeypatch.setenv("http_proxy", proxy.base_url)
        for verb in (("create", *words), ("get", "task-1", "--allow-plain-http")):
            ended = invoke(*verb, *where, env=proxy.settings)
            assert proxy.requests == []
            assert f"Name the service's host in NO_PROXY, or use {option}" in ended.stderr
            assert "retrying" not in ended.stderr
        ended = invoke("create", *words, *where, option, env=proxy.settings)
    assert (ended.exit_code, proxy.posts) == (0, 1)
    assert f" --allow-plain-http {option} " in ended.stderr.partition("to resume:")[2]


@pytest.mark.muybridge_paid_requests  # by a proxy on this machine
def test_a_batch_behind_a_proxy(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A batch names the option that lets a proxy read the key, and goes through with it."""
    (tmp_path / "a.jsonl").write_text('{"family": "imga", "model": "imga", "prompt": "A horse"}\n')
    option = "--allow-plain-http-proxy"
    argument = "RequestsTransport(allow_plain_http_proxy=True)"
    words = ("batch", "run", "a.jsonl", "--out", "out", "--allow-plain-http")
    where = ("--base-url", "http://service.test")
    with CrookedService(always(reply(401, {"error": "who?"}))) as proxy:
        settings = {**proxy.settings, "MUYBRIDGE_TEXT_BASE_URL": "nonsense"}
        monkeypatch.setenv("http_proxy", proxy.base_url)
        ended = invoke(*words, *where, env=settings)
        assert proxy.requests == []
        stopped = ended.stderr.partition("stopped:")[2]
        assert f"Name the service's host in NO_PROXY, or pass {argument} ({option})" in stopped
        ended = invoke(*words, *where, option, env=settings)
    assert proxy.posts == 1
    assert f" --allow-plain-http {option}\n" in ended.stderr.partition("to resume:")[2]


def test_an_unlisted_model_is_sent(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that the tables do not know is sent on purpose, without the limits of models."""
    words = ("imga", "--unlisted-model", "imga-9", "--prompt", "A horse", "--resolution", "4k")
    body = sent(invoke, monkeypatch, *words)
    assert body == {"model": "imga-9", "prompt": "A horse", "resolution": "4k"}


def test_all_problems_are_told_at_once(invoke: Invoke) -> None:
    """Every problem is reported with its option and its wire name, and nothing is sent."""
    with CrookedService(always(RESET)) as service:
        ended = invoke(
            "create", "vidsb", "--model", "vidsb_2_0_por", "--duration", "5.5",
            "--reference-images", "nope", "--last-image", FRAME, "--extra", "{",
            env=service.settings,
        )  # fmt: skip
        assert (ended.exit_code, ended.stdout, service.requests) == (2, "", [])
    lines = ended.stderr.splitlines()
    assert lines[0] == "error: 7 problems in the vidsb request (nothing was sent):"
    told = {line.split(":")[0].strip() for line in lines[1:]}
    assert told == {
        "--extra (extra)",
        "--model (model)",
        "--prompt (prompt)",
        "--duration (duration)",
        "--reference-images (referenceImages)",
        "--last-image (last_image)",
    }
    assert "did you mean vidsb_2_0_pro?" in ended.stderr
    assert "'5.5' is not an integer; use an integer; use 4 to 15 s" in ended.stderr


@pytest.mark.parametrize("value", ["5.5", "5.", " 5", "\uff15", "1e1", "true", "", "9" * 5000])
def test_integers_are_read_strictly(invoke: Invoke, value: str) -> None:
    """What is not a plain integer is not taken for one."""
    words = ("create", "videos", "--model", "videos", "--prompt", "A horse", "--duration", value)
    ended = invoke(*words, "--json")
    (problem,) = json.loads(ended.stdout)["error"]["problems"]
    assert (problem["field"], problem["rule"]) == ("duration", "type")


def test_two_models_are_one_too_many(invoke: Invoke) -> None:
    """A model together with an unlisted one is reported as a problem."""
    words = ("--model", "imga", "--unlisted-model", "imga-9", "--prompt", "A horse")
    ended = invoke("create", "imga", *words)
    assert ended.exit_code == 2
    assert "is given together with --unlisted-model" in ended.stderr


def test_a_blank_unlisted_model_is_refused(invoke: Invoke) -> None:
    """An unlisted model still has to be a name."""
    ended = invoke("create", "imga", "--unlisted-model", " ", "--prompt", "A horse")
    assert ended.exit_code == 2
    assert "--model (model): ' '" in ended.stderr


def test_a_misspelt_option_is_told_with_the_right_one(invoke: Invoke) -> None:
    """An unknown option is reported with the one that was probably meant."""
    ended = invoke("create", "imgb", "--promt", "A horse")
    assert ended.exit_code == 2
    assert "--prompt" in ended.stderr


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("verb", ["create", "run"])
def test_help_teaches_every_family(invoke: Invoke, family: Family, verb: str) -> None:
    """The help shows every field and model, and an example that would be accepted."""
    ended = invoke(verb, family.name, "--help", terminal_width=200)
    assert ended.exit_code == 0
    shown = ended.stdout
    for field in family.fields:
        assert option_name(field.wire) in shown
        assert field.text(option_name).split(";")[0] in " ".join(shown.split())
    for model in family.models:
        assert f"  {model.name} " in shown
    example = shlex.split(shown.partition("Example:\n")[2].splitlines()[0])
    assert example[:3] == ["muybridge", verb, family.name]
    # Accepted as far as it goes: what is missing are the service's address and the key alone.
    ended = invoke(*example[1:])
    assert ended.exit_code == 2
    assert "There is no base URL and no API key." in ended.stderr


@pytest.mark.parametrize("command", ["serve", "text", "validate"])
def test_examples_stand_on_lines_of_their_own(invoke: Invoke, command: str) -> None:
    """No mark of click's own is shown, and what follows one is not wrapped."""
    shown = invoke(command, "--help").stdout
    assert "\\b" not in shown
    assert any(line.startswith("    ") for line in shown.partition("Options:")[0].splitlines())


@pytest.mark.parametrize(
    ("family", "said"),
    [
        ("vidsb", "--last-image needs --first-image."),
        ("vidsb", "--reference-videos is required by vidsb_2_0 and vidsb_2_0_fast."),
        ("vidv", "Give only one of --input-reference and --image-urls."),
        ("vidc", "With --reference-videos give at most 4 --reference-images."),
        ("videos", "--last-frame-image is the old name of --last-image."),
        ("imgb", "--quality is ignored for imgb-2-r."),
        ("imgb", "--resolution 4k is accepted only with --ratio 16:9, 9:16, 2:1, 1:2, 21:9, 9:21."),
        (
            "vidc",
            (
                "--first-image and --last-image cannot be combined with --reference-images or "
                "--reference-videos."
            ),
        ),
    ],
)
def test_help_and_tables_tell_the_rules_between_fields(
    invoke: Invoke, family: str, said: str
) -> None:
    """The help and the tables state the rules between fields, in the options' names."""
    assert said in " ".join(invoke("create", family, "--help").stdout.split())
    assert said in invoke("models", family).stdout


@pytest.mark.parametrize("target", ["/dev/null", "taken/a.png", "a" * 300 + ".png"])
def test_a_target_that_cannot_be_written_is_told_before_anything_is_sent(
    invoke: Invoke, tmp_path: Path, target: str
) -> None:
    """`run -o` finds out beforehand whether the result can be saved."""
    (tmp_path / "taken").write_text("a file where a folder is wanted")
    with CrookedService(always(RESET)) as service:
        words = ("--model", "imga", "--prompt", "A horse", "-o", target)
        ended = invoke("run", "imga", *words, env=service.settings)
        assert (ended.exit_code, service.requests) == (2, [])
    assert f"-o {target}" in ended.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["taken"]


def test_folders_are_made(invoke: Invoke, tmp_path: Path) -> None:
    """A folder that does not exist yet is made, and the name in it is made from the id."""
    words = ("--model", "imga", "--prompt", "A horse", "-o", "new/pictures/")
    ended = invoke("run", "imga", "--local", *words)
    assert ended.exit_code == 0
    (saved,) = (tmp_path / "new" / "pictures").iterdir()
    assert ended.stdout == f"new/pictures/{saved.name}\n"


def test_the_key_may_come_from_a_file(
    invoke: Invoke, service: LocalService, tmp_path: Path
) -> None:
    """`--api-key-file` and `--base-url` take the place of the environment."""
    (tmp_path / "key").write_text(f"{service.api_key}\n")
    words = ("--model", "imga", "--prompt", "A horse")
    options = ("--api-key-file", "key", "--base-url", service.base_url)
    ended = invoke("create", "imga", *words, *options)
    assert ended.exit_code == 0
    assert f"muybridge wait --api-key-file key --base-url {service.base_url} '{{" in ended.stderr


def test_there_is_no_option_for_a_key(invoke: Invoke) -> None:
    """A key is never an argument, which every user of the machine could read."""
    ended = invoke("get", "task-1", "--api-key", "secret")
    assert ended.exit_code == 2
    assert "secret" not in ended.output


def test_whole_numbers_with_a_point(
    invoke: Invoke, settings: dict[str, str], service: LocalService, tmp_path: Path
) -> None:
    """A spreadsheet's 4.0 is 4 in every place, and 4 is sent."""
    request = ("vidc", "--model", "vidc_o3", "--prompt", "A horse", "--duration", "4.0")
    assert invoke("create", *request, env=settings).exit_code == 0
    item = {"family": "vidc", "model": "vidc_o3", "prompt": "A horse", "duration": 4.0}
    (tmp_path / "items.jsonl").write_text(json.dumps(item))
    (tmp_path / "items.csv").write_text("family,model,prompt,duration\nvidc,vidc_o3,A horse,4.0\n")
    for name in ("items.jsonl", "items.csv"):
        assert json.loads(invoke("validate", name).stdout)["ok"]
        assert invoke("estimate", name).exit_code == 0
        words = ("batch", "run", name, "--out", name[6:], "--poll-interval", "0.1")
        assert invoke(*words, env=settings).exit_code == 0
    for task in service.emulator.newest(3):
        assert (task.body["duration"], b"4.0" in task.sent) == (4, False)


def test_help_names_other_options_as_they_are_typed(invoke: Invoke) -> None:
    """What the help says about a field names the other fields as options."""
    help_of = {
        family: " ".join(invoke("create", family, "--help", terminal_width=200).stdout.split())
        for family in ("vidr", "vidc")
    }
    assert "Length in seconds, or else --seconds;" in help_of["vidr"]
    assert "Length in seconds; ignored with --reference-videos;" in help_of["vidc"]
