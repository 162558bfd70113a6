"""What a template receives: the submitted answer, read as the type that it declares."""

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from hud_mcp.base.schema import fault_words
from hud_mcp.errors import InvalidTemplate

__all__ = ["Answer", "AnswerType", "type_schema"]

T = TypeVar("T")
_JSON_KINDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "object": "an object",
    "string": "text",
}
_SHOWN_CHARS = 80


@dataclass(frozen=True)
class Answer(Generic[T]):
    """A typed answer.

    Attributes:
        content: The answer as the template's `returns` type; the raw string if it does not fit that
            type.
        raw: The submitted text.
        is_valid: Whether `content` has the declared type.
    """

    content: T
    raw: str
    is_valid: bool = field(default=True, compare=False)

    def __str__(self) -> str:
        """What the agent submitted: graders of text are often handed the whole answer."""
        return self.raw


class AnswerType:
    """The type that the answers of a template are read as.

    Args:
        annotation: The type; None where an answer stays the string that was submitted.
        where: The template's file and line.
        noun: What the template is called in errors.

    Attributes:
        schema: Its JSON schema; None where no type is declared.

    Raises:
        InvalidTemplate: The type has no JSON schema.
    """

    def __init__(self, annotation: Any, *, where: str, noun: str) -> None:
        self.schema = type_schema(annotation, where=where, noun=noun)
        self._type = None if annotation is None else TypeAdapter[Any](annotation)

    def read(self, raw: str) -> Any:
        """Return what the template receives for a submitted answer: `Answer[T]` or the string."""
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
        """Say why a submitted answer does not have the declared type; None if it has."""
        if self._type is None or self.read(raw).is_valid:
            return None
        kind = _JSON_KINDS.get((self.schema or {}).get("type", ""), "a value")
        got = repr(raw if len(raw) <= _SHOWN_CHARS else raw[:_SHOWN_CHARS] + "…")
        problem = ""
        try:
            self._type.validate_json(raw)
        except ValidationError as exc:
            first = exc.errors(include_url=False)[0]
            path = ".".join(str(part) for part in first["loc"])
            if path:
                problem = f" In it, {path}: {fault_words(first)}."
        return f"The answer should be {kind} (JSON), got {got}.{problem}"


def type_schema(annotation: Any, *, where: str, noun: str) -> dict[str, Any] | None:
    """The JSON schema of a type; None for none.

    Raises:
        InvalidTemplate: It has none; the text names the template's file and line.
    """
    if annotation is None:
        return None
    try:
        return orjson.loads(orjson.dumps(TypeAdapter(annotation).json_schema()))
    except (PydanticUserError, TypeError, NameError) as exc:
        raise InvalidTemplate(
            f"{where}: {noun}: {annotation!r} has no JSON schema: {exc}"
        ) from None
