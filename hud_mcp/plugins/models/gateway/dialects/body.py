"""The JSON of a stranger: read without trust, changed in one place."""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import orjson

from hud_mcp.plugins.models.gateway.dialects import Json, Unreadable
from hud_mcp.plugins.models.replies import mend_surrogates

__all__ = [
    "Body", "canonical", "clean", "contents_of", "count_of", "dict_of", "dicts_of", "digest_of",
    "first_of", "mended", "number_of", "objects_in", "text_of",
]  # fmt: skip

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()
_MOST = 10**12
"""A larger number of tokens is none."""
_SPARE = 40
"""Levels of depth that a digest needs beyond its value's: a value that has one can be written."""


def text_of(value: Any) -> str:
    """Return a text, or the empty one for anything else."""
    return value if isinstance(value, str) else ""


def count_of(value: Any) -> int | None:
    """Return a number of things, or None for anything else."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value <= _MOST else None


def number_of(value: Any) -> int:
    """Return how many a lax reader would take it for: `"8"` and 8.0 are 8; without any, 1."""
    try:
        return max(1, int(float(value)))
    except (TypeError, ValueError, OverflowError):
        return 1


def dict_of(value: Any) -> Json:
    """Return an object, or the empty one for anything else."""
    return cast("Json", value) if isinstance(value, dict) else {}


def dicts_of(value: Any) -> list[Json]:
    """Return the objects of a list; of anything else, none."""
    listed = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Json", each) for each in listed if isinstance(each, dict)]


def contents_of(content: Any, kind: str = "text") -> list[Json]:
    """Return the parts of a message; one of a kind for a text alone."""
    return [{"type": kind, "text": content}] if isinstance(content, str) else dicts_of(content)


def first_of(value: Any) -> Json:
    """Return the object of a list that stands for the first of several replies."""
    return next((each for each in dicts_of(value) if not each.get("index")), dict_of(None))


def mended(text: str) -> str:
    """Return a text with the halves of its characters joined, and U+FFFD for a half alone."""
    # Deltas may split a surrogate pair, and no store takes half a character.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def clean(value: Any) -> Any:
    """Return a JSON value as every store takes it; its text, if it is too deep or has NaN."""
    text = "nested too deeply"
    try:
        text = mend_surrogates(json.dumps(value))
        kept = orjson.loads(text)
        orjson.dumps([[[[[[[[kept]]]]]]]])  # which takes less depth than reading
    except (ValueError, TypeError, RecursionError):
        return text
    return kept


def objects_in(data: bytes | str) -> Any:
    """Return the value of JSON text, or None where it is not JSON."""
    try:
        return json.loads(data if isinstance(data, str) else data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def canonical(value: Any) -> bytes:
    """Return a JSON value as bytes that the order of its names does not change."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError):  # half a character, a long number, much depth
        for _ in range(_SPARE):
            value = [value]
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def digest_of(value: Any) -> bytes:
    """Return a digest of a JSON value."""
    return hashlib.blake2b(canonical(value), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    start: int
    end: int
    value: Any


class Body:
    """A JSON object, and where each of its values stands in the text."""

    def __init__(self, body: bytes) -> None:
        """Read a body.

        Raises:
            Unreadable: It is no JSON object in UTF-8, or has a name twice.
        """
        try:
            self._text = body.decode()
            self._members = _members_of(self._text, 0)
        except (ValueError, IndexError, RecursionError) as exc:
            raise Unreadable("The body is not a JSON object in UTF-8.") from exc
        self.value: Json = {each.name: each.value for each in self._members}

    def has(self, name: str, within: str | None = None) -> bool:
        """Whether the object has a name, itself or in one of its objects."""
        return name in (self.value if within is None else dict_of(self.value.get(within)))

    def put(self, name: str, value: Any, within: str | None = None) -> bytes:
        """Return the body with one value set, in the object or in one of its objects."""
        members, start = self._members, 0
        if within is not None:
            outer = next((each for each in members if each.name == within), None)
            if outer is None or not isinstance(outer.value, dict):
                return self.put(within, {name: value})
            members, start = _members_of(self._text, outer.start), outer.start
        new = json.dumps(value)
        for each in members:
            if each.name == name:
                return (self._text[: each.start] + new + self._text[each.end :]).encode()
        opened = self._text.index("{", start) + 1
        comma = "," if members else ""
        added = f"{json.dumps(name)}:{new}{comma}"
        return (self._text[:opened] + added + self._text[opened:]).encode()

    def refuse_doubles(self, within: Iterable[str] = ()) -> None:
        """Refuse a body of which two readers could read different things.

        One reads the first of two values and one the last; Go reads names in any case, and
        Google's reads `max_output_tokens` for `maxOutputTokens`.

        Raises:
            Unreadable: It has one name twice, itself or in one of some objects.
        """
        groups = [self._members]
        groups += [
            _members_of(self._text, each.start)
            for each in self._members
            if each.name in within and isinstance(each.value, dict)
        ]
        for members in groups:
            seen: dict[str, str] = {}
            for each in members:
                plain = each.name.replace("_", "").casefold()
                if plain in seen:
                    raise Unreadable(f'The body has "{seen[plain]}" twice; send it once.')
                seen[plain] = each.name


def _members_of(text: str, start: int) -> list[_Member]:
    """Return the members of the object that begins at `start`; raise ValueError or IndexError."""
    found = list[_Member]()
    at = _after(text, _after(text, start), "{")
    while text[at] != "}":
        if found:
            at = _after(text, at, ",")
        if text[at] != '"':
            raise ValueError(text[at])
        name, at = _DECODER.raw_decode(text, at)
        begin = _after(text, _after(text, at), ":")
        value, end = _DECODER.raw_decode(text, begin)
        found.append(_Member(name, begin, end, value))
        at = _after(text, end)
    if start == 0 and _after(text, at + 1) != len(text):
        raise ValueError(text[at:])
    return found


def _after(text: str, at: int, sign: str = "") -> int:
    """Return the place behind a sign, which has to be there, and behind the space after it."""
    if text[at : at + len(sign)] != sign:
        raise ValueError(text[at : at + 20])
    space = _SPACE.match(text, at + len(sign))
    return space.end() if space else at
