"""Servers of OpenEnv's wire that its tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from peers import HttpServer, http_server

ROOM = """
from typing import Annotated

from pydantic import Field

from hud_mcp import Environment, Task, Taskset
from hud_mcp.environment.spec import NoWorld

env = Environment("room")
lamps = []


@env.tool
async def light(count: Annotated[int, Field(ge=1)]) -> str:
    "Light some lamps."
    lamps.append(count)
    return f"{count} lamps are lit"


@env.template(description="Say a word")
async def say(word: str = "lamp"):
    answer = yield "Say the word that you know."
    yield {"score": 1.0 if answer == word else 0.25, "content": "So it is."}


@env.template()
async def quarrel():
    yield "Say anything."
    yield "no number"


tasks = [
    say(word=word).model_copy(update={"id": f"say-{word}", "metadata": {"split": split}})
    for word, split in (("rug", "train"), ("cup", "train"), ("bed", "test"))
]
"""


@pytest.fixture(scope="session")
def room_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with a tool, two templates and three tasks in two splits."""
    path = tmp_path_factory.mktemp("room") / "room.py"
    path.write_text(ROOM)
    return path


@pytest.fixture(scope="session")
def room(room_file: Path) -> Iterator[HttpServer]:
    """A server of it."""
    with http_server(room_file.parent / "server", [str(room_file)], "--openenv") as server:
        yield server


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server of a world whose every step has a reward, and of CartPole."""
    source = Path(__file__).resolve().parents[1] / "env" / "environments" / "bench.py"
    folder = tmp_path_factory.mktemp("bench")
    with http_server(
        folder, [str(source)], "--openenv", "--reward", "per_step", "--limit", "sessions=100"
    ) as server:
        yield server
