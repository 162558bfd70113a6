"""Each program of `examples/` goes through a task of a real browser, to its grade.

Its peer is in an environment of its own. The model is a server on loopback that reads the page
as it comes to it, and finds there what it clicks and what it answers.
"""

import json
import math
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from frameworks import ANTHROPIC, INSPECT_AI, LANGCHAIN, OPENAI_AGENTS, PYDANTIC_AI
from other_python import ROOT, OtherPython
from peers import HttpServer, http_server, load_all

sys.path.insert(0, str(ROOT / "tests" / "agents"))
from provider_server import Asked, Call, Says, provider_server

from hud_mcp.values.refs import named_refs

pytestmark = [pytest.mark.anyio, pytest.mark.peers, pytest.mark.browser]

EXAMPLES = ROOT / "examples"
BOUND_S = 240
SESSION = re.compile(r"sess-[0-9a-f]{32}")


@dataclass(frozen=True)
class Example:
    """A program, its peer, and the API that it speaks.

    Attributes:
        peer: Where it runs.
        provider: Of the model.
        looks: Whether the model is offered pictures.
        http: Whether it connects to a server that runs already.
    """

    peer: OtherPython
    provider: str
    looks: bool = True
    http: bool = False


STARTED = {
    "loop.py": Example(ANTHROPIC, "anthropic", looks=False),
    "pydantic_ai_browser.py": Example(PYDANTIC_AI, "openai-chat"),
    "openai_agents_browser.py": Example(OPENAI_AGENTS, "openai"),
    "langgraph_browser.py": Example(LANGCHAIN, "openai", http=True),
}


def buys_a_lamp(asked: Asked) -> Says:
    """What a model does for the price of a lamp: it looks, follows the page, and answers."""
    heard = asked.heard
    found = SESSION.search(heard.prompt)
    session = {"session": found[0]} if found else {}  # of `connect`, there is just one
    page = heard.results[-1] if heard.results else "" if found else heard.prompt
    if "graded" in page.lower():  # in words, or as JSON
        return Says("I answered.")
    named = {each.name: each for each in named_refs(page)}
    brass, lamp = named.get('radio "Brass"'), named.get('link "Heron desk lamp"')
    if brass and "checked" in brass.states and "in stock" in page:
        price = re.search(r"€(\d+\.\d\d)", page)
        assert price is not None, page
        tool = "response" if "response" in heard.tools else "act"
        return Says("I see it.", calls=(Call(tool, {**session, "answer": price[1]}),))
    aim = brass or lamp
    if aim and "checked" not in aim.states:
        return Says(calls=(Call("act", {**session, "type": "click", "ref": aim.ref}),))
    if "step" in heard.tools:
        return Says(calls=(Call("step", session),))
    return Says(calls=(Call("act", {**session, "type": "screenshot"}),))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """The browser's tasks, on one server."""
    with http_server(tmp_path_factory.mktemp("examples"), ("browser",)) as running:
        yield running


async def run(command: list[str], folder: Path, **more: str) -> str:
    """What a program prints that a user runs in an empty folder."""
    left_out = ("HUD_MCP_", "PYTHON", "PYTEST_")
    kept = {name: each for name, each in os.environ.items() if not name.startswith(left_out)}
    environment = {
        **kept,
        "HOME": str(folder),  # the one that MCP's clients pass to a server: its record is there
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}",
        "ANTHROPIC_API_KEY": "none",
        "OPENAI_API_KEY": "none",
        **more,
    }
    with anyio.fail_after(BOUND_S):
        done = await anyio.run_process(command, check=False, cwd=folder, env=environment)
    printed = done.stdout.decode()
    assert done.returncode == 0, printed[-2000:] + done.stderr.decode()[-6000:]
    return printed


async def test_a_loop_on_connect_needs_no_server(tmp_path: Path) -> None:
    """The environment is in the program's own process; its last line is the grade."""
    with provider_server(buys_a_lamp) as model:
        base_url = model.base_url("anthropic")
        program = [sys.executable, str(EXAMPLES / "connect_loop.py"), "lamp-1"]
        printed = await run([*program, "--base-url", base_url], tmp_path, PYTHONPATH=str(ROOT))
    assert printed.splitlines()[-1] == "{'outcome': 'graded', 'reward': 1.0}"


async def python_of(peer: OtherPython, spare: pytest.TempPathFactory) -> Path:
    """A peer's interpreter, whose version is the one that is pinned."""
    python = await anyio.to_thread.run_sync(peer.find, spare)
    asked = await anyio.run_process([str(python), "-c", peer.check])
    assert asked.stdout.decode().strip() == peer.version
    return python


@pytest.mark.parametrize(
    "name",
    # The bare loop uses the SDK's own client, of the newest era.
    [pytest.param(each, marks=pytest.mark.sample if each == "loop.py" else ()) for each in STARTED],
)
async def test_an_example_goes_through_a_browsers_task_to_its_grade(
    name: str, server: HttpServer, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It starts the task, its model reads and clicks, and what it prints last is the grade."""
    example = STARTED[name]
    python = await python_of(example.peer, tmp_path_factory)
    target = ["--url", server.url] if example.http else []
    with provider_server(buys_a_lamp) as model:
        program = [str(python), str(EXAMPLES / name), "lamp-1"]
        base_url = model.base_url(example.provider)
        printed = await run([*program, "--base-url", base_url, *target], tmp_path)
        assert {asked.provider for asked in model.asked} == {example.provider}
        assert (model.asked[-1].heard.pictures > 0) is example.looks
        assert "start_task" not in model.asked[0].heard.tools
    print(f"{name}:\n{printed}")
    assert "'outcome': 'graded'" in printed.splitlines()[-1]
    assert "'reward': 1.0" in printed.splitlines()[-1]


def test_the_bare_loop_has_at_most_forty_lines() -> None:
    """It is what somebody writes who has no framework."""
    assert len((EXAMPLES / "loop.py").read_text().splitlines()) <= 40


def test_the_pages_name_the_versions_that_are_run_and_show_the_program_that_is() -> None:
    """A reader of docs installs the versions of these tests, and sees the files themselves."""
    shown = "\n".join(each.read_text() for each in (ROOT / "docs").glob("*.md"))
    for peer in (*(each.peer for each in STARTED.values()), INSPECT_AI):
        name, _, version = peer.requirements[0].partition("==")
        assert f"{name}=={version}" in shown
    for program in (*STARTED, "connect_loop.py", "inspect_ai_task.py"):
        assert f"# {program}\n{(EXAMPLES / program).read_text()}```" in shown


def gives_up(asked: Asked) -> Says:
    """A model that says what it thinks the price is, and calls nothing."""
    return Says("60.90")


INSPECT = "import sys; from inspect_ai._cli.main import main; sys.argv[0] = 'inspect'; main()"


async def inspected(
    python: Path, url: str, model: str, folder: Path, *options: str
) -> dict[str, Any]:
    """The log of one evaluation by Inspect."""
    (folder / "inspect_ai_task.py").write_bytes((EXAMPLES / "inspect_ai_task.py").read_bytes())
    arguments = [
        "eval",
        "inspect_ai_task.py",
        "--model",
        "anthropic/lamp-1",
        "--model-base-url",
        model,
    ]
    log = ["--log-dir", str(folder / "logs"), "--log-format", "json", "--display", "plain"]
    printed = await run(
        [str(python), "-c", INSPECT, *arguments, *log, "-T", f"url={url}", *options], folder
    )
    print(printed)
    (written,) = (folder / "logs").glob("*.json")
    return json.loads(written.read_text())


@pytest.mark.parametrize("script", [buys_a_lamp, gives_up], ids=["answers", "only says it"])
async def test_a_score_of_inspect_is_the_reward(
    script: Any, server: HttpServer, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What the model said last is its answer, where it has submitted none."""
    python = await python_of(INSPECT_AI, tmp_path_factory)
    before = {each.id for each in await load_all(server.store)}
    with provider_server(script) as model:
        log = await inspected(python, server.url, model.base_url("anthropic"), tmp_path)
    (record,) = [each for each in await load_all(server.store) if each.id not in before]
    (sample,) = log["samples"]
    (score,) = sample["scores"].values()
    assert log["status"] == "success"
    assert score["value"] == record.reward
    assert score["metadata"]["trajectory"] == record.id
    (metrics,) = [each["metrics"] for each in log["results"]["scores"]]
    assert metrics["mean"]["value"] == record.reward
    assert record.reward == 1.0


BROKEN = """
from hud_mcp import Environment

env = Environment("broken-grader")


@env.template()
async def broken():
    answer = yield "Name a prime."
    yield 1.0 if int(answer["no such field"]) else 0.0


tasks = [broken().model_copy(update={"id": "broken"})]
"""


async def test_a_task_that_could_not_be_graded_is_left_unscored_by_inspect(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A failure of the machine is not a score of 0."""
    python = await python_of(INSPECT_AI, tmp_path_factory)
    source = tmp_path / "broken.py"
    source.write_text(BROKEN)
    with (
        http_server(tmp_path / "server", (str(source),)) as running,
        provider_server(gives_up) as model,
    ):
        base_url = model.base_url("anthropic")
        log = await inspected(python, running.url, base_url, tmp_path, "-T", "tasks=broken")
    (sample,) = log["samples"]
    (score,) = sample["scores"].values()
    assert math.isnan(score["value"])
    assert score["explanation"] == "grading_failed"
