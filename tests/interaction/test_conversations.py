"""Whole conversations, in every transport and both eras."""

import io
import json
import re
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from peers import BOARD, LEGACY, WAYS, Held, Peer, Way, http_peer, stdio_peer
from PIL import Image

pytestmark = pytest.mark.anyio


def size_of(data: bytes) -> tuple[int, int]:
    """The size of an encoded picture, in pixels."""
    with Image.open(io.BytesIO(data)) as image:
        return image.size


@pytest.mark.sampled(2)
async def test_a_task_goes_from_the_list_to_its_receipt(peer: Peer) -> None:  # noqa: PLR0915  # one conversation
    """A client lists, starts, acts, looks, answers and is graded, and the record has it all."""
    listed = await peer.ok("list_tasks")
    assert [t["id"] for t in listed.structured["tasks"]] == ["shopping", "berry"]
    assert "shopping: Write notes on the board [board]" in listed.text
    assert "Buy bread" not in listed.text, "a row's own description is for people"
    templates = {t["id"]: t for t in listed.structured["templates"]}
    assert templates["collect"]["takes"] == "marker, wanted"
    asked = await peer.ok("list_tasks", template="collect")
    (told,) = asked.structured["templates"]
    assert told["arguments"]["properties"]["marker"]["default"] == "none"

    begun = await peer.ok("start_task", task="shopping")
    session = begun.structured["session"]
    assert begun.structured["prompt"].startswith("[shop] Write these notes: bread.")
    assert begun.structured["environment"] == "board"
    assert session in begun.text
    assert begun.structured["prompt"] in begun.text

    looked = await peer.ok("step", session=session)
    assert looked.text == "marker=shop clicks=[] notes=[] typed=''"
    assert looked.image is not None
    assert looked.mime_type == "image/jpeg"
    assert size_of(looked.image) == (400, 300)
    assert looked.step == {
        "session": session,
        "steps": 1,
        "performed": 0,
        "terminated": False,
        "truncated": False,
        "screenshot": {"width": 400, "height": 300, "scale": 1.0},
    }

    acted = await peer.ok("act", session=session, type="type", text="bread")
    assert acted.text == "marker=shop clicks=[] notes=[] typed='bread'"
    assert acted.image is None
    assert acted.step["performed"] == 1
    actions = [{"type": "press", "keys": ["enter"]}, {"type": "click", "x": 7, "y": 9}]
    stepped = await peer.ok("step", session=session, actions=actions)
    assert stepped.text == "marker=shop clicks=[(7.0, 9.0)] notes=['bread'] typed=''"
    assert stepped.step["steps"] == 3

    shot = await peer.ok("screenshot", session=session, format="png")
    assert shot.mime_type == "image/png"
    assert shot.image is not None
    assert size_of(shot.image) == (400, 300)

    status = await peer.status(session)
    assert (status["state"], status["steps"]) == ("open", 4)
    graded = await peer.ok("response", session=session, answer="done")
    assert graded.structured["outcome"] == "graded"
    assert graded.structured["reward"] == 1.0
    assert graded.structured["subscores"] == [{"name": "notes", "value": 1.0, "weight": 1.0}]
    assert graded.structured["content"] == "1 notes on the board of shop."
    assert "Graded: reward 1." in graded.text
    assert (await peer.status(session))["receipt"]["reward"] == 1.0

    task = Held(session, begun.meta["hud-mcp/start"]["trajectory"], "")
    record = await peer.record(task)
    assert [s.kind for s in record.steps] == ["step", "act", "step", "screenshot", "response"]
    assert [s.index for s in record.steps] == [0, 1, 2, 3, 4]
    assert [s.performed for s in record.steps] == [0, 1, 2, 0, 1]
    assert record.steps[2].observation_text == stepped.text
    assert all(s.screenshot is not None for s in record.steps), "the record always has a picture"
    assert record.prompt == begun.structured["prompt"]
    assert record.reward == 1.0
    assert record.receipt is not None
    assert record.receipt.environment == "board"
    assert record.task.metadata == {"key": "METADATA-NOBODY-MAY-READ"}
    assert session not in record.model_dump_json(), "the store knows only the id's hash"


async def test_a_client_that_negotiates_gets_the_newest_era(peer: Peer, way: Way) -> None:
    """A client in `auto` mode, the SDK's default, speaks 2026-07-28 on either transport."""
    expected = "2025-11-25" if way.era == LEGACY else "2026-07-28"
    assert peer.client.protocol_version == expected


async def test_actions_may_be_written_in_every_form_that_frameworks_send(peer: Peer) -> None:
    """Nested points, flat points, filled-in nulls and empty strings mean the same click."""
    task = await peer.start("collect", marker="forms")
    filled: dict[str, Any] = {
        "type": "click", "x": 5, "y": 6, "ref": "", "selector": None, "button": None, "keys": None,
        "pattern": None, "text": "", "args": None, "action": "", "observe": None,
    }  # fmt: skip
    await peer.ok("act", session=task.session, type="click", point={"x": 5, "y": 6})
    await peer.ok("act", session=task.session, **filled)
    nested = {"type": "click", "point": {"x": 5, "y": 6}, "button": "left"}
    await peer.ok("step", session=task.session, actions=nested)
    last = await peer.ok("step", session=task.session, actions=None, observe="")
    assert "clicks=[(5.0, 6.0), (5.0, 6.0), (5.0, 6.0)]" in last.text


async def test_a_response_action_ends_a_step_and_is_graded(peer: Peer) -> None:
    """The answer may come as an action: what comes before it counts, what comes after does not."""
    task = await peer.start("collect", marker="inline", wanted=["tea"])
    actions = [
        {"type": "type", "text": "tea", "enter_after": True},
        {"type": "response", "text": "done"},
        {"type": "type", "text": "too late", "enter_after": True},
    ]
    last = await peer.ok("step", session=task.session, actions=actions)
    assert last.step["performed"] == 2
    assert "Graded: reward 1." in last.text
    record = await peer.record(task)
    assert [s.kind for s in record.steps] == ["step"]
    assert record.reward == 1.0
    again = await peer.ok("response", session=task.session, answer="done")
    assert again.structured["reward"] == 1.0


@pytest.mark.sampled(1)
async def test_the_session_may_be_left_out_where_the_connection_is_known(
    way: Way, tmp_path: Any, server: Any
) -> None:
    """A caller of one session need not name it on stdio and 2025-era HTTP; it is never guessed."""
    opened = (
        stdio_peer(tmp_path, (BOARD,), era=way.era)
        if way.transport == "stdio"
        else http_peer(server, era=way.era)
    )
    async with opened as peer:
        if not way.remembers:
            assert "Pass `session`" in await peer.error("step")
            task = await peer.start("collect", marker="modern")
            assert "Pass `session`" in await peer.error("step")
            assert (await peer.status(task.session))["steps"] == 0
            return
        assert await peer.error("step") == "No session yet. Call start_task first."
        first = await peer.start("collect", marker="first", wanted=["tea"])
        assert "marker=first" in (await peer.ok("step")).text
        second = await peer.start("collect", marker="second")
        assert await peer.error("step") == "You hold 2 sessions; pass `session` to say which one."
        await peer.ok("cancel_task", session=second.session)
        await peer.ok("act", type="type", text="tea", enter_after=True)
        graded = await peer.ok("response", answer="done")
        assert graded.structured["session"] == first.session
        assert graded.structured["reward"] == 1.0
        assert (await peer.record(second)).steps == ()


async def test_tools_of_an_environments_own_act_on_the_sessions_world(peer: Peer) -> None:
    """An author's tool changes the world that the grader reads, and is recorded as a step."""
    task = await peer.start("collect", marker="tool", wanted=["a", "a"])
    added = await peer.ok("add_note", session=task.session, text="a", times=2)
    assert added.text == "2 notes"
    counted = await peer.ok("count_notes", session=task.session)
    assert json.loads(counted.text) == {"notes": 2}
    for wrong, words in (
        ({"text": 3}, "text: expected a string"),
        ({}, "'text' is required"),
        ({"text": "a", "time": 2}, "Did you mean 'times'?"),
    ):
        assert words in await peer.error("add_note", session=task.session, **wrong)
    failed = await peer.error("broken_tool", session=task.session)
    assert failed == "broken_tool failed: RuntimeError: the tool's own bug"
    graded = await peer.ok("response", session=task.session, answer="done")
    assert graded.structured["reward"] == 1.0
    record = await peer.record(task)
    assert [s.kind for s in record.steps] == ["tool", "tool", "tool", "response"]
    assert record.steps[0].actions == [{"tool": "add_note", "args": {"text": "a", "times": 2}}]
    assert record.steps[2].error == failed


async def test_an_answer_is_read_as_the_type_that_the_template_asks_for(peer: Peer) -> None:
    """With returns=int, "5" arrives as an integer and "five" as itself; both are graded."""
    for answer, reward, kind in (("5", 1.0, "int"), ("five", 0.0, "str"), ("", 0.0, "str")):
        task = await peer.start("total")
        graded = await peer.ok("response", session=task.session, answer=answer)
        assert graded.structured["reward"] == reward
        assert graded.structured["content"] == f"read as {kind}: {answer}"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", [WAYS[1], WAYS[2]], ids=str)
async def test_a_large_screen_is_shrunk_to_what_models_see_and_clicks_are_mapped_back(
    way: Way, peers: dict[Way, Peer]
) -> None:
    """A 3000 x 2000 noisy screen fits every host's budget, and its pixels are clicked truly."""
    peer = peers[way]
    begun = await peer.ok(
        "start_task",
        template="collect",
        context={"width": 3000, "height": 2000, "noise": True},
        seed=7,
    )
    session = begun.structured["session"]
    shot = await peer.ok("screenshot", session=session, format="png")
    assert shot.image is not None
    assert len(shot.image) <= 700_000
    width, height = size_of(shot.image)
    assert max(width, height) <= 1568
    assert -(width // -28) * -(height // -28) <= 1568, "as many patches as models read"
    told = shot.meta["hud-mcp/screenshot"]
    assert (told["width"], told["height"]) == (width, height)
    assert told["scale"] == pytest.approx(3000 / width)
    clicked = await peer.ok("act", session=session, type="click", x=width / 2, y=height / 2)
    found = re.search(r"clicks=\[\(([\d.]+), ([\d.]+)\)\]", clicked.text)
    assert found is not None
    assert float(found[1]) == pytest.approx(1500, abs=told["scale"])
    assert float(found[2]) == pytest.approx(1000, abs=told["scale"])
    await peer.ok("cancel_task", session=session)


async def test_rewards_on_the_way_are_shown_where_the_template_says_so(peer: Peer) -> None:
    """Under per_step, a step's reward is in its text and its meta; the sum is in the record."""
    task = await peer.start("rewarded")
    actions = [
        {"type": "custom", "action": "reward", "args": {"reward": 0.5}},
        {"type": "custom", "action": "reward", "args": {"reward": 0.25, "terminated": True}},
        {"type": "type", "text": "after the end"},
    ]
    stepped = await peer.ok("step", session=task.session, actions=actions)
    assert "reward=0.75 terminated=true" in stepped.text
    assert (stepped.step["reward"], stepped.step["performed"]) == (0.75, 2)
    record = await peer.record(task)
    assert record.steps[0].reward == 0.75
    assert record.steps[0].terminated
    await peer.ok("cancel_task", session=task.session)


async def test_an_environment_without_a_screen_says_what_to_do_instead(peer: Peer) -> None:
    """A step there is text alone; a screenshot is refused with what to call."""
    task = await peer.start("count", word="banana", letter="a")
    assert "no screen" in await peer.error("screenshot", session=task.session)
    looked = await peer.ok("step", session=task.session)
    assert looked.image is None
    assert "answer with response" in looked.text
    assert "click" in await peer.error("act", session=task.session, type="click", x=1, y=1)
    graded = await peer.ok("response", session=task.session, answer="3")
    assert graded.structured["reward"] == 1.0


async def test_the_prompt_of_several_messages_is_one_text_and_several_messages(peer: Peer) -> None:
    """start_task joins the messages; prompts/get keeps them and their roles."""
    task = await peer.start("dialogue")
    assert task.prompt == "Remember the word plum.\n\nI will.\n\nWhich word was it?"
    await peer.ok("cancel_task", session=task.session)
    got = await peer.client.get_prompt("dialogue")
    roles = [m.role for m in got.messages]
    assert roles == ["user", "assistant", "user", "user"]
    with pytest.raises(MCPError, match="Unknown prompt: dialog"):
        await peer.client.get_prompt("dialog")
