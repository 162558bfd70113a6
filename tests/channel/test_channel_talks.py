"""A task that talks, on a wire of one prompt and one answer."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from wire import served, wire

from hud_mcp import Ask, Environment, Say

pytestmark = pytest.mark.anyio

env = Environment("talks")


@env.template(user=True)
async def chat() -> AsyncGenerator[Any, Any]:
    """Talk."""
    yield Say("Hello.")
    yield 1.0


@env.template()
async def quiz() -> AsyncGenerator[Any, Any]:
    """Ask twice."""
    yield Ask("One?")
    yield Ask("Two?")
    yield 1.0


async def test_the_control_channel_refuses_a_task_that_talks(tmp_path: Path) -> None:
    """It names the tool that carries it; a task of questions takes no single answer."""
    async with served(env, tmp_path / "store.sqlite3") as here, wire(here.port) as peer:
        assert "message_user" in (await peer.refused("tasks.start", id="chat")).text
        await peer.start("quiz")
        assert "message_user" in (await peer.refused("tasks.grade", answer="1")).text
