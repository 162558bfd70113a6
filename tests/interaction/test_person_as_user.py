"""A person as the user of a task: the caller's client asks them, in either era of the protocol."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client import Client
from peers import LEGACY, MODERN, read_reply
from slate import registry
from tables import each_of
from test_talks import CALLER, SECRETS, SHOPS, Talker
from waiting import PATIENCE_S

from hud_mcp import Environment, Say, User, When
from hud_mcp.errors import InvalidTemplate
from hud_mcp.server.app import build_server

pytestmark = pytest.mark.anyio

env = Environment("asked")


@env.template(user=True)
async def who_ends():  # noqa: ANN201  # as authors write
    """A user that speaks first; the grade says who ended the conversation."""
    user = User(goal="GOAL-7", persona="PERSONA-7", script=(When(say="A lamp is broken."),))
    reply = yield await user.answer()
    while not reply.ended:
        reply = yield await user.answer(reply)
    yield {"reward": 1.0, "content": f"{reply.by} after {len(user.said)}"}


@env.template(user=True)
async def one_sided():  # noqa: ANN201  # the same
    """A template whose user is no `User`."""
    reply = yield Say("Hello.")
    yield {"reward": 1.0, "content": reply.text}


SHOPS["asked"] = env


class Person:
    """A person who gives one answer after the other, the last one for ever."""

    def __init__(self, *answers: types.ElicitResult) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        """Give the next answer."""
        del context
        self.asked.append(params)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def says(text: str, *, ends: bool = False) -> types.ElicitResult:
    """A form that is sent."""
    return types.ElicitResult(action="accept", content={"reply": text, "ends": ends})


@asynccontextmanager
async def opened(
    folder: Path, person: Person | None, *, name: str = "shop", era: str = MODERN
) -> AsyncGenerator[Talker]:
    """Connect a client of an era, with a person or without."""
    async with (
        registry(folder / "store.sqlite3", SHOPS[name]) as sessions,
        Client(build_server(sessions), mode=era, elicitation_callback=person) as client,
    ):
        yield Talker(sessions, client)


@pytest.fixture(autouse=True)
def chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator has chosen a person."""
    monkeypatch.setenv("HUD_MCP_USER", "person")


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_the_callers_person_answers_each_message(tmp_path: Path, era: str) -> None:
    """The form has the agent's words and nothing private; the record says whose the turns are."""
    person = Person(says("It is #W1."), says("Goodbye.", ends=True))
    async with opened(tmp_path, person, era=era) as shop:
        await shop.start("return_order")
        assert (await shop.say("Which order?")).structured["reply"] == "It is #W1."
        last = await shop.say("It is refunded.")
        assert (last.structured["state"], last.structured["reply"]) == ("ended", "Goodbye.")
        record = await shop.record()
    shown = [each.model_dump_json() for each in person.asked]
    assert "Which order?" in shown[0]
    assert not any(secret in text for secret in SECRETS for text in shown)
    turns = [s.info["hud-mcp/user_turn"]["turn"] for s in record.steps if s.kind == "user"]
    assert [(turn["text"], turn["is_person"]) for turn in turns] == [
        ("It is #W1.", True),
        ("Goodbye.", True),
    ]
    assert record.user is not None
    figures = (record.user.messages, record.user.questions, record.user.by_person)
    assert figures == (2, 1, 2)


@each_of(
    "answer, by",
    [
        (types.ElicitResult(action="decline"), "user"),
        (types.ElicitResult(action="cancel"), "limit"),
        (types.ElicitResult(action="accept", content={"ends": True}), "user"),
    ],
)
async def test_a_form_that_is_not_sent_ends_the_conversation(
    tmp_path: Path, answer: types.ElicitResult, by: str
) -> None:
    """The first words are the user's own, and the task is graded."""
    async with opened(tmp_path, Person(answer), name="asked") as asked:
        begun = await asked.start("who_ends")
        assert begun.structured["prompt"].endswith("A lamp is broken.")
        last = await asked.say("Which one?")
        assert last.structured["content"] == f"{by} after 2"


async def test_a_client_without_forms_is_told_so_and_nothing_is_said(tmp_path: Path) -> None:
    """`response` still ends the task."""
    async with opened(tmp_path, None) as shop:
        await shop.start("return_order")
        refused = await shop.call("message_user", text="Which order?")
        assert refused.is_error
        assert "elicitation" in refused.text
        assert (await shop.ok("response", answer="")).structured["state"] == "ended"
        assert [step.kind for step in (await shop.record()).steps] == ["response"]


async def test_a_template_without_a_user_asks_no_person(tmp_path: Path) -> None:
    """Its words are the template's own."""
    person = Person(says("Never."))
    async with opened(tmp_path, person, name="asked") as asked:
        await asked.start("one_sided")
        assert (await asked.say("Hello.")).structured["content"] == "Hello."
    assert person.asked == []


async def by_hand(talker: Talker, text: str, **more: Any) -> Any:
    """Say something as a client that answers by calling again."""
    with anyio.fail_after(PATIENCE_S):
        return await talker.client.session.call_tool(
            "message_user",
            {"session": talker.session, "text": text},
            allow_input_required=True,
            **more,
        )


async def test_a_message_waits_for_its_own_answer_alone(tmp_path: Path) -> None:
    """It is said once, however often it is sent; another message waits, and a token is its own."""
    async with opened(tmp_path, Person(says("Never."))) as shop:
        await shop.start("return_order")
        needed = await by_hand(shop, "Which order?")
        (key,) = needed.input_requests
        again = await by_hand(shop, "Which order?")
        assert again.request_state == needed.request_state
        yes: Any = {key: says("It is #W2.")}
        for text, state in (("Another.", None), ("Which order?", "wrong"), ("Another.", "wrong")):
            more = {} if state is None else {"request_state": state, "input_responses": yes}
            refused = read_reply(await by_hand(shop, text, **more))
            assert refused.is_error, refused.text
        token: Any = needed.request_state
        for _ in range(2):  # the reply may be lost
            told = await by_hand(shop, "Which order?", input_responses=yes, request_state=token)
            assert read_reply(told).structured["reply"] == "It is #W2."
        assert [s.kind for s in (await shop.record()).steps] == ["user", "message"]


async def test_a_person_who_takes_too_long_ends_the_conversation(tmp_path: Path) -> None:
    """A bound ends the conversation, and not the run."""
    async with opened(tmp_path, Person(says("Never.")), name="asked") as asked:
        await asked.start("who_ends")
        session: Any = await asked.sessions.find(asked.session, CALLER)
        (await session.person())._within_s = 0.05
        await by_hand(asked, "Which one?")
        await asked.over()
        assert (await asked.record()).receipt.content == "limit after 2"  # type: ignore[union-attr]


async def test_a_server_that_stops_while_a_form_is_open_loses_nothing(tmp_path: Path) -> None:
    """The next one brings the session back, and the same message asks the person again."""
    async with opened(tmp_path, Person(says("Never."))) as shop:
        await shop.start("return_order")
        await by_hand(shop, "Which order?")
        session = shop.session
    async with opened(tmp_path, Person(says("It is #W3."))) as shop:
        shop.session = session
        told = await shop.say("Which order?")
        assert told.structured["reply"] == "It is #W3."
        done = [step.kind for step in (await shop.record()).steps if step.error is None]
        assert done == ["user", "message"]


async def test_a_form_that_stays_open_holds_no_message_up(tmp_path: Path) -> None:
    """A client of the earlier era gets its reply as the bound is reached."""

    async def never(context: Any, params: Any) -> types.ElicitResult:
        del context, params
        await anyio.sleep_forever()
        raise AssertionError

    async with opened(tmp_path, never, name="asked", era=LEGACY) as asked:  # type: ignore[arg-type]
        await asked.start("who_ends")
        session: Any = await asked.sessions.find(asked.session, CALLER)
        (await session.person())._within_s = 0.05
        last = await asked.say("Which one?")
        assert last.structured["content"] == "limit after 2"


async def test_another_setting_is_told_as_the_server_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the variable, its value and what to set."""
    monkeypatch.setenv("HUD_MCP_USER", "persn")
    async with registry(tmp_path / "store.sqlite3", env) as sessions:
        with pytest.raises(InvalidTemplate, match="HUD_MCP_USER is 'persn'"):
            build_server(sessions)
