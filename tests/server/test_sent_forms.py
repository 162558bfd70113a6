"""Values that a model sends in another form are taken in one way, or refused in one sentence.

The same values go to an environment's own tool, to a world's own action in `step` and in `act`, to
a template, and over the wires of HUD and OpenEnv.
"""

import datetime as dt
import enum
import functools
import inspect
import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, Optional

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from open_sessions import opened
from peers import child_environment, serve_arguments
from pydantic import BaseModel
from refused_schemas import nodes, refused
from waiting import PATIENCE_S

from hud_mcp.environment import Environment
from hud_mcp.environment.tool import actions
from hud_mcp.errors import HudMcpError
from hud_mcp.loading.source import load_environments, shipped_environments
from hud_mcp.plugins.hud.operations import Operations
from hud_mcp.plugins.hud.wire.client import ChannelClient
from hud_mcp.plugins.hud.wire.server import Channel
from hud_mcp.plugins.openenv.episode import Episode, Refused
from hud_mcp.server.app import build_server
from hud_mcp.server.local import LocalTools
from hud_mcp.server.own_tools import OwnTool
from hud_mcp.server.tools import listed_core_tools
from hud_mcp.server.view import View
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.store import Store
from hud_mcp.values.action import INPUT_TYPES, ActionEffect, CustomAction
from hud_mcp.values.context import ContextFeature, ContextSpace
from hud_mcp.values.observation import Look, Observation
from hud_mcp.world import Opening, WorldSpec

pytestmark = pytest.mark.anyio

Send = Callable[[Any, Any], Awaitable[str]]


class Colour(enum.StrEnum):
    """Two of them."""

    RED = "red"
    BLUE = "blue"


class Part(BaseModel):
    """A nested model, which contains itself."""

    size: tuple[int, int]
    tags: list[str] = []
    inner: Optional["Part"] = None


class Disc(BaseModel):
    """One of two forms."""

    kind: Literal["disc"] = "disc"
    radius: float


class Box(BaseModel):
    """The other one."""

    kind: Literal["box"] = "box"
    sides: list[int]


class Echo:
    """A world that repeats what it was told to do."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    async def act(self, action: Any) -> ActionEffect:
        """Repeat an action, or perform the world's own."""
        if isinstance(action, CustomAction):
            return await OWN.perform(self, action)
        self.said.append(action.model_dump(mode="json", exclude_none=True))
        return ActionEffect()

    async def observe(self, look: Look) -> Observation:
        """The actions since the last look."""
        del look
        said, self.said = self.said, []
        return Observation(text=f"TAKEN {json.dumps(said)} END")

    async def close(self) -> None:
        """Nothing is open."""


def told(**given: Any) -> str:
    """What a function was called with, without what it has by default."""
    default = every.__kwdefaults__
    taken = {name: each for name, each in given.items() if each != default.get(name, ...)}
    return f"TAKEN {taken!r} END"


async def every(
    echo: Echo,
    *,
    words: list[str] = [],  # noqa: B006  # nothing changes them, here and below
    numbers: list[int] = [],  # noqa: B006
    pair: tuple[int, int] = (0, 0),
    mixed: tuple[str, int] = ("", 0),
    count: int = -9,
    ratio: float = 0.25,
    flag: bool | None = None,
    text: str = "none",
    part: Part | None = None,
    parts: list[Part] = [],  # noqa: B006
    colour: Colour = Colour.RED,
    one: Literal[1, 2, "x"] = 1,
    by: dict[str, int] = {},  # noqa: B006
    grid: list[list[int]] = [],  # noqa: B006
    named: dict[str, list[int]] = {},  # noqa: B006
    either: str | int = "none",
    several: int | list[int] = -9,
    shape: Disc | Box | None = None,
    day: dt.date = dt.date(2026, 1, 2),
    when: dt.datetime | None = None,
    kinds: set[int] = set(),  # noqa: B006
    anything: Any = "none",
    things: list[Any] = [],  # noqa: B006
    free: dict[str, Any] = {},  # noqa: B006
) -> str:
    """Take an argument of every kind."""
    given = dict(locals())
    assert isinstance(given.pop("echo"), Echo)
    return told(**given)


OWN = actions(every)


class EchoSpec(WorldSpec):
    """Declares the world."""

    name = "echo"
    world_type = Echo
    actions = frozenset(INPUT_TYPES) | {"custom"}
    custom_actions = OWN
    context_space = ContextSpace(
        [
            ContextFeature(name="width", default=3, lower=1, upper=9),
            ContextFeature(name="heat", default=0.5),
            ContextFeature(name="on", default=True),
            ContextFeature(name="name", default="x"),
        ]
    )

    async def open(self, opening: Opening) -> Echo:
        """Begin without a word."""
        del opening
        return Echo()


def echo_environment() -> Environment:
    """An environment whose tool, action and template take an argument of every kind."""
    environment = Environment("echo", world=EchoSpec())
    environment.tool(every)

    @functools.wraps(every)
    async def template(**given: Any) -> AsyncGenerator[Any, Any]:
        yield await every(**given)
        yield 1.0

    del template.__wrapped__  # pyright: ignore[reportFunctionMemberAccess]  # it is no coroutine
    template.__signature__ = inspect.signature(every)  # pyright: ignore[reportAttributeAccessIssue]
    environment.template(id="ask")(template)
    return environment


PART = {"size": [1, 2]}
TAKEN_PART = "Part(size=(1, 2), tags=[], inner=None)"

TAKEN: tuple[tuple[str, Any, str], ...] = (
    ("words", '["a", "b"]', "['a', 'b']"),
    ("words", "a", "['a']"),
    ("words", "5", "['5']"),
    ("words", '"a"', "['a']"),
    ("words", '"[\\"a\\"]"', "['a']"),
    ("numbers", "[1, 2]", "[1, 2]"),
    ("numbers", 5, "[5]"),
    ("numbers", "5", "[5]"),
    ("numbers", ["5", 6.0], "[5, 6]"),
    ("pair", "[1, 2]", "(1, 2)"),
    ("pair", ["1", 2.0], "(1, 2)"),
    ("mixed", '["1", "2"]', "('1', 2)"),
    ("count", "5", "5"),
    ("count", " 5 ", "5"),
    ("count", "100.0", "100"),
    ("count", "1e3", "1000"),
    ("count", 5.0, "5"),
    ("count", str(2**62), str(2**62)),
    ("ratio", "1e3", "1000.0"),
    ("ratio", "5", "5.0"),
    ("flag", "true", "True"),
    ("flag", "False", "False"),
    ("flag", "TRUE", "True"),
    ("text", "5", "'5'"),
    ("text", '["a"]', """'["a"]'"""),
    ("text", "null", "'null'"),
    ("text", "true", "'true'"),
    ("part", json.dumps(PART), TAKEN_PART),
    ("part", {"size": "[1, 2]", "tags": "a", "inner": json.dumps(PART)},
     f"Part(size=(1, 2), tags=['a'], inner={TAKEN_PART})"),
    ("part", {**PART, "tags": None, "inner": ""}, TAKEN_PART),
    ("parts", PART, f"[{TAKEN_PART}]"),
    ("parts", json.dumps(PART), f"[{TAKEN_PART}]"),
    ("parts", [json.dumps({"size": ["1", "2"]})], f"[{TAKEN_PART}]"),
    ("one", "x", "'x'"),
    ("by", '{"a": "1"}', "{'a': 1}"),
    ("by", '{"a": 1, "a": 2}', "{'a': 2}"),
    ("grid", "[[1, 2]]", "[[1, 2]]"),
    ("grid", ["[1, 2]"], "[[1, 2]]"),
    ("named", {"a": 1, "b": "[2]"}, "{'a': [1], 'b': [2]}"),
    ("either", "5", "'5'"),
    ("either", 5, "5"),
    ("several", "[1]", "[1]"),
    ("several", ["1"], "[1]"),
    ("several", "7", "7"),
    ("shape", '{"kind": "box", "sides": "[1]"}', "Box(kind='box', sides=[1])"),
    ("shape", {"kind": "disc", "radius": "2"}, "Disc(kind='disc', radius=2.0)"),
    ("day", "2026-03-14", "datetime.date(2026, 3, 14)"),
    ("kinds", "[1, 1]", "{1}"),
    ("kinds", 1, "{1}"),
    ("anything", "[1]", "'[1]'"),
    ("things", "[1]", "[1]"),
    ("things", ["[1]"], "['[1]']"),
    ("things", 5, "[5]"),
    ("free", '{"a": "[1]"}', "{'a': '[1]'}"),
)  # fmt: skip
"""A field, the value that is sent, and the function's own."""

TEXTS = ("text", "colour", "one", "either", "day", "when")
"""Fields in which the text "null" is one."""
ABSENT: tuple[tuple[str, Any], ...] = (
    *((name, None) for name in every.__kwdefaults__ if name != "anything"),
    *(
        (name, nothing)
        for name in every.__kwdefaults__
        for nothing in ("", "null", "None")
        if name not in ("anything", *TEXTS)
    ),
    ("colour", ""), ("day", ""), ("when", ""), ("count", []), ("words", {}), ("part", {}),
)  # fmt: skip
"""A field, and a value that counts as absent there."""

REFUSED: tuple[tuple[str, Any, str], ...] = (
    ("words", "a, b", "words: expected a list such as ['a', 'b'], got 'a, b'"),
    ("words", "['a']", "words: expected a list such as ['a'], got"),
    ("words", 5, "words: expected a list such as ['a'], got 5"),
    ("words", [5], "words[0]: expected a string such as '5', got 5"),
    ("words", {"a": 1}, "words: expected a list such as ['a'], got {'a': 1}"),
    ("numbers", "1, 2", "numbers: expected a list such as [10], got '1, 2'"),
    ("numbers", "a", "numbers: expected a list such as [10], got 'a'"),
    ("numbers", True, "numbers: expected a list such as [10], got True"),
    ("numbers", [5.5], "numbers[0]: expected a whole number such as 10, got 5.5"),
    ("pair", [1], "pair: expected a list of 2 items such as [10, 10], got [1]"),
    ("pair", 5, "pair: expected a list such as [10, 10], got 5"),
    ("pair", {"x": 1, "y": 2}, "pair: expected a list such as [10, 10], got {'x': 1, 'y': 2}"),
    ("mixed", "a", "mixed: expected a list such as ['a', 10], got 'a'"),
    ("count", "5.5", "count: expected a whole number such as 10, got '5.5'"),
    ("count", "five", "count: expected a whole number such as 10, got 'five'"),
    ("count", "NaN", "count: expected a whole number such as 10, got 'NaN'"),
    ("count", True, "count: expected a whole number such as 10, got True"),
    ("count", "[5]", "count: expected a whole number such as 10, got '[5]'"),
    ("count", str(2**70), "count: expected a whole number such as 10, got '118"),
    ("ratio", "inf", "ratio: expected a number such as 10, got 'inf'"),
    ("ratio", "1e999", "ratio: expected a number such as 10, got '1e999'"),
    ("flag", "yes", "flag: expected true or false, got 'yes'"),
    ("flag", 1, "flag: expected true or false, got 1"),
    ("text", 5, "text: expected a string such as '5', got 5"),
    ("text", ["a"], "text: expected a string, got ['a']"),
    ("part", "x", "part: expected an object such as {'size': [10, 10]}, got 'x'"),
    ("part", [PART], "part: expected an object such as {'size': [10, 10]}, got [{"),
    ("part", {"size": "x"}, "part.size: expected a list such as [10, 10], got 'x'"),
    ("part", {"tags": ["a"]}, "'part.size' is required"),
    ("parts", [[1, 2]], "parts[0]: expected an object such as {'size': [10, 10]}, got [1, 2]"),
    ("colour", "Red", "colour: expected one of 'red', 'blue', got 'Red'. Did you mean 'red'?"),
    ("one", "1", "one: expected one of 1, 2, 'x', got '1'"),
    ("by", {"a": "x"}, "by.a: expected a whole number such as 10, got 'x'"),
    ("grid", [1], "grid[0]: expected a list such as [10], got 1"),
    ("either", [1], "either: expected a string or a whole number such as 10, got [1]"),
    ("several", "x", "several: expected a whole number such as 10 or a list such as [10], got 'x'"),
    ("day", "tomorrow", "day: expected a date such as '2026-03-14', got 'tomorrow'"),
    ("when", "now", "when: expected a time such as '2026-03-14T09:30:00Z', got 'now'"),
    ("free", "x", "free: expected an object such as {'name': 'a'}, got 'x'"),
    ("numbers", "[" * 5000, "numbers: expected a list such as [10], got '[[["),
)
"""A field, the value that is sent, and the sentence."""

LIBRARY = (" valid ", "Input ", "pydantic", "http", "tuple", "should be", "Error", "parse")
"""Words of libraries, which no refusal has."""


@asynccontextmanager
async def client_of(store: Path) -> AsyncGenerator[Client]:
    """A client of a server whose sessions end with it."""
    async with (
        opened(Sessions([echo_environment()], store=Store(store))) as sessions,
        Client(build_server(sessions)) as client,
    ):
        yield client


@asynccontextmanager
async def over_mcp(store: Path) -> AsyncGenerator[dict[str, Send]]:
    """The ways in which a client of MCP sends a value."""
    async with client_of(store) as client:

        async def call(name: str, given: Any) -> str:
            reply = await client.call_tool(name, given)
            said = "\n".join(each.text for each in reply.content if each.type == "text")
            if name == "start_task" and not reply.is_error:
                assert reply.structured_content is not None
                session = {"session": reply.structured_content["session"]}
                await client.call_tool("cancel_task", session)
            return said

        begun = await client.call_tool("start_task", {"template": "ask"})
        assert begun.structured_content is not None
        held = {"session": begun.structured_content["session"]}

        async def tool(name: str, value: Any) -> str:
            return await call("every", {**held, name: value})

        async def step(name: str, value: Any) -> str:
            own = {"type": "custom", "action": "every", "args": {name: value}}
            return await call("step", {**held, "actions": [own]})

        async def act(name: str, value: Any) -> str:
            own = {"type": "custom", "action": "every", "args": json.dumps({name: value})}
            return await call("act", {**held, **own})

        async def start(name: str, value: Any) -> str:
            return await call("start_task", {"template": "ask", "arguments": {name: value}})

        async def text(name: str, value: Any) -> str:
            given = {"template": "ask", "arguments": json.dumps({name: value})}
            return await call("start_task", given)

        yield {"tool": tool, "step": step, "act": act, "start": start, "start by text": text}


@asynccontextmanager
async def over_hud(store: Path) -> AsyncGenerator[dict[str, Send]]:
    """The ways in which a program sends a value over HUD's channel, and in its live environment."""
    environment = echo_environment()
    sessions = Sessions([environment], store=Store(store))
    channel = Channel(environment, sessions=sessions, closes_sessions=True)
    server = await channel.listen()
    port = server.sockets[0].getsockname()[1]
    operations = Operations(sessions)
    row = {"id": "row", "env": "echo", "template": "ask"}
    try:
        begun = await operations.perform("hud-mcp/start", {"task": row})

        async def start(name: str, value: Any) -> str:
            async with ChannelClient.connect(f"tcp://127.0.0.1:{port}") as client:
                try:
                    begun = await client.start("ask", {name: value})
                except HudMcpError as exc:
                    return str(exc)
                await client.grade("")
                return str(begun["prompt"])

        async def step(name: str, value: Any) -> str:
            own = {"type": "custom", "action": "every", "args": {name: value}}
            given = {"session": begun["session"], "actions": json.dumps(own)}
            try:
                done = await operations.perform("hud-mcp/step", given)
                return str(done["info"].get("error") or done)
            except HudMcpError as exc:
                return str(exc)

        yield {"tasks.start": start, "hud-mcp/step": step}
    finally:
        with anyio.CancelScope(shield=True):
            await channel.close()


@asynccontextmanager
async def over_openenv(store: Path) -> AsyncGenerator[dict[str, Send]]:
    """The ways in which a trainer sends a value over OpenEnv's wire."""
    sessions = Sessions([echo_environment()], store=Store(store))
    episode = Episode(LocalTools(sessions), Caller(connection="a trainer"))
    await episode.reset({"template": "ask", "seed": "7"})

    async def told_by(given: Any) -> str:
        try:
            seen = (await episode.step(given))["observation"]
        except (Refused, HudMcpError) as exc:
            return str(exc)
        return str(seen.get("result") or seen.get("error") or "") + str(seen.get("notes") or "")

    async def tool(name: str, value: Any) -> str:
        return await told_by({"tool": "every", "arguments": json.dumps({name: value})})

    async def step(name: str, value: Any) -> str:
        own = {"type": "custom", "action": "every", "args": {name: value}}
        seen = (await episode.step({"actions": [json.dumps(own)]}))["observation"]
        return str(seen.get("error") or seen)

    yield {"tool": tool, "step": step}
    await episode.close()


def is_plain(said: str, words: str) -> bool:
    """Whether a refusal has these words, and none of a library's."""
    return words in said and not any(each in said for each in LIBRARY)


async def faults(ways: dict[str, Send]) -> list[str]:
    """Say which values are not taken as they are meant, or refused otherwise than in the table."""
    wrong: list[str] = []
    for way, send in ways.items():
        for name, value, meant in TAKEN:
            said = await send(name, value)
            if f"TAKEN {{'{name}': {meant}}} END" not in said.replace('\\\\"', '"').replace(
                "\\'", "'"
            ):
                wrong.append(f"{way}: {name} {value!r}: {said[:200]}")
        for name, value in ABSENT:
            said = await send(name, value)
            if "TAKEN {} END" not in said:
                wrong.append(f"{way}: {name} {value!r}: {said[:200]}")
        for name, value, words in REFUSED:
            said = await send(name, value)
            if not is_plain(said, words):
                wrong.append(f"{way}: {name} {value!r}: {said[:300]}")
    return wrong


async def test_every_tool_takes_and_refuses_the_same_forms(tmp_path: Path) -> None:
    """In a tool, in an action at any depth, and in `act`, whose arguments are a text."""
    async with over_mcp(tmp_path / "s.db") as ways:
        wrong = await faults({way: ways[way] for way in ("tool", "step", "act")})
    assert wrong == []


@pytest.mark.long
async def test_a_start_takes_and_refuses_the_same_forms(tmp_path: Path) -> None:
    """In a template's arguments, as an object and as its text."""
    async with over_mcp(tmp_path / "s.db") as ways:
        wrong = await faults({way: ways[way] for way in ("start", "start by text")})
    assert wrong == []


@pytest.mark.long
async def test_the_channel_of_hud_takes_and_refuses_the_same_forms(tmp_path: Path) -> None:
    """In a task's arguments and in actions."""
    async with over_hud(tmp_path / "s.db") as ways:
        wrong = await faults(ways)
    assert wrong == []


async def test_the_wire_of_openenv_takes_and_refuses_the_same_forms(tmp_path: Path) -> None:
    """In a tool's arguments and in actions, which are texts themselves."""
    async with over_openenv(tmp_path / "s.db") as ways:
        wrong = await faults(ways)
    assert wrong == []


CLICK = {"type": "click", "x": 5, "y": 6}
PLACE = {"x": 5.0, "y": 6.0}
ACTIONS: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({**CLICK, "x": "5", "y": "6.0"}, {"point": PLACE}),
    ({"type": "click", "point": '{"x": 5, "y": "6"}'}, {"point": PLACE}),
    ({**CLICK, "pattern": 100}, {"point": PLACE, "pattern": [100]}),
    ({**CLICK, "pattern": '["100"]'}, {"point": PLACE, "pattern": [100]}),
    ({**CLICK, "hold_keys": "ctrl"}, {"point": PLACE, "hold_keys": ["ctrl"]}),
    ({**CLICK, "hold_keys": "null", "button": ""}, {"point": PLACE}),
    ({"type": "press", "keys": "enter"}, {"keys": ["enter"]}),
    ({"type": "press", "keys": '["ctrl", "a"]'}, {"keys": ["ctrl", "a"]}),
    ({"type": "type", "text": '["a"]', "enter_after": "True"},
     {"text": '["a"]', "enter_after": True}),
    ({"type": "scroll", "scroll_y": "1e2"}, {"scroll": {"x": 0.0, "y": 100.0}}),
    ({"type": "scroll", "scroll": '{"x": 0, "y": "9"}'}, {"scroll": {"x": 0.0, "y": 9.0}}),
    ({"type": "move", "offset": '{"x": 1, "y": 2}'}, {"offset": {"x": 1.0, "y": 2.0}}),
    ({"type": "wait", "time": "7.0"}, {"time": 7}),
    ({"type": "drag", "path": ['{"x": "5", "y": 6}', '{"x": 5, "y": "6"}']},
     {"path": [PLACE, PLACE]}),
)  # fmt: skip
"""An action as it is sent, and its fields as the world gets them."""
BAD_ACTIONS: tuple[tuple[dict[str, Any], str], ...] = (
    ({**CLICK, "x": True}, "x: expected a number such as 10, got True"),
    ({**CLICK, "x": "5px"}, "x: expected a number such as 10, got '5px'"),
    ({**CLICK, "x": "NaN"}, "x: expected a number such as 10, got 'NaN'"),
    ({"type": "click", "point": [5, 6]},
     "point: expected an object such as {'x': 10, 'y': 10}, got [5, 6]"),
    ({**CLICK, "pattern": "double"}, "such as [10], got 'double'"),
    ({**CLICK, "pattern": [9999]}, "pattern[0]: expected a whole number from 0 to 5000, got 9999"),
    ({**CLICK, "button": "LEFT"}, "got 'LEFT'. Did you mean 'left'?"),
    ({**CLICK, "ref": 5}, "ref: expected a string such as '5', got 5"),
    ({"type": "press", "keys": "ctrl, a"}, "keys: expected a list such as ['ctrl', 'a'], got"),
    ({"type": "press", "keys": 5}, "keys: expected a list such as ['a'], got 5"),
    ({"type": "press", "keys": [1]}, "keys[0]: expected a string such as '1', got 1"),
    ({"type": "type", "text": 5}, "text: expected a string such as '5', got 5"),
    ({"type": "type", "text": "a", "enter_after": "yes"}, "enter_after: expected true or false"),
    ({"type": "type", "text": "a", "enter_after": 1}, "enter_after: expected true or false, got 1"),
    ({"type": "wait", "time": "soon"}, "time: expected a whole number"),
    ({"type": "drag", "path": [[1, 2], [3, 4]]}, "path[0]: expected an object such as {'x': 10,"),
    ({"type": "drag", "path": [{"x": 1}, {"x": 1, "y": 2}]}, "'drag' needs path[0].y"),
    ({"type": "custom", "action": "every", "args": "x"}, "args: expected an object such as {"),
)  # fmt: skip


async def test_an_action_is_taken_alike_in_step_and_in_act(tmp_path: Path) -> None:
    """As an object, as its text, alone or in a list, in the flat form and in HUD's."""
    wrong: list[str] = []
    async with client_of(tmp_path / "s.db") as client:
        await client.call_tool("start_task", {"template": "ask"})

        async def said_to(name: str, given: dict[str, Any]) -> str:
            reply = await client.call_tool(name, given)
            return reply.content[0].text  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]

        for sent, meant in ACTIONS:
            forms = (sent, json.dumps(sent), [json.dumps(sent)], json.dumps([json.dumps(sent)]))
            replies = [await said_to("step", {"actions": form}) for form in forms]
            for said in [*replies, await said_to("act", sent)]:
                done = json.loads(said.partition("TAKEN [")[2].partition("] END")[0] or "{}")
                if not done.items() >= {**meant, "type": sent["type"]}.items():
                    wrong.append(f"{sent}: {said}")
        for sent, words in BAD_ACTIONS:
            replies = (await said_to("step", {"actions": [sent]}), await said_to("act", sent))
            wrong += [f"{sent}: {said}" for said in replies if not is_plain(said, words)]
    assert wrong == []


CORE: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("step", {"actions": "click"}, "actions: expected a list of actions such as [{"),
    ("step", {"actions": [3]}, "actions[0]: expected an object such as {'type': 'screenshot'}"),
    ("step", {"actions": "[" * 5000}, "actions: expected a list of actions such as [{"),
    ("step", {"actions": "null"}, "TAKEN [] END"),
    ("step", {"actions": [], "after_step": "x"}, "after_step: expected a whole number such as 10"),
    ("step", {"actions": [], "after_step": "null"}, "TAKEN [] END"),
    ("list_tasks", {"offset": "1e0"}, "Begin with start_task"),
    ("list_tasks", {"offset": "-1"}, "offset: expected a whole number of at least 0, got -1"),
    ("list_tasks", {"offset": "NaN"}, "offset: expected a whole number such as 10, got 'NaN'"),
    ("list_tasks", {"filter": ["a"]}, "filter: expected a string, got ['a']"),
    ("start_task", {"template": "ask", "seed": "x"}, "seed: expected a whole number such as 10"),
    ("start_task", {"template": "ask", "seed": 2**70}, "seed: a whole number has at most 64 bits"),
    ("start_task", {"template": "ask", "arguments": "x"}, "arguments: expected an object such as"),
    ("start_task", {"template": "ask", "arguments": [1]}, "arguments: expected an object such as"),
    ("start_task", {"template": "ask", "context": "x"}, "context: expected an object such as {"),
    ("start_task", {"template": "ask", "context": {"on": "no"}}, "on: 'no' is not true or false"),
    ("response", {"answer": 5}, "answer: expected a string such as '5', got 5"),
    ("cancel_task", {"session": ["x"]}, "session: expected a string, got ['x']"),
)
CONTEXT = {"width": "5.0", "heat": "0.7", "on": "False", "name": "5"}


async def test_the_core_tools_read_in_the_same_way(tmp_path: Path) -> None:
    """A number, a flag and a context as texts; what is no such value is refused in plain words."""
    wrong: list[str] = []
    async with (
        opened(Sessions([echo_environment()], store=Store(tmp_path / "s.db"))) as sessions,
        Client(build_server(sessions)) as client,
    ):
        for context in (CONTEXT, json.dumps(CONTEXT)):
            begun = await client.call_tool(
                "start_task", {"template": "ask", "seed": "1e3", "context": context}
            )
            assert begun.structured_content is not None, begun
            held = begun.structured_content["session"]
            session = sessions.here(held, Caller())
            assert session is not None
            assert session.spec.task.seed == 1000
            assert session.spec.task.context == {"width": 5, "heat": 0.7, "on": False, "name": "5"}
            await client.call_tool("cancel_task", {"session": held})
        await client.call_tool("start_task", {"template": "ask"})
        for name, sent, words in CORE:
            reply = await client.call_tool(name, sent)
            said = str(reply.content[0])
            if not is_plain(said, words):
                wrong.append(f"{name} {sent}: {said}")
    assert wrong == []


def open_objects(schema: Any) -> list[Any]:
    """The objects of a schema with fields that say nothing of others."""
    return [
        node
        for node in nodes(schema)
        if node.get("type") == "object"
        and node["properties"]
        and "additionalProperties" not in node
    ]


def empty(schema: Any, nothing: Any) -> dict[str, Any]:
    """All properties of a tool, as a strict model fills them in: with nothing, needed or not."""
    return dict.fromkeys(schema["properties"], nothing)


async def test_every_listed_schema_is_one_that_strict_hosts_take(tmp_path: Path) -> None:
    """Of an author's every type: arrays have items, objects are closed, and nothing may be sent."""
    async with client_of(tmp_path / "s.db") as client:
        tools = (await client.list_tools()).tools
        wrong = {t.name: [*refused(t.input_schema), *open_objects(t.input_schema)] for t in tools}
        assert {name: said for name, said in wrong.items() if said} == {}
        begun = await client.call_tool("start_task", {"template": "ask"})
        assert begun.structured_content is not None
        held = {"session": begun.structured_content["session"]}
        (every_tool,) = (tool for tool in tools if tool.name == "every")
        arrays = [n for n in nodes(every_tool.input_schema) if n.get("type") == "array"]
        assert len(arrays) > 10
        for nothing in (None, "null"):
            filled = empty(every_tool.input_schema, nothing)
            kept = {name: each for name, each in filled.items() if name not in TEXTS}
            said = await client.call_tool("every", {**kept, "anything": "none", **held})
            assert "TAKEN {} END" in str(said.content[0]), said


@pytest.mark.long
def test_the_schemas_of_shipped_environments_are_ones_that_strict_hosts_take() -> None:
    """Of their tools, of their templates, and of the actions of their worlds."""
    wrong: dict[str, Any] = {}
    seen = 0
    for name in shipped_environments():
        for environment in load_environments([name]):
            listed = [*listed_core_tools(View.of([environment]))]
            own = [OwnTool(n, [(environment, each)]) for n, each in environment.tools.items()]
            listed += [tool.listed() for tool in own]
            given = {f"{environment.name} {each.name}": each.input_schema for each in listed}
            for template in environment.templates.values():
                given[f"{environment.name} {template.id}"] = template.arguments.schema
            seen += len(given)
            for place, schema in given.items():
                found = refused(schema)
                if place.endswith(tuple(each.name for each in listed)):
                    found += [str(each) for each in open_objects(schema)]
                if found:
                    wrong[place] = found
    assert wrong == {}
    assert seen > 100


async def test_a_server_on_stdio_reads_in_the_same_way(tmp_path: Path) -> None:
    """A list, a number and a flag as texts, and one thing for a list."""
    (tmp_path / "basket.py").write_text(BASKET)
    parameters = StdioServerParameters(
        command=sys.executable,
        args=serve_arguments([str(tmp_path / "basket.py")], tmp_path / "s.db"),
        env=child_environment(),
    )
    sent = {"items": '{"price": "2"}', "weights": 7, "rush": "True"}
    with anyio.fail_after(PATIENCE_S), (tmp_path / "log").open("w") as log:
        async with Client(stdio_client(parameters, errlog=log)) as client:
            await client.call_tool("start_task", {"template": "use", "arguments": "{}"})
            taken = await client.call_tool("total", sent)
            refused_call = await client.call_tool("total", {"items": "[]", "weights": "1, 2"})
    assert "[{'price': '2'}] [7] True" in str(taken.content[0])
    assert "weights: expected a list such as [10], got '1, 2'" in str(refused_call.content[0])


BASKET = """
from hud_mcp import Environment

env = Environment("basket")


@env.tool
async def total(items: list[dict], weights: list[int], rush: bool = False) -> str:
    "Add up a basket."
    return f"{items} {weights} {rush}"


@env.template(id="use")
async def use():
    yield "Use the tools."
    yield 1.0
"""
