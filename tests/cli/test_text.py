"""`text`: what is asked, what is printed while the answer comes, and how each end is reported."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from media.corpus import picture, video
from muybridge import ContentStream, GenerateContentChunk
from muybridge.local import LocalService
from muybridge_protocol.text.models import TEXT_MODELS
from processes import interrupt

from .conftest import Invoke, Start
from .crooked_service import RESET, CrookedService, always, chunk, event_stream, reply
from .test_broken_streams import redirected
from .test_interrupts import read_until
from .test_streams import on_a_terminal

ASK = ("text", "textg-2.5-pro", "Why does a horse gallop?")

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000002000000030802000000368849d60000000049454e44ae426082"
)
HONESTY = "This is Muybridge's local emulator of the service: no model has answered.\n"
TOKENS = "prompt 6, candidates 55, total 61"
"""What the local service counts for `ASK` and its answer."""
USAGE = {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12}


@pytest.fixture
def settings(service: LocalService) -> dict[str, str]:
    """The environment in which the command asks `service`: a base URL is not among it."""
    return {"MUYBRIDGE_API_KEY": service.api_key, "MUYBRIDGE_TEXT_BASE_URL": service.text_base_url}


class SlowAnswer:
    """A streamed response that continues after its first chunk only when it is told to."""

    def __init__(self, first: str = "A horse ") -> None:
        self._first = first
        self.asked = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, _method: str, _path: str) -> Iterator[bytes]:
        yield event_stream(self._first, finish=None)
        self.asked.set()
        self.go_on.wait(20)
        yield chunk("gallops.", "STOP")


# What is asked, and where the answer goes.


@pytest.mark.parametrize("words", [(), ("--no-stream",)])
def test_the_answer_alone_is_on_stdout(
    invoke: Invoke, settings: dict[str, str], words: tuple[str, ...]
) -> None:
    """The answer, ended by a line end, is on stdout, and what it took in tokens on stderr."""
    ended = invoke(*ASK, *words, env=settings)
    assert ended.exit_code == 0
    assert ended.stdout == (
        f'{HONESTY}Model: textg-2.5-pro.\nTurns: 1 (user).\nLast user text: "{ASK[2]}".\n'
    )
    assert ended.stderr == f"tokens: {TOKENS}\n"


def test_it_comes_as_it_is_made(start: Start) -> None:
    """Each chunk can be read, from a pipe as well, before the next one is sent."""
    answer = SlowAnswer()
    with CrookedService(answer) as service:
        process = start(*ASK, env=service.text_settings)
        assert process.stdout is not None
        assert process.stdout.read(8) == "A horse "
        answer.go_on.set()
        stdout, stderr = process.communicate(timeout=20)
    assert (process.returncode, stdout, stderr) == (0, "gallops.\n", "")


@pytest.mark.parametrize(("words", "method"), [
    ((), "streamGenerateContent?alt=sse"), (("--no-stream",), "generateContent"),
])  # fmt: skip
@pytest.mark.parametrize("flag", [("--unlisted-model", "textg-9"), ("textg-9", "--unlisted-model")])
def test_an_unlisted_model_is_asked_on_purpose(
    invoke: Invoke, words: tuple[str, ...], method: str, flag: tuple[str, ...]
) -> None:
    """--unlisted-model sends any name; without --no-stream a stream is asked for."""
    with CrookedService(always(reply(404, {"error": "no such model"}))) as service:
        ended = invoke("text", *flag, "A horse", *words, env=service.text_settings)
    assert ended.exit_code == 3
    assert service.requests == [f"POST /v1/models/textg-9:{method} HTTP/1.1"]


def test_everything_that_can_be_said(
    invoke: Invoke, settings: dict[str, str], tmp_path: Path
) -> None:
    """System instruction, settings, pictures and videos reach the service as such."""
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "b").write_bytes(video(320, 240, 1))
    ended = invoke(
        *ASK, "--image", "a.png", "--image", "b", "--system", "Be terse", "--temperature", "0.25",
        "--top-p", "1", "--max-output-tokens", "500", env=settings,
    )  # fmt: skip
    assert ended.exit_code == 0
    assert 'System instruction: "Be terse".' in ended.stdout
    assert "Settings: temperature 0.25, topP 1, maxOutputTokens 500." in ended.stdout
    assert "Files: 2.\n- image/png: " in ended.stdout
    assert "\n- video/mp4: " in ended.stdout
    assert f'Last user text: "{ASK[2]}".' in ended.stdout


def test_the_prompt_may_come_from_stdin(invoke: Invoke, settings: dict[str, str]) -> None:
    """A prompt of - is the whole of stdin, without its last line end."""
    ended = invoke(*ASK[:2], "-", env=settings, input="Why does a horse gallop?\n")
    assert f'Last user text: "{ASK[2]}".' in ended.stdout


def test_it_needs_no_environment(invoke: Invoke) -> None:
    """--local asks an embedded service, without a key or an address."""
    ended = invoke(*ASK, "--local")
    assert (ended.exit_code, ended.stdout.startswith(HONESTY)) == (0, True)
    assert ended.stderr == f"tokens: {TOKENS}\n"


def test_the_key_and_the_address_may_be_options(
    invoke: Invoke, service: LocalService, tmp_path: Path
) -> None:
    """--api-key-file and --text-base-url take the place of the environment."""
    (tmp_path / "key").write_text(f"{service.api_key}\n")
    options = ("--api-key-file", "key", "--text-base-url", service.text_base_url)
    assert invoke(*ASK, *options).exit_code == 0


def test_serve_sets_the_environment(start: Start) -> None:
    """What `serve` prints is all that `text` needs."""
    serving = start("serve", "--port", "0")
    assert serving.stdout is not None
    words = shlex.split(serving.stdout.readline())
    asking = start(*ASK, env=dict(word.split("=", 1) for word in words[1:]))
    stdout, _ = asking.communicate(timeout=20)
    assert (asking.returncode, stdout.startswith(HONESTY)) == (0, True)


# What is wrong with a command line is found before anything is sent.


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("textg-2.5-por", "x"), "MODEL (model): 'textg-2.5-por' is not a known text model"),
        (("textg-2.5-por", "x"), "--unlisted-model sends another on purpose"),
        (("textg-2.5-flash-lite-low", "x"), "textg-2.5-flash-lite has no variant -low"),
        (("../x", "x", "--unlisted-model"), "is not a valid model name"),
        ((" ", "x", "--unlisted-model"), "MODEL (model): ' ' is not a known text model"),
        (("textg-2.5-pro", " \n"), "PROMPT (contents): is blank"),
        ((*ASK[1:], "--temperature", "hot"), "--temperature (generationConfig.temperature): 'hot'"),
        ((*ASK[1:], "--temperature", "nan"), "'nan' is not a number"),
        ((*ASK[1:], "--top-p", ""), "--top-p (generationConfig.topP): '' is not a number"),
        ((*ASK[1:], "--max-output-tokens", "1.5"), "--max-output-tokens (generationConfig.max"),
        ((*ASK[1:], "--image", "none"), "--image none: No such file or directory. Nothing was"),
        ((*ASK[1:], "--image", "."), "--image .: not a regular file."),
        ((*ASK[1:], "--image", "empty.png"), "--image empty.png: empty.png is empty; use a"),
        ((*ASK[1:], "--image", "odd"), "odd is a text; use a picture, video or sound. Nothing"),
        ((*ASK[1:2], "@odd"), "PROMPT (contents): '@odd' would be sent as text, and not as the"),
        ((*ASK[1:2], "@odd"), 'to send the text in the file, give "$(cat odd)", or - for stdin'),
        ((*ASK[1:], "--system", "@odd"), "--system (systemInstruction): '@odd' would be sent"),
        ((*ASK[1:], "--system", "@odd"), 'the text in the file, give "$(cat odd)"\n'),
        ((*ASK[1:2], "@picture"), "to send the file, use --image picture"),
        ((*ASK[1:2], "horse.png"), "to send the file, use --image horse.png"),
        ((*ASK[1:2], "@a.txt"), 'the text in the file, give "$(cat a.txt)", or - for stdin'),
        ((*ASK[1:2], "@a b.txt"), """give "$(cat 'a b.txt')", or - for stdin"""),
        ((*ASK[1:2], "data:image/png;base64,AAAA"), "is a file, and would be paid for as text"),
        ((*ASK[1:], "--image", "@odd"), "--image @odd: No such file or directory (write the"),
        ((*ASK[1:], "--image", "https://a.example/b.png"), "is a URL, and not a file; use the URL"),
        ((*ASK[1:], "--timeout", "0"), "is not a number of seconds above 0"),
        ((*ASK[1:], "--local", "--text-base-url", "http://127.0.0.1:1"), "cannot be combined with"),
        ((*ASK[1:], "--local", "--api-key-file", "odd"), "cannot be combined with"),
        ((*ASK[1:], "--text-base-url", "127.0.0.1"), "--text-base-url cannot be used: "),
        ((ASK[1],), "Missing argument 'PROMPT'"),
    ],
)  # fmt: skip
def test_a_mistake_exits_2(
    invoke: Invoke, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    """A mistake is reported with its option and exits with 2, before anything is sent."""
    (tmp_path / "empty.png").touch()
    (tmp_path / "odd").write_text("no picture")
    (tmp_path / "a b.txt").write_text("a question")
    (tmp_path / "picture").write_bytes(picture("PNG", 8, 8))
    with CrookedService(always(RESET)) as service:
        ended = invoke("text", *words, env=service.text_settings)
        assert (ended.exit_code, ended.stdout, service.requests) == (2, "", [])
    assert said in ended.stderr


def test_a_misspelt_model_is_told_with_the_closest(invoke: Invoke) -> None:
    """Of all models the one that was probably meant is named."""
    said = invoke("text", "textg-2.5-por", "x").stderr
    assert "textg-2.5-pro" in said
    assert "textg-3" not in said


def test_all_problems_are_told_at_once(invoke: Invoke) -> None:
    """With --json the document has each problem with its option."""
    words = ("textg-9", "", "--top-p", "x", "--max-output-tokens", "many")
    ended = invoke("text", *words, "--json")
    told = json.loads(ended.stdout)["error"]
    assert (ended.exit_code, told["type"], told["family"]) == (2, "InvalidRequest", "text")
    assert {(problem["field"], problem["option"]) for problem in told["problems"]} == {
        ("model", "MODEL"),
        ("contents", "PROMPT"),
        ("generationConfig.topP", "--top-p"),
        ("generationConfig.maxOutputTokens", "--max-output-tokens"),
    }


def test_a_prompt_that_is_no_text_is_refused(invoke: Invoke) -> None:
    """Bytes on stdin that are not UTF-8 are not sent."""
    with CrookedService(always(RESET)) as service:
        ended = invoke(*ASK[:2], "-", env=service.text_settings, input=b"\xff")
        assert (ended.exit_code, service.requests) == (2, [])
    assert "the prompt on stdin is not UTF-8. Nothing was sent." in ended.stderr
    assert "\\udcff" not in ended.stderr


def test_a_prompt_that_cannot_be_read_exits_2() -> None:
    """A stdin that cannot be read is reported as such, not as a lost answer."""
    ended = redirected("0>/dev/null", *ASK[:2], "-")
    assert ended.returncode == 2
    assert "error: the prompt cannot be read: Bad file descriptor" in ended.stderr


def test_a_missing_address_or_key_exits_2(invoke: Invoke) -> None:
    """Without an address or a key the command says which option or variable gives it."""
    ended = invoke(*ASK, env={"MUYBRIDGE_BASE_URL": "https://service.example"})
    assert ended.exit_code == 2
    assert "There is no text base URL and no API key. Set MUYBRIDGE_TEXT_BASE_URL" in ended.stderr
    ended = invoke(*ASK, env={"MUYBRIDGE_API_KEY": "key"})
    assert "Set MUYBRIDGE_TEXT_BASE_URL, or give --text-base-url." in ended.stderr
    ended = invoke(*ASK, "--text-base-url", "http://127.0.0.1:9")
    assert ended.exit_code == 2
    assert "Set MUYBRIDGE_API_KEY, or give --api-key-file." in ended.stderr


@pytest.mark.parametrize("elsewhere", ["nonsense", "http://elsewhere.test", "https://x/v1"])
def test_the_other_base_url_is_not_looked_at(
    invoke: Invoke, settings: dict[str, str], elsewhere: str
) -> None:
    """Whatever MUYBRIDGE_BASE_URL is, it does not stop a text request, nor is it told."""
    ended = invoke(*ASK, env={**settings, "MUYBRIDGE_BASE_URL": elsewhere})
    assert (ended.exit_code, ended.stderr) == (0, f"tokens: {TOKENS}\n")


@pytest.mark.parametrize("words", [(), ("--no-stream",)])
@pytest.mark.muybridge_paid_requests  # by a proxy on this machine
def test_a_key_that_a_proxy_would_read_exits_3(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """Behind a proxy plain http is refused at once with what allows it, and then allowed by it."""
    option = "--allow-plain-http-proxy"
    asked = (*ASK, *words, "--text-base-url", "http://text.test")
    whole = json.loads(chunk("A horse", "STOP").removeprefix(b"data: "))
    answer = reply(200, whole) if words else event_stream("A horse")
    with CrookedService(always(answer)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.base_url)
        ended = invoke(*asked, env=proxy.text_settings)
        assert (ended.exit_code, ended.stdout, proxy.requests) == (3, "", [])
        warning, error = ended.stderr.splitlines()
        assert "clear text" in warning
        assert f"Name the service's host in NO_PROXY, or use {option}" in error
        assert "Transport" not in error
        ended = invoke(*asked, option, env=proxy.text_settings)
        assert (ended.exit_code, ended.stdout, proxy.posts) == (0, "A horse\n", 1)


# How it ends.


def test_a_whole_answer_in_json(invoke: Invoke, settings: dict[str, str]) -> None:
    """With --json stdout is one document, with the text and the whole response in its own words."""
    plain = invoke(*ASK, env=settings).stdout
    for words in ((), ("--no-stream",)):
        told = json.loads(invoke(*ASK, "--json", *words, env=settings).stdout)
        assert list(told) == ["ok", "text", "finish_reason", "usage", "response", "files", "calls"]
        assert (told["ok"], told["text"], told["finish_reason"]) == (True, plain[:-1], "STOP")
        assert told["usage"] == {
            "prompt_token_count": 6, "candidates_token_count": 55, "total_token_count": 61,
        }  # fmt: skip
        assert told["response"]["candidates"][0]["content"]["parts"] == [{"text": plain[:-1]}]
        assert told["response"]["modelVersion"] == "textg-2.5-pro"


@pytest.mark.parametrize("words", [(), ("--no-stream",), ("--json",)])
def test_an_answer_that_was_cut_is_told(
    invoke: Invoke, settings: dict[str, str], words: tuple[str, ...]
) -> None:
    """An answer at the limit of tokens exits with 0, and stderr says that it was cut."""
    ended = invoke(*ASK, "--max-output-tokens", "5", *words, env=settings)
    text = "This is Muybridge'"
    assert ended.exit_code == 0
    assert (json.loads(ended.stdout)["text"] if "--json" in words else ended.stdout.strip()) == text
    assert ended.stderr.splitlines() == [
        "tokens: prompt 6, candidates 5, total 11",
        "the answer was cut: MAX_TOKENS",
    ]


def test_another_reason_is_told_with_its_message(invoke: Invoke) -> None:
    """If the model stops for another reason, the exit code is 0; there is text, stderr says why."""
    answer = event_stream("A horse", finish="OTHER")
    with CrookedService(always(answer)) as service:
        ended = invoke(*ASK, env=service.text_settings)
    assert (ended.exit_code, ended.stdout) == (0, "A horse\n")
    assert ended.stderr == "the answer was cut: OTHER\n"


@pytest.mark.parametrize("words", [(), ("--no-stream",)])
@pytest.mark.parametrize(("marker", "said"), [
    ("[text:blocked]", "The prompt was blocked (SAFETY)."),
    ("[text:safety]", " (SAFETY)."),
])  # fmt: skip
def test_no_text_exits_1(
    invoke: Invoke, settings: dict[str, str], words: tuple[str, ...], marker: str, said: str
) -> None:
    """A response without text says why and exits with 1, and its token usage is reported."""
    ended = invoke(*ASK[:2], marker, *words, env=settings)
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert ended.stderr.startswith("tokens: prompt ")
    message = ended.stderr.partition("error: ")[2][:-1]
    assert message.endswith(said)
    told = json.loads(invoke(*ASK[:2], marker, "--json", *words, env=settings).stdout)
    assert (told["ok"], told["text"], told["error"]["type"]) == (False, "", "NoText")
    assert (told["error"]["message"], told["error"]["exit_code"]) == (message, 1)
    assert told["response"]["usageMetadata"]["candidatesTokenCount"] == 0


def test_a_limit_before_any_text_names_the_option(invoke: Invoke) -> None:
    """Where the limit of tokens left no text, the message names the option that raises it."""
    with CrookedService(always(event_stream("", finish="MAX_TOKENS"))) as service:
        ended = invoke(*ASK, env=service.text_settings)
    assert ended.exit_code == 1
    assert "raise --max-output-tokens." in ended.stderr


def test_a_dead_server_exits_3(invoke: Invoke) -> None:
    """A request that no byte of was sent exits with 3, and says that nothing was charged."""
    with CrookedService(always(RESET)) as service:
        settings = service.text_settings
    ended = invoke(*ASK, "--timeout", "0.1", "--json", env=settings)
    told = json.loads(ended.stdout)
    assert ended.exit_code == told["error"]["exit_code"] == 3
    assert told["error"]["type"] == "NotSent"
    assert "Nothing was charged" in told["error"]["message"]


def test_a_wrong_key_exits_3(invoke: Invoke, settings: dict[str, str], tmp_path: Path) -> None:
    """A key that the service does not know exits with 3, and is not shown."""
    (tmp_path / "key").write_text("a-wrong-key-of-mine\n")
    ended = invoke(*ASK, "--api-key-file", "key", "--json", env=settings)
    assert ended.exit_code == 3
    assert json.loads(ended.stdout)["error"]["type"] == "Unauthorized"
    assert "a-wrong-key" not in ended.output


@pytest.mark.parametrize("words", [(), ("--no-stream",)])
@pytest.mark.parametrize("answer", [RESET, reply(500, {"error": "oops"})], ids=["reset", "500"])
def test_a_lost_answer_exits_4(invoke: Invoke, words: tuple[str, ...], answer: bytes) -> None:
    """A request that may have been answered exits with 4, and is sent once."""
    with CrookedService(always(answer)) as service:
        ended = invoke(*ASK, "--json", *words, env=service.text_settings)
    told = json.loads(ended.stdout)
    assert ended.exit_code == told["error"]["exit_code"] == 4
    assert (told["error"]["type"], service.posts) == ("TextAmbiguous", 1)
    assert "Asking again may cost again" in told["error"]["message"]


@pytest.mark.parametrize(("marker", "said"), [
    ("[text:cut]", "it ended without saying that the answer is complete"),
    ("[text:stream-error]", "the service reported an error: the marker [text:stream-error] asks"),
])  # fmt: skip
def test_a_stream_that_breaks_off_exits_4(
    invoke: Invoke, settings: dict[str, str], marker: str, said: str
) -> None:
    """What arrived of an interrupted answer is printed; with --json it is in the one document."""
    ended = invoke(*ASK[:2], marker, env=settings)
    assert (ended.exit_code, ended.stdout) == (4, f"{HONESTY}Model: textg-2.5-pro.\n")
    assert f"error: The stream was cut off: {said}" in ended.stderr
    assert "What had arrived, 4 chunks, is on stdout. It may have been charged" in ended.stderr
    told = json.loads(invoke(*ASK[:2], marker, "--json", env=settings).stdout)
    assert (told["ok"], told["error"]["exit_code"]) == (False, 4)
    assert told["error"]["type"] == "StreamInterrupted"
    assert told["text"] == ended.stdout
    assert told["response"]["modelVersion"] == "textg-2.5-pro"


@pytest.mark.parametrize("words", [(), ("--json",)])
@pytest.mark.parametrize(("rest", "said"), [
    (chunk("of it", "STOP")[:60], "an event cannot be read"),
    (b"", "nothing else says that the answer is complete"),
    (b'{\n  "error": {\n    "message": "busy"\n  }\n}\n', "the service reported an error: busy"),
    (b'event: error\ndata: {"code": 503, "message": "busy"}\n\n', "reported an error: busy"),
])  # fmt: skip
def test_a_reason_in_each_chunk_is_no_end(
    invoke: Invoke, rest: bytes, said: str, words: tuple[str, ...]
) -> None:
    """A stream that is cut off exits with 4, also where each chunk has a reason to stop."""
    head = event_stream(finish=None)
    with CrookedService(always(head + chunk("A part\n", "STOP") + rest)) as service:
        ended = invoke(*ASK, *words, env=service.text_settings)
    assert ended.exit_code == 4
    assert said in (ended.stdout if words else ended.stderr)
    assert (json.loads(ended.stdout)["text"] if words else ended.stdout) == "A part\n"


def test_a_last_line_is_ended_before_an_error(invoke: Invoke) -> None:
    """Where both streams are one terminal, the error begins on a line of its own."""
    with CrookedService(always(event_stream("A horse", finish=None))) as service:
        ended = invoke(*ASK, env=service.text_settings)
    assert ended.output.startswith("A horse\nerror: The stream was cut off")


@pytest.mark.muybridge_paid_requests  # to this machine, by another name
def test_clear_text_is_warned_of_in_one_line(invoke: Invoke) -> None:
    """A key that travels in clear text is reported in one line, and in the document."""
    with CrookedService(always(event_stream("A horse"))) as service:
        settings = service.text_settings
        url = service.base_url.replace("127.0.0.1", "0.0.0.0")  # noqa: S104  no loopback by its name
        ended = invoke(*ASK, "--json", "--text-base-url", url, env=settings)
        assert service.posts == 1
    assert ended.stderr == f"warning: The API key travels in clear text to {url}.\n"
    told = json.loads(ended.stdout)
    assert (told["ok"], told["warnings"]) == (True, [ended.stderr[9:-1]])


# Ctrl-C.


def test_ctrl_c_while_the_answer_is_printed_exits_4(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C says the same of a text request wherever it meets the command."""

    def interrupted(_piece: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("muybridge.cli.text.answer_piece", interrupted)
    with CrookedService(always(event_stream("A horse"))) as service:
        ended = invoke(*ASK, env=service.text_settings)
    assert ended.exit_code == 4
    assert "A text request was under way: it may have been charged." in ended.stderr


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_ctrl_c_within_the_answer_exits_4(start: Start, words: tuple[str, ...]) -> None:
    """Ctrl-C interrupts the answer at once, and says that it may have been charged."""
    answer = SlowAnswer()
    with CrookedService(answer) as service:
        process = start(*ASK, *words, env=service.text_settings)
        assert process.stdout is not None
        assert answer.asked.wait(20)
        interrupt(process)
        stdout, stderr = process.communicate(timeout=20)
        answer.go_on.set()
    assert (process.returncode, service.posts) == (4, 1)
    assert "error: Interrupted. A text request was under way: it may have been charged." in stderr
    if words:
        told = json.loads(stdout)
        assert (told["error"]["type"], told["error"]["exit_code"]) == ("Interrupted", 4)


@pytest.mark.parametrize("words", [(), ("--no-stream",)])
def test_ctrl_c_before_the_answer_exits_4(start: Start, words: tuple[str, ...]) -> None:
    """Ctrl-C while the model thinks interrupts at once: no id could be lost by that."""
    asked, go_on = threading.Event(), threading.Event()

    def answer(*_: str) -> bytes:
        asked.set()
        go_on.wait(20)
        return RESET

    with CrookedService(answer) as service:
        process = start(*ASK, *words, env=service.text_settings)
        assert asked.wait(20)
        interrupt(process)
        stdout, stderr = process.communicate(timeout=20)
        go_on.set()
    assert (process.returncode, stdout) == (4, "")
    assert "it may have been charged" in stderr


def test_ctrl_c_before_anything_was_sent_exits_3(start: Start) -> None:
    """Ctrl-C between two attempts that never reached the service costs nothing."""
    with CrookedService(always(b"")) as service:
        settings = service.text_settings
    process = start(*ASK, env=settings)
    read_until(process, "retrying text request")
    interrupt(process)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 3
    assert "error: Interrupted. Nothing was sent." in stderr


def interrupting(_: str) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_ctrl_c_keeps_what_has_come(
    invoke: Invoke,
    settings: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    """What has come before Ctrl-C is on stdout, its line ended, or in the one document."""
    read = ContentStream.__next__
    chunks: list[GenerateContentChunk] = []

    def read_two(stream: ContentStream) -> GenerateContentChunk:
        if len(chunks) == 2:
            raise KeyboardInterrupt
        chunks.append(read(stream))
        return chunks[-1]

    monkeypatch.setattr(ContentStream, "__next__", read_two)
    ended = invoke(*ASK, *words, env=settings)
    come = "".join(chunk.text for chunk in chunks)
    assert HONESTY.startswith(come)
    assert ended.exit_code == 4
    if words:
        # What the connection brought beyond that has come as well.
        assert json.loads(ended.stdout)["text"].startswith(come)
    else:
        assert ended.stdout == f"{come}\n"


def test_ctrl_c_on_a_local_service_exits_130(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while a local service answers has cost nothing."""
    monkeypatch.setattr("muybridge.cli.text.answer_piece", interrupting)
    ended = invoke(*ASK, "--local")
    assert ended.exit_code == 130
    assert "Nothing was charged: the service was a local one." in ended.stderr


def test_ctrl_c_after_the_answer_exits_4(
    invoke: Invoke, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C once the answer is there, but not all told, does not say that nothing was sent."""
    monkeypatch.setattr("muybridge.cli.text.answer_piece", interrupting)
    ended = invoke(*ASK, "--no-stream", env=settings)
    assert ended.exit_code == 4
    assert "Nothing was sent" not in ended.stderr


# Streams.


def test_a_reader_that_has_gone_ends_it_quietly(start: Start) -> None:
    """When the reader of stdout has gone, the command ends without a word and with 141."""
    answer = SlowAnswer()
    with CrookedService(answer) as service:
        process = start(*ASK, env=service.text_settings)
        assert process.stdout is not None
        process.stdout.read(8)
        process.stdout.close()
        process.stdout = None
        answer.go_on.set()
        _, stderr = process.communicate(timeout=20)
    assert (process.returncode, stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_full_stdout_exits_6(words: tuple[str, ...]) -> None:
    """An answer that cannot be printed exits with 6, and says that it may have been charged."""
    with CrookedService(always(event_stream("A horse"))) as service:
        ended = redirected(">/dev/full", *ASK, *words, env=service.text_settings)
    assert ended.returncode == 6
    assert ended.stderr == (
        "error: stdout: No space left on device. The answer may have been charged. Asking again "
        "may cost again.\n"
    )


EVIL = "\x1b[31mred\x07\x9b1m\r\n\ttab \u200d"


def test_a_terminal_gets_no_control_characters(start: Start) -> None:
    """A terminal is given text, new lines and tabs, whatever the answer holds."""
    with CrookedService(always(event_stream(EVIL))) as service:
        seen, _, code = on_a_terminal(start, "stdout", *ASK, env=service.text_settings)
    assert code == 0
    assert seen.replace("\r\n", "\n") == "[31mred1m\n\ttab \u200d\n"


def test_a_file_gets_the_answer_as_it_is(start: Start, tmp_path: Path) -> None:
    """What goes elsewhere is the answer to the byte; only its last line is ended."""
    written = tmp_path / "answer.txt"
    with (
        CrookedService(always(event_stream(EVIL, "\n"))) as service,
        written.open("wb") as file,
    ):
        process = start(*ASK, env=service.text_settings, stdout=file)
        process.communicate(timeout=20)
    assert written.read_bytes() == f"{EVIL}\n".encode()


def test_characters_that_stdout_does_not_know_are_escaped(start: Start) -> None:
    """An answer that cannot be encoded is printed all the same."""
    with CrookedService(always(event_stream("\ud83d caf\xe9"))) as service:
        env = {**service.text_settings, "PYTHONIOENCODING": "ascii"}
        process = start(*ASK, env=env)
        stdout, _ = process.communicate(timeout=20)
    assert (process.returncode, stdout) == (0, "\\ufffd caf\\xe9\n")


def test_no_spinner_is_in_the_way(start: Start) -> None:
    """While the answer is printed, nothing is drawn on the terminal that stderr is."""
    answer = event_stream("A horse", usageMetadata=USAGE)
    with CrookedService(always(answer)) as service:
        seen, stdout, _ = on_a_terminal(start, "stderr", *ASK, env=service.text_settings)
    assert (seen, stdout) == ("tokens: prompt 5, candidates 7, total 12\r\n", "A horse\n")


# What can be learnt before.


def test_the_help_teaches(invoke: Invoke) -> None:
    """The help has examples on lines of their own, and names every option."""
    shown = invoke("text", "--help").stdout
    lines = [line.strip() for line in shown.splitlines()]
    examples = [shlex.split(line, comments=True) for line in lines if line.startswith("muybridge")]
    assert len(examples) == 4
    assert all(words[2] in TEXT_MODELS for words in examples)
    for word in ("--image", "--system", "--top-p", "--unlisted-model", "muybridge models text"):
        assert word in shown
    assert "  text " in invoke("--help").stdout


def test_the_text_models_are_shown(invoke: Invoke) -> None:
    """`models text` shows each model with its version, as `models` does among all."""
    for words in (("models", "text"), ("models",)):
        lines = invoke(*words).stdout.splitlines()
        shown = {line.split()[0]: line for line in lines if line.startswith("textg-")}
        assert list(shown) == list(TEXT_MODELS)
        assert shown["textg-2.5-pro-low"].endswith("budget")
    told = json.loads(invoke("models", "text", "--json").stdout)["models"]
    assert [model["name"] for model in told] == list(TEXT_MODELS)
    assert told[3] == {
        "family": "text", "name": "textg-2.5-pro-low", "base": "textg-2.5-pro", "variant": "low",
    }  # fmt: skip
    everything = json.loads(invoke("models", "--json").stdout)["models"]
    assert everything[-len(told) :] == told
    assert len(everything) > len(told)
