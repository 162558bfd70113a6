"""Rows that are played without a server: on real worlds, with the tools that an agent has.

The template's generator is driven here, as a session drives it.
"""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import pytest
from direct import Tools
from waiting import PATIENCE_S

from hud_mcp import Agent, Environment, Grade, Opening, Say, Task
from hud_mcp.agents.baselines import OracleAgent
from hud_mcp.environment.conversation import Conversation, Reply, begin, current
from hud_mcp.environment.moves import Moves
from hud_mcp.environment.prompt import read_prompt
from hud_mcp.errors import BrokenByAgent
from hud_mcp.loading.source import load_environments, shipped_name
from hud_mcp.values.grade import read_grade
from hud_mcp.world import Shared, as_world, begin_grading, blame, current_world

__all__ = [
    "NOP", "Play", "answers_of", "environment_of", "play_answer", "play_oracle", "play_row",
    "playing", "told_elsewhere",
]  # fmt: skip

ORACLE, NOP = "oracle", "nop"


@cache
def environment_of(name: str) -> Environment:
    """The shipped environment of a name."""
    source = shipped_name(name)
    assert source is not None, f"no environment {name!r} comes with the package"
    return next(each for each in load_environments([source]) if each.name == name)


@dataclass
class Play:
    """A task that is being worked on.

    Attributes:
        agent: Who works on it.
        tools: The agent's; they hold the world and the answer.
        grade: None until the task was graded.
    """

    agent: Agent
    tools: Tools
    environment: Environment
    grade: Grade | None = None

    async def solve(self, task: Task) -> None:
        """Do what the solution of a task does, of this one or of another; answer, if it did."""
        await OracleAgent([self.environment]).solve(self.agent, task)

    @property
    def steps(self) -> int:
        """How many steps the record would have, with the answer and without waits."""
        return self.tools.steps - self.tools.waits + 1

    @property
    def result(self) -> dict[str, Any]:
        """What two processes are to agree on."""
        return {
            "prompt": self.agent.prompt,
            "answer": self.tools.answer,
            "grade": self.grade and self.grade.model_dump(mode="json"),
        }


class _Talk:
    """The conversation of a template with its agent; it ends with the agent's answer."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator
        begin(Conversation())

    async def hear(self, text: str) -> str:
        """Hand the agent's words to the template, and return the user's."""
        current().hear(reply := Reply(text))
        said = await self._generator.asend(reply)
        assert isinstance(said, Say)
        assert not said.ends, "these plays end with an answer"
        return said.text

    def last(self, answer: str) -> Reply:
        """The reply with which the agent ends the conversation."""
        current().hear(reply := Reply(answer, ended=True, by="agent"))
        return reply


@asynccontextmanager
async def playing(task: Task, shared: Shared) -> AsyncIterator[Play]:
    """Start a task; it is graded at the end of the body, if something was answered in it."""
    environment = environment_of(task.env)
    template = environment.template_of(task)
    opening = Opening(
        context=environment.split_context(task.context), seed=task.seed,
        folder=environment.folder, shared=shared,
    )  # fmt: skip
    world = await environment.world.open(opening)
    told = current_world.set(world)
    try:
        context = environment.context_space.fill(task.context)
        moves = Moves(
            template.moves,
            arguments=lambda: template.arguments.parse(task.args),
            world=lambda: world,
        )
        tools = Tools(world, environment.tools, moves if template.moves else None)
        generator = template.run(task.args, world, context)
        first = await anext(generator)
        talk = _Talk(generator) if isinstance(first, Say) else None
        if talk is not None:
            tools.hear = talk.hear
            first = first.prompt
        prompt = read_prompt(first, where=template.where)
        play = Play(Agent(tools, session="here", prompt=prompt.text), tools, environment)
        yield play
        if tools.answer is None:
            await generator.aclose()
            return
        await as_world(world).stop_agent()
        begin_grading(tools.answer)
        try:
            answer = template.read_answer(tools.answer) if talk is None else talk.last(tools.answer)
            yielded = await generator.asend(answer)
            play.grade = read_grade(yielded, where=template.where)
        except Exception as exc:
            if not isinstance(broken := blame(exc), BrokenByAgent):
                raise
            play.grade = Grade(reward=0.0, content=str(broken))
        with pytest.raises(StopAsyncIteration):
            await anext(generator)
    finally:
        current_world.reset(told)
        with anyio.CancelScope(shield=True), anyio.move_on_after(10):
            await world.close()


def answers_of(row: Task) -> list[str]:
    """The wrong answers of a row, each once."""
    if row.validation is None:
        return []
    one, more = row.validation.wrong_answer, row.validation.wrong
    return list(dict.fromkeys([*([one] if one is not None else []), *more]))


async def play_answer(row: Task, answer: str, shared: Shared) -> Play:
    """Start a row and answer at once."""
    async with playing(row, shared) as play:
        await play.agent.respond(answer)
    return play


async def play_oracle(row: Task, shared: Shared, *, of: Task | None = None) -> Play:
    """Start a row and do what its solution does, or that of another row."""
    async with playing(row, shared) as play:
        await play.solve(of or row)
    return play


async def play_row(row: Task, way: str, shared: Shared) -> Play:
    """Play a row in one way: `oracle`, `nop`, or one of its wrong answers by its number."""
    if way == ORACLE:
        return await play_oracle(row, shared)
    return await play_answer(row, "" if way == NOP else answers_of(row)[int(way)], shared)


def told_elsewhere(rows: Iterable[Task], *, solved: bool) -> Mapping[str, Mapping[str, Any]]:
    """What another process is told of rows, which orders its sets and hashes otherwise.

    Args:
        rows: They are started there.
        solved: Whether they are solved and graded too.

    Returns:
        The `Play.result` of each, by its id; without an answer where it is not solved.
    """
    texts = [row.model_dump_json() for row in rows]
    here = Path(__file__).resolve().parent
    paths = os.pathsep.join([str(here), str(here.parent)])
    hashes = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    done = subprocess.run(
        [sys.executable, __file__, *(["--solve"] if solved else [])],
        input="\n".join(texts), capture_output=True, text=True, encoding="utf-8", check=False,
        timeout=PATIENCE_S * (len(texts) if solved else 2),
        env={**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": hashes},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line.pop("id"): line for line in lines}


async def _tell(rows: Iterable[Task], *, solve: bool) -> None:
    """Print what comes of rows, a line each."""
    shared = Shared()
    try:
        for row in rows:
            with anyio.fail_after(PATIENCE_S):
                async with playing(row, shared) as play:
                    if solve:
                        await play.solve(row)
            print(json.dumps({"id": row.id, **play.result}), flush=True)
    finally:
        with anyio.CancelScope(shield=True):
            await shared.close()


if __name__ == "__main__":
    from hud_mcp.task import FROM_JSON

    given = [Task.model_validate_json(line, context=FROM_JSON) for line in sys.stdin]
    anyio.run(lambda: _tell(given, solve="--solve" in sys.argv))
