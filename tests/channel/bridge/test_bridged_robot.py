"""The robot behind a HUD server, over `openpi/0`: HUD's own simulator process, and its wire."""

import asyncio
import io
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import msgpack
import psutil
import pytest
from bridging import ROBOTS, Bridged, HudServer, bridged, ending, graded, hud_server
from PIL import Image
from tables import each_of
from waiting import PATIENCE_S, until
from websockets.asyncio.server import ServerConnection, serve

from hud_mcp.errors import ActionFailed, EnvironmentFailed
from hud_mcp.plugins.hud.bridge.robot import read_contract, robot_problem
from hud_mcp.plugins.hud.wire.openpi import claim
from hud_mcp.session.draft import Stepped
from hud_mcp.session.session import Session
from hud_mcp.values.action import parse_actions
from hud_mcp.values.grade import Outcome
from hud_mcp.values.observation import Look

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def robots(robot_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HudServer]:
    """A HUD server with a robot."""
    with hud_server(robot_python, ROBOTS, tmp_path_factory.mktemp("robots")) as running:
        yield running


@pytest.fixture
async def driven(robots: HudServer, tmp_path: Path) -> AsyncIterator[Bridged]:
    """It, bridged in this process."""
    async with bridged(robots.url, tmp_path / "store.sqlite3") as running:
        yield running


async def step(session: Session, *, image: bool = False, **args: Any) -> Stepped:
    """One step, of one action with arguments where there are any."""
    actions = parse_actions([{"type": "custom", "action": "step", "args": args}] if args else [])
    with anyio.fail_after(PATIENCE_S):
        return await session.step(actions, Look(image="png" if image else None))


def text_of(stepped: Stepped) -> str:
    """What it shows in words."""
    return stepped.result.observation.text or ""


async def test_a_robot_is_seen_moved_and_graded(driven: Bridged) -> None:
    """Its state in words, its cameras in a picture; what it did is graded by HUD."""
    assert driven.environment.notes == ()
    session = await driven.start("drive")
    seen = await step(session, image=True)
    text = text_of(seen)
    assert "A robot (cart). 5 actions take a second of its time; it waits" in text
    assert "position: east 0, north 0" in text
    assert "Cameras, in the picture from left to right: front, top." in text
    assert "2 numbers: east (-1 to 1), north (-1 to 1)." in text
    shot = seen.result.observation.image
    assert shot is not None
    picture = Image.open(io.BytesIO(shot.data))
    assert picture.size == (96, 48)
    assert picture.getpixel((10, 10)) == (200, 0, 0)
    assert picture.getpixel((80, 10)) == (0, 0, 200)
    assert "east 0.5, north -0.25" in text_of(await step(session, action=[0.5, -0.25]))
    assert "east 2.5, north 0.75" in text_of(await step(session, actions=[[1, 0], [1, 1]]))
    assert "east 4.5" in text_of(await step(session, action=[1, 0], repeat=2))
    last = await step(session, action=[1, 0], repeat=8)
    assert last.notes == ("2 more actions of the list were not performed.",)
    assert last.result.terminated
    assert text_of(last).startswith("The episode has ended")
    assert "has ended" in ((await step(session, action=[1, 0])).error or "")
    receipt = await graded(session, "there")
    assert receipt.reward == 1.0
    record = await driven.record(session)
    assert [s.reward for s in record.steps[:4]] == [None, 0.5, 1.0, 1.0]


async def test_an_episode_that_did_not_succeed_is_graded_as_that(driven: Bridged) -> None:
    """The next session has the robot afresh, where its task puts it."""
    session = await driven.start("drive", north=3)
    assert "east 0, north 3" in text_of(await step(session))
    await step(session, action=[1, 1])
    assert (await graded(session, "")).reward == 0.5  # HUD's: what its steps were worth
    session = await driven.start("drive")
    assert "east 0, north 0" in text_of(await step(session))
    await session.cancel()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"action": [1]}, "action: expected 2 numbers: east (-1 to 1), north (-1 to 1). Got 1 of"),
        ({"action": "east"}, "expected 2 numbers"),
        ({"action": [2, 0]}, "action: east is 2; it is 1 or less"),
        ({"actions": [[0, 0], [0, -2]]}, "actions[1]: north is -2; it is -1 or more"),
        ({"action": [True, 0]}, "east should be a number, got True"),
        ({"action": [0, 0], "actions": [[0, 0]]}, "give one of `action` and `actions`"),
        ({"actions": [0, 0]}, "actions[0]: expected 2 numbers"),
        ({"actions": []}, "at least one"),
        ({"actions": 7}, "expected a list"),
        ({"action": [0, 0], "repeat": 0}, "a whole number from 1"),
        ({"action": [0, 0], "repeat": 100_000}, "at most 10000"),
        ({"acton": [0, 0]}, "Did you mean 'action'"),
    ],
)
async def test_what_is_no_action_is_refused_and_moves_nothing(
    driven: Bridged, args: dict[str, Any], said: str
) -> None:
    """Each refusal says what an action is."""
    session = await driven.start("drive")
    stepped = await step(session, **args)
    assert said in (stepped.error or "")
    assert "east 0, north 0" in text_of(stepped)
    await session.cancel()


async def test_a_simulator_that_raises_is_told_and_the_session_goes_on(driven: Bridged) -> None:
    """The HUD server is there; the robot's last words are shown, and an answer can be given."""
    session = await driven.start("drive")
    stepped = await step(session, action=[0, -1], repeat=3)
    assert "robot: its server reports an error: ValueError: a wheel came off" in (
        stepped.error or ""
    )
    assert (await graded(session, "")).outcome is Outcome.GRADED


async def test_a_robot_that_is_not_there_yet_is_told(driven: Bridged) -> None:
    """Where the task began no episode, a look says so."""
    session = await driven.start("still")
    assert "There is nothing to see: robot: its server reports an error" in text_of(
        await step(session)
    )
    assert (await graded(session, "")).reward == 1.0


async def test_the_hud_server_killed_in_the_middle_of_a_step_is_no_reward(
    robot_python: Path, tmp_path: Path
) -> None:
    """The session ends as failed, also where the simulator outlives the server."""
    with ExitStack() as stack:
        hud = stack.enter_context(hud_server(robot_python, ROBOTS, tmp_path))
        for simulator in psutil.Process(hud.process.pid).children(recursive=True):
            stack.callback(_end, simulator)
        async with bridged(hud.url, tmp_path / "store.sqlite3") as bridge:
            session = await bridge.start("drive")
            moving = asyncio.ensure_future(step(session, action=[0, 0], repeat=10_000))
            await until(lambda: session.direct_world()._services)
            hud.kill()
            with pytest.raises(EnvironmentFailed, match="cannot be reached any more"):
                await moving
            receipt = await ending(session)
            assert (receipt.outcome, receipt.reward) == (Outcome.ENVIRONMENT_FAILED, None)


def _end(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        process.kill()


# ------------------------------------------------------------------------------ contracts, frames

ACTION = {"role": "action", "names": ["a"]}


@each_of(
    ("given", "said"),
    [
        (None, "declares 0 action features"),
        ([1], "0 action features"),
        ({"features": {"a": ACTION, "b": ACTION}}, "2 action features"),
        ({"features": {"a": {"role": "action"}}}, "does not say how many numbers"),
        ({"features": {"a": {"role": "action", "shape": [1000]}}}, "does not say how many"),
        ({"features": {"a": 7}}, "0 action features"),
    ],
)
def test_a_contract_without_an_action_is_not_bridged(given: Any, said: str) -> None:
    """What is missing is said, for the notes at the start."""
    problem = robot_problem({"url": "ws://h:1", "params": {"contract": given}})
    assert said in (problem or "")


def test_a_contract_of_a_shape_alone_names_numbers_by_their_places() -> None:
    """Bounds of another length are none."""
    action = {"role": "action", "shape": [2, 2], "limits": {"min": [0], "max": [1, 1, 1, 1]}}
    contract = read_contract({"features": {"arm": action}, "control_rate": "fast"})
    assert contract.names == ("action_0", "action_1", "action_2", "action_3")
    assert (contract.low, contract.high) == (None, (1.0, 1.0, 1.0, 1.0))
    assert contract.about == "A robot."
    assert contract.read([0, 9e9 * 0, -5, 1], "x") == [0, 0, -5, 1]
    with pytest.raises(ActionFailed, match="or less"):
        contract.read([2, 0, 0, 0], "x")
    assert "wss cannot be carried" in (robot_problem({"url": "wss://h:1", "params": {}}) or "")


@asynccontextmanager
async def saying(*frames: bytes | str) -> AsyncIterator[str]:
    """A server that says the same to everybody."""

    async def talk(socket: ServerConnection) -> None:
        for frame in frames:
            await socket.send(frame)
        await socket.wait_closed()

    async with serve(talk, "127.0.0.1", 0) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def array(dtype: str, data: bytes | None, shape: Any) -> bytes:
    """A frame with one array."""
    packed = {b"__ndarray__": True, b"data": data, b"dtype": dtype, b"shape": shape}
    return msgpack.packb({"state": packed})


def number(dtype: str, data: int) -> bytes:
    """A frame with one number of an array's kind."""
    return msgpack.packb({"state": {b"__npgeneric__": True, b"data": data, b"dtype": dtype}})


@each_of(
    ("frames", "said"),
    [
        ((b"\xc1",), "does not speak openpi/0"),
        ((b"\x81" * 5000,), "does not speak openpi/0"),
        ((b"\x80", b"\x07"), "other than an observation"),
        ((b"\x80", array("|O", b"\0" * 8, [1])), r"an array of '\|O'"),
        ((b"\x80", array("<f4", b"\0" * 8, [2**40])), "does not speak openpi/0"),
        ((b"\x80", array("<f4", b"\0" * 8, "x")), "does not speak openpi/0"),
        ((b"\x80", array("no", b"", [0])), "does not speak openpi/0"),
        ((b"\x80", array("f4,(", b"", [0])), "does not speak openpi/0"),
        ((b"\x80", array("<f4", None, [2**20])), "the data of an array are bytes"),
        ((b"\x80", number("i1", 1000)), "does not speak openpi/0"),
        ((b"\x80", "Traceback\n  x\nValueError: no\n"), "reports an error: ValueError: no"),
        (("",), "reports an error: nothing"),
    ],
)
async def test_frames_that_are_none_are_refused(frames: tuple[bytes | str, ...], said: str) -> None:
    """Nothing of them is run, and no memory is taken for what they promise."""
    async with saying(*frames) as url:
        with anyio.fail_after(PATIENCE_S), pytest.raises(EnvironmentFailed, match=said):
            async with claim(url, None):
                pass


async def test_a_robot_whose_last_connection_ends_late_is_claimed() -> None:
    """HUD notices after a moment; a claim that is refused for that is made again."""
    tries: list[int] = []

    async def talk(socket: ServerConnection) -> None:
        tries.append(1)
        await socket.send(msgpack.packb({"claim_required": True}))
        assert msgpack.unpackb(await socket.recv()) == {"claim": "t"}
        busy = "RuntimeError: slot 0 already has a live connection"
        await socket.send(busy if len(tries) < 3 else msgpack.packb({"terminated": True}))
        await socket.wait_closed()

    async with serve(talk, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with anyio.fail_after(PATIENCE_S):
            async with claim(f"ws://127.0.0.1:{port}", "t") as wire:
                assert wire.seen.is_over
    assert len(tries) == 3
