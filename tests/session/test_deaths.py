"""Worlds that die, hang or cannot be looked at: how their sessions go on, and whose doing it is."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from hud_mcp.action import Action, ActionEffect, CustomAction
from hud_mcp.context import ContextSpace
from hud_mcp.environment import Environment
from hud_mcp.errors import (
    AlreadyAnswered,
    BrokenByAgent,
    EnvironmentFailed,
    GraderFailed,
    SessionEnded,
    WorldDied,
)
from hud_mcp.grade import Cause, Outcome
from hud_mcp.observation import Look, Observation
from hud_mcp.server.results import receipt_text, receipt_view
from hud_mcp.session.limits import Limits
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Caller, Session
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.world import Opening, WorldSpec

pytestmark = pytest.mark.anyio

LOOK = Look()
TASK = Task(env="slates", template="sum")


@dataclass
class Faults:
    """What goes wrong with slates: shared by all that a spec opens, as a machine's are.

    Attributes:
        act: Called with each action and its slate, before it is done.
        look: Called with the slate at each look.
        snapshot: Called at each snapshot.
        opened: How many slates there were.
    """

    act: Callable[[str, "Slate"], None] = lambda _name, _slate: None
    look: Callable[["Slate"], None] = lambda _slate: None
    snapshot: Callable[["Slate"], None] = lambda _slate: None
    hangs: bool = False
    opened: int = 0
    names: list[str] = field(default_factory=list[str])


class Slate:
    """A list of numbers that an agent adds to."""

    def __init__(self, faults: Faults) -> None:
        self.numbers: list[int] = []
        self.broken: str | None = None
        self._faults = faults

    @property
    def died(self) -> str | None:
        """Why it is broken."""
        return self.broken

    def check(self) -> None:
        """Refuse to be used once it is broken."""
        if self.broken:
            raise EnvironmentFailed(self.broken)

    async def act(self, action: Action) -> ActionEffect:
        """Add a number."""
        self.check()
        assert isinstance(action, CustomAction)
        self._faults.names.append(action.action)
        self._faults.act(action.action, self)
        self.numbers.append(int((action.args or {}).get("number", 0)))
        return ActionEffect()

    async def observe(self, look: Look) -> Observation:
        """Every number."""
        self.check()
        self._faults.look(self)
        if self._faults.hangs:
            await anyio.sleep_forever()
        return Observation(text=f"{self.numbers}" if look.text else None)

    async def snapshot(self) -> bytes:
        """The numbers, as text."""
        self.check()
        self._faults.snapshot(self)
        return ",".join(map(str, self.numbers)).encode()

    async def restore(self, data: bytes) -> None:
        """Take the numbers up."""
        self.numbers = [int(each) for each in data.decode().split(",") if each]

    async def close(self) -> None:
        """Nothing is open."""


class SlateSpec(WorldSpec):
    """Declares a slate."""

    name = "slate"
    world_type = Slate
    actions = frozenset({"custom"})
    has_screen = False
    context_space = ContextSpace()

    def __init__(self, faults: Faults, *, replayable: bool) -> None:
        self.faults = faults
        self.replayable = replayable

    async def open(self, _opening: Opening) -> Slate:
        """Take one."""
        self.faults.opened += 1
        return Slate(self.faults)


@asynccontextmanager
async def registry(
    folder: Path,
    faults: Faults,
    *,
    replayable: bool = True,
    policy: str | None = None,
    **limits: float,
) -> AsyncGenerator[Sessions]:
    """Sessions on slates, closed at the end; `sum` grades 1.0 where the slate has what it says."""
    env = Environment("slates", world=SlateSpec(faults, replayable=replayable))

    @env.template(id="sum")
    async def total(slate: Slate):  # noqa: ANN202
        answer = yield "Fill the slate; answer with the sum."
        slate.check()
        seen = (await slate.observe(LOOK)).text
        yield float(answer == str(sum(slate.numbers)) and seen == str(slate.numbers))

    sessions = Sessions(
        [env],
        store=Store(folder / "s.sqlite3"),
        limits=Limits.model_validate(limits),
        reward_policy=policy,
    )
    try:
        with anyio.fail_after(60):
            yield sessions
    finally:
        with anyio.fail_after(10):
            await sessions.close()


async def begin(sessions: Sessions) -> Session:
    """A session of the task."""
    return await sessions.start(TASK, caller=Caller(connection="c"))


async def add(session: Session, number: int, name: str = "add") -> str:
    """Add a number; what is seen then."""
    action = CustomAction(action=name, args={"number": number})
    stepped = await session.step((action,), LOOK)
    assert stepped.error is None
    return stepped.result.observation.text or ""


def once(name: str) -> Callable[[str, Slate], None]:
    """A fault that breaks the slate the first time that an action of this name is done."""
    left = [name]

    def fail(given: str, slate: Slate) -> None:
        if given in left:
            left.remove(given)
            slate.broken = "The slate fell."
            raise EnvironmentFailed("The slate fell.")

    return fail


def always(*names: str) -> Callable[..., None]:
    """A fault that breaks the slate at every action of these names."""

    def fail(given: str, slate: Slate) -> None:
        if given in names:
            slate.broken = "The slate fell."
            slate.check()

    return fail


@pytest.mark.parametrize("replayable", [True, False], ids=["replayed", "restored"])
async def test_a_world_that_dies_once_is_back_as_it_was_and_the_call_is_undone(
    tmp_path: Path, *, replayable: bool
) -> None:
    """The call is refused in words, its step is performed 0 times, and the task goes on to 1.0."""
    faults = Faults(act=once("drop"))
    async with registry(tmp_path, faults, replayable=replayable) as sessions:
        session = await begin(sessions)
        await add(session, 1)
        with pytest.raises(WorldDied) as refused:
            await add(session, 2, "drop")
        said = str(refused.value)
        assert "The world of this session died: The slate fell. It has been restored" in said
        assert "What this call did is undone" in said
        assert session.state == "open"
        assert await add(session, 2, "drop") == "[1, 2]"
        receipt = await session.respond("3")
        assert receipt is not None
        assert (receipt.outcome, receipt.reward, receipt.error) == (Outcome.GRADED, 1.0, None)
        record = await sessions.store.load_trajectory(session.trajectory_id)
    assert [step.performed for step in record.steps] == [1, 0, 1, 1]
    assert record.steps[1].undone
    assert "The slate fell." in (record.steps[1].error or "")
    assert "its world died: The slate fell." in (record.logs or "")
    assert faults.opened == 2


async def test_a_world_that_dies_again_of_the_same_action_is_the_agents_doing(
    tmp_path: Path,
) -> None:
    """The second time ends the session: graded 0.0, cause agent, with the reason, in the record."""
    async with registry(tmp_path, Faults(act=always("drop"))) as sessions:
        session = await begin(sessions)
        with pytest.raises(WorldDied):
            await add(session, 2, "drop")
        with pytest.raises(SessionEnded, match=r"by its agent's doing: Its world died a second"):
            await add(session, 2, "drop")
        record = await sessions.store.load_trajectory(session.trajectory_id)
    receipt = record.receipt
    assert receipt is not None
    assert (receipt.outcome, receipt.reward, receipt.cause) == (Outcome.GRADED, 0.0, Cause.AGENT)
    assert "a second time of the same: The slate fell." in (receipt.error or "")
    assert [step.undone for step in record.steps] == [True, True]


async def test_the_second_death_is_counted_from_the_record_in_another_server(
    tmp_path: Path,
) -> None:
    """A server that resumes the session between the two deaths knows of the first."""
    async with registry(tmp_path, Faults(act=always("drop"))) as sessions:
        session = await begin(sessions)
        session_id = session.id
        with pytest.raises(WorldDied):
            await add(session, 2, "drop")
    async with registry(tmp_path, Faults(act=always("drop"))) as sessions:
        found = await sessions.find(session_id, Caller(connection="d"))
        assert isinstance(found, Session)
        with pytest.raises(SessionEnded, match="by its agent's doing"):
            await add(found, 2, "drop")


async def test_other_ways_to_break_the_world_in_a_row_are_the_agents_doing_too(
    tmp_path: Path,
) -> None:
    """Two actions that take turns do not keep a session alive for ever."""
    async with registry(tmp_path, Faults(act=always("drop", "throw"))) as sessions:
        session = await begin(sessions)
        for name in ("drop", "throw"):
            with pytest.raises(WorldDied):
                await add(session, 1, name)
        with pytest.raises(SessionEnded, match="by its agent's doing"):
            await add(session, 1, "drop")


async def test_a_replay_that_the_last_action_kills_again_is_the_agents_doing(
    tmp_path: Path,
) -> None:
    """What was performed, and broke the world later, breaks it again: graded 0.0, cause agent."""

    def fail(name: str, slate: Slate) -> None:
        if name == "mine" and faults.opened > 1:
            slate.broken = "The slate blew up."
            slate.check()

    faults = Faults(act=fail)
    async with registry(tmp_path, faults) as sessions:
        session = await begin(sessions)
        await add(session, 1)
        await add(session, 2, "mine")
        session.direct_world().broken = "The slate blew up."  # type: ignore[attr-defined]
        with pytest.raises(SessionEnded, match="by its agent's doing"):
            await add(session, 3)
        receipt = session.receipt
        assert receipt is not None
        assert (receipt.reward, receipt.cause) == (0.0, Cause.AGENT)


async def test_a_replay_that_an_earlier_action_kills_is_the_machines(tmp_path: Path) -> None:
    """A world that cannot come back is `environment_failed`, cause machine, and no reward."""

    def fail(name: str, slate: Slate) -> None:
        if name == "mine" and faults.opened > 1:
            slate.broken = "The slate blew up."
            slate.check()

    faults = Faults(act=fail)
    async with registry(tmp_path, faults) as sessions:
        session = await begin(sessions)
        await add(session, 1, "mine")
        await add(session, 2)
        session.direct_world().broken = "The slate blew up."  # type: ignore[attr-defined]
        with pytest.raises(EnvironmentFailed, match="could not be resumed"):
            await add(session, 3)
        receipt = session.receipt
        assert receipt is not None
        assert (receipt.outcome, receipt.reward) == (Outcome.ENVIRONMENT_FAILED, None)
        assert receipt.cause is Cause.MACHINE


async def test_a_world_that_died_between_calls_is_held_against_nobody(tmp_path: Path) -> None:
    """However often somebody kills it before the same call, the session goes on to its grade."""
    async with registry(tmp_path, Faults()) as sessions:
        session = await begin(sessions)
        for _ in range(4):
            session.direct_world().broken = "It was killed."  # type: ignore[attr-defined]
            with pytest.raises(WorldDied, match="Nothing of this call was done"):
                await add(session, 5)
        assert await add(session, 5) == "[5]"
        receipt = await session.respond("5")
        assert receipt is not None
        assert receipt.reward == 1.0


async def test_only_looking_at_what_dies_is_held_against_nobody(tmp_path: Path) -> None:
    """A world that dies of every look, before anything was done in it, is the machine's."""

    def fail(slate: Slate) -> None:
        slate.broken = "The slate fell."
        slate.check()

    async with registry(tmp_path, Faults(look=fail)) as sessions:
        session = await begin(sessions)
        with pytest.raises(WorldDied):
            await session.step((), LOOK)
        with pytest.raises(EnvironmentFailed):
            await session.step((), LOOK)
        receipt = session.receipt
        assert receipt is not None
        assert (receipt.outcome, receipt.cause) == (Outcome.ENVIRONMENT_FAILED, Cause.MACHINE)


async def test_what_cannot_come_back_is_the_machines(tmp_path: Path) -> None:
    """A world without a replay or a snapshot ends its session when it dies."""

    def no_snapshot(_slate: Slate) -> None:
        raise BrokenByAgent("There is too much on it.")

    faults = Faults(act=always("drop"), snapshot=no_snapshot)
    async with registry(tmp_path, faults, replayable=False) as sessions:
        session = await begin(sessions)
        await add(session, 1)
        with pytest.raises(EnvironmentFailed):
            await add(session, 2, "drop")
        receipt = session.receipt
        assert receipt is not None
        assert receipt.reward is None
        assert (receipt.outcome, receipt.cause) == (Outcome.ENVIRONMENT_FAILED, Cause.MACHINE)


@pytest.mark.parametrize("way", ["response", "step"])
async def test_a_world_that_knows_its_agent_has_ended_it_is_graded_as_its_doing(
    tmp_path: Path, way: str
) -> None:
    """It cannot come back and says whose doing that is, call after call, until it is answered."""

    def gone(_name: str, slate: Slate) -> None:
        if slate.numbers:
            raise BrokenByAgent("The slate is in pieces.")

    def look(slate: Slate) -> None:
        gone("", slate)

    faults = Faults(act=gone, look=look, snapshot=look)
    async with registry(tmp_path, faults, replayable=False) as sessions:
        session = await begin(sessions)
        await session.step((CustomAction(action="add", args={"number": 4}),), LOOK)
        for _ in range(4):
            stepped = await session.step((CustomAction(action="add", args={"number": 5}),), LOOK)
            assert "The slate is in pieces." in (stepped.error or "")
        receipt = await answer(session, "4", way)
    assert (receipt.outcome, receipt.reward, receipt.cause) == ("graded", 0.0, "agent")
    assert receipt.content == "The slate is in pieces."


@pytest.mark.parametrize("way", ["response", "step"])
async def test_an_answer_is_taken_where_the_agent_has_made_looking_impossible(
    tmp_path: Path, way: str
) -> None:
    """It is graded 0.0, cause agent, with the world's reason; the answer's step has no text."""

    def broken(slate: Slate) -> None:
        if slate.numbers:
            raise BrokenByAgent("The slate's frame is gone.")

    async with registry(tmp_path, Faults(look=broken)) as sessions:
        session = await begin(sessions)
        stepped = await session.step((CustomAction(action="add", args={"number": 4}),), LOOK)
        assert "What was done stands" in (stepped.error or "")
        receipt = await answer(session, "4", way)
        assert (receipt.outcome, receipt.reward, receipt.cause) == ("graded", 0.0, "agent")
        assert receipt.content == "The slate's frame is gone."
        assert "The slate's frame is gone." in (receipt.error or "")
        record = await sessions.store.load_trajectory(session.trajectory_id)
    assert record.steps[-1].observation_text is None
    assert "Nothing was seen as it was answered" in (record.steps[-1].error or "")


@pytest.mark.parametrize("way", ["response", "step"])
async def test_an_answer_is_taken_by_a_world_whose_look_hangs(tmp_path: Path, way: str) -> None:
    """It is handed over within seconds, and the template grades what it can see."""

    def hang(slate: Slate) -> None:
        faults.hangs = bool(slate.numbers) and not graded.is_set()
        graded.set()

    graded = asyncio.Event()
    faults = Faults()
    async with registry(tmp_path, faults, step_s=2) as sessions:
        session = await begin(sessions)
        await add(session, 4)
        faults.look = hang
        with anyio.fail_after(10):
            receipt = await answer(session, "4", way)
        assert receipt.reward == 1.0
        record = await sessions.store.load_trajectory(session.trajectory_id)
    assert "it took longer than 0.5 s" in (record.steps[-1].error or "")


async def test_a_snapshot_that_fails_or_hangs_does_not_stop_an_answer(tmp_path: Path) -> None:
    """It costs durability alone, and the log says so."""

    def fail(_slate: Slate) -> None:
        raise EnvironmentFailed("The camera is broken.")

    async with registry(tmp_path, Faults(snapshot=fail), replayable=False) as sessions:
        session = await begin(sessions)
        await add(session, 4)
        receipt = await session.respond("4")
        assert receipt is not None
        assert receipt.reward == 1.0
        record = await sessions.store.load_trajectory(session.trajectory_id)
    assert "no snapshot after step 0: The camera is broken." in (record.logs or "")


@pytest.mark.parametrize("replayable", [True, False], ids=["replayed", "restored"])
@pytest.mark.parametrize("way", ["response", "step"])
async def test_an_answer_to_a_dead_world_is_graded_in_the_one_that_comes_back(
    tmp_path: Path, way: str, *, replayable: bool
) -> None:
    """Nobody has to give it again, and correct work is graded 1.0."""
    faults = Faults()
    async with registry(tmp_path, faults, replayable=replayable) as sessions:
        session = await begin(sessions)
        await add(session, 4)
        session.direct_world().broken = "It was killed."  # type: ignore[attr-defined]
        receipt = await answer(session, "4", way)
        assert (receipt.reward, receipt.error) == (1.0, None)
        with pytest.raises((SessionEnded, AlreadyAnswered)):
            await session.respond("5")
    assert faults.opened == 2


async def test_a_world_that_dies_as_it_is_graded_is_graded_again(tmp_path: Path) -> None:
    """Once: the second time it is the agent's doing, who filled it, and nobody's else."""
    for deaths, outcome, cause in ((1, 1.0, "agent"), (2, 0.0, "agent")):
        left = [deaths]

        def fail(slate: Slate, left: list[int] = left) -> None:
            if asyncio.current_task().get_name().startswith("driver") and left[0]:  # type: ignore[union-attr]
                left[0] -= 1
                slate.broken = "The slate fell."
                slate.check()

        async with registry(tmp_path, Faults(look=fail)) as sessions:
            session = await begin(sessions)
            await add(session, 4)
            receipt = await session.respond("4")
            assert receipt is not None
            assert (receipt.reward, receipt.cause) == (outcome, cause)
            assert (receipt.error is None) == (deaths == 1)


async def test_a_call_that_comes_while_the_world_is_brought_back_waits_for_it(
    tmp_path: Path,
) -> None:
    """Calls at once with the one under which it died are refused, or see the world as it was."""
    faults = Faults(act=once("drop"))
    async with registry(tmp_path, faults) as sessions:
        session = await begin(sessions)
        await add(session, 1)
        seen: list[str] = []

        async def call(name: str, number: int) -> None:
            try:
                seen.append(await add(session, number, name))
            except WorldDied as exc:
                seen.append(str(exc))

        async with anyio.create_task_group() as group:
            for i in range(4):
                group.start_soon(call, "drop" if i == 0 else "add", 10 + i)
        assert len(seen) == 4
        assert sum("world of this session died" in text for text in seen) >= 1
        assert all(text.startswith(("[1", "The world of this session died")) for text in seen)
        world = session.direct_world()
        assert isinstance(world, Slate)
        numbers = list(world.numbers)
        receipt = await session.respond(str(sum(numbers)))
        assert receipt is not None
        assert receipt.reward == 1.0
        record = await sessions.store.load_trajectory(session.trajectory_id)
    added = [s for s in record.steps[:-1] if s.performed]
    done = [s.actions[0]["args"]["number"] for s in added]
    assert done == numbers, "what is in the world is what the record says"


async def answer(session: Session, text: str, way: str):  # noqa: ANN201
    """Answer as the tool `response` does, or with a response action."""
    if way == "step":
        from hud_mcp.action import ResponseAction  # noqa: PLC0415

        stepped = await session.step((ResponseAction(text=text),), LOOK)
        assert stepped.answered
    receipt = await session.respond(text)
    assert receipt is not None
    return receipt


class Gated(SlateSpec):
    """Slates of which every one but the first waits to be opened."""

    def __init__(self, faults: Faults) -> None:
        super().__init__(faults, replayable=True)
        self.waits = anyio.Event()
        self.gate = anyio.Event()

    async def open(self, opening: Opening) -> Slate:
        """Take one; a later one, when it is let through."""
        if self.faults.opened:
            self.waits.set()
            await self.gate.wait()
        return await super().open(opening)


@pytest.mark.parametrize("end", ["cancel", "close"])
async def test_a_session_can_be_ended_while_its_world_is_brought_back(
    tmp_path: Path, end: str
) -> None:
    """A cancelled one has that outcome; one whose server stops goes on in the next one."""
    world = Gated(Faults(act=once("drop")))
    env = Environment("slates", world=world)

    @env.template(id="sum")
    async def total(slate: Slate):  # noqa: ANN202
        answer = yield "Fill the slate; answer with the sum."
        yield float(answer == str(sum(slate.numbers)))

    store = Store(tmp_path / "s.sqlite3")
    sessions = Sessions([env], store=store)
    said: list[str] = []
    with anyio.fail_after(30):
        session = await begin(sessions)
        await add(session, 1)

        async def call() -> None:
            try:
                await add(session, 2, "drop")
            except (SessionEnded, WorldDied) as exc:
                said.append(str(exc))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await world.waits.wait()
            assert session.busy
            if end == "cancel":
                await session.cancel()
            else:
                await sessions.close()
        (told,) = said
        if end == "cancel":
            assert session.receipt is not None
            assert (session.receipt.outcome, session.receipt.cause) == ("cancelled", Cause.AGENT)
            assert "was cancelled" in told
            await sessions.close()
            return
        assert "The session waits in its record" in told
    async with registry(tmp_path, Faults()) as later:
        found = await later.find(session.id, Caller(connection="d"))
        assert isinstance(found, Session)
        assert await add(found, 2) == "[1, 2]"


async def test_a_death_leaves_what_others_hold_of_the_session_as_it_was(tmp_path: Path) -> None:
    """Whoever holds the session, holds the one that goes on: id, prompt, seed and start."""
    async with registry(tmp_path, Faults(act=once("drop"))) as sessions:
        session = await begin(sessions)
        before = (session.id, session.prompt, session.started_at, session.trajectory_id)
        with pytest.raises(WorldDied):
            await add(session, 2, "drop")
        found = await sessions.find(session.id, Caller(connection="c"))
        assert found is session
        assert (session.id, session.prompt, session.started_at, session.trajectory_id) == before


@pytest.mark.parametrize(
    ("how", "reward", "error"),
    [
        ("catches", 0.5, None),
        ("passes_on", 0.0, "The slate's frame is gone."),
        ("wraps", 0.0, "The slate's frame is gone."),
        ("groups", 0.0, "The slate's frame is gone."),
        ("fails_itself", None, "the grader's own bug"),
    ],
)
async def test_a_template_is_told_what_the_agent_broke_and_grades_what_there_is(
    tmp_path: Path, how: str, reward: float | None, error: str | None
) -> None:
    """Its own grade is an ordinary one; what it does not catch is 0.0; its own fault none."""

    def broken(slate: Slate) -> None:
        if slate.numbers:
            raise BrokenByAgent("The slate's frame is gone.")

    env = Environment("slates", world=SlateSpec(Faults(look=broken), replayable=True))

    @env.template(id="sum")
    async def total(slate: Slate):  # noqa: ANN202
        yield "Fill the slate."
        try:
            if how == "groups":
                async with anyio.create_task_group() as group:
                    group.start_soon(slate.observe, LOOK)
            await slate.observe(LOOK)
        except BrokenByAgent as exc:
            if how == "passes_on":
                raise
            if how == "wraps":
                raise GraderFailed("The grader cannot run.") from exc
            if how == "fails_itself":
                raise ValueError("the grader's own bug") from exc
        yield 0.5

    sessions = Sessions([env], store=Store(tmp_path / "s.sqlite3"))
    with anyio.fail_after(20):
        session = await begin(sessions)
        await session.step((CustomAction(action="add", args={"number": 4}),), LOOK)
        with suppress(SessionEnded):
            await session.respond("4")
        receipt = session.receipt
        await sessions.close()
    assert receipt is not None
    failed = reward is None
    assert receipt.outcome == ("grading_failed" if failed else "graded")
    assert receipt.reward == reward
    assert receipt.cause is (Cause.MACHINE if failed else Cause.AGENT)
    assert receipt.is_by_agent == (reward == 0.0)
    assert (receipt.error or "").endswith(error or "")
    assert (error is None) == (receipt.error is None)


async def test_a_death_is_not_answered_with_a_reward_where_rewards_are_hidden(
    tmp_path: Path,
) -> None:
    """The agent learns why its session is over, and of no number."""
    async with registry(tmp_path, Faults(act=always("drop")), policy="hidden") as sessions:
        session = await begin(sessions)
        with pytest.raises(WorldDied):
            await add(session, 2, "drop")
        with pytest.raises(SessionEnded) as told:
            await add(session, 2, "drop")
        receipt = session.receipt
    assert receipt is not None
    for said in (str(told.value), receipt_text(receipt, "hidden", "")):
        assert "Its world died a second time" in said
        assert "reward" not in said
        assert "0.0" not in said
    assert "reward" not in receipt_view(receipt, "hidden")
    shown = receipt_text(receipt, "on_submit", "")
    assert shown.startswith("Graded: reward 0, by the agent's doing.")
