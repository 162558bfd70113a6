"""Whatever an agent leaves is its result: in verifiers, in workspaces, and as the page shows it."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp.errors import BrokenByAgent, GraderFailed
from hud_mcp.loading.source import load_environments
from hud_mcp.record.values import Receipt
from hud_mcp.rollout.checking.shell import SHAPES, left_as
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.values.grade import Cause, Outcome
from hud_mcp.values.observation import Look
from hud_mcp.world import begin_grading, blame, note_agent_data

pytestmark = pytest.mark.anyio

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "graders.md").read_text()
(EXAMPLE,) = re.findall(r"```python\n(# grading_env\.py\n.*?)```", PAGE, re.DOTALL)
VERIFIED = """
import json
from hud_mcp import Environment, Shell, ShellWorld
env = Environment("verified", world=Shell())

@env.template()
async def report(shell: ShellWorld):
    yield "Write report.json."
    async with shell.verifier(copy=["report.json"]) as clean:
        yield float(json.loads(await clean.read_text("report.json")) == {"sum": 3})
"""
WORKED = """
import json
from pathlib import Path
from hud_mcp import Environment
ROOT = Path(ROOT)
env = Environment("worked")
env.workspace(ROOT)

@env.template()
async def report():
    yield "Write report.json."
    yield float(json.loads((ROOT / "report.json").read_text()) == {"sum": 3})
"""
RUN = """
from hud_mcp import Environment, Shell, ShellWorld
env = Environment("ran", world=Shell())

@env.template()
async def report(shell: ShellWorld):
    yield "Write report.json, a folder with a program."
    async with shell.verifier(copy=["report.json"]) as clean:
        done = await clean.run(["python3", "main.py"], cwd="report.json", timeout_s=10)
        yield float(await clean.read_json("report.json/out.json") == 3 and done.exit_code == 0)
"""
AT_ONCE = 3
OFTEN = ("a folder", "a pipe", "a closed file", "a link in a circle", "20 MB", "lists in lists",
         "no text", "empty")  # fmt: skip
"""Of each kind of shape one, for every run of the tests."""


async def leave(sessions: Sessions, env: str, line: str) -> Receipt:
    """Do a line of bash in a session, answer, and return how that ended."""
    task = Task(id="report", env=env, template="report")
    session: Session = await sessions.start(task, caller=Caller(None, "test"))
    tool = session.environment.tools["run_command"]
    done = await session.call_tool(tool, {"command": line}, Look())
    assert done.error is None, done.error
    receipt = await session.respond("done")
    assert receipt is not None
    return receipt


@pytest.mark.long
@pytest.mark.sandbox
@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("shapes", [OFTEN, tuple(SHAPES)], ids=["often", "all"])
async def test_whatever_an_agent_leaves_is_its_result(
    tmp_path: Path, shapes: tuple[str, ...]
) -> None:
    """The reward is 0, by the agent, with a sentence; nothing is voided, and nothing hangs."""
    sources = {
        "verified": VERIFIED,
        "worked": WORKED.replace("Path(ROOT)", f"Path({str(tmp_path / 'work')!r})"),
        "ran": RUN,
        "reports": EXAMPLE,
    }
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source)
    environments = [load_environments([str(tmp_path / f"{name}.py")])[0] for name in sources]
    store = Store(tmp_path / "store.sqlite3")
    sessions = Sessions(environments, store=store)
    wrong: list[str] = []
    turns = anyio.CapacityLimiter(AT_ONCE)

    async def one(env: str, shape: str) -> None:
        line = left_as(shape, "report.json")
        async with turns:
            receipt = await leave(sessions, env, f"touch count.py; {line}")
        found = (receipt.outcome, receipt.reward, receipt.cause, bool(receipt.content))
        said = env == "reports"  # which yields a grade for some
        if found[:3] != (Outcome.GRADED, 0.0, Cause.AGENT) or not (found[3] or said):
            wrong.append(f"{env}, {shape}: {found} {receipt.error}")

    try:
        with anyio.fail_after(5 * PATIENCE_S):
            async with anyio.create_task_group() as group:
                for number, shape in enumerate(shapes):
                    # For every run, each shape is left to two of the four.
                    for env in list(sources)[number % 2 :: 2 if shapes is OFTEN else 1]:
                        group.start_soon(one, env, shape)
    finally:
        await sessions.close()
    assert wrong == []


def failing(work: Callable[[], Any]) -> BaseException:
    """What some work raises."""
    with pytest.raises(Exception) as found:  # noqa: PT011  # any
        work()
    return found.value


def wrapped(work: Callable[[], Any]) -> BaseException:
    """The same beneath a grader's own word for it, in a group."""
    error = GraderFailed("it cannot be measured")
    error.__cause__ = failing(work)
    return ExceptionGroup("several", [error])


def test_an_error_about_the_agents_words_is_the_agents() -> None:
    """Whatever its type; and one of the same type about other words is not."""
    begin_grading("forty two")
    lines = note_agent_data('{"sum": 3\r\n}\nnot json at all')
    nested = note_agent_data("[" * 200_000)
    raw = note_agent_data(b"caf\xe9")
    authors = {"of the author's": 1}
    mine = {
        "a number": lambda: int("forty two"),
        "a part of the answer": lambda: float("forty"),
        "a choice": lambda: Outcome("forty two"),
        "a key": lambda: authors["forty two"],
        "no JSON": lambda: json.loads(lines),
        "a line of it": lambda: json.loads(lines.splitlines()[-1]),
        "lines as Python reads them": lambda: json.loads('{"sum": 3\n}\nnot json at all'),
        "too deep": lambda: json.loads(nested),
        "no text": raw.decode,
    }
    others = {
        "another number": lambda: int("fifty"),
        "another key": lambda: authors["the author's typo"],
        "the author's file": lambda: json.loads('{"expected": 3,}'),
        "the author's bytes": b"na\xefve".decode,
        "the author's expression": lambda: re.sub("(", "", "forty two"),
        "a file of this machine": lambda: Path("/not/there").read_text(),
        "the author's mistake": lambda: list[str]()[1],
    }
    for how in (failing, wrapped):
        found = {name: blame(how(work)) for name, work in {**mine, **others}.items()}
        agents = {name for name, broken in found.items() if isinstance(broken, BrokenByAgent)}
        assert agents == set(mine)
        assert "forty two" in str(found["a number"])
    begin_grading("another answer")
    assert blame(failing(partial(int, "forty two"))) is None
