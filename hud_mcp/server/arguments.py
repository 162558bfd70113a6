"""The arguments of a core tool: forgiving where frameworks differ, clear where a model erred.

Their schemas are flat: several model APIs reject a `oneOf`, a `$ref` or a list of types, and
some fill in every property of an object, so every property but the necessary is optional
and `null` and `""` count as absent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from hud_mcp.absent import is_empty
from hud_mcp.errors import InvalidTask, LimitReached, clipped, did_you_mean
from hud_mcp.schema import TextReader, such_as
from hud_mcp.server.schemas import object_schema

__all__ = ["Argument", "Arguments", "check_size"]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}
_MOST_PROBLEMS = 5


@dataclass(frozen=True)
class Argument:
    """One argument.

    Attributes:
        schema: What clients see of it, with a type and a description; None for one that is
            taken and not shown.
        may_be_empty: Whether `""` is a value of it, although it is optional.
        has_parser: Whether the tool reads it with a parser of its own, which takes other kinds.
        may_be_negative: Whether a number below 0 means something.
        kind: The type by its name in JSON Schema; None where any is taken. The schema's, unless it
            is given: an object may be shown as the text that it can be sent as.
    """

    schema: Mapping[str, Any] | None
    may_be_empty: bool = False
    has_parser: bool = False
    may_be_negative: bool = True
    kind: str | None = None

    def __post_init__(self) -> None:
        """Take the kind from the schema, where it is not given beside it."""
        if self.kind is None and self.schema is not None:
            object.__setattr__(self, "kind", self.schema.get("type"))


def check_size(tool: str, given: Mapping[str, Any], max_bytes: int) -> None:
    """Refuse arguments that are too large.

    Args:
        tool: Whose they are.
        given: What came.
        max_bytes: The largest size of all of them as JSON.

    Raises:
        InvalidTask: They are no JSON.
        LimitReached: Saying how large they may be.
    """
    try:
        size = len(orjson.dumps(given, default=str))
    except TypeError as exc:
        raise InvalidTask(f"Invalid arguments for {tool}: {exc}. Nothing was done.") from None
    if size > max_bytes:
        raise LimitReached(
            f"{tool}: the arguments have {size} bytes; the limit is {max_bytes}. Nothing was done."
        )


class Arguments:
    """The arguments of one tool.

    Args:
        tool: Its name, for errors.
        arguments: What it takes, by name.
        required: The names of those that have to be given.
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
        self._texts = TextReader({"properties": read})
        self._plain = {name: _plain_types(argument) for name, argument in arguments.items()}

    @property
    def schema(self) -> dict[str, Any]:
        """The input schema that clients see."""
        return object_schema(self._shown, *self._required)

    def parse(self, given: Mapping[str, Any], *, max_bytes: int) -> dict[str, Any]:
        """Drop what is absent, and check the rest.

        Args:
            given: What came. `null`, `""`, and an empty list or object where the argument is
                none, count as absent for optional arguments.
            max_bytes: The largest size of all arguments as JSON.

        Raises:
            InvalidTask: Naming each argument that is unknown, missing, or of the wrong kind.
            LimitReached: They are too large.
        """
        check_size(self._tool, given, max_bytes)
        kept: dict[str, Any] = {}
        wrong: list[str | None] = []
        for name, value in given.items():
            if value and type(value) in self._plain.get(name, ()):
                kept[name] = value
            elif name in self._required or self._is_given(name, value):
                kept[name] = self._texts.read_field(name, value)
                wrong.append(self._problem(name, kept[name]))
        if wrong or not kept.keys() >= self._needs:
            wrong += [f"{n!r} is required" for n in self._required if kept.get(n) is None]
            if found := [each for each in wrong if each][:_MOST_PROBLEMS]:
                raise InvalidTask(f"Invalid arguments for {self._tool}: {'; '.join(found)}.")
        return kept

    def _is_given(self, name: str, value: Any) -> bool:
        if not is_empty(value):
            return True
        argument = self._arguments.get(name)
        if value is None or argument is None:
            return value not in (None, "")
        if value == "":
            return argument.may_be_empty
        kinds = (None, "array" if isinstance(value, list) else "object")
        return argument.kind in kinds

    def _problem(self, name: str, value: Any) -> str | None:
        argument = self._arguments.get(name)
        if argument is None:
            hint = did_you_mean(name, self._shown)
            return f"there is no {name!r}.{hint} It takes {', '.join(self._shown)}"
        kind = argument.kind
        if argument.has_parser or kind is None or value is None:
            return None
        if not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
            wanted = f"{_article(kind)}{such_as(value) if kind == 'array' else ''}"
            return f"{name!r} must be {wanted}, got {clipped(value)}"
        if kind == "integer" and not -(2**63) <= value < 2**63:
            return f"{name!r} must be an integer of 64 bits, got {clipped(value)}"
        if not argument.may_be_negative and value < 0:
            return f"{name!r} must not be negative, got {value}"
        return None


def _plain_types(argument: Argument) -> frozenset[type]:
    """The types of values that are taken as they come, where something is in them."""
    if argument.has_parser or argument.kind is None:
        return frozenset((str, list, dict))
    return frozenset(_TYPES[argument.kind]) & frozenset((str, bool))


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeio" else f"a {kind}"
