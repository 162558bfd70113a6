"""Episodes over OpenEnv's WebSocket: what a reset and a step mean, and when there is a reward."""

from pathlib import Path

import anyio
import pytest
from peers import HttpServer, http_server
from talk import talking
from waiting import PATIENCE_S

from hud_mcp import Store

pytestmark = pytest.mark.anyio

NAMED = """
from hud_mcp import Environment

env = Environment("named")


@env.tool
async def answer(answer: str) -> str:
    "Say something."
    return f"{answer}, they say"


@env.template()
async def say():
    said = yield "Say cup."
    yield float(said == "cup")
"""
BENCH = Path(__file__).resolve().parents[1] / "env" / "environments" / "bench.py"


async def test_an_episode_is_reset_answered_and_done(room: HttpServer) -> None:
    """There is no reward before the grade, and the record has the session."""
    async with talking(room.url) as talk:
        begun = await talk.reset(task="say-rug", episode_id="mine", colour="red")
        assert begun["observation"]["prompt"] == "Say the word that you know."
        assert (begun["reward"], begun["done"]) == (None, False)
        assert begun["metadata"]["ignored"] == ["colour"]
        state = (await talk.ask("state"))["data"]
        assert state == {"episode_id": "mine", "step_count": 0, "task": "say-rug", "done": False}
        ended = await talk.step(answer="rug")
        assert (ended["reward"], ended["done"]) == (1.0, True)
        assert ended["observation"]["text"] == "So it is."
        assert ended["metadata"]["outcome"] == "graded"
        assert "Call reset" in await talk.refused("step", {"answer": "cup"})
    store = Store(room.store)
    try:
        kept = await store.load_trajectory(ended["metadata"]["trajectory"])
    finally:
        await store.close()
    assert kept.receipt is not None
    assert kept.receipt.reward == 1.0


async def test_a_seed_chooses_a_task_and_without_one_they_follow_each_other(
    room: HttpServer,
) -> None:
    """A split bounds the choice; an index names one of it."""
    async with talking(room.url) as talk:
        taken = [(await talk.reset())["metadata"]["task"] for _ in range(4)]
        assert taken == ["say-rug", "say-cup", "say-bed", "say-rug"]
        for given, task in (
            ({"seed": 4}, "say-cup"),
            ({"split": "test", "seed": 9}, "say-bed"),
            ({"split": "train", "index": 1}, "say-cup"),
            ({"task": {"id": "say-bed", "other": 1}}, "say-bed"),
        ):
            assert (await talk.reset(**given))["metadata"]["task"] == task
        begun = await talk.reset(template="say", arguments={"word": "hat"})
        assert (await talk.step(answer="hat"))["reward"] == 1.0
        assert begun["metadata"]["task"] not in {"say-rug", "say-cup", "say-bed"}


async def test_an_answer_may_be_any_json(room: HttpServer) -> None:
    """A number is sent as its text."""
    async with talking(room.url) as talk:
        await talk.reset(template="say", arguments={"word": "7"})
        assert (await talk.step(answer=7))["reward"] == 1.0


async def test_a_failed_grading_is_no_reward_of_zero(room: HttpServer) -> None:
    """The episode is done; its reward is None, and the outcome says why."""
    async with talking(room.url) as talk:
        await talk.reset(template="quarrel")
        ended = await talk.step(answer="anything")
        assert (ended["reward"], ended["done"]) == (None, True)
        assert ended["metadata"]["outcome"] == "grading_failed"


async def test_tools_appear_one_by_one(room: HttpServer) -> None:
    """Each with its docstring and its schema, by OpenEnv's action and by its MCP messages."""
    async with talking(room.url) as talk:
        await talk.reset(task="say-cup")
        tools = {
            row["name"]: row for row in (await talk.step(type="list_tools"))["observation"]["tools"]
        }
        assert list(tools) == ["light", "answer"]
        assert tools["light"]["description"] == "Light some lamps."
        assert tools["light"]["input_schema"]["properties"]["count"]["minimum"] == 1
        lit = await talk.step(type="call_tool", tool_name="light", arguments={"count": 3})
        assert lit["observation"] == {"tool_name": "light", "result": "3 lamps are lit"}
        wrong = await talk.step(tool="light", arguments={"count": 0})
        assert "count" in wrong["observation"]["error"]
        assert not wrong["done"]
        listed = await talk.ask("mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert [row["name"] for row in listed["data"]["result"]["tools"]] == list(tools)
        params = {"name": "answer", "arguments": {"answer": "cup"}}
        called = await talk.ask("mcp", {"id": 2, "method": "tools/call", "params": params})
        assert called["data"]["result"]["_meta"] == {"reward": 1.0, "done": True}


@pytest.mark.long
async def test_a_tool_called_answer_ends_no_episode(tmp_path: Path) -> None:
    """A server may list one; the tool that ends the episode has another name then."""
    path = tmp_path / "named.py"
    path.write_text(NAMED)
    with http_server(tmp_path / "server", [str(path)], "--openenv") as server:
        async with talking(server.url) as talk:
            await talk.reset()
            tools = (await talk.step(type="list_tools"))["observation"]["tools"]
            assert [row["name"] for row in tools] == ["answer", "submit_answer"]
            theirs = await talk.step(tool="answer", arguments={"answer": "cup"})
            assert (theirs["observation"]["result"], theirs["done"]) == ("cup, they say", False)
            ours = await talk.step(tool="submit_answer", arguments={"answer": "cup"})
            assert (ours["reward"], ours["done"]) == (1.0, True)


async def test_a_world_is_stepped_in_each_form_of_an_action(bench: HttpServer) -> None:
    """Rewards are the world's own; a refused action is told, and ends nothing."""
    put = {"type": "custom", "action": "put", "args": {"word": "a"}}
    pay = {"type": "custom", "action": "pay", "args": {"reward": 2.5}}
    async with talking(bench.url) as talk:
        begun = await talk.reset(template="say", observe="both")
        assert begun["observation"]["text"] == "words: start; clicks: []"
        assert begun["observation"]["image_type"] in {"image/png", "image/jpeg"}
        step = await talk.step(actions=[put, pay])
        assert (step["observation"]["text"], step["reward"]) == ("words: start a; clicks: []", 2.5)
        assert (await talk.step(**put))["observation"]["text"] == "words: start a a; clicks: []"
        refused = await talk.step(**{**put, "action": "dance"})
        assert "dance" in refused["observation"]["error"]
        assert (refused["reward"], refused["done"]) == (None, False)
        assert "malformed" not in await talk.refused("step", {"type": "dance"})
        assert "GET /schema" in await talk.refused("step", {"dance": 1})
        ended = await talk.step(actions=[put, {"type": "response", "text": "lamp"}])
        assert (ended["reward"], ended["done"]) == (1.0, True)


@pytest.mark.long
async def test_an_episode_has_the_parts_that_its_reset_names(tmp_path: Path) -> None:
    """They do not depend on the look of the server."""
    options = ["--openenv", "--look", "text"]
    with http_server(tmp_path, [str(BENCH)], *options) as server:
        async with talking(server.url) as talk:
            for observe, parts in (("both", {"text", "image"}), ("text", {"text"})):
                begun = await talk.reset(template="say", observe=observe)
                shown = {name for name, part in begun["observation"].items() if part}
                assert shown & {"text", "image"} == parts


async def test_a_world_that_ends_is_graded_at_once(bench: HttpServer) -> None:
    """The last step has the world's own reward; the grade stands beside it."""
    async with talking(bench.url) as talk:
        await talk.reset(template="say")
        ended = await talk.step(type="custom", action="end", args={})
        assert (ended["reward"], ended["done"]) == (0.25, True)
        assert ended["metadata"]["grade"] == 0.25
        assert ended["metadata"]["truncated"] is False
        await talk.reset(template="say")
        assert (await talk.step(type="custom", action="cut", args={}))["metadata"]["truncated"]


@pytest.mark.long
async def test_a_gymnasium_environment_gives_numbers(tmp_path: Path) -> None:
    """An action is a number, as its space has it, and so is what is seen."""
    options = ["--openenv", "--reward", "per_step"]
    with http_server(tmp_path, ["gym:CartPole-v1?screen=0"], *options) as server:
        async with talking(server.url) as talk:
            begun = await talk.reset(seed=3, observe="values")
            assert len(begun["observation"]["values"]) == 4
            rewards, done = [], False
            while not done:
                step = await talk.step(action=1)
                rewards.append(step["reward"])
                done = step["done"]
            assert set(rewards) == {1.0}
            assert 5 < len(rewards) < 30
            assert step["metadata"]["outcome"] == "graded"


@pytest.mark.long
async def test_hidden_rewards_stay_hidden(room_file: Path, tmp_path: Path) -> None:
    """The episode is done, and nothing says what it was worth."""
    with http_server(tmp_path, [str(room_file)], "--openenv", "--reward", "hidden") as server:
        async with talking(server.url) as talk:
            await talk.reset(task="say-rug")
            ended = await talk.ask("step", {"answer": "rug"})
            assert ended["data"]["reward"] is None
            assert ended["data"]["done"]
            assert "1" not in str({**ended["data"], "metadata": None})


async def test_a_dropped_connection_ends_no_session(room: HttpServer) -> None:
    """Another connection goes on with it by its id; `close` gives it up."""
    async with talking(room.url) as talk:
        session = (await talk.reset(task="say-rug"))["metadata"]["session"]
    async with talking(room.url, f"?session_id={session}") as talk:
        assert (await talk.ask("state"))["data"]["task"] == "say-rug"
        with anyio.fail_after(PATIENCE_S):
            await talk.socket.send('{"type": "close"}')
            await talk.socket.wait_closed()
    async with talking(room.url, f"?session_id={session}") as talk:
        assert (await talk.ask("state"))["data"]["done"]
