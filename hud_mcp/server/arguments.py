"""The arguments of a core tool: forgiving where frameworks differ, clear where a model erred.

Their schemas are flat. Several model APIs reject a `oneOf`, a `$ref` or a list of types. Some fill
in every property of an object, so most properties are optional, and `null` and `""` count as
absent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from hud_mcp.base.reading import Fault, Reader, is_empty, no_json, tell
from hud_mcp.base.schema import kind_of
from hud_mcp.errors import InvalidTask, LimitReached
from hud_mcp.values.action import ACTION_TYPES, MAX_WAIT_MS

__all__ = [
    "ACTION",
    "Argument",
    "Arguments",
    "check_size",
    "either_field",
    "fillable",
    "list_schema",
    "number_schema",
    "object_schema",
    "string_schema",
]


def object_schema(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    """Return the schema of an object with these properties and no others."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
    }
    return {**schema, "required": list(required)} if required else schema


def number_schema(description: str) -> dict[str, Any]:
    """Return the schema of a number."""
    return {"type": "number", "description": description}


def string_schema(description: str, **more: Any) -> dict[str, Any]:
    """Return the schema of a text; `enum` names its few values."""
    return {"type": "string", "description": description, **more}


def list_schema(items: Mapping[str, Any], description: str) -> dict[str, Any]:
    """Return the schema of a list of one kind of item."""
    return {"type": "array", "items": items, "description": description}


def either_field(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return a field that both schemas allow, or a text if they differ in kind."""
    said = [str(each.get("description", "")) for each in (one, other)]
    described = {"description": " ".join(dict.fromkeys(filter(None, said)))[:_MOST_CHARS]}
    kinds = [{k: v for k, v in each.items() if k != "description"} for each in (one, other)]
    if kinds[0] == kinds[1]:
        return {**kinds[0], **described}
    types = {each.get("type") for each in kinds}
    if types <= {"integer", "number"}:
        return {"type": "number" if len(types) > 1 else types.pop(), **described}
    items = {str(each.get("items", {}).get("type")) for each in kinds}
    if types == {"array"} and len(items) == 1 and items <= _SCALARS:
        return {"type": "array", "items": {"type": items.pop()}, **described}
    if types == {"boolean"}:
        return {"type": "boolean", **described}
    if types != {"string"}:
        described["description"] = f"{described['description']} As JSON text."[-_MOST_CHARS:]
    return {"type": "string", **described}


def fillable(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a field's schema for clients that have to send every field; empty means absent.

    Some model APIs reject `minLength`, and `minItems` would forbid an empty list.
    """
    least = ("minLength",) if "maxItems" in schema else ("minLength", "minItems")
    return {name: each for name, each in schema.items() if name not in least}


_MOST_CHARS = 1000
"""The longest description; hosts take little more."""
_SCALARS = frozenset({"string", "integer", "number", "boolean"})

_POINT = object_schema({"x": {"type": "number"}, "y": {"type": "number"}}, "x", "y")

ACTION: dict[str, Any] = {
    "type": string_schema("What to do.", enum=list(ACTION_TYPES)),
    "x": number_schema("Pixels from the left of the last picture."),
    "y": number_schema("Pixels from its top."),
    "ref": string_schema("In place of x and y: a ref of the last text, such as e12."),
    "selector": string_schema("In place of x and y: a CSS or Playwright selector."),
    "button": string_schema(
        "click: left by default.", enum=["left", "right", "middle", "back", "forward"]
    ),
    "pattern": list_schema(
        {"type": "integer"},
        "click: ms between clicks; [100] is a double click. drag: ms between points.",
    ),
    "hold_keys": list_schema({"type": "string"}, "click, scroll, drag: keys held down."),
    "keys": list_schema({"type": "string"}, "press, keydown, keyup: such as ['ctrl', 'a']."),
    "text": string_schema(
        "type: replaces what a field with ref, selector or x, y holds, else goes to the focus. "
        "response: the answer."
    ),
    "enter_after": {"type": "boolean", "description": "type: press Enter then."},
    "scroll_x": number_schema("scroll: pixels right."),
    "scroll_y": number_schema("scroll: pixels down; negative up."),
    "offset_x": number_schema("move: pixels right of the pointer."),
    "offset_y": number_schema("move: pixels below it."),
    "time": {"type": "integer", "description": f"wait: ms, at most {MAX_WAIT_MS}."},
    "path": list_schema(_POINT, "drag: two points or more."),
    "action": string_schema(
        "custom: an action of the environment's own; in a browser: goto, back, forward, reload, "
        "switch_tab, close_tab, select_option."
    ),
    "args": {"type": "object", "description": 'custom: such as {"url": "/cart"} for goto.'},
}


_PLAIN: Mapping[str | None, frozenset[type]] = {
    "string": frozenset((str,)),
    "boolean": frozenset((bool,)),
    None: frozenset((str, list, dict)),
}
"""The types that are accepted unread, unless the value is empty; the last for a tool's parser."""


@dataclass(frozen=True)
class Argument:
    """One argument.

    Attributes:
        schema: The clients' view, with a type and a description; None for a hidden argument.
        may_be_empty: Whether `""` is a value of an optional argument.
        has_parser: Whether the tool's own parser reads it, which takes other kinds.
        may_be_negative: Whether a number below 0 means something.
        kind: The type's name in JSON Schema; None for any. By default it is the schema's. It
            differs for an object that is shown as the text that can be sent for it.
    """

    schema: Mapping[str, Any] | None
    may_be_empty: bool = False
    has_parser: bool = False
    may_be_negative: bool = True
    kind: str | None = None

    def __post_init__(self) -> None:
        """Take the kind from the schema, unless it was given."""
        if self.kind is None and self.schema is not None:
            object.__setattr__(self, "kind", self.schema.get("type"))


def check_size(tool: str, given: Mapping[str, Any], max_bytes: int) -> None:
    """Refuse arguments that are too large.

    Args:
        tool: The tool of the arguments.
        given: The arguments of the call.
        max_bytes: The largest size of all of them as JSON.

    Raises:
        InvalidTask: The arguments are no JSON.
        LimitReached: The arguments are too large; the text names the limit.
    """
    try:
        size = len(orjson.dumps(given, default=str))
    except TypeError:
        raise InvalidTask(f"Invalid arguments for {tool}: {tell([no_json(given)])}") from None
    if size > max_bytes:
        raise LimitReached(
            f"{tool}: the arguments have {size} bytes; the limit is {max_bytes}. Nothing was done."
        )


class Arguments:
    """The arguments of one tool.

    Args:
        tool: The tool's name, for errors.
        arguments: The arguments by name.
        required: The names of the necessary arguments.
    """

    def __init__(
        self, tool: str, arguments: Mapping[str, Argument], required: tuple[str, ...] = ()
    ) -> None:
        self._tool = tool
        self._arguments = arguments
        self._required = required
        self._needs = frozenset(required)
        self._shown = {
            name: argument.schema
            for name, argument in arguments.items()
            if argument.schema is not None
        }

        read = {
            name: {**(argument.schema or {}), "type": argument.kind}
            for name, argument in arguments.items()
            if argument.kind is not None and not argument.has_parser
        }
        self._reader = Reader({"properties": read})
        self._plain = {
            name: _PLAIN.get(None if each.has_parser else each.kind, frozenset())
            for name, each in arguments.items()
        }

    @property
    def schema(self) -> dict[str, Any]:
        """The input schema that clients see."""
        return object_schema(self._shown, *self._required)

    def parse(self, given: Mapping[str, Any], *, max_bytes: int) -> dict[str, Any]:
        """Drop absent arguments, and check the rest.

        Args:
            given: The arguments of the call. For optional arguments, `null`, `""`, and an empty
                list or object in place of another type count as absent.
            max_bytes: The largest size of all arguments as JSON.

        Raises:
            InvalidTask: An argument is unknown, missing, or of the wrong kind; the text names each.
            LimitReached: The arguments are too large.
        """
        check_size(self._tool, given, max_bytes)
        kept: dict[str, Any] = {}
        wrong: list[Fault | None] = []
        for name, value in given.items():
            if value and type(value) in self._plain.get(name, ()):
                kept[name] = value
            elif name in self._required or self._is_given(name, value):
                kept[name] = self._reader.at(name).read(value)
                wrong.append(self._problem(name, kept[name]))
        if wrong or not kept.keys() >= self._needs:
            wrong += [Fault.missing("", n) for n in self._required if kept.get(n) is None]
            if found := [each for each in wrong if each]:
                raise InvalidTask(f"Invalid arguments for {self._tool}: {tell(found)}")
        return kept

    def _is_given(self, name: str, value: Any) -> bool:
        argument = self._arguments.get(name)
        if value is None or argument is None:
            return value not in (None, "")
        if value == "":
            return argument.may_be_empty
        if argument.has_parser and is_empty(value):
            return argument.kind in (None, kind_of(value))
        return not self._reader.at(name).is_absent(value)

    def _problem(self, name: str, value: Any) -> Fault | None:
        argument = self._arguments.get(name)
        if argument is None:
            return Fault.unknown("", name, self._shown)
        if argument.has_parser or argument.kind is None or value is None:
            return None
        if not self._reader.at(name).fits(value):
            return Fault.of(name, self._reader.at(name).schema, value)
        if argument.kind == "integer" and not -(2**63) <= value < 2**63:
            return Fault.of(name, {}, value, other="a whole number of 64 bits")
        if not argument.may_be_negative and value < 0:
            return Fault.of(name, {"type": argument.kind, "minimum": 0}, value)
        return None
