"""The arguments of a template or a tool: read from its signature, checked against its schema.

A parameter annotated with the world's class receives the session's world and is not an
argument. Arguments are JSON; they are checked strictly, so `"3"` is not an integer.
"""

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, cast

import orjson
from pydantic import BaseModel, ConfigDict, PydanticSchemaGenerationError, ValidationError
from pydantic import create_model as create_pydantic_model
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from pydantic_core import PydanticSerializationError, PydanticUndefined, to_jsonable_python

from hud_mcp.errors import InvalidTask, InvalidTemplate, did_you_mean
from hud_mcp.world import World

__all__ = ["Arguments", "source_line"]

_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"),
    (dict, "object"), (list, "array"),
)  # fmt: skip
"""What JSON calls a value; a boolean is an integer to Python, so it comes first."""


class Arguments:
    """The parameters of one author's function.

    Args:
        function: Read, never called here.
        noun: What it is, for errors: `template 'price'`.
        skip: Leading parameters that are neither world nor argument.

    Raises:
        InvalidTemplate: A parameter is variadic, or its type has no JSON schema.
    """

    def __init__(self, function: Callable[..., Any], *, noun: str, skip: int = 0) -> None:
        self.noun = noun
        self.where = source_line(function)
        hints = self._hints(function)
        parameters = list(inspect.signature(function).parameters.values())[skip:]
        self.world_types: dict[str, type] = {}
        fields: dict[str, Any] = {}
        for parameter in parameters:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise InvalidTemplate(
                    f"{self.where}: {noun} takes {parameter}; every argument needs a name of its "
                    "own, so that a schema can describe it."
                )
            hint = hints.get(parameter.name, Any)
            if isinstance(hint, type) and _is_world(hint):
                self.world_types[parameter.name] = hint
                continue
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[parameter.name] = (hint, default)
        self._model = self._build(fields)
        self.names = tuple(fields)

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments: an object, additional properties forbidden."""
        return self._schema

    @property
    def required(self) -> frozenset[str]:
        """The arguments that have no default."""
        return frozenset(self._schema.get("required", ()))

    def parse(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Check JSON arguments, and return what the function is to be called with.

        Raises:
            InvalidTask: Naming each wrong argument, what came, and what was expected.
        """
        try:
            raw = orjson.dumps(to_jsonable_python(dict(given)))
        except (PydanticSerializationError, TypeError, orjson.JSONEncodeError) as exc:
            raise InvalidTask(f"{self.noun}: arguments are JSON values: {exc}.") from None
        try:
            model = self._model.model_validate_json(raw, strict=True)
        except ValidationError as exc:
            raise InvalidTask(self._explain(exc)) from None
        return {name: getattr(model, name) for name in self.names}

    def parse_text(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Read arguments that arrive as strings, as a prompt's do, into JSON arguments.

        A string that fits as it is, stays; otherwise it is read as JSON. Empty strings
        of arguments that have a default count as absent.

        Raises:
            InvalidTask: As `parse` does.
        """
        read: dict[str, Any] = {}
        for name, text in given.items():
            if text == "" and name in self.names and name not in self.required:
                continue
            read[name] = text if name not in self.names else self._read_text(name, text)
        self.parse(read)
        return read

    def _read_text(self, name: str, text: str) -> Any:
        field = self._schema["properties"][name]
        if field.get("type") == "string" or text in field.get("enum", ()):
            return text
        lowered = text.strip().lower()
        if field.get("type") == "boolean" and lowered in ("true", "false"):
            return lowered == "true"
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return text

    def _hints(self, function: Callable[..., Any]) -> dict[str, Any]:
        try:
            return typing.get_type_hints(function, include_extras=True)
        except NameError as exc:
            raise InvalidTemplate(
                f"{self.where}: {self.noun}: {exc}; annotations must be importable at run time."
            ) from None

    def _build(self, fields: dict[str, Any]) -> type[BaseModel]:
        config = ConfigDict(extra="forbid", arbitrary_types_allowed=False, protected_namespaces=())
        try:
            model = create_pydantic_model("Arguments", __config__=config, **fields)
            self._schema = _plain(model.model_json_schema())
        except (
            PydanticSchemaGenerationError,
            PydanticInvalidForJsonSchema,
            PydanticUserError,
            NameError,
        ) as exc:
            reason = str(exc).splitlines()[0]
            raise InvalidTemplate(
                f"{self.where}: {self.noun}: an argument's type has no JSON schema: {reason}."
            ) from None
        for name, field in model.model_fields.items():
            if field.default is PydanticUndefined or field.default is None:
                continue
            self._schema["properties"][name].setdefault(
                "default", to_jsonable_python(field.default)
            )
        return model

    def _explain(self, exc: ValidationError) -> str:
        parts: list[str] = []
        for error in exc.errors(include_url=False)[:5]:
            path = ".".join(str(p) for p in error["loc"])
            if error["type"] == "extra_forbidden":
                takes = ", ".join(self.names) or "none"
                hint = did_you_mean(path, self.names)
                parts.append(f"there is no argument {path!r}.{hint} It takes: {takes}")
            elif error["type"] == "missing":
                parts.append(f"argument {path!r} is required")
            else:
                expected = error["msg"].removeprefix("Input ").strip()
                parts.append(f"argument {path!r} {expected}, got {_clip(error['input'])}")
        return f"{self.noun}: " + "; ".join(parts) + "."


def source_line(function: Callable[..., Any]) -> str:
    """Where a function is defined, as `file:line`."""
    code = inspect.unwrap(function).__code__
    return f"{code.co_filename}:{code.co_firstlineno}"


def _is_world(hint: type) -> bool:
    if hint is World or getattr(hint, "_is_protocol", False):
        return hint is World
    return all(callable(getattr(hint, name, None)) for name in ("act", "observe", "close"))


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Inline what is referred to, and drop titles: hosts reject `$ref`, models skip titles."""
    definitions: dict[str, Any] = schema.pop("$defs", {})

    def inline(node: Any, depth: int = 0) -> Any:
        if isinstance(node, list):
            return [inline(item, depth) for item in cast("list[Any]", node)]
        if not isinstance(node, dict):
            return node
        node = cast("dict[str, Any]", node)
        if "$ref" in node and depth < 8:  # noqa: PLR2004  # a type that contains itself ends here
            name = node["$ref"].rsplit("/", 1)[-1]
            rest = {k: v for k, v in node.items() if k != "$ref"}
            return inline({**definitions.get(name, {}), **rest}, depth + 1)
        if "$ref" in node:
            return {"type": "object"}
        return {
            k: (
                {n: inline(p, depth) for n, p in v.items()}
                if k == "properties"
                else inline(v, depth)
            )
            for k, v in node.items()
            if k != "title" or not isinstance(v, str)
        }

    plain = inline(schema)
    plain.setdefault("properties", {})
    plain["additionalProperties"] = False
    return plain


def _clip(value: Any, limit: int = 80) -> str:
    text = repr(value)
    text = text if len(text) <= limit else text[:limit] + "…"
    kind = next((name for kind, name in _KINDS if isinstance(value, kind)), "null")
    return f"{text} ({kind})"
