"""The arguments of a template or a tool: read from its signature, checked against its schema.

Parameters annotated with the world's class or with `hud_mcp.Context` receive these, and are no
arguments. Arguments are JSON; they are checked strictly, so `"3"` is not an integer.
"""

import inspect
import json
import typing
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Annotated, Any, TypeVar, cast

import orjson
from pydantic import BaseModel, ConfigDict, Field, PydanticSchemaGenerationError, ValidationError
from pydantic import create_model as create_pydantic_model
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import PydanticSerializationError, PydanticUndefined, to_jsonable_python

from hud_mcp.base.reading import Reader, no_json, tell
from hud_mcp.base.schema import plain_schema
from hud_mcp.base.text import clip_repr
from hud_mcp.errors import InvalidTask, InvalidTemplate
from hud_mcp.values.context import Context

T = TypeVar("T")


class DataFileRef(BaseModel):
    """A data file by its id. The runner of the task puts it at the template's place."""

    model_config = ConfigDict(extra="forbid")

    file_id: str = Field(description="The file's id.")
    path: str | None = Field(default=None, description="Where the environment wants it.")


PromptArg = Annotated[str, Field(json_schema_extra={"x-hud-hint": "prompt"})]
"""A text that a person writes, which becomes a part of the prompt."""

DataFileArg = Annotated[T, Field(json_schema_extra={"x-hud-hint": "data-file"})]
"""A data file, such as `DataFileArg[DataFileRef]`."""

DataFilesArg = Annotated[list[T], Field(json_schema_extra={"x-hud-hint": "data-files"})]
"""Several data files."""

GradingArg = Annotated[list[T], Field(json_schema_extra={"x-hud-hint": "grading"})]
"""The data that answers are graded by, such as `GradingArg[str]`."""

FileRef = DataFileRef
FilesArg = DataFilesArg


class Arguments:
    """The parameters of one author's function, which is read, and never called here.

    Args:
        function: The function.
        noun: Its name in errors: `template 'price'`.
        skip: Leading parameters that are neither world nor argument.

    Attributes:
        schema: The JSON schema of the arguments: an object, additional properties forbidden.
        world_types: The parameters that receive the world, and the class that each asks for.
        defaults: The defaults as JSON, with those that no agent may read in the schema.

    Raises:
        InvalidTemplate: A parameter is variadic, has neither annotation nor default, or is of a
            type without a JSON schema.
    """

    def __init__(self, function: Callable[..., Any], *, noun: str, skip: int = 0) -> None:
        self.noun = noun
        self.where = source_line(function)
        hints = self._hints(function)
        parameters = list(inspect.signature(function).parameters.values())[skip:]
        self.world_types: dict[str, type] = {}
        self.context_names: tuple[str, ...] = ()
        fields: dict[str, Any] = {}
        for parameter in parameters:
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise InvalidTemplate(
                    f"{self.where}: {noun} takes {parameter} ({parameter.kind.description}); "
                    "arguments are given by name, so that a schema can describe each."
                )
            hint = hints[parameter.name] if parameter.name in hints else self._infer(parameter)
            if isinstance(hint, type) and is_world(hint):
                self.world_types[parameter.name] = hint
                continue
            if hint == Context:  # its metadata too, so that a plain mapping is an argument
                self.context_names += (parameter.name,)
                continue
            fields[parameter.name] = (hint, parameter.default)
        self.names = tuple(fields)
        self.defaults: dict[str, Any] = {}
        self._fields = {name: _field_name(i) for i, name in enumerate(fields)}
        self._model = self._build(fields)

    @cached_property
    def reader(self) -> Reader:
        """The reader of the arguments in the form that clients send."""
        return Reader(self.schema)

    @property
    def required(self) -> frozenset[str]:
        """The arguments that have no default."""
        return frozenset(self.schema.get("required", ()))

    def parse(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Check JSON arguments, and return the arguments for the call.

        Raises:
            InvalidTask: Arguments are wrong; the text names each with its value and the expected
                kind.
        """
        try:
            plain = to_jsonable_python(dict(given))
            raw = orjson.dumps(plain)
        except (ValueError, TypeError):  # nested too deeply, among others
            raise InvalidTask(f"{self.noun}: {tell([no_json(given)])}") from None
        if b"null" in raw:  # which is also what a number becomes that JSON does not have
            self._refuse_non_finite(plain)
        try:
            model = self._model.model_validate_json(raw, strict=True)
        except ValidationError as exc:
            raise InvalidTask(f"{self.noun}: {tell(self.reader.faults(exc, plain))}") from None
        return {name: getattr(model, field) for name, field in self._fields.items()}

    def parse_text(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Read arguments that arrive as strings, such as a prompt's, into JSON arguments.

        A string for an argument that takes strings stays; any other is read as JSON. Empty strings
        of arguments that have a default count as absent.

        Raises:
            InvalidTask: Arguments are wrong; see `parse`.
        """
        optional = frozenset(self.names) - self.required
        kept = {n: text for n, text in given.items() if text != "" or n not in optional}
        read = self.reader.read(kept)
        self.parse(read)
        return read

    def _refuse_non_finite(self, plain: Mapping[str, Any]) -> None:
        for name, value in plain.items():
            try:
                json.dumps(value, allow_nan=False)
            except ValueError:
                raise InvalidTask(
                    f"{self.noun}: {name}: expected finite numbers, got {clip_repr(value)}."
                ) from None

    def _infer(self, parameter: inspect.Parameter) -> Any:
        """Return the type of a parameter without annotation: its default's if simple, or any."""
        if parameter.default is parameter.empty:
            raise InvalidTemplate(
                f"{self.where}: {self.noun}: the parameter {parameter.name!r} has no annotation; "
                "annotate it with its type, or with the world's class to receive the world."
            )
        return next((k for k in (bool, int, float, str) if type(parameter.default) is k), Any)

    def _hints(self, function: Callable[..., Any]) -> dict[str, Any]:
        try:
            return typing.get_type_hints(function, include_extras=True)
        except (NameError, AttributeError, SyntaxError, TypeError) as exc:
            raise InvalidTemplate(
                f"{self.where}: {self.noun}: {exc}; annotations must be importable at run time."
            ) from None

    def _build(self, declared: Mapping[str, tuple[Any, Any]]) -> type[BaseModel]:
        config = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
        # Behind aliases: an argument may be named `schema`, `copy` or `_x`, a field may not.
        fields: dict[str, Any] = {
            field: _field(name, *declared[name]) for name, field in self._fields.items()
        }
        try:
            model = create_pydantic_model("Arguments", __config__=config, **fields)
            self.schema = plain_schema(model.model_json_schema(schema_generator=_Schema))
            self.schema["additionalProperties"] = False
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
        for name, field in zip(declared, model.model_fields.values(), strict=True):
            if field.default is PydanticUndefined or field.default is None:
                continue
            try:
                default = to_jsonable_python(field.default)
            except PydanticSerializationError:
                raise InvalidTemplate(
                    f"{self.where}: {self.noun}: the default of {name!r} is not a JSON value: "
                    f"{clip_repr(field.default)}."
                ) from None
            self.schema["properties"][name].setdefault("default", default)
            self.defaults[name] = default
        withhold_answers(self.schema)
        return model


def source_line(function: Callable[..., Any]) -> str:
    """Return the place of a function's definition, as `file:line`."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)


class _Schema(GenerateJsonSchema):
    """A generator that does not warn of a default that is not JSON: that is an error here."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {  # noqa: RUF012  # as pydantic declares it
        *GenerateJsonSchema.ignored_warning_kinds,
        "non-serializable-default",
    }


def _field_name(index: int) -> str:
    return f"argument_{index}"


def _field(name: str, hint: Any, default: Any) -> tuple[Any, Any]:
    if isinstance(default, FieldInfo):  # `x: int = Field(3, ge=1)`
        return Annotated[hint, default], Field(alias=name)
    if default is inspect.Parameter.empty:
        return hint, Field(alias=name)
    return hint, Field(alias=name, default=default)


def is_world(hint: type) -> bool:
    """Whether a parameter of this type receives the session's world."""
    is_protocol = getattr(hint, "_is_protocol", False)
    return not is_protocol and all(
        callable(getattr(hint, name, None)) for name in ("act", "observe", "close")
    )


def withhold_answers(schema: Mapping[str, Any]) -> None:
    """Drop the defaults of arguments that hold the right answer: agents read schemas."""
    for field in schema["properties"].values():
        if isinstance(field, dict) and cast("Any", field).get("x-hud-hint") == "grading":
            cast("dict[str, Any]", field).pop("default", None)
