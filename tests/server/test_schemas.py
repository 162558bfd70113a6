"""What clients and models read before they call: flat schemas that every model API takes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import pytest
from jsonschema import Draft202012Validator
from mcp import Client
from pydantic import BaseModel
from refused_schemas import refused
from tables import each_of

from hud_mcp import Browser, Environment, Gymnasium, Shell
from hud_mcp.environment.spec import NoWorld
from hud_mcp.errors import InvalidAction
from hud_mcp.loading.source import load_environments
from hud_mcp.server.app import build_server
from hud_mcp.server.arguments import ACTION
from hud_mcp.server.texts import instructions
from hud_mcp.server.tools import listed_core_tools
from hud_mcp.server.view import View
from hud_mcp.session.registry import Sessions
from hud_mcp.store import Store
from hud_mcp.values.action import (
    ACTION_CLASSES,
    ACTION_TYPES,
    MAX_WAIT_MS,
    Action,
    Point,
    flat_fields,
    parse_action,
)
from hud_mcp.values.call import CORE_TOOLS

EVERYBODY, AGENT = View.of(), View.of(one_session=True)
TOOLS = [
    *listed_core_tools(EVERYBODY),
    *(tool for tool in listed_core_tools(AGENT) if tool.name == "note"),
]
BY_NAME = {tool.name: tool for tool in TOOLS}


def nodes(schema: Any) -> list[dict[str, Any]]:
    """A schema and all schemas in it."""
    found = [schema]
    for child in schema.get("properties", {}).values():
        found += nodes(child)
    return found + (nodes(schema["items"]) if "items" in schema else [])


def test_the_core_tools_are_those_that_no_environment_may_name() -> None:
    """A tool of an environment's own never hides one of these."""
    assert {tool.name for tool in TOOLS} == CORE_TOOLS


@each_of("tool", TOOLS, ids=lambda t: t.name)
def test_a_schema_is_valid_and_flat(tool: Any) -> None:
    """Several model APIs reject unions, references and lists of types."""
    check_schema(tool)


def check_schema(tool: Any) -> None:
    """Look through all of a tool's schema."""
    Draft202012Validator.check_schema(tool.input_schema)
    assert tool.input_schema["type"] == "object"
    for node in nodes(tool.input_schema):
        assert not {"oneOf", "anyOf", "allOf", "$ref", "$defs", "not"} & set(node)
        assert isinstance(node["type"], str)
        if node["type"] == "array":
            assert "items" in node
        if node["type"] == "object" and node["properties"]:
            assert node["additionalProperties"] is False


@each_of("tool", TOOLS, ids=lambda t: t.name)
def test_everything_that_a_model_reads_says_something(tool: Any) -> None:
    """Titles, descriptions, and what each argument means, within the bounds of hosts."""
    check_texts(tool)


def check_texts(tool: Any) -> None:
    """Look at what a model reads of a tool."""
    assert tool.title
    assert 40 < len(tool.description) <= 1000
    for name, schema in tool.input_schema["properties"].items():
        assert (tool.name == "act") or schema["description"], name
    assert tool.meta == {"anthropic/alwaysLoad": True}


@each_of("tool", TOOLS, ids=lambda t: t.name)
def test_a_description_names_only_tools_that_exist(tool: Any) -> None:
    """What it says to call next can be called."""
    check_names(tool)


def check_names(tool: Any) -> None:
    """Look up the tools that a description names."""
    for name in re.findall(r"\b[a-z]+_[a-z]+\b", tool.description):
        assert name in CORE_TOOLS


@each_of(
    ("names", "hint", "value"),
    [
        ("list_tasks screenshot task_status", "read_only_hint", True),
        ("start_task step act response cancel_task", "read_only_hint", False),
        ("step act cancel_task", "destructive_hint", True),
        ("start_task response", "destructive_hint", False),
        ("response cancel_task task_status", "idempotent_hint", True),
        ("step act start_task", "idempotent_hint", False),
        ("step act", "open_world_hint", True),
    ],
)
def test_hints_tell_hosts_what_may_be_called_without_asking(
    names: str, hint: str, value: object
) -> None:
    """Only what changes nothing is read-only."""
    for name in names.split():
        assert getattr(BY_NAME[name].annotations, hint) is value, name


@each_of("name", sorted(CORE_TOOLS - {"list_tasks", "start_task"}))
def test_every_tool_of_a_session_takes_its_id_and_requires_none(name: str) -> None:
    """It may be left out where a caller holds just one."""
    schema = BY_NAME[name].input_schema
    assert "session" in schema["properties"]
    assert "session" not in schema.get("required", [])


@each_of("kind", ACTION_TYPES)
def test_every_field_of_the_schema_belongs_to_some_action(kind: str) -> None:
    """The parser knows every property, whatever the type it is sent with."""
    assert kind in ACTION["type"]["enum"]
    filled: dict[str, Any] = dict.fromkeys(ACTION) | {"type": kind}
    try:
        parse_action(filled)
    except InvalidAction as exc:
        assert "has no field" not in str(exc)  # noqa: PT017  # some types need a field


EXAMPLES: list[dict[str, Any]] = [
    {"type": "click", "x": 1, "y": 2, "button": "right", "pattern": [100], "hold_keys": ["ctrl"]},
    {"type": "click", "ref": "e1"},
    {"type": "press", "keys": ["ctrl", "a"]},
    {"type": "keydown", "keys": ["shift"]},
    {"type": "keyup", "keys": ["shift"]},
    {"type": "type", "text": "a", "selector": "#q", "enter_after": True},
    {"type": "scroll", "scroll_x": 1, "scroll_y": -2, "x": 3, "y": 4},
    {"type": "move", "offset_x": 1, "offset_y": 2},
    {"type": "wait", "time": MAX_WAIT_MS},
    {"type": "drag", "path": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]},
    {"type": "screenshot"},
    {"type": "position"},
    {"type": "response", "text": "42"},
    {"type": "custom", "action": "goto", "args": {"url": "/cart"}},
]


def test_every_type_of_action_can_be_written_as_the_schema_says() -> None:
    """An action that is valid by the schema and complete is read by the parser."""
    step = Draft202012Validator(BY_NAME["step"].input_schema)
    act = Draft202012Validator(BY_NAME["act"].input_schema)
    for example in EXAMPLES:
        step.validate({"actions": [example]})
        act.validate(example)
        assert parse_action(example).type == example["type"]
    assert {example["type"] for example in EXAMPLES} == set(ACTION_TYPES)
    assert {name for example in EXAMPLES for name in example} == set(ACTION)


SERVED: dict[str, list[Environment]] = {
    "nothing known": [],
    "questions": [Environment("questions")],
    "pages": [Environment("pages", world=Browser())],
    "a shell": [Environment("shell", world=Shell())],
    "a shell that reaches a host": [Environment("shell", world=Shell(allow=["example.com"]))],
    "a site": [Environment("site", world=Browser(site="."))],
    "a pole": [Environment("pole", world=Gymnasium("CartPole-v1"))],
    "a car": [Environment("car", world=Gymnasium("CARLMountainCarContinuous", screen=False))],
    "a pole and a hill": [
        Environment("pole", world=Gymnasium("CartPole-v1")),
        Environment("hill", world=Gymnasium("MountainCar-v0")),
    ],
    "pages and a shell": [
        Environment("pages", world=Browser()),
        Environment("shell", world=Shell()),
    ],
}


@each_of("served", SERVED)
def test_what_is_served_is_described_within_the_same_rules(served: str) -> None:
    """Whatever the worlds, the schemas are flat, and each part says something."""
    for tool in listed_core_tools(View.of(SERVED[served])):
        check_schema(tool)
        check_texts(tool)
        check_names(tool)
        for node in nodes(tool.input_schema):
            assert len(node.get("description", "")) <= 1000


def action_of(served: str) -> dict[str, Any]:
    """The fields of one action, as a server of these shows them."""
    (step,) = (tool for tool in listed_core_tools(View.of(SERVED[served])) if tool.name == "step")
    return step.input_schema["properties"]["actions"]["items"]["properties"]


@each_of(
    ("served", "types"),
    [
        ("a pole", "screenshot response custom"),
        ("pages", " ".join(ACTION_TYPES)),
    ],
)
def test_only_actions_that_a_world_takes_are_shown(served: str, types: str) -> None:
    """With the fields that belong to them and no others."""
    fields = action_of(served)
    assert fields["type"]["enum"] == types.split()
    wanted = frozenset[str]().union(*map(flat_fields, types.split()))
    assert set(fields) == set(ACTION) & wanted
    assert ("type: replaces" in fields["text"]["description"]) == (served == "pages")


@each_of("served", ["questions", "a shell"])
def test_a_world_without_actions_is_looked_at_and_no_more(served: str) -> None:
    """To wait and to answer need no language of actions."""
    listed = {tool.name: tool for tool in listed_core_tools(View.of(SERVED[served]))}
    assert "act" not in listed
    assert set(listed["step"].input_schema["properties"]) == {"session"}


@each_of("served", SERVED)
def test_one_of_step_and_act_describes_the_fields_of_an_action(served: str) -> None:
    """Both have the same fields; a list of tools tells each of them once."""
    listed = {tool.name: tool for tool in listed_core_tools(View.of(SERVED[served]))}
    if "act" not in listed:
        return
    fields = action_of(served)
    bare = dict(listed["act"].input_schema["properties"])
    assert "description" not in str({name: bare[name] for name in fields})
    assert without_texts(fields) == {name: bare[name] for name in fields}
    assert set(bare) == {*fields, "observe", "after_step", "session"}


def without_texts(fields: dict[str, Any]) -> dict[str, Any]:
    """The same schemas without their descriptions."""
    kept: dict[str, Any] = {}
    for name, schema in fields.items():
        kept[name] = {k: v for k, v in schema.items() if k != "description"}
        if "properties" in schema:
            kept[name]["properties"] = without_texts(schema["properties"])
        if "items" in schema:
            kept[name]["items"] = without_texts({"": schema["items"]})[""]
    return kept


@each_of(
    ("source", "most_bytes"),
    [("browser", 9000), ("shell", 7000), ("gym:CartPole-v1", 6000), ("letter_count", 5000),
     ("office", 18_000)],
)  # fmt: skip
@pytest.mark.anyio
async def test_a_list_of_tools_costs_little(source: str, most_bytes: int, tmp_path: Path) -> None:
    """Hosts send it to their models with every turn, so that each byte is paid often."""
    sessions = Sessions(load_environments([source]), store=Store(tmp_path / "s.db"))
    async with Client(build_server(sessions)) as client:
        listed = await client.list_tools()
    sent = listed.model_dump(mode="json", by_alias=True, exclude_none=True)
    tools = {"tools": sent["tools"]}
    assert len(json.dumps(tools, ensure_ascii=False, separators=(",", ":")).encode()) <= most_bytes
    assert not [tool.name for tool in listed.tools if tool.output_schema]


def test_an_action_of_a_space_is_described_by_its_bounds() -> None:
    """The names and numbers of Discrete, and each bound of Box."""
    pole, car = action_of("a pole"), action_of("a car")
    assert pole["action"]["enum"] == ["step"]
    one = pole["args"]["properties"]["action"]
    assert (one["type"], one["minimum"], one["maximum"]) == ("integer", 0, 1)
    assert one["description"] == "a whole number: 0 push left; 1 push right."
    force = car["args"]["properties"]["action"]
    assert (force["type"], force["minItems"], force["items"]["minimum"]) == ("array", 1, -1.0)
    validator = Draft202012Validator({"type": "object", "properties": pole})
    validator.validate({"type": "custom", "action": "step", "args": {"actions": [0, 1]}})
    assert not validator.is_valid({"type": "custom", "action": "step", "args": {"action": 2}})


def test_several_custom_actions_stand_side_by_side() -> None:
    """Each argument says whose it is; where two worlds differ in one, it is what both take."""
    pages = action_of("pages")
    assert pages["action"]["enum"][:2] == ["goto", "back"]
    text = pages["args"]["properties"]["text"]["description"]
    assert text == "answer_dialogs: the text for a prompt."
    assert "minLength" not in str(pages), "some model APIs reject it"
    both = action_of("a pole and a hill")["args"]["properties"]
    assert both["action"]["type"] == "integer"
    assert "1 push right" in both["action"]["description"]
    assert "2 push right" in both["action"]["description"]
    assert "maximum" not in both["action"]


def test_a_shell_is_described_by_its_tools_alone() -> None:
    """Not the same actions twice; a shell beside pages is its tools too, and has no picture."""
    assert "run" not in action_of("pages and a shell")["action"]["enum"]
    (shell,) = SERVED["a shell"]
    for tool in shell.tools.values():
        assert tool.description
        for name, field in tool.arguments.schema["properties"].items():
            assert field["description"].endswith("."), (tool.name, name)
    listed = {tool.name for tool in listed_core_tools(View.of(SERVED["a shell"]))}
    assert listed == CORE_TOOLS - {"act", "screenshot", "note", "message_user"}
    assert "run_command" in instructions(View.of(SERVED["a shell"]))


@each_of(
    ("served", "destructive", "open_world"),
    [
        ("questions", False, False),
        ("a pole", False, False),
        ("a shell", True, False),
        ("pages", True, True),
        ("a site", True, False),
        ("a shell that reaches a host", True, True),
        ("pages and a shell", True, True),
    ],
)
def test_hints_are_true_of_what_is_served(
    served: str,
    destructive: bool,  # noqa: FBT001  # a parameter of the test
    open_world: bool,  # noqa: FBT001  # the same
) -> None:
    """A game undoes nothing, and a site of the session's own is not the world."""
    for tool in listed_core_tools(View.of(SERVED[served])):
        if tool.name in ("step", "act"):
            assert tool.annotations is not None
            assert tool.annotations.destructive_hint is destructive
            assert tool.annotations.open_world_hint is open_world


@each_of("served", SERVED)
def test_the_instructions_name_every_core_tool(served: str) -> None:
    """A model that reads nothing else knows the way from the list to the grade.

    What a program reports of it is not a part of that way.
    """
    view = View.of(SERVED[served])
    text = instructions(view)
    for tool in listed_core_tools(view):
        assert re.search(rf"\b{tool.name}\b", text), tool.name
    paged = ("nothing known", "pages", "pages and a shell", "a site")
    assert ("[e12]" in text) == (served in paged)
    numbers = re.findall(r"^(\d)\. ", text, re.MULTILINE)
    assert numbers == [str(i + 1) for i in range(len(numbers))]
    assert "{" not in text.replace('{"type"', "").replace("{…}", "")
    assert len(text) < 2000


class Segment(BaseModel):
    """A type of an author's, with what libraries write in their own ways."""

    ends: tuple[int, int]
    tags: list[tuple[str, int]] = []
    inner: list["Segment"] = []
    anything: list[Any] | None = None


class Written(NoWorld):
    """A world whose author wrote the schemas of its actions by hand."""

    actions = frozenset({"custom", "dig"})
    custom_actions = MappingProxyType(
        {
            "mark": {"properties": {"at": {"type": "array"}, "on": {"type": ["array", "null"]}}},
            "pair": {"properties": {"at": {"type": "array", "prefixItems": [{"type": "number"}]}}},
        }
    )


@pytest.fixture
def dig() -> Iterator[None]:
    """An action of an author's, which is there for one test."""

    class Dig(Action):  # pyright: ignore[reportUnusedClass]  # declaring it adds it
        type: Literal["dig"] = "dig"
        places: tuple[tuple[int, int], ...] = ()
        path: tuple[Point, Point] | None = None
        rest: dict[str, list[Any]] | None = None

    yield
    del ACTION_CLASSES["dig"]


def odd_types() -> Environment:
    """An environment with types that libraries and hosts write in their own ways."""
    environment = Environment("odd", world=Written())

    @environment.tool
    async def segment(
        ends: tuple[int, int], all_of: list[Segment], rest: list[Any] | None = None, word: str = ""
    ) -> str:
        return f"{ends} {[each.ends for each in all_of]} {rest} {word}"

    @environment.template(id="odd", returns=Segment)
    async def template(ends: tuple[int, int] = (1, 2), parts: list[Segment] = []):  # noqa: ANN202, B006
        yield f"{ends} {parts}"
        yield 1.0

    return environment


@pytest.mark.anyio
@pytest.mark.usefixtures("dig")
async def test_no_schema_that_a_client_is_given_has_what_a_host_refuses(tmp_path: Path) -> None:
    """Whatever an author's types are: in tools, in actions, in lists, in what an answer is."""
    sessions = Sessions([odd_types()], store=Store(tmp_path / "s.db"))
    async with Client(build_server(sessions)) as client:
        tools = (await client.list_tools()).tools
        listed = await client.call_tool("list_tasks", {"template": "odd"})
        begun = await client.call_tool("start_task", {"template": "odd"})
    given = {
        f"{t.name}: {kind}": each
        for t in tools
        for kind, each in (("input", t.input_schema), ("output", t.output_schema))
        if each
    }
    assert begun.structured_content is not None
    given["the answer"] = begun.structured_content["answer_schema"]
    assert listed.structured_content is not None
    for each in listed.structured_content["templates"]:
        given[f"template {each['id']}"] = each["arguments"]
    wrong = {name: said for name, schema in given.items() if (said := refused(schema))}
    assert wrong == {}
    assert "segment: input" in given


@pytest.mark.anyio
async def test_what_hosts_send_as_text_is_taken_by_tools_of_an_environment_and_by_prompts(
    tmp_path: Path,
) -> None:
    """As by the core tools; what cannot be taken is refused without a library's words."""
    sent = {"ends": "[1, 2]", "all_of": '{"ends": ["3", 4]}', "rest": '["5"]', "word": "[6]"}
    async with Client(
        build_server(Sessions([odd_types()], store=Store(tmp_path / "s.db")))
    ) as client:
        begun = await client.get_prompt("odd", {"ends": "[7, 8]", "parts": '[{"ends": [9, 9]}]'})
        assert "(7, 8) [Segment(ends=(9, 9)" in begun.messages[0].content.text  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        taken = await client.call_tool("segment", sent)
        refused_call = await client.call_tool("segment", {"ends": "1 to 2", "all_of": "[]"})
    assert taken.content[0].text == "(1, 2) [(3, 4)] ['5'] [6]"  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    assert refused_call.is_error
    said = refused_call.content[0].text  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
    assert "ends: expected a list such as [10, 10], got '1 to 2'" in said
    assert "tuple" not in said
