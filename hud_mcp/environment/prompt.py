"""The prompt that a template yields, and the answer that it receives."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

import orjson
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import to_jsonable_python

from hud_mcp.base.reading import Reader
from hud_mcp.base.schema import expected
from hud_mcp.errors import InvalidTemplate

__all__ = ["Answer", "AnswerType", "Prompt", "PromptMessage", "read_prompt", "type_schema"]


T = TypeVar("T")


@dataclass(frozen=True)
class Answer(Generic[T]):
    """A typed answer.

    Attributes:
        content: The answer as the template's `returns` type; the raw string if it does not fit.
        raw: The submitted text.
        is_valid: Whether `content` has the declared type.
    """

    content: T
    raw: str
    is_valid: bool = field(default=True, compare=False)

    def __str__(self) -> str:
        """Return the submitted text: graders of text are often handed the whole answer."""
        return self.raw


class AnswerType:
    """The type of a template's answers, and its JSON schema; None for the submitted string.

    Raises:
        InvalidTemplate: The type has no JSON schema.
    """

    def __init__(self, annotation: Any, *, where: str, noun: str) -> None:
        self.schema = type_schema(annotation, where=where, noun=noun)
        self._type = None if annotation is None else TypeAdapter[Any](annotation)

    def read(self, raw: str) -> Any:
        """Return the template's form of a submitted answer: `Answer[T]` or the string."""
        if self._type is None:
            return raw
        try:
            return Answer(content=self._type.validate_json(raw), raw=raw)
        except ValidationError:
            pass
        try:
            return Answer(content=self._type.validate_python(raw), raw=raw)
        except ValidationError:
            return Answer(content=raw, raw=raw, is_valid=False)

    def problem(self, raw: str) -> str | None:
        """Return the reason that an answer lacks the declared type; None if it has the type."""
        if self._type is None or self.read(raw).is_valid:
            return None
        reader = Reader({**(self.schema or {}), "properties": {"": self.schema}})
        wanted = expected(reader.schema["properties"][""]) or "a value"
        got = repr(raw if len(raw) <= _SHOWN_CHARS else raw[:_SHOWN_CHARS] + "…")
        problem = ""
        try:
            self._type.validate_json(raw)
        except ValidationError as exc:
            if exc.errors()[0]["loc"]:
                (fault, *_) = reader.faults(exc, {"": orjson.loads(raw)}, "")
                problem = f" In it, {fault}.{fault.hint}"
        return f"The answer should be {wanted} (JSON), got {got}.{problem}"


def type_schema(annotation: Any, *, where: str, noun: str) -> dict[str, Any] | None:
    """Return the JSON schema of a type, or None; `InvalidTemplate` names the file and line."""
    if annotation is None:
        return None
    try:
        return orjson.loads(orjson.dumps(TypeAdapter(annotation).json_schema()))
    except (PydanticUserError, TypeError, NameError) as exc:
        raise InvalidTemplate(
            f"{where}: {noun}: {annotation!r} has no JSON schema: {exc}"
        ) from None


_SHOWN_CHARS = 80
_ROLES = ("user", "assistant", "system")


@dataclass(frozen=True)
class PromptMessage:
    """One message of a prompt.

    Attributes:
        role: `user`, `assistant` or `system`.
        text: Its text; brackets name the parts that are not text.
        original: The full message as JSON, if it has more than a role and a text. Clients of the
            HUD control channel receive it unchanged.
    """

    role: str
    text: str
    original: Mapping[str, Any] | None = field(default=None, compare=False)

    @property
    def told(self) -> str:
        """Its text for clients such as MCP's, which know only users and assistants."""
        return f"Instructions for this task:\n{self.text}" if self.role == "system" else self.text


@dataclass(frozen=True)
class Prompt:
    """The prompt of a template, as one or more messages.

    Attributes:
        messages: The messages.
        extra: Further keys that the template yielded beside `prompt`, as JSON, for clients of the
            HUD control channel.
        said: The `Say` or `Ask` of a conversation that it is; None for a template that asks once.
    """

    messages: tuple[PromptMessage, ...]
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    said: Any = field(default=None, compare=False)

    @cached_property
    def text(self) -> str:
        """All messages as one text; system messages are marked as instructions."""
        return "\n\n".join([message.told for message in self.messages])


def read_prompt(value: Any, *, where: str) -> Prompt:
    """Read the first value that a template yielded.

    It is text; a `Prompt`; a mapping with a `prompt`; or messages, each a text, or a mapping or an
    object with a `role` and a `content`, like HUD's and MCP's. The content is a text, a part, or a
    list of parts.

    Raises:
        InvalidTemplate: The value is none of these; the text names an unknown role or part.
    """
    shown = repr(value)[:_SHOWN_CHARS]
    extra: dict[str, Any] = {}
    if isinstance(value, Mapping) and "prompt" in value:
        whole = cast("Mapping[str, Any]", value)
        beside = {str(k): v for k, v in whole.items() if k != "prompt"}
        extra = to_jsonable_python(beside, fallback=str)
        value = whole["prompt"]
    if isinstance(value, Prompt):
        return replace(value, extra={**value.extra, **extra})
    if isinstance(value, str):
        return Prompt((PromptMessage("user", value),), extra)
    items: list[Any] = (
        list(cast("list[Any]", value)) if isinstance(value, list | tuple) else [value]
    )
    try:
        messages = [_read_message(item) for item in items]
    except ValueError as exc:
        raise InvalidTemplate(f"{where}: the template's prompt has {exc}") from None
    if not messages or any(m is None for m in messages):
        raise InvalidTemplate(
            f"{where}: the template yielded {shown} as its prompt; yield text, a list "
            "of messages with a role and a content, or {'prompt': …}."
        )
    return Prompt(tuple(m for m in messages if m is not None), extra)


def _read_message(item: Any) -> PromptMessage | None:
    """Return a message that a template yielded; None for any other object.

    A `ValueError` names an unknown role or part.
    """
    if isinstance(item, PromptMessage):
        return item
    if isinstance(item, str):
        return PromptMessage("user", item)
    role, content = _part_of(item, "role"), _part_of(item, "content")
    if content is None:
        return None
    role = "user" if role is None else getattr(role, "value", role)
    if role not in _ROLES:
        raise ValueError(
            f"a message of the role {role!r}; a role is one of {', '.join(_ROLES)}. Give the text "
            "to the user where it is meant for the agent."
        )
    if isinstance(content, str):
        plain = not (isinstance(item, Mapping) and set(cast("Any", item)) - {"role", "content"})
        return PromptMessage(role, content, None if plain else _as_json(item))
    parts: list[Any] = (
        list(cast("list[Any]", content)) if isinstance(content, list | tuple) else [content]
    )
    text = "\n".join(_part_text(part) for part in parts)
    return PromptMessage(role, text, {**_as_json(item), "role": role, "content": _as_json(content)})


def _part_text(part: Any) -> str:
    """Return the text of a part of a message, or the kind of a part without text, in brackets.

    An object that is not a part is a `ValueError`.
    """
    if isinstance(part, str):
        return part
    for holder in (part, _part_of(part, "resource")):
        if isinstance(text := _part_of(holder, "text"), str):
            return text
    resource = _part_of(part, "resource") or part
    kind = _part_of(part, "type")
    where = _part_of(resource, "uri")
    what = _part_of(resource, "mimeType") or _part_of(resource, "mime_type") or where
    if not isinstance(kind, str) or not (what or _part_of(part, "image_url")):
        raise ValueError(
            f"a part {repr(part)[:_SHOWN_CHARS]}; a part is a text, or has a type and a text, or "
            "is an image or a resource with its data."
        )
    named = f"{kind}, {what}" if what else kind
    return f"[{named}: not shown as text]"


def _part_of(item: Any, name: str) -> Any:
    if isinstance(item, Mapping):
        return cast("Mapping[str, Any]", item).get(name)
    return getattr(item, name, None)


def _as_json(value: Any) -> Any:
    """Return a message or its content as JSON, with the names of the wire."""
    if isinstance(value, list | tuple):
        return [_as_json(each) for each in cast("list[Any]", value)]
    made: Any = to_jsonable_python(value, by_alias=True, exclude_none=True, fallback=_fields_of)
    return made


def _fields_of(value: Any) -> Any:
    fields: Mapping[str, Any] | None = getattr(value, "__dict__", None)
    return str(value) if fields is None else dict(fields)
