"""Each turn has the messages that no turn before has, whatever its program changes on the way."""

import copy
import hashlib
import json
from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from recordings import DIALECT_NAMES, WHOLE, Exchange, exchanges, read

from hud_mcp.plugins.models.gateway.conversation import Conversation, Place
from hud_mcp.plugins.models.gateway.dialects import Asked, ReadTurn, Unreadable
from hud_mcp.plugins.models.gateway.dialects.known import DIALECTS
from hud_mcp.values.model_turn import TokenUsage

Json = dict[str, Any]

PNG = next(
    block["source"]["data"]
    for block in exchanges("messages")[1].request["messages"][3]["content"][0]["content"]
    if block["type"] == "image"
)
PATHS = {name: exchanges(name)[0].path for name in DIALECT_NAMES}
MESSAGES = {"messages": "messages", "chat": "messages", "responses": "input", "gemini": "contents"}


class Run:
    """A run whose turns are recorded one after the other."""

    def __init__(self, name: str) -> None:
        """Begin without turns."""
        self.dialect, self.path = DIALECTS[name], PATHS[name]
        self.conversation = Conversation()
        self.count = 0

    def ask(self, body: Json, reply: ReadTurn | None = None, headers: Json | None = None) -> Place:
        """Send a request, and record its turn."""
        asked = self.dialect.request(self.path, json.dumps(body).encode(), headers or {})
        return self.add(asked, reply or ReadTurn())

    def add(self, asked: Asked, reply: ReadTurn) -> Place:
        """Record a turn."""
        place = self.conversation.place(asked)
        self.conversation.recorded(asked, place, self.count, reply)
        self.count += 1
        return place


def replied(each: Exchange) -> ReadTurn:
    """Read the reply of an exchange."""
    reader = each.dialect.reader(each.asked(), each.status, WHOLE if each.whole else "")
    read(reader, each.plain() if each.whole else each.stream())
    return reader.turn()


@pytest.mark.parametrize("name", DIALECT_NAMES)
def test_a_recorded_conversation_is_read_turn_by_turn(name: str) -> None:
    """A reply that came back as it was is its turn's number; a repeat and a side turn say so."""
    run = Run(name)
    for each in exchanges(name):
        place = run.add(each.asked(), replied(each))
        assert {
            "after": place.after,
            "repeats": place.repeats,
            "is_side": place.is_side,
            "roles": [message["role"] for message in place.messages],
        } == each.place, each.about
        if each.place["after"] == 0 and not each.place["repeats"]:
            assert place.messages[0] == {"role": "assistant", "turn": 0}
            assert place.system is None
            assert place.tools == ()


@pytest.mark.parametrize("name", DIALECT_NAMES)
def test_results_and_pictures_are_read(name: str) -> None:
    """A picture is its digest in the message, and its bytes once beside it."""
    first, second = exchanges(name)[:2]
    run = Run(name)
    run.add(first.asked(), replied(first))
    place = run.add(second.asked(), ReadTurn())
    parts = [part for message in place.messages[1:] for part in message["parts"]]
    results = [part["result"] for part in parts if "result" in part]
    assert "You see a door." in results[0]
    assert len(results) == 2
    data = b64decode(PNG)
    digest = hashlib.sha256(data).hexdigest()
    assert {"image": digest, "mime": "image/png", "bytes": len(data)} in parts
    assert [(each.mime, each.data) for each in place.pictures.values()] == [("image/png", data)]
    assert PNG not in json.dumps(place.messages)


def growing(name: str, turns: int, padding: str) -> Iterator[Json]:
    """Yield the requests of a conversation, each the one before with more messages."""
    body = copy.deepcopy(exchanges(name)[0].request)
    more = exchanges(name)[1].request[MESSAGES[name]]
    added = more[len(body[MESSAGES[name]]) :]
    yield body
    for turn in range(1, turns):
        text = json.dumps(added).replace("You see a door.", f"{turn} {padding}")
        body[MESSAGES[name]] += json.loads(text)
        yield body


def grown(name: str, turns: int, padding: str) -> list[Json]:
    """Return the requests of a conversation of a few turns."""
    return [copy.deepcopy(body) for body in growing(name, turns, padding)]


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    ["messages", *(pytest.param(each, marks=pytest.mark.long) for each in DIALECT_NAMES[1:])],
)
def test_two_hundred_turns_are_linear(name: str) -> None:
    """The record grows by what is new, though each request has all that came before."""
    run, sizes = Run(name), list[int]()
    for number, body in enumerate(growing(name, 200, "x" * 100)):
        place = run.ask(body)
        assert place.after == (number - 1 if number else None)
        sizes.append(len(json.dumps(place.messages)))
    assert max(sizes[1:]) < 2_000
    assert sum(sizes[100:]) <= 1.05 * sum(sizes[1:101])


Change = Callable[[Json], None]


def move_the_cache(body: Json) -> None:
    """Mark the newest block alone, as Claude Code does, and write others as plain text."""
    for message in body["messages"]:
        content: Any = message["content"]
        if isinstance(content, list) and [*content[0]] == ["type", "text"]:
            message["content"] = content[0]["text"]
        elif isinstance(content, str):
            message["content"] = [
                {"type": "text", "text": content, "cache_control": {"type": "ephemeral"}}
            ]
        else:
            for block in content:
                block["cache_control"] = {"type": "ephemeral"}


def bill_anew(body: Json) -> None:
    """Change the first block of Claude Code's system prompt."""
    body["system"][0]["text"] = "x-anthropic-billing-header: cc_version=9.9.9;"


def forget_thinking(body: Json) -> None:
    """Leave out the thinking of earlier replies."""
    for message in body["messages"]:
        if isinstance(message["content"], list):
            message["content"] = [
                block for block in message["content"] if "thinking" not in block["type"]
            ]


def number_anew(body: Json) -> None:
    """Give other ids and states to items, as Codex does."""
    for number, item in enumerate(body["input"]):
        item["id"] = f"new_{number}"
        item["status"] = "completed"


def forget_reasoning(body: Json) -> None:
    """Leave out the reasoning of earlier replies."""
    body["input"] = [item for item in body["input"] if item.get("type") != "reasoning"]


def forget_reasons(body: Json) -> None:
    """Leave out the reasoning of earlier messages."""
    for message in body["messages"]:
        message.pop("reasoning_content", None)


def forget_signatures(body: Json) -> None:
    """Leave out signatures of thoughts."""
    for item in body["contents"]:
        for part in item["parts"]:
            part.pop("thoughtSignature", None)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("messages", move_the_cache),
        ("messages", bill_anew),
        ("messages", forget_thinking),
        ("chat", forget_reasons),
        ("responses", number_anew),
        ("responses", forget_reasoning),
        ("gemini", forget_signatures),
    ],
)
def test_a_change_that_means_nothing_begins_no_new_conversation(name: str, change: Change) -> None:
    """Programs move marks, number anew and forget reasoning between two requests."""
    bodies = grown(name, 4, "door")
    run = Run(name)
    for number, body in enumerate(bodies):
        if number == 3:
            change(body)
        place = run.ask(body)
        assert place.after == (number - 1 if number else None)
        assert len(place.messages) <= 4


@pytest.mark.parametrize("name", DIALECT_NAMES)
def test_a_changed_history_is_recorded(name: str) -> None:
    """A reply that came back changed is a message, and an earlier text begins anew."""
    first, second = exchanges(name)[:2]
    run = Run(name)
    run.add(first.asked(), replied(first))
    text = json.dumps(second.request, ensure_ascii=False)
    changed = json.loads(text.replace("I see a door", "I see a wall"))
    place = run.ask(changed)
    assert place.after == 0
    assert "I see a wall" in json.dumps(place.messages[0])
    has_thoughts = name != "gemini"  # its program sends none back
    assert ("The door is closed" in json.dumps(place.messages[0])) is has_thoughts
    anew = json.loads(text.replace("Say what the answer is", "Say something else"))
    place = run.ask(anew)
    assert place.after is None
    assert "Say something else" in json.dumps(place.messages)


@pytest.mark.parametrize("name", DIALECT_NAMES)
def test_sub_agents_are_branches(name: str) -> None:
    """Two requests that go on from one turn both come after it."""
    bodies, run = grown(name, 3, "door"), Run(name)
    run.ask(bodies[0])
    run.ask(bodies[1])
    other = json.loads(json.dumps(bodies[1]).replace("1 door", "another door"))
    assert run.ask(other).after == 0
    assert run.ask(bodies[2]).after == 1


def test_another_prompt_or_other_tools_are_no_repeat() -> None:
    """The router of a program asks about the same message."""
    body, run = exchanges("messages")[0].request, Run("messages")
    assert run.ask(body).system is not None
    place = run.ask({**body, "system": "Choose a model."})
    assert (place.repeats, place.after, place.system) == (None, None, "Choose a model.")
    assert [message["role"] for message in place.messages] == ["user", "system"]
    assert run.ask(body).repeats == 0
    assert run.ask(body).repeats == 0


def test_a_side_turn_says_so() -> None:
    """A helper's header, JSON of a schema without tools, or no tools where there were some."""
    body, run = exchanges("chat")[0].request, Run("chat")
    plain = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
    assert not run.ask(plain).is_side
    schema: Json = {"type": "json_schema", "json_schema": {"schema": {}}}
    assert run.ask({**plain, "response_format": schema}).is_side
    assert not run.ask(body).is_side
    assert not run.ask({**body, "response_format": schema}).is_side
    assert run.ask({**plain, "temperature": 1, "messages": plain["messages"] * 2}).is_side
    again = {**body, "messages": body["messages"] * 2}
    assert run.ask(again, headers={"x-openai-subagent": "guardian"}).is_side


def test_a_reply_is_continued_by_its_id() -> None:
    """Of its own run alone: another run's reply may stand at the same provider."""
    body, run = copy.deepcopy(exchanges("responses")[0].request), Run("responses")
    run.ask(body, ReadTurn(provider_id="resp_1", usage=TokenUsage(input=900, output=50)))
    more = {**body, "previous_response_id": "resp_1", "input": "Go on."}
    place = run.ask(more, ReadTurn(provider_id="resp_2"))
    assert (place.after, [message["role"] for message in place.messages]) == (0, ["user"])
    assert place.most_input_tokens >= 950 + len("Go on.")
    assert run.ask(more).repeats == 1
    assert run.ask({**more, "previous_response_id": "resp_2"}).after == 1
    with pytest.raises(Unreadable, match="this run"):
        Run("responses").ask(more)


def text_of(name: str, body: Json) -> int:
    """Return the bytes of a request but for its pictures."""
    return len(json.dumps(body)) - json.dumps(body).count(PNG) * len(PNG)


@pytest.mark.parametrize("name", DIALECT_NAMES)
def test_the_bound_of_input_follows_what_the_provider_counted(name: str) -> None:
    """One token is at least one byte; a picture is at most 5,000."""
    bodies, run = grown(name, 3, "x" * 2_000), Run(name)
    first = run.ask(bodies[0], ReadTurn(usage=TokenUsage(input=700)))
    assert first.most_input_tokens == text_of(name, bodies[0]) + 2_000
    second = run.ask(bodies[1], ReadTurn(usage=TokenUsage(input=2_000)))
    new = text_of(name, bodies[1]) - text_of(name, bodies[0])
    assert 700 + new + 5_000 <= second.most_input_tokens <= 700 + new + 5_000 + 100
    again = run.ask(bodies[1])
    assert again.most_input_tokens == 2_000
    third = run.ask({**bodies[2], "tools": None})
    assert third.most_input_tokens == text_of(name, {**bodies[2], "tools": None}) + 12_000


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("messages", '"thinking": "The', '"thinking": "' + "x" * 9_000),
        ("messages", '"data": "AAAA"', '"data": "' + "A" * 9_000 + '"'),
        ("messages", "x-anthropic-billing-header: ", "x-anthropic-billing-header: " + "x" * 9_000),
        ("messages", '"type": "ephemeral"', '"type": "ephemeral", "ttl": "' + "x" * 9_000 + '"'),
        ("chat", '"reasoning_content": "', '"reasoning_content": "' + "x" * 9_000),
        ("responses", '"encrypted_content": "', '"encrypted_content": "' + "x" * 9_000),
        ("gemini", '"thoughtSignature": "', '"thoughtSignature": "' + "x" * 9_000),
    ],
)
def test_text_in_what_no_digest_has_is_in_the_bound(name: str, old: str, new: str) -> None:
    """An agent hides no input from its budget."""
    bodies, run = grown(name, 2, "door"), Run(name)
    run.ask(bodies[1], ReadTurn(usage=TokenUsage(input=500)))
    text = json.dumps(bodies[1])
    assert old in text
    place = run.ask(json.loads(text.replace(old, new)))
    assert place.most_input_tokens >= 500 + 8_000


def test_text_that_is_called_a_picture_where_none_can_be_is_text() -> None:
    """Arguments of a call are text to a provider, whatever they look like."""
    source = {"type": "base64", "media_type": "image/png", "data": "A" * 50_000}
    image = {"type": "image", "source": source}
    call = {"type": "tool_use", "id": "t", "name": "step", "input": image}
    document = {"type": "document", "source": {**source, "media_type": "text/plain"}}
    block: Json
    for block in (call, document):
        content: list[Json] = [{"role": "user", "content": [block]}]
        place = Run("messages").ask({"model": "m", "max_tokens": 9, "messages": content})
        assert place.most_input_tokens > 50_000


def test_a_document_counts_by_its_pages() -> None:
    """One that is only named may have as many as a provider takes."""

    def bound(source: Json) -> int:
        block = {"type": "document", "source": source}
        messages = [{"role": "user", "content": [block]}]
        return Run("messages").ask({"model": "m", "messages": messages}).most_input_tokens

    pdf = {"type": "base64", "media_type": "application/pdf", "data": "A" * 4_000}
    assert 60_000 <= bound(pdf) < 63_000
    assert bound({"type": "url", "url": "https://example.com/a.pdf"}) >= 2_000_000
