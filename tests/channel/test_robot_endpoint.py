"""Gymnasium worlds as robots over the channel: HUD's wire in, recorded steps out."""

import json
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import numpy as np
import pytest
from waiting import PATIENCE_S
from wire import Served, Wire, process, served, wire

from hud_mcp.errors import EnvironmentFailed
from hud_mcp.loading.source import load_environments
from hud_mcp.plugins.hud.wire.hud_session import HudSession
from hud_mcp.plugins.hud.wire.hud_sessions import NoHudSession
from hud_mcp.plugins.hud.wire.openpi import claim, pack
from hud_mcp.plugins.hud.wire.publishing import Publishing
from hud_mcp.session.session import Session
from hud_mcp.values.grade import Outcome

pytestmark = pytest.mark.anyio

DRIVER = Path(__file__).resolve().parent / "agents" / "hud_robot.py"


@asynccontextmanager
async def serving(source: str, store: Path) -> AsyncIterator[Served]:
    """A Gymnasium environment on a channel in this process."""
    async with served(load_environments([source])[0], store) as here:
        yield here


async def binding(peer: Wire) -> dict[str, Any]:
    """The robot that a session is given."""
    hello = await peer.call("hello", session_id=peer.session)
    return next(b for b in hello["bindings"] if b["protocol"] == "openpi/0")


async def outcome(here: Served) -> tuple[str | None, int]:
    """How the only session ended, and how many actions were recorded."""
    (row,) = await here.sessions.store.list_trajectories()
    record = await here.sessions.store.load_trajectory(row.id)
    taken = [a for s in record.steps for a in s.actions if a.get("action") == "step"]
    return row.outcome, sum(len(a["args"]["actions"]) for a in taken)


def packed(data: bytes | None, dtype: str, shape: list[int]) -> dict[bytes, Any]:
    """An array as a frame has it, which need not be one."""
    return {b"__ndarray__": True, b"data": data, b"dtype": dtype, b"shape": shape}


async def test_a_world_is_stepped_by_arrays_and_recorded(tmp_path: Path) -> None:
    """What is seen are the environment's own numbers; each step is in the record."""
    async with (
        serving("gym:CartPole-v1", tmp_path / "s.sqlite3") as here,
        wire(here.port) as peer,
    ):
        await peer.start("balance")
        robot = await binding(peer)
        features = robot["params"]["contract"]["features"]
        assert features["obs"]["shape"] == [4]
        assert features["action"]["names"] == ["action_0"]
        assert features["action"]["limits"] == {"min": [0], "max": [1]}
        assert "push left" in features["action"]["description"]
        with anyio.fail_after(PATIENCE_S):
            async with claim(robot["url"], None) as way:
                first = way.seen.data["obs"]
                assert first.dtype == np.float32
                assert first.shape == (4,)
                assert not way.seen.is_over
                pushed = (await way.move([1.0])).data["obs"]
                assert pushed[1] > first[1], "it moves to the right"
                assert way.seen.reward is None
            async with claim(robot["url"], None) as way:
                assert (way.seen.data["obs"] == pushed).all(), "it waited meanwhile"
                moved = 1
                while not way.seen.is_over:
                    await way.move([1.0])
                    moved += 1
                with pytest.raises(EnvironmentFailed, match="episode ended"):
                    await way.move([1.0])
        assert (await peer.grade(""))["score"] < 1.0
        assert await outcome(here) == ("graded", moved + 1), "and one refused"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({}, "`actions`, an array of 1 numbers"),
        ({"actions": [1]}, "`actions`, an array"),
        ({"actions": np.zeros(0)}, "`actions`, an array"),
        ({"actions": np.array([0.5])}, "whole numbers"),
        ({"actions": np.array([7.0])}, "7"),
        ({"actions": np.array([np.nan])}, "whole numbers"),
        ({"actions": np.zeros(1001)}, "at most 1000"),
        ([1], "a MessagePack map"),
        ({"actions": packed(None, "<f4", [2**20])}, "the data of an array are bytes"),
        ({"actions": packed(b"1234", "f4,(", [1])}, "an array of"),
    ],
)
async def test_what_is_no_action_is_an_error_and_nothing_is_stepped(
    tmp_path: Path, message: Any, said: str
) -> None:
    """In a frame of text, as HUD's robots have it; the task is held all the same."""
    async with serving("gym:CartPole-v1", tmp_path / "s.sqlite3") as here, wire(here.port) as peer:
        await peer.start("balance")
        robot = await binding(peer)
        with anyio.fail_after(PATIENCE_S):
            async with claim(robot["url"], None) as way:
                await way._socket.send(pack(message))
                assert said in await way._socket.recv()
        await peer.grade("")
        assert (await outcome(here))[0] == Outcome.GRADED


async def test_a_peer_that_leaves_before_its_error_is_no_error_of_ours(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What it would have been told is dropped; the task is held all the same."""
    async with serving("gym:CartPole-v1", tmp_path / "s.sqlite3") as here, wire(here.port) as peer:
        await peer.start("balance")
        robot = await binding(peer)
        with anyio.fail_after(PATIENCE_S):
            async with claim(robot["url"], None) as way:
                await way._socket.send(pack({}))
                way._socket.transport.abort()
        await peer.grade("")
        await here.channel.close()  # whoever serves the peer has ended then
        assert (await outcome(here))[0] == Outcome.GRADED
    assert [r.getMessage() for r in caplog.records if r.levelname == "ERROR"] == []


async def test_only_a_session_s_own_address_opens_its_world(tmp_path: Path) -> None:
    """Not another's, none that is guessed, not a page's, and not its own once it is over."""
    from websockets.asyncio.client import connect  # noqa: PLC0415
    from websockets.exceptions import InvalidStatus  # noqa: PLC0415

    async with (
        serving("gym:CartPole-v1", tmp_path / "s.sqlite3") as here,
        wire(here.port) as one,
        wire(here.port) as two,
    ):
        await one.start("balance")
        mine, other = (await binding(one))["url"], (await binding(two))["url"]
        assert mine != other
        with anyio.fail_after(PATIENCE_S):
            with pytest.raises(EnvironmentFailed, match="No task is in progress"):
                async with claim(other, None):
                    pass
            for url, more in ((mine[:-1], {}), (mine, {"origin": "http://example.com"})):
                with pytest.raises(InvalidStatus):
                    await connect(url, proxy=None, **more)
            async with claim(mine, None) as way:
                assert not way.seen.is_over
            await one.call("bye")
            with pytest.raises((InvalidStatus, EnvironmentFailed)):
                async with claim(mine, None):
                    pass


async def test_parts_of_an_observation_are_features_each(tmp_path: Path) -> None:
    """Of a contextual environment: its state and its context, and actions of fractions."""
    async with serving("gym:CARLPendulum", tmp_path / "s.sqlite3") as here, wire(here.port) as peer:
        await peer.start("swing_up")
        robot = await binding(peer)
        features = robot["params"]["contract"]["features"]
        assert {"state", "context/g", "action"} <= set(features)
        assert features["action"]["limits"] == {"min": [-2.0], "max": [2.0]}
        with anyio.fail_after(PATIENCE_S):
            async with claim(robot["url"], None) as way:
                assert way.seen.data["state"].shape == (3,)
                assert way.seen.data["context/g"] == pytest.approx(10, abs=1)
                await way.move([1.5])
                with pytest.raises(EnvironmentFailed, match="2"):
                    await way.move([2.5])


async def test_worlds_that_are_no_robots_publish_none() -> None:
    """Another kind of world,."""
    publishing = Publishing(load_environments(["letter_count"])[0])

    async def attend(_hud: HudSession) -> Session:
        raise NoHudSession("no task in progress")

    assert await publishing.bindings(attend, HudSession("sess-1")) == []
    await publishing.close()


@pytest.mark.peers
async def test_a_policy_of_hud_steps_a_world_of_ours(robot_python: Path, tmp_path: Path) -> None:
    """With HUD's own client, through the channel's port."""
    store = tmp_path / "s.sqlite3"
    with process(store, source="gym:CartPole-v1") as server:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HUD_", "PYTHON"))}

        def run() -> Any:
            return subprocess.run(
                [str(robot_python), str(DRIVER), str(server.port)],
                capture_output=True, text=True, timeout=150, check=False,
                env={**kept, "HUD_TELEMETRY_ENABLED": "false", "CI": "1"}, cwd=tmp_path,
            )  # fmt: skip

        done = await anyio.to_thread.run_sync(run)
        assert done.returncode == 0, done.stderr[-3000:]
        line = next(x for x in done.stdout.splitlines() if x.startswith("SEEN "))
        seen = json.loads(line.removeprefix("SEEN "))
    assert seen["action"] == ["action_0"]
    assert seen["observations"] == ["obs"]
    assert seen["shape"] == [4]
    assert seen["grade"]["score"] == 1.0
