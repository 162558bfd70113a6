"""Sixty-four sessions at once in one server: each is as it would be alone."""

import random
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest
from peers import BOARD, LEGACY, MODERN, Held, Peer, http_peer, http_server, load_all, stdio_peer
from waiting import PATIENCE_S

pytestmark = pytest.mark.anyio

COUNT = 64


async def play(peer: Peer, number: int) -> None:
    """One session with notes, clicks and an outcome of its own; fails on anything of another's."""
    dice = random.Random(number)
    marker = f"<{number}>"
    notes = [f"{marker}-{i}" for i in range(1 + number % 4)]
    task = await peer.start("collect", marker=marker, wanted=notes)
    assert task.prompt.startswith(f"[{marker}] Write these notes: {notes[0]}")
    done: list[str] = []
    kinds: list[str] = []
    for note in notes:
        action = {"type": "type", "text": note, "enter_after": True}
        if dice.random() < 0.5:
            seen = await peer.ok("step", session=task.session, actions=[action])
            kinds.append("step")
        else:
            seen = await peer.ok("act", session=task.session, **action)
            kinds.append("act")
        done.append(note)
        assert seen.text == f"marker={marker} clicks=[] notes={done} typed=''"
        assert seen.step["session"] == task.session
        assert seen.step["steps"] == len(kinds)
    if number % 3 == 0:
        await peer.error(
            "step", session=task.session, actions=[{"type": "custom", "action": "refuse"}]
        )
        kinds.append("step")
    match number % 4:
        case 0 | 1:
            answer, outcome, reward = "done", "graded", 1.0
        case 2:
            answer, outcome, reward = "something else", "graded", 0.25
        case _:
            answer, outcome, reward = None, "cancelled", None
    if answer is None:
        await peer.ok("cancel_task", session=task.session)
    else:
        graded = await peer.ok("response", session=task.session, answer=answer)
        assert graded.structured["reward"] == reward
        assert graded.structured["content"] == f"{len(notes)} notes on the board of {marker}."
        kinds.append("response")
    await check(peer, task, marker, kinds, outcome, reward)


async def check(  # noqa: PLR0917  # what one session must have become
    peer: Peer, task: Held, marker: str, kinds: list[str], outcome: str, reward: float | None
) -> None:
    """The record has each step once, in order, and nothing of another session."""
    record = await peer.record(task)
    assert (record.outcome, record.reward) == (outcome, reward)
    assert [s.kind for s in record.steps] == kinds
    assert [s.index for s in record.steps] == list(range(len(kinds)))
    texts = [s.observation_text for s in record.steps if s.observation_text]
    assert all(text.startswith(f"marker={marker} ") for text in texts)
    times = [t for s in record.steps for t in (s.started_at, s.ended_at)]
    assert times == sorted(times)


@pytest.mark.long
async def test_sixty_four_sessions_at_once_over_one_stdio_connection(tmp_path: Path) -> None:
    """Interleaved on one pipe, with no cross-talk and no step lost, doubled or out of order."""
    async with stdio_peer(
        tmp_path, (BOARD,), "--limit", f"sessions_per_caller={COUNT}", era=MODERN
    ) as peer:
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as group:
                for number in range(COUNT):
                    group.start_soon(play, peer, number)
    await check_all(tmp_path / "store.sqlite3")


@pytest.mark.long
async def test_sixty_four_sessions_at_once_over_eight_http_connections(tmp_path: Path) -> None:
    """The same over HTTP, with connections of both eras side by side."""
    with http_server(tmp_path, (BOARD,)) as server:
        async with AsyncExitStack() as stack:
            peers = [
                await stack.enter_async_context(
                    http_peer(server, era=LEGACY if number % 2 else MODERN)
                )
                for number in range(8)
            ]
            with anyio.fail_after(PATIENCE_S):
                async with anyio.create_task_group() as group:
                    for number in range(COUNT):
                        group.start_soon(play, peers[number % 8], number)
        await check_all(server.store)


async def check_all(store: Path) -> None:
    """Every session is in the store once, with the outcome that it was given."""
    records = await load_all(store)
    assert len(records) == COUNT
    assert len({r.task.args["marker"] for r in records}) == COUNT
    assert Counter(str(r.outcome) for r in records) == {"graded": 48, "cancelled": 16}
