"""Values as clients send them: texts of JSON, one thing for a list, and absent ones.

Frameworks send lists, objects, numbers and flags as their JSON texts, and fill in every property of
a schema. `null` counts as absent if the field is optional and its schema has no null. `""`, `[]`
and `{}` do if the schema does not admit them.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple, cast

import orjson
from pydantic_core import ErrorDetails, ValidationError

from hud_mcp.base.schema import Schema, choices_of, expected, kind_of, plain_schema
from hud_mcp.base.text import clip_repr
from hud_mcp.errors import did_you_mean

__all__ = ["Fault", "Reader", "admits", "fault_words", "is_empty", "no_json", "place_of", "tell"]

_MOST_DEPTH = 64
"""The deepest value that is read; deeper ones stay unchanged."""
_EXACT = 2**53
"""Whole numbers below it are the same to every reader of JSON."""
_WORDS: Mapping[str, Any] = {"true": True, "false": False, "null": None, "none": None}
"""Texts of values, in any case: Python writes `True` and `None`."""
_SEVERAL = re.compile(r"""^\s*(?:[\[{"]|$)|[,;\n]""")
"""A text that is perhaps no single item of a list: JSON, an empty one, or several."""
_TYPES: Mapping[str, tuple[type, ...]] = {
    "boolean": (bool,), "integer": (int,), "number": (int, float), "string": (str,),
    "null": (type(None),),
}  # fmt: skip


class Reader:
    """Reads objects of one schema in the forms of clients, at any depth.

    A text stays a text wherever the schema admits one, even if it looks like JSON. The whole number
    5.0 becomes 5, and one thing in place of a list becomes a list of one, unless it may be meant as
    several. A value that is nothing in the schema stays unchanged, for its reader to refuse.

    Args:
        schema: The JSON schema of the objects.
        others: The names of fields of other kinds of objects, which are dropped with any value.
    """

    def __init__(self, schema: Schema, *, others: Collection[str] = ()) -> None:
        self.schema = plain_schema(schema) if "$defs" in schema else schema
        self._root = Place(self.schema)
        fields = self.schema.get("properties", {})
        self._others = frozenset(others) - fields.keys()
        self._kept = {name: self.at(name).kept for name in fields}

    def read(self, given: Mapping[str, Any], *, others: Collection[str] = ()) -> dict[str, Any]:
        """Read the fields, and drop absent ones; an object that needs no reading is returned."""
        for name, value in given.items():
            if value == "" or type(value) not in self._kept.get(name, ()):
                break
        else:
            return cast("dict[str, Any]", given)
        dropped = self._others | (frozenset(others) - self._kept.keys())
        return self._root.read_object({n: v for n, v in given.items() if n not in dropped}, 1)

    def at(self, name: str) -> "Place":
        """Return the place of a field."""
        return self._root.at(name)

    def faults(self, exc: ValidationError, given: Mapping[str, Any], *at: str) -> "list[Fault]":
        """Return the first faults that pydantic has found in an object, or at a place in it."""
        wrong = exc.errors()
        inside = {error["loc"][:i] for error in wrong for i in range(len(error["loc"]))}
        found: dict[str, Fault] = {}
        for error in wrong:
            # An item that is wrong is no item to pydantic.
            if error["type"] != "too_short" or error["loc"] not in inside:
                fault = self._fault(error, (*at, *error["loc"]), given)
                found.setdefault(fault.path, fault)
        return list(found.values())

    def _fault(self, error: ErrorDetails, places: tuple[int | str, ...], value: Any) -> "Fault":
        node, path = self._root, ""
        for i, part in enumerate(places, 1):
            inside = node.choice(value)
            if i == len(places) and isinstance(part, str):
                if error["type"] == "missing":
                    return Fault.missing(path, part)
                if error["type"] == "extra_forbidden":
                    return Fault.unknown(path, part, inside.schema.get("properties", {}))
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):  # a form of several, by pydantic's name
                break
            node, path = inside.at(part), place_of([*filter(None, [path]), part])
        if "url" not in error or error["type"] in ("value_error", "assertion_error"):
            return Fault(path, error["msg"].removeprefix("Value error, "))
        return Fault.of(path, node.schema, value, other=fault_words(error))


class Place:
    """One place of a schema, where one thing may stand for a list unless that is unclear."""

    def __init__(self, schema: Any, *, takes_one: bool = True) -> None:
        self.schema: Schema = cast("Schema", schema) if isinstance(schema, Mapping) else {}
        self.kinds = _kinds(self.schema)
        self._takes_one = takes_one
        self._inside: dict[str | int, Place] = {}

    @cached_property
    def kept(self) -> frozenset[type]:
        """The types of values that stay unchanged."""
        if self.kinds is None:
            return frozenset((str, int, float, bool, *(() if self._choices else (dict, list))))
        kept = frozenset[type]().union(*(_TYPES.get(kind, ()) for kind in self.kinds))
        inside = self.choice({}).schema
        rest = inside.get("additionalProperties")
        is_open = inside and not inside.get("properties") and not isinstance(rest, Mapping)
        return kept | {dict} if "object" in self.kinds and is_open else kept

    @cached_property
    def _choices(self) -> "list[Place]":
        """The schemas of several that it chooses from, without null."""
        nodes = [Place(each, takes_one=self._takes_one) for each in choices_of(self.schema)]
        return [node for node in nodes if node.schema.get("type") != "null"]

    def fits(self, value: Any) -> bool:
        """Whether a value is of an admitted kind."""
        kind, kinds = kind_of(value), self.kinds
        return kinds is None or kind in kinds or (kind == "integer" and "number" in kinds)

    def read(self, value: Any, depth: int = 1) -> Any:
        """Read the value there; `depth` is that of the place in the whole."""
        if type(value) in self.kept:
            return value
        value = self._converted(value)
        if depth > _MOST_DEPTH or not isinstance(value, dict | list):
            return value
        inside = self.choice(cast("Any", value))
        if isinstance(value, dict):
            return inside.read_object(cast("dict[str, Any]", value), depth + 1)
        several = cast("list[Any]", value)
        return [inside.at(i).read(each, depth + 1) for i, each in enumerate(several)]

    def read_object(self, given: Mapping[str, Any], depth: int) -> dict[str, Any]:
        required, fields = self.schema.get("required", ()), self.schema.get("properties", {})
        kept: dict[str, Any] = {}
        for name, value in given.items():
            node = self.at(name)
            if name not in fields or name in required or not node.is_absent(value):
                kept[name] = node.read(value, depth)
        return kept

    def is_absent(self, value: Any) -> bool:
        """Whether a value means nothing in an optional field."""
        if isinstance(value, str) and self.kinds is not None and "string" not in self.kinds:
            is_null = _WORDS.get(value.strip().lower(), "") is None
            return not value or (is_null and "null" not in self.kinds)
        return is_empty(value) and not admits(self.schema, value)

    def at(self, place: str | int) -> "Place":
        """Return the place of a field or an item. Unnamed ones share one place."""
        is_field = isinstance(place, str)
        named = self.schema.get("properties" if is_field else "prefixItems", {})
        if place not in (named if is_field else range(len(named))):
            place = "" if is_field else -1
        if place not in self._inside:
            rest = self.schema.get("additionalProperties" if is_field else "items")
            # In a list of lists, [1, 2] is perhaps the only list.
            schema = rest if place in ("", -1) else named[place]
            self._inside[place] = Place(schema, takes_one=is_field)
        return self._inside[place]

    def choice(self, value: Any) -> "Place":
        """Return the only choice that a list or an object can be; the place itself without one."""
        fitting = [n for n in self._choices if n.kinds is None or kind_of(value) in n.kinds]
        if len(fitting) > 1 and isinstance(value, dict):
            fitting = [n for n in fitting if n.is_like(cast("dict[str, Any]", value))]
        if len(fitting) == 1:
            return fitting[0]
        return Place({}) if self._choices else self

    def is_like(self, given: Mapping[str, Any]) -> bool:
        """Whether an object has the required fields, and the constant ones as they are."""
        fixed = [(n, s) for n, s in self.schema.get("properties", {}).items() if "const" in s]
        is_same = all(given.get(name, each["const"]) == each["const"] for name, each in fixed)
        return is_same and given.keys() >= set(self.schema.get("required", ()))

    def _converted(self, value: Any) -> Any:
        """Return a value as one of the admitted kinds, if it can be read as one."""
        kinds = self.kinds
        if kinds is None or (isinstance(value, str) and "string" in kinds):
            return value
        for each in [value, *_parsed(value)]:
            if self.fits(each):
                return each
            if "integer" in kinds and isinstance(each, float) and each.is_integer():
                return int(each) if abs(each) < _EXACT else value
        is_list = "array" in kinds and not kinds - {"array", "null"}
        return self._as_list(value) if is_list else value

    def _as_list(self, value: Any) -> Any:
        """Return one thing as a list, unless it may be meant as several."""
        inside = self.choice([])
        if not self._takes_one or "prefixItems" in inside.schema:
            return value
        item = inside.at(0)
        if inside.schema.get("minItems", 0) > 1 or (item.kinds and "array" in item.kinds):
            return value
        tries = [value]
        if isinstance(value, str) and (_SEVERAL.search(value) or not item.fits("")):
            tries = [*_parsed(value)]
        for each in tries:
            one = item.read(each, _MOST_DEPTH)
            if item.fits(one) and not (isinstance(one, str) and _SEVERAL.search(one)):
                return [one]
        return value


def _parsed(text: Any) -> Iterator[Any]:
    """Yield the value of a text; and that of the text in it, which was written twice."""
    for _ in range(2):
        if not isinstance(text, str):
            return
        word = text.strip().lower()
        try:
            text = _WORDS[word] if word in _WORDS else orjson.loads(text.strip())
        except orjson.JSONDecodeError:
            return
        yield text


def _kinds(schema: Schema) -> frozenset[str] | None:
    """Return the kinds of values that a schema admits; None for all of them."""
    kind = schema.get("type")
    if kind is not None:
        return frozenset([kind] if isinstance(kind, str) else kind)
    if "enum" in schema:
        return frozenset(map(kind_of, schema["enum"]))
    if "const" in schema:
        return frozenset([kind_of(schema["const"])])
    each = [_kinds(choice) for choice in choices_of(schema)]
    known = [kinds for kinds in each if kinds is not None]
    return frozenset[str]().union(*known) if known and len(known) == len(each) else None


def is_empty(value: Any) -> bool:
    """Whether a value is `null`, `""`, `[]` or `{}`, which frameworks send for nothing."""
    return value is None or (isinstance(value, str | list | dict) and not value)


def admits(schema: Any, empty: Any) -> bool:
    """Whether a schema admits one of the empty values; a missing keyword forbids nothing."""
    if not isinstance(schema, Mapping):
        return True
    known = cast("Schema", schema)
    if "const" in known:
        return known["const"] == empty
    if "enum" in known:
        return empty in known["enum"]
    if choices := choices_of(known):
        return any(admits(each, empty) for each in choices)
    kinds = _kinds(known)
    return (kinds is None or kind_of(empty) in kinds) and _is_within(known, empty)


def _is_within(schema: Schema, empty: Any) -> bool:
    if isinstance(empty, list):
        return not schema.get("minItems")
    if not isinstance(empty, str):
        return empty is None or not (schema.get("minProperties") or schema.get("required"))
    try:
        is_match = re.search(schema.get("pattern", ""), empty) is not None
    except re.error:  # of another dialect of patterns
        is_match = True
    return is_match and not schema.get("minLength") and "format" not in schema


class Fault(NamedTuple):
    """One wrong part of a value: its place, such as `path[0].x`, and the reason."""

    path: str
    problem: str
    hint: str = ""
    is_missing: bool = False

    @classmethod
    def of(cls, path: str, schema: Schema, given: Any, *, other: str = "") -> "Fault":
        """Return the fault of a value that a schema, or the form in other words, does not admit."""
        words = expected(schema, given) or other
        hint = did_you_mean(given, [e for e in schema.get("enum", ()) if isinstance(e, str)])
        return cls(path, f"expected {words}, got {clip_repr(given)}", hint)

    @classmethod
    def missing(cls, path: str, name: str) -> "Fault":
        """Return the fault of an object at a place that lacks a field."""
        at = place_of([*filter(None, [path]), name])
        return cls(at, f"argument {at!r} is required", is_missing=True)

    @classmethod
    def unknown(cls, path: str, name: str, known: Iterable[str]) -> "Fault":
        """Return the fault of an object at a place that has a field of another name."""
        names = list(known)
        hint, takes = did_you_mean(name, names), ", ".join(names) or "none"
        return cls(path, f"there is no argument {name!r}.{hint} It takes: {takes}")

    def __str__(self) -> str:
        """The place and the problem."""
        place = "" if self.is_missing or not self.path else f"{self.path}: "
        return f"{place}{self.problem}"


def no_json(given: Mapping[str, Any]) -> Fault:
    """Return the fault of the first field that JSON does not have, or not all readers of it."""
    for name, value in given.items():
        try:
            orjson.dumps(value)
        except TypeError as exc:
            said = str(exc)
            return Fault(str(name), next((told for part, told in _NO_JSON if part in said), said))
    return Fault("", "the names and values are no JSON")


_NO_JSON = (
    ("64-bit", "a whole number has at most 64 bits"),
    ("surrogates", "a text has half of a character"),
    ("Recursion", "it is nested too deeply"),
    ("not JSON serializable", "it is no value of JSON"),
)
"""Parts of the encoder's errors, and the reasons in plain words."""


def tell(faults: Iterable[Fault], most: int = 5) -> str:
    """Return the first faults as one sentence, and the questions about what was meant."""
    found = list(faults)[:most]
    return f"{'; '.join(map(str, found))}.{''.join(dict.fromkeys(each.hint for each in found))}"


def place_of(parts: Iterable[str | int]) -> str:
    """Return a place inside a value, such as `path[0].x`."""
    said = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return said.removeprefix(".")


_KINDS_OF_ERRORS: Mapping[str, str] = {
    "list": "array", "tuple": "array", "set": "array", "dict": "object", "model": "object",
    "int": "integer", "float": "number", "bool": "boolean", "string": "string",
}  # fmt: skip


def fault_words(error: ErrorDetails) -> str:
    """Return the expected form by pydantic's error alone, such as `an object`."""
    kind = _KINDS_OF_ERRORS.get(error["type"].partition("_")[0])
    words = expected({"type": kind}, error.get("input"))
    return words or error["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
