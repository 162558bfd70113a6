"""Calls, ends and faults that meet an answer on its way to its grade."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from crossing import ACCEPTING, ME, Pad, PadSpec, begin, find, pads, refusing, serving, tell
from slate import Moments

from hud_mcp.errors import (
    SessionBusy,
    SessionEnded,
    StoreFailed,
)
from hud_mcp.store import Store
from hud_mcp.values.grade import Grade, Outcome

pytestmark = pytest.mark.anyio


class KeptPad(Pad):
    """One that can be written down."""

    async def snapshot(self) -> bytes:
        """Its words."""
        return " ".join(self.words).encode()

    async def restore(self, data: bytes) -> None:
        """Take the words up."""
        self.words = data.decode().split()


class Late(Store):
    """A store that lets something happen in the very turn in which an answer is durable."""

    then: Callable[[], None] = staticmethod(lambda: None)

    async def add_step(self, *args: Any, **more: Any) -> None:
        """Add it; then something happens."""
        await super().add_step(*args, **more)
        if more.get("answers"):
            self.then()


async def test_an_answer_is_graded_though_the_template_s_deadline_comes_in_the_same_turn(
    tmp_path: Path,
) -> None:
    """It was accepted, so the template gets it, whatever else ends its wait."""
    store, spec = Late(tmp_path / "s.sqlite3"), PadSpec(Moments())
    env, scope = pads(spec), anyio.CancelScope()

    @env.template()
    async def hurry(_pad: Pad) -> Any:
        answer = "none came"
        with scope:
            answer = yield "Answer."
        yield Grade(reward=float(answer == "done"), content=answer)

    store.then = scope.cancel  # type: ignore[method-assign]
    async with serving(store, env) as sessions:
        session = await sessions.start(sessions.catalogue.mint("hurry", {}), caller=ME)
        receipt = await session.respond("done")
        assert receipt is not None
        assert (receipt.reward, receipt.content) == (1.0, "done")


async def test_an_answer_whose_step_is_durable_is_submitted_though_the_log_is_not(
    tmp_path: Path,
) -> None:
    """A disk that fills up between the two loses no answer, and the record has it once."""
    store = tmp_path / "s.sqlite3"
    async with serving(store, pads(PadSpec(Moments()))) as sessions:
        session = await begin(sessions)
        session.journal.log("a line that has no room")
        tell(store, refusing("INSERT ON logs"))
        with pytest.raises(StoreFailed, match="has ended, but its end is not recorded yet"):
            await session.respond("done")
        tell(store, ACCEPTING)
        receipt = await session.respond("done")
        assert receipt is not None
        assert (receipt.reward, receipt.content) == (1.0, "tea; done")
        record = await sessions.store.load_trajectory(session.trajectory_id)
    assert [step.kind for step in record.steps] == ["step", "response"]
    assert "a line that has no room" in (record.logs or "")


async def test_an_answer_that_cannot_be_recorded_leaves_the_record_as_far_behind_as_it_was(
    tmp_path: Path,
) -> None:
    """Its snapshot was not kept either, so a visit's work is still missing, and that is known."""
    store, spec = tmp_path / "s.sqlite3", PadSpec(Moments(), KeptPad, replayable=False)
    async with serving(store, pads(spec)) as sessions:
        session = await begin(sessions)
        async with session.direct_access("pad/1", {"command": "milk"}) as visit:
            visit.world.words.append("milk")  # type: ignore[attr-defined]
            tell(store, refusing("INSERT ON steps"))
            with pytest.raises(StoreFailed, match="was not submitted"):
                await session.respond("done")
            tell(store, ACCEPTING)
            assert session.journal.is_behind
            assert not session.can_park
        assert not session.journal.is_behind
        assert session.can_park


async def test_an_accepted_answer_is_not_cancelled_while_its_world_is_brought_back(
    tmp_path: Path,
) -> None:
    """At every moment of that its cancellation is refused as it is while it is graded."""
    for moment in ("close", "open", "setup"):
        moments = Moments()
        async with serving(tmp_path / f"{moment}.sqlite3", pads(PadSpec(moments))) as sessions:
            session = await begin(sessions)
            session.direct_world().fall()  # type: ignore[attr-defined]
            moments.hold(moment)
            async with anyio.create_task_group() as group:
                group.start_soon(session.respond, "done")
                await moments.arrived.wait()
                with pytest.raises(SessionBusy, match="ends with its grade"):
                    await session.cancel()
                moments.go_on.set()
            receipt = await session.respond("done")
            assert receipt is not None
            assert (receipt.outcome, receipt.content) == (Outcome.GRADED, "tea; done")


async def test_a_store_that_cannot_be_read_costs_an_accepted_answer_nothing(
    tmp_path: Path,
) -> None:
    """Its world died, and its record cannot be read: it waits there, and is graded later."""
    store, spec = tmp_path / "s.sqlite3", PadSpec(Moments())
    async with serving(store, pads(spec)) as sessions:
        session = await begin(sessions)
        session.direct_world().fall()  # type: ignore[attr-defined]
        tell(store, "ALTER TABLE snapshots RENAME TO elsewhere")
        with pytest.raises(SessionEnded, match="waits in its record"):
            await session.respond("done")
        assert session.receipt is None
        tell(store, "ALTER TABLE elsewhere RENAME TO snapshots")
        receipt = await (await find(sessions, session.id)).respond("done")
        assert receipt is not None
        assert (receipt.reward, receipt.content) == (1.0, "tea; done")
    assert spec.graded == ["done"]
