"""The client and the live environment are one to a program: the same names, the same results."""

import base64
from pathlib import Path
from typing import Any

import pytest
from peers import HttpServer
from tables import each_of
from ways import CLIENTS, WAYS, connected, working

import hud_mcp.errors
import hud_mcp_client
import hud_mcp_client.sync

pytestmark = pytest.mark.anyio


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each way in turn."""
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "runs.sqlite3"))
    return request.param


def custom(action: str, **args: Any) -> dict[str, Any]:
    """An action of the bench."""
    return {"type": "custom", "action": action, "args": args}


async def test_steps_unpack_into_what_was_seen_and_earned(way: str, bench: HttpServer) -> None:
    """Text, picture, the world's reward, its end and its info; also where nothing is done."""
    async with working(way, bench.url) as task:
        assert task.prompt == "Say 'lamp'."
        seen, reward, terminated, info = await task.step()
        assert seen.text == "words: start; clicks: []"
        assert base64.b64decode(seen.screenshot)
        assert (reward, terminated, info) == (0.0, False, {})
        step = await task.step([custom("put", word="lamp"), custom("pay", reward=2.5)])
        assert step.observation.text == "words: start lamp; clicks: []"
        assert (step.reward, step.terminated, step.truncated) == (2.5, False, False)
        assert step.info.get("paid", step.info.get("info", {}).get("paid")) == 2.5
        assert (await task.step(custom("cut"))).truncated
        assert (await task.step(custom("end"))).terminated


async def test_a_refused_action_does_not_raise(way: str, bench: HttpServer) -> None:
    """What came before it stands, and `info` says which one it was and why."""
    async with working(way, bench.url) as task:
        step = await task.step([custom("put", word="a"), custom("dance"), custom("put", word="b")])
        assert "dance" in step.info["error"]
        assert step.observation.text == "words: start a; clicks: []"


async def test_a_malformed_action_raises_and_nothing_is_done(way: str, bench: HttpServer) -> None:
    """The error is `InvalidAction` in both libraries."""
    errors = (hud_mcp.errors.InvalidAction, hud_mcp_client.InvalidAction)
    async with working(way, bench.url) as task:
        for bad in (
            "dance",
            {"type": "dance"},
            [custom("put", word="a"), {"type": "click", "x": 1}],
        ):
            with pytest.raises(errors):
                await task.step(bad)
        seen, *_ = await task.step()
        assert seen.text == "words: start; clicks: []"


async def test_a_response_among_actions_is_kept_and_ends_nothing(
    way: str, bench: HttpServer
) -> None:
    """It is `final_response`, and `answer` alone is graded."""
    async with working(way, bench.url) as task:
        assert task.final_response is None
        await task.step([custom("put", word="a"), {"type": "response", "text": "chair"}])
        assert task.final_response == "chair"
        seen, *_ = await task.step()
        assert seen.text == "words: start a; clicks: []"
        assert await task.answer("lamp") == 1.0


@pytest.mark.parametrize(("answer", "reward"), [("lamp", 1.0), ("chair", 0.25)])
async def test_the_answer_is_graded_once(
    way: str, bench: HttpServer, answer: str, reward: float
) -> None:
    """The reward is returned and kept; the session is over, and closing it is not an error."""
    ended = (hud_mcp.errors.SessionEnded, hud_mcp_client.SessionEnded)
    async with working(way, bench.url) as task:
        assert (task.reward, task.outcome) == (None, None)
        assert await task.answer(answer) == reward
        assert (task.reward, task.outcome) == (reward, "graded")
        assert task.receipt.reward == reward
        with pytest.raises(ended):
            await task.step()
        await task.close()


async def test_what_is_closed_without_an_answer_is_cancelled(way: str, bench: HttpServer) -> None:
    """It has no reward, and never 0."""
    async with working(way, bench.url) as task:
        await task.close()
        assert (task.reward, task.outcome) == (None, "cancelled")
        await task.close()


async def test_a_failed_grading_raises_and_is_no_reward(way: str, bench: HttpServer) -> None:
    """The author's mistake is not the agent's 0."""
    failed = (hud_mcp.errors.GradingFailed, hud_mcp_client.GradingFailed)
    async with working(way, bench.url, "quarrel") as task:
        with pytest.raises(failed):
            await task.answer("anything")
        assert (task.reward, task.outcome) == (None, "grading_failed")


async def test_reset_begins_the_task_anew(way: str, bench: HttpServer) -> None:
    """In a session of its own; the text begins with the prompt."""
    async with working(way, bench.url, word="chair") as task:
        await task.step(custom("put", word="a"))
        first = task.trajectory
        seen, info = await task.reset()
        assert seen.text == "Say 'chair'.\n\nwords: start; clicks: []"
        assert info == {}
        assert task.trajectory != first
        assert await task.answer("chair") == 1.0


@each_of("client", CLIENTS)
async def test_a_session_is_resumed_by_its_id(client: str, bench: HttpServer) -> None:
    """From another connection, before its end and after it."""
    async with connected(client, bench.url) as server:
        begun = await server.start(template="say")
        await begun.step(custom("put", word="a"))
        async with connected(client, bench.url) as other:
            task = await other.resume(begun.id)
            assert (task.prompt, task.steps) == ("Say 'lamp'.", 1)
            assert (await task.step()).observation.text == "words: start a; clicks: []"
            assert await task.answer("lamp") == 1.0
            over = await other.resume(begun.id)
            assert (over.outcome, over.reward) == ("graded", 1.0)
        with pytest.raises(hud_mcp_client.SessionNotFound):
            await server.resume("sess-" + "0" * 32)


@each_of("client", CLIENTS)
async def test_an_answer_to_a_session_that_was_given_up_is_no_reward(
    client: str, bench: HttpServer
) -> None:
    """It raises, and the receipt says how the session ended."""
    async with connected(client, bench.url) as server:
        task = await server.start(template="say")
        other = await server.resume(task.id)
        await other.close()
        with pytest.raises(hud_mcp_client.SessionEnded):
            await task.answer("lamp")
        assert (task.outcome, task.reward) == ("cancelled", None)


@each_of("client", CLIENTS)
async def test_a_start_that_is_refused_says_why(client: str, bench: HttpServer) -> None:
    """And has started nothing."""
    async with connected(client, bench.url) as server:
        with pytest.raises(hud_mcp_client.InvalidTask, match="nope"):
            await server.start("nope")
        with pytest.raises(hud_mcp_client.InvalidTask, match="wrod"):
            await server.start(template="say", arguments={"wrod": "lamp"})
        assert {"say", "quarrel"} <= {row["template"] for row in await server.tasks()}


def test_both_modules_offer_the_same_names() -> None:
    """A program changes the import, and awaits nothing."""
    for name in ("Server", "Session"):
        here, there = getattr(hud_mcp_client, name), getattr(hud_mcp_client.sync, name)
        public = {key for key in vars(here) if not key.startswith("_")}
        assert public == {key for key in vars(there) if not key.startswith("_")}
