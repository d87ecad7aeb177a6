"""The mutants are those that were meant, and a trial tells whether a test notices one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from .groups import EQUIVALENT, GROUPS
from .mutants import mutants

CASES = [
    ("x = a < b", {"x = (a <= b)", "x = (a >= b)"}),
    ("x = a == b", {"x = (a != b)"}),
    ("x = a in b", {"x = (a not in b)"}),
    ("x = a is None", {"x = (a is not None)"}),
    ("x = a and b", {"x = (a or b)"}),
    ("x = not a", {"x = (a)"}),
    ("x = 5", {"x = 6", "x = 4"}),
    ("x = True", {"x = False"}),
    ("x = 1e300", set[str]()),
    ("x = a + b", {"x = (a - b)"}),
    ("x = min(a, b)", {"x = max(a, b)"}),
    ("x += a", {"pass", "x -= a"}),
    ("f(a)", {"pass"}),
    ("raise a", {"pass"}),
    ("self.a = b", {"pass"}),
    ("x = En.A, En.B", {"x = En.B, En.B", "x = En.A, En.A"}),
    ("if a:\n    x = b", {"if (not a):"}),
    ("for a in b:\n    break", {"for a in ():", "continue"}),
    ("try:\n    x = a\nexcept E:\n    x = b", {"except ():"}),
    ("x: Literal[5] | None", set[str]()),
    ('x = f"{a + 1}"', set[str]()),
    ("x = 'ä', 5", {"x = 'ä', 6", "x = 'ä', 4"}),
    (
        "match a:\n    case En.A if b:\n        x = En.B",
        {"case En.B if b:", "case En.A if (not b):", "x = En.A"},
    ),
]


@pytest.mark.parametrize(("source", "wanted"), CASES, ids=[source for source, _ in CASES])
def test_mutants(source: str, wanted: set[str]) -> None:
    """Each mistake is made once, where it belongs, and nothing else is changed."""
    made = list(mutants(source))
    assert {mutant.after for mutant in made} == wanted
    assert len(made) == len(wanted)
    for mutant in made:
        compile(mutant.source, "mutant", "exec")
        lines = source.splitlines()
        changed = mutant.source.splitlines()
        assert [old for old, new in zip(lines, changed, strict=True) if old != new] == [
            lines[mutant.line - 1]
        ]


def test_what_is_argued_belongs_to_a_group() -> None:
    """Each mutant that is called equivalent is one of a module that is mutated, with a reason."""
    modules = {module for group in GROUPS.values() for module in group.modules}
    for (module, before, after), reason in EQUIVALENT.items():
        assert module in modules
        assert before != after
        assert reason


def test_what_is_argued_is_a_mutant() -> None:
    """Each of them is one of its module's mutants: the line may be another one by now."""
    for name in {module for module, _, _ in EQUIVALENT}:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        made = mutants(Path(spec.origin).read_text("utf-8"))
        known = {(name, mutant.before, mutant.after) for mutant in made}
        assert {key for key in EQUIVALENT if key[0] == name} - known == set()


TRIAL = """
import sys
from importlib.util import find_spec
from pathlib import Path
from mutation.trial import tried

source, folder = sys.argv[1:]
path, test = Path(folder, "trial_subject.py"), str(Path(folder, "test_subject.py"))
other = str(Path(folder, "test_other.py"))
print(tried("trial_subject", path, source, {other: None, test: None}).name)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize(
    ("source", "outcome"), [("answer = 6 * 7", "SURVIVED"), ("answer = 6 / 7", "KILLED")]
)
def test_a_trial(source: str, outcome: str, tmp_path: Path) -> None:
    """A test is run on the text that is given instead of the module's file, if it loads it."""
    module = tmp_path / "trial_subject.py"
    module.write_text("answer = None")
    test = tmp_path / "test_subject.py"
    (tmp_path / "test_other.py").write_text("def test(): pass")
    test.write_text("import trial_subject\ndef test(): assert trial_subject.answer == 42")
    assert _try(source, tmp_path) == (outcome, "")
    assert module.read_text() == "answer = None"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("number", [1, 2])
def test_a_trial_that_leaves_something_open(number: int, tmp_path: Path) -> None:
    """A failing test kills the mutant, although pytest itself fails when it cleans up after it."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error")
    (tmp_path / "trial_subject.py").write_text("answer = None")
    (tmp_path / "test_other.py").write_text("def test(): pass")
    (tmp_path / "conftest.py").write_text(f"""class Open:
    def __del__(self):
        raise ValueError
left_open = [Open() for _ in range({number})]
def pytest_sessionfinish():
    left_open.clear()
""")
    test = "import trial_subject\ndef test(): assert trial_subject.answer == 42"
    (tmp_path / "test_subject.py").write_text(test)
    assert _try("answer = 6 / 7", tmp_path) == ("KILLED", "")


def _try(source: str, folder: Path) -> tuple[str, str]:
    """Return what a trial of *source* prints."""
    done = subprocess.run(  # noqa: S603  our own script
        [sys.executable, "-c", TRIAL, source, str(folder)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout.strip(), done.stderr


REACH = """
import json, sys
from pathlib import Path
from mutation.reach import chosen
from mutation.trial import reached

folder = Path(sys.argv[1])
path = folder / "reach_subject.py"
tests = reached({"reach_subject": path}, str(folder / "test_subject.py"))
print(json.dumps([
    [name.partition("::")[2] for name in chosen(tests, "reach_subject", path, line, line)]
    for line in (1, 3, 6)
]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_reach(tmp_path: Path) -> None:
    """A mutant is tried under the tests that execute it; outside functions, under all of them."""
    module = tmp_path / "reach_subject.py"
    module.write_text('''FACTOR = 2
def twice(number):
    return FACTOR * number
def once(number):
    """It has a docstring."""
    return number
''')
    test = tmp_path / "test_subject.py"
    test.write_text("""import os, threading
def test_twice():
    import reach_subject
    assert reach_subject.twice(1) == 2
def test_once_in_a_thread():
    import reach_subject
    thread = threading.Thread(target=reach_subject.once, args=(1,))
    thread.start()
    thread.join()
def test_nothing():
    pass
def test_child():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
""")
    done = subprocess.run(  # noqa: S603  our own script
        [sys.executable, "-c", REACH, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    imported, twice, once = (set(names) for names in json.loads(done.stdout))
    assert imported == {"test_twice", "test_once_in_a_thread", "test_nothing", "test_child"}
    assert twice == {"test_twice", "test_child"}
    assert once == {"test_once_in_a_thread", "test_child"}


def test_the_command() -> None:
    """The tests of a group pass on the module as it is, and its mutants are tried."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.mutation",
            "credentials",
            "--only",
            " = 8",
        ],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("credentials: 2 of 2 mutants killed, 100.0 %")
