"""OpenEnv's own client, unchanged, in an environment of its own."""

import json
import math
import re
import subprocess
import threading
from collections import Counter
from pathlib import Path

import anyio
import pytest
from other_python import ROOT, OtherPython
from peers import HttpServer, child_environment, http_server, load_all
from provider_server import Asked, Says, provider_server
from waiting import PATIENCE_S

pytestmark = pytest.mark.peers

OPENENV = OtherPython(
    name=".venv-openenv",
    requirements=("openenv==0.10.0",),
    check="import openenv, importlib.metadata as m; print(m.version('openenv'))",
    version="0.10.0",
    what="OpenEnv's client",
    install_s=600,
)
AGENTS = Path(__file__).parent / "agents"
TRL = OtherPython(
    name=".venv-trl",
    requirements=("torch==2.13.0", "trl==1.16.0", "transformers==5.23.0", "openenv==0.10.0"),
    check="import importlib.metadata as m; print(m.version('trl'), m.version('openenv'))",
    version="1.16.0 0.10.0",
    what="TRL's GRPO",
    install_s=900,
)
VERIFIERS = OtherPython(
    name=".venv-verifiers",
    requirements=("verifiers[openenv]==0.4.0", "openenv==0.4.1", "mcp==2.0.0", "uv==0.13.9"),
    check=(
        "import openenv, verifiers.v1, importlib.metadata as m; "
        "print(*map(m.version, ('verifiers', 'openenv', 'mcp', 'uv')))"
    ),
    version="0.4.0 0.4.1 2.0.0 0.13.9",
    what="verifiers",
    install_s=900,
)
MANY = AGENTS / "many.py"
TOOLS = AGENTS / "tools.py"
EXAMPLE = ROOT / "examples" / "openenv_client.py"
EVALUATION = ROOT / "examples" / "verifiers_eval.py"
COUNTING = """
from hud_mcp import Environment

env = Environment("counting")


@env.template()
async def count(word: str):
    answer = yield f"How many letters has {word!r}?"
    yield 1.0 if answer == str(len(word)) else 0.25


@env.template()
async def quarrel():
    yield "Say anything, to no grade."
    yield "no number"


tasks = [count(word="lamp"), count(word="rug"), quarrel(), count(word="")]
"""


@pytest.fixture(scope="session")
def openenv_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with OpenEnv 0.10.0."""
    return OPENENV.find(tmp_path_factory)


def run(python: Path, program: Path, *arguments: str, within_s: float = 2 * PATIENCE_S) -> str:
    """Run a program to its end, away from this project; return what it prints."""
    environment = child_environment()
    del environment["PYTHONPATH"]
    done = subprocess.run(
        [str(python), str(program), *arguments],
        capture_output=True, text=True, check=False, timeout=within_s, env=environment,
        cwd=program.parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_sixteen_of_its_clients_are_graded_at_once(openenv_python: Path, room: HttpServer) -> None:
    """Each is told its own reward, and a call without an episode says to reset."""
    told = json.loads(run(openenv_python, MANY, room.url.removesuffix("/mcp")))
    assert told["version"] == "0.10.0"
    expected = [[None, 1.0 if n % 2 else 0.25, True, True, "light"] for n in range(16)]
    assert told["episodes"] == expected
    assert "Call reset" in told["refused"]


def test_the_program_of_its_page_works(openenv_python: Path, tmp_path: Path) -> None:
    """What docs/openenv.md shows is run with the package that it needs."""
    page = (ROOT / "docs" / "openenv.md").read_text()
    found = re.search(r"```python\n# openenv_episode.py\n(.*?)```", page, re.DOTALL)
    assert found is not None
    with http_server(tmp_path / "server", ["letter_count"], "--openenv") as server:
        program = tmp_path / "openenv_episode.py"
        place = server.url.removesuffix("/mcp")
        program.write_text(found[1].replace("http://127.0.0.1:8000", place))
        printed = run(openenv_python, program)
    assert printed.splitlines() == [
        "How many times does the letter 'r' occur in 'strawberry'?",
        "1.0 True",
    ]


def test_its_tool_client_has_the_tools_one_by_one(openenv_python: Path, room: HttpServer) -> None:
    """Its session is made on MCP's own address, and its tools act on the episode that it resets."""
    told = json.loads(run(openenv_python, TOOLS, room.url.removesuffix("/mcp")))
    assert told["tools"] == {
        "light": "Light some lamps.",
        "answer": "Submit the final answer: the episode ends and is graded.",
    }
    assert told["lit"] == "2 lamps are lit"
    assert "count" in told["refused"]
    assert told["typed"] == ["execution_error", "answer"]
    assert (told["reward"], told["done"]) == (1.0, True)
    assert "no such session" in told["gone"]


def test_the_example_is_graded(openenv_python: Path, tmp_path: Path) -> None:
    """It names its version, goes through tasks with a policy of its own, and prints rewards."""
    with http_server(tmp_path / "server", ["letter_count"], "--openenv") as server:
        place = server.url.removesuffix("/mcp")
        printed = run(openenv_python, EXAMPLE, "--url", place)
    lines = printed.splitlines()
    assert len(lines) > 1
    assert all(line.endswith(" 1.0") for line in lines)


def test_grpo_trains_on_grades_that_came_over_the_wire(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Every grade of the record reaches TRL, a group has unequal ones, and the model changes."""
    python = TRL.find(tmp_path_factory)
    with http_server(tmp_path / "server", ["letter_count"], "--openenv") as server:
        place = server.url.removesuffix("/mcp")
        printed = run(python, AGENTS / "grpo.py", str(ROOT / "examples"), place, str(tmp_path))
        recorded = anyio.run(load_all, server.store)
    told = json.loads(printed.splitlines()[-1])
    graded = sorted(each.reward for each in recorded if each.reward is not None)
    reached = [reward for group in told["groups"] for reward in group if reward is not None]
    assert sorted(reached) == graded
    assert any({0.0, 1.0} <= set(group) for group in told["groups"])
    figures = [row[name] for row in told["rows"] for name in ("loss", "grad_norm")]
    assert figures
    assert all(math.isfinite(each) for each in figures)
    assert any(row["grad_norm"] > 0 for row in told["rows"])
    assert told["changed"] > 0


class Counts:
    """A model that counts a word's letters, is wrong every second time, and knows no empty word."""

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, asked: Asked) -> Says:
        """What it says to a request."""
        prompt = json.loads(asked.heard.prompt)["observation"]["prompt"]
        found = re.search(r"'(\w*)'", prompt)
        with self._lock:
            turn = self._asked[prompt]
            self._asked[prompt] += 1
        word = found[1] if found else "anything"
        return Says(str(len(word) + turn % 2) if word else "")


def test_verifiers_has_each_grade_of_the_record(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each group has unequal grades, and an end without a grade is not a reward."""
    python = VERIFIERS.find(tmp_path_factory)
    source = tmp_path / "counting.py"
    source.write_text(COUNTING)
    with (
        http_server(tmp_path / "server", [str(source)], "--openenv") as server,
        provider_server(Counts()) as model,
    ):
        printed = run(
            python, EVALUATION, "counter", "--url", server.url.removesuffix("/mcp"),
            "--base-url", model.base_url("openai-chat"), "--tasks", "4", "--rollouts", "4",
            "--output", str(tmp_path / "outputs"), within_s=5 * PATIENCE_S,
        )  # fmt: skip
        recorded = anyio.run(load_all, server.store)
    told = [line.split(" ", 1) for line in printed.splitlines() if re.match(r"\d ", line)]
    reached = {
        place: sorted(had for index, had in told if index == place)
        for place in ("0", "1", "2", "3")
    }
    assert reached["0"] == reached["1"] == ["0.25", "0.25", "1.0", "1.0"]
    assert len(reached["2"]) == 4
    assert all("not graded" in had and "grading_failed" in had for had in reached["2"])
    assert reached["3"] == ["not graded: the model said nothing"] * 4
    for place, word in (("0", "lamp"), ("1", "rug")):
        kept = [each.reward for each in recorded if each.task.args == {"word": word}]
        assert sorted(map(str, kept)) == reached[place]
    assert [each.reward for each in recorded if each.task.template == "quarrel"] == [None] * 4
