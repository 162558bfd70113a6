"""The registry of sessions: who may start how many, and how it ends."""

import io
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from PIL import Image
from waiting import PATIENCE_S

from hud_mcp.environment import Environment
from hud_mcp.errors import InvalidTask, LimitReached
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.session.spec import Limits
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.taskset import Taskset
from hud_mcp.values.action import ActionEffect, ClickAction, PositionFetch
from hud_mcp.values.context import Context, ContextFeature, ContextSpace
from hud_mcp.values.observation import Look, Observation, Screenshot
from hud_mcp.world import Opening, WorldSpec

pytestmark = pytest.mark.anyio

LOOK = Look(image="png", max_edge_px=100)


class Wall:
    """A world of 400 by 200 CSS pixels that remembers where it was clicked."""

    def __init__(self) -> None:
        self.at = (0.0, 0.0)

    async def act(self, action: object) -> ActionEffect:
        """Click, or tell where the last click was."""
        if isinstance(action, ClickAction) and action.point is not None:
            self.at = (action.point.x, action.point.y)
        if isinstance(action, PositionFetch):
            x, y = self.at
            return ActionEffect(text=f"at {x:g}, {y:g}", info={"point": {"x": x, "y": y}})
        return ActionEffect()

    async def observe(self, look: Look) -> Observation:
        """A picture of the wall, empty."""
        if look.image is None:
            return Observation(text=f"{self.at}")
        out = io.BytesIO()
        Image.new("RGB", (400, 200)).save(out, "PNG")
        return Observation(text=f"{self.at}", image=Screenshot.from_bytes(out.getvalue()))

    async def close(self) -> None:
        """Nothing is open."""


class WallSpec(WorldSpec):
    """Declares a wall."""

    name = "wall"
    world_type = Wall
    actions = frozenset({"click", "position"})
    has_screen = True
    replayable = True
    context_space = ContextSpace()

    async def open(self, _opening: Opening) -> Wall:
        """Build one."""
        return Wall()


def environment() -> Environment:
    """An environment with one template on a wall."""
    env = Environment("walls", world=WallSpec())

    @env.template(id="ask")
    async def ask(number: int = 1):  # noqa: ANN202
        answer = yield f"Say {number}."
        yield float(answer == str(number))

    return env


@asynccontextmanager
async def registry(tmp_path: Path, **options: object) -> AsyncGenerator[Sessions]:
    """Sessions with a store of their own, closed at the end."""
    sessions = Sessions([environment()], store=Store(tmp_path / "s.sqlite3"), **options)  # type: ignore[arg-type]
    try:
        yield sessions
    finally:
        with anyio.fail_after(PATIENCE_S):
            await sessions.close()


async def test_a_principal_s_sessions_are_counted_whatever_connection_they_came_on(
    tmp_path: Path,
) -> None:
    """2026-era HTTP has no connection that could be told apart; the limit holds there too."""
    task = Task(env="walls", template="ask")
    async with registry(tmp_path, limits=Limits(sessions_per_caller=2)) as sessions:
        with anyio.fail_after(PATIENCE_S):
            await sessions.start(task, caller=Caller(principal="ann"))
            await sessions.start(task, caller=Caller(principal="ann", connection="http:1"))
            with pytest.raises(LimitReached, match="yours; the limit is 2"):
                await sessions.start(task, caller=Caller(principal="ann", connection="http:2"))
            await sessions.start(task, caller=Caller(principal="bob"))


async def test_an_untouched_session_is_found_again_for_its_principal(tmp_path: Path) -> None:
    """A host that renders a prompt twice gets one session, also without a connection."""
    task = Task(env="walls", template="ask")
    async with registry(tmp_path) as sessions:
        with anyio.fail_after(PATIENCE_S):
            ann = Caller(principal="ann")
            started = await sessions.start(task, caller=ann, provisional=True)
            assert sessions.roster.untouched(task, ann) is started
            assert sessions.roster.untouched(task, Caller(principal="bob")) is None
            assert sessions.roster.untouched(task, Caller()) is None


async def test_places_are_pixels_of_the_picture_shown_both_ways(tmp_path: Path) -> None:
    """A picture was scaled down to a quarter: clicks are scaled up, and positions down again."""
    async with registry(tmp_path) as sessions:
        with anyio.fail_after(PATIENCE_S):
            session = await sessions.start(
                Task(env="walls", template="ask"), caller=Caller(connection="c")
            )
            shown = await session.step((), LOOK)
            assert shown.result.observation.image is not None
            assert shown.result.observation.image.width_px == 100
            click = ClickAction.model_validate({"point": {"x": 50, "y": 25}})
            clicked = await session.step((click,), LOOK)
            assert clicked.result.observation.text == "(200.0, 100.0)"
            asked = await session.step((PositionFetch(),), LOOK)
            assert asked.notes == ("The pointer is at (50, 25).",)
            assert asked.result.info["point"] == {"x": 50, "y": 25}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"template": "aks"}, "no template 'aks'. Did you mean 'ask'?"),
        ({"template": "ask", "args": {"nubmer": 1}}, "no argument 'nubmer'. Did you mean"),
        (
            {"template": "ask", "args": {"number": "1"}},
            "number: expected a whole number such as 10",
        ),
        ({"template": "ask", "context": {"gravity": 1}}, "no feature 'gravity'"),
    ],
)
def test_a_listed_task_that_cannot_start_is_refused_when_the_server_is_made(
    tmp_path: Path, row: dict[str, object], said: str
) -> None:
    """A typo in a taskset is told at once, with the task's id, not when the task begins."""
    rows = Taskset([Task.model_validate({"env": "walls", "id": "bad", **row})])
    with pytest.raises(InvalidTask, match="The task 'bad' cannot be offered") as caught:
        Sessions([environment()], store=Store(tmp_path / "s.sqlite3"), tasksets=[rows])
    assert said in str(caught.value)


async def test_closing_does_not_wait_for_a_locked_store(tmp_path: Path) -> None:
    """Hosts kill a server two seconds after they have left it; the store's lock may last longer."""
    async with registry(tmp_path) as sessions:
        with anyio.fail_after(PATIENCE_S):
            await sessions.start(Task(env="walls", template="ask"), caller=Caller(connection="c"))
        lock = sqlite3.connect(tmp_path / "s.sqlite3", isolation_level=None)
        try:
            lock.execute("BEGIN EXCLUSIVE")
            with anyio.fail_after(14):  # the store itself would wait for 15 s
                await sessions.close()
        finally:
            lock.execute("ROLLBACK")
            lock.close()


async def test_a_session_asks_and_grades_by_its_task_s_context(tmp_path: Path) -> None:
    """Features of the environment's own reach its template, completed, and are recorded."""
    space = ContextSpace(
        [
            ContextFeature(name="base", default=10, lower=2, upper=16),
            ContextFeature(name="sign", default="+"),
        ]
    )
    env = Environment("numbers", contexts=space)

    @env.template(id="sum")
    async def add(where: Context, number: int = 7):  # noqa: ANN202
        answer = yield f"{number} {where['sign']} {where['base']}"
        yield float(answer == str(number + where["base"]))  # type: ignore[operator]

    store = Store(tmp_path / "s.sqlite3")
    sessions = Sessions([env], store=store)
    task = Task(env="numbers", template="sum", context={"base": 2})
    try:
        with anyio.fail_after(PATIENCE_S):
            session = await sessions.start(task, caller=Caller(connection="c"))
            assert session.prompt is not None
            assert session.prompt.text == "7 + 2"
            receipt = await session.respond("9")
            assert receipt is not None
            assert receipt.reward == 1.0
            record = await store.load_trajectory(session.trajectory_id)
            assert record.context == {"base": 2, "sign": "+"}
    finally:
        with anyio.fail_after(PATIENCE_S):
            await sessions.close()
