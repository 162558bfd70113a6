"""The pages of a task are read in its own world, whatever its template holds over its question."""

from pathlib import Path

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp import Environment
from hud_mcp.environment.task import Task
from hud_mcp.loading.source import load_environments
from hud_mcp.rollout.checking.pages import PageReading, open_page_reader

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

SOURCE = """
import sys

import anyio
from hud_mcp import Browser, BrowserWorld, Environment, SiteResponse

async def backend(request, state):
    if request.path == "/api/take":
        state["taken"] = True
    page = "<p>The code is heron.</p><a href='/api/take'>Take it</a>"
    return SiteResponse(text=f"<!doctype html>{page}")

env = Environment("shop", world=Browser(backend=backend, state={"taken": False}, start=None))
ended = []

@env.template()
async def holds(browser: BrowserWorld):
    await browser.goto("/api/shop")
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep_forever)
            try:
                yield "Take it."
            finally:
                ended.append("holds")
                group.cancel_scope.cancel()
    yield 1.0

@env.template()
async def fails(browser: BrowserWorld):
    await browser.goto("/api/shop")
    try:
        yield "Take it."
    finally:
        raise ValueError("the shelf is gone")
    yield 1.0

@env.template()
async def exits(browser: BrowserWorld):
    sys.exit(3)
    yield "Take it."
    yield 1.0

@env.template()
async def breaks(browser: BrowserWorld):
    raise ValueError("there is no shelf")
    yield "Take it."
    yield 1.0
"""


@pytest.fixture
def shop(tmp_path: Path) -> Environment:
    """A site with one address that changes its state."""
    (tmp_path / "env.py").write_text(SOURCE)
    (environment,) = load_environments([str(tmp_path / "env.py")])
    return environment


async def read(shop: Environment, template: str) -> PageReading:
    """Read the pages of a template's task."""
    with anyio.fail_after(PATIENCE_S):
        async with open_page_reader(seed=1) as reader:
            return await reader.read(Task(id="t", env="shop", template=template), shop, ["heron"])


async def test_a_template_may_hold_a_task_group_and_a_bound_over_its_question(
    shop: Environment,
) -> None:
    """It ends in the task that it began in, and its cleanup has run."""
    found = await read(shop, "holds")
    assert found.failed is None
    assert found.changing == ["/api/take"]
    assert {each.text for each in found.seen} == {"heron"}
    template = shop.find_template("holds")
    assert template.function.__globals__["ended"] == ["holds"]


async def test_a_template_that_fails_is_named_and_harms_nothing_else(shop: Environment) -> None:
    """On the way to its question, or as it ends; what was read until then is kept."""
    broken = await read(shop, "breaks")
    assert broken.failed is not None
    assert "there is no shelf" in broken.failed
    assert broken.changing == []
    assert (await read(shop, "exits")).failed == "its template calls exit"
    left = await read(shop, "fails")
    assert left.failed is not None
    assert "the shelf is gone" in left.failed
    assert left.changing == ["/api/take"]
