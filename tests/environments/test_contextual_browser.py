"""The contextual set of the browser: its splits are what they say, and every row can be solved."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import anyio
import pytest
from test_quickstart import AT_ONCE, Play, play_row
from waiting import PATIENCE_S

from hud_mcp import Task, Taskset
from hud_mcp.loading.contexts import base_task, split_of
from hud_mcp.loading.sets import find_taskset
from hud_mcp.loading.source import load_environments
from hud_mcp.world import Shared

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

ROWS = Taskset.load(find_taskset("contextual_browser"))
QUICKSTART = Taskset.load(find_taskset("quickstart"))
(BROWSER,) = load_environments(["browser"])
NUMBERS = (
    "viewport_width", "viewport_height", "device_scale_factor", "font_scale", "latency_ms",
)  # fmt: skip


def contexts(split: str) -> list[dict[str, Any]]:
    """The contexts of the rows of a split."""
    return [row.context for row in ROWS if split_of(row) == split]


def test_each_task_is_there_under_each_context() -> None:
    """Rows of one task share its arguments and its grading, and nothing but contexts differs."""
    names = {row.metadata["context"] for row in ROWS}
    bases = {base_task(row) for row in ROWS}
    assert set(ROWS.ids) == {f"{base}@{name}" for base in bases for name in names}
    for row in ROWS:
        plain = QUICKSTART[base_task(row)]
        assert (row.template, row.args, row.validation) == (
            plain.template, plain.args, plain.validation,
        )  # fmt: skip
        assert BROWSER.context_space.problems(row.context) == []


def test_what_is_inside_is_inside_and_what_is_outside_is_outside() -> None:
    """Test contexts lie within what was trained on; each outer one leaves it in every number."""
    train, inside, outside = (contexts(s) for s in ("train", "test", "test-outside"))
    assert len(train) + len(inside) + len(outside) == len(ROWS)
    for name in NUMBERS:
        trained = [context[name] for context in train]
        low, high = min(trained), max(trained)
        assert all(low <= context[name] <= high for context in inside), name
        assert not any(low <= context[name] <= high for context in outside), name
    for name in ("locale", "timezone"):
        trained = {context[name] for context in train}
        assert {context[name] for context in inside} <= trained
        assert not {context[name] for context in outside} & trained


@pytest.fixture(scope="module")
async def solved(anyio_backend: str) -> AsyncIterator[dict[str, Play | Exception]]:
    """Every row, played with its own solution; what failed is told by the test that asks."""
    shared = Shared()
    results: dict[str, Play | Exception] = {}
    turns = anyio.CapacityLimiter(AT_ONCE)

    async def keep(row: Task) -> None:
        async with turns:
            try:
                with anyio.fail_after(PATIENCE_S):
                    results[row.id] = await play_row(row, "oracle", shared)
            except Exception as exc:  # noqa: BLE001  # raised again by the test
                results[row.id] = exc

    async with anyio.create_task_group() as group:
        for row in ROWS:
            group.start_soon(partial(keep, row))
    yield results
    with anyio.fail_after(PATIENCE_S):
        await shared.close()


@pytest.mark.long
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_row_is_solved_by_its_solution(row: Task, solved: dict[str, Play | Exception]) -> None:
    """Small or large, near or far, in whatever language: the task can be done."""
    play = solved[row.id]
    if isinstance(play, Exception):
        raise play
    assert play.grade is not None
    assert play.grade.reward == 1.0
