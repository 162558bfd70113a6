"""Rows of our own sets against every odd shape of what they grade: each gets a grade, and no 1.

`make test` plays some shapes of one row; `make prove` plays every row against all of them.
"""

import shlex
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import pytest
from plays import playing
from waiting import PATIENCE_S

from hud_mcp import Task, Taskset
from hud_mcp.loading.source import shipped_folder
from hud_mcp.rollout.checking.shell import JSON_SHAPES, SHAPES, left_as
from hud_mcp.world import Shared
from hud_mcp.worlds.shell import world as shell_world
from hud_mcp.worlds.shell.verifier import Verifier

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("machine")]

DATA = shipped_folder("taskset_data")
SETS = ("quickstart", "shell", "web", "questions", "office")
ROWS = {row.id: row for name in SETS for row in Taskset.load(DATA / f"{name}.jsonl")}
AT_ONCE = 3
BOUND_S = 120.0
SPOIL = """
import os, shutil
for path, is_folder in {names!r}.items():
    try:
        shutil.rmtree(path) if os.path.isdir(path) else os.path.lexists(path) and os.remove(path)
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        open(path, "w").close() if is_folder else os.makedirs(path)
    except OSError:
        pass
"""
"""Makes a folder of each file that a grader has, and a file of each folder."""
ANSWERS = {
    "empty": "",
    "a blank": " ",
    "NUL": "a\0b",
    "half a character": "\ud800",
    "another script": "4 \u017fep \u0664\u0660\u0669\u0667",  # 4097, which no row asks for
    "lists in lists": "[" * 200_000,
    "another shape": "{}",
    "no number": "NaN",
    "infinite": "1e999",
    "a long number": "9" * 5000,
    "a long line": "x" * 1_000_000,
    "many lines": "\n" * 100_000,
}


@dataclass
class Watched:
    """What the verifiers of one play were given.

    Attributes:
        outputs: The paths that they copied.
        names: What was in their folders as they were closed: whether each is a folder.
    """

    outputs: set[str] = field(default_factory=set[str])
    names: dict[str, bool] = field(default_factory=dict[str, bool])


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Shared]:
    """What worlds share."""
    services = Shared()
    yield services
    with anyio.fail_after(PATIENCE_S):
        await services.close()


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Watches the verifiers of shells, which work as ever."""
    seen, opening = Watched(), shell_world.open_verifier

    @asynccontextmanager
    async def watching(*args: Any, copy: Any, **options: Any) -> AsyncGenerator[Verifier]:
        seen.outputs |= {copy} if isinstance(copy, str) else set(copy)
        async with opening(*args, copy=copy, **options) as clean:
            yield clean
            if not copy:
                return
            done = await clean.run("find . -mindepth 1 -printf '%P\\0%y\\0' | head -c 100000")
            parts = done.stdout.split("\0")
            seen.names |= dict(zip(parts[::2], [kind == "d" for kind in parts[1::2]], strict=False))

    monkeypatch.setattr(shell_world, "open_verifier", watching)
    return seen


async def leave(row: Task, shared: Shared, line: str) -> float:
    """Do what the row's solution does, then a line of bash; return the reward."""
    async with playing(row, shared) as play:
        await play.solve(row)
        await play.agent.tool("run_command", command=f"{line}; true")
    assert play.grade is not None
    return play.grade.reward


async def answered(row: Task, shared: Shared, answer: str) -> float:
    """Answer at once; return the reward."""
    async with playing(row, shared) as play:
        play.tools.answer = answer
    assert play.grade is not None
    return play.grade.reward


def spoilers(watched: Watched) -> dict[str, str]:
    """Lines that make programs of outputs which spoil what their grader has, by what they do."""
    program = SPOIL.format(names=watched.names)
    call = f"python3 -c {shlex.quote(program)}\n"
    at_exit = f"import atexit\natexit.register(lambda: exec({program!r}, {{}}))\n"
    recipe = f'define SPOIL\n{program}\nendef\nexport SPOIL\nall clean:\n\tpython3 -c "$$SPOIL"\n'
    made: dict[str, str] = {}
    for path in sorted(watched.outputs | watched.names.keys()):
        at = shlex.quote(path)
        if path.endswith(".py"):
            made[f"{path} spoils"] = f"printf %s {shlex.quote(program)} > {at}"
            first = f"printf %s {shlex.quote(at_exit)}"
            made[f"{path} spoils in the end"] = f"{{ {first}; cat {at}; }} > .new; mv .new {at}"
        elif path.endswith(".sh"):
            made[f"{path} spoils"] = f"printf %s {shlex.quote(call)} > {at}"
            made[f"{path} spoils in the end"] = f"printf %s {shlex.quote(call)} >> {at}"
        elif path.endswith("Makefile"):
            made[f"{path} spoils"] = f"printf %s {shlex.quote(recipe)} > {at}"
    return {name: line for name, line in made.items() if _is_of(name, watched.outputs)}


def _is_of(path: str, outputs: set[str]) -> bool:
    return any(path.startswith((f"{each} ", f"{each}/")) for each in outputs)


async def wrong_of(plays: Mapping[str, Callable[[], Awaitable[float]]]) -> list[str]:
    """Each play that fails, hangs, or gets the full reward."""
    wrong: list[str] = []
    turns = anyio.CapacityLimiter(AT_ONCE)

    async def one(name: str, play: Callable[[], Awaitable[float]]) -> None:
        async with turns:
            try:
                with anyio.fail_after(BOUND_S):
                    reward = await play()
            except Exception as exc:  # noqa: BLE001  # told with the others
                wrong.append(f"{name}: {type(exc).__name__}: {exc}"[:500])
                return
        if reward >= 1.0 and "in the end" not in name:  # what it spoils nobody may need any more
            wrong.append(f"{name}: {reward}")

    async with anyio.create_task_group() as group:
        for name, play in plays.items():
            group.start_soon(one, name, play)
    return wrong


async def lines_of(row: Task, shared: Shared, watched: Watched) -> dict[str, str]:
    """The lines that leave a row's outputs in odd shapes, by what they do."""
    watched.outputs.clear()
    watched.names.clear()
    async with playing(row, shared) as play:
        await play.solve(row)
    assert play.grade is not None
    assert play.grade.reward == 1.0, row.id
    lines = {
        f"{path}: {shape}": left_as(shape, path)
        for path in sorted(watched.outputs)
        for shape in {**SHAPES, **JSON_SHAPES}
    }
    return {**lines, **spoilers(watched)}


async def plays_of(
    rows: Iterable[Task], shared: Shared, watched: Watched, kinds: Sequence[str] = ("",)
) -> dict[str, Callable[[], Awaitable[float]]]:
    """The plays of some rows, each with one of the lines that say one of some words."""
    return {
        f"{row.id}, {name}": partial(leave, row, shared, line)
        for row in rows
        for name, line in (await lines_of(row, shared, watched)).items()
        if any(kind in name for kind in kinds)
    }


@pytest.mark.long
@pytest.mark.sandbox
async def test_a_row_is_graded_whatever_shape_its_output_has(
    shared: Shared, watched: Watched
) -> None:
    """A row whose grader puts files beside the agent's program, which spoils them."""
    rows = [ROWS["shell-settings-program"]]
    plays = await plays_of(rows, shared, watched, ("a folder", "a pipe", "spoils"))
    assert len(plays) >= 4
    assert await wrong_of(plays) == []


@pytest.mark.prove
@pytest.mark.sandbox
async def test_every_row_is_graded_whatever_shape_its_outputs_have(
    shared: Shared, watched: Watched
) -> None:
    """Every odd shape of every output, after the row's solution; and programs that spoil."""
    rows = [row for row in ROWS.values() if row.env == "shell"]
    assert await wrong_of(await plays_of(rows, shared, watched)) == []


def answers_to(rows: Iterable[Task], shared: Shared) -> dict[str, Callable[[], Awaitable[float]]]:
    """Odd answers to some rows, each in a session of its own."""
    return {
        f"{row.id}, {name}": partial(answered, row, shared, answer)
        for row in rows
        for name, answer in ANSWERS.items()
    }


async def test_a_row_is_graded_whatever_is_answered(shared: Shared) -> None:
    """Odd texts, at once, to a row without a world."""
    assert await wrong_of(answers_to([ROWS["count-r-strawberry"]], shared)) == []


@pytest.mark.prove
@pytest.mark.browser
@pytest.mark.sandbox
async def test_every_row_is_graded_whatever_is_answered(shared: Shared) -> None:
    """Odd texts, at once, to every row of our own sets."""
    assert await wrong_of(answers_to(ROWS.values(), shared)) == []
