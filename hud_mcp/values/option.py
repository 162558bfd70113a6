"""The declaration of an option: a field of a value, for a command and for a function alike."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from hud_mcp.errors import HudMcpError, did_you_mean

ValueT = TypeVar("ValueT", bound=BaseModel)


@dataclass(frozen=True)
class Option:
    """The names of a field where people give it. The field has its type, bounds and description.

    Attributes:
        heading: The group of the option in the command's help.
        flag: The option of the command; by default the field's name, with hyphens.
        keyword: The keyword of the function; by default the field's name.
        metavar: The name of its value in the command's help.
        bare: The value that the option stands for if none follows it.
        choices: The values that there are; any if empty.
        is_rare: Whether the help leaves it out; `--set NAME=VALUE` gives it, and so does the flag.
        may_change: Whether a resumed job takes another value.
    """

    heading: str
    flag: str | None = None
    keyword: str | None = None
    metavar: str | None = None
    bare: str | None = None
    choices: tuple[str, ...] = ()
    is_rare: bool = False
    may_change: bool = False


@dataclass(frozen=True)
class Declared:
    """A field with its name, and the option that it declares."""

    name: str
    field: FieldInfo
    option: Option

    @property
    def flag(self) -> str:
        """The option of the command."""
        return self.option.flag or f"--{self.name.replace('_', '-')}"

    @property
    def keyword(self) -> str:
        """The keyword of the function."""
        return self.option.keyword or self.name


def declared(model: type[BaseModel]) -> Iterator[Declared]:
    """Yield the fields of a model that declare an option, in their order."""
    for name, field in model.model_fields.items():
        for each in field.metadata:
            if isinstance(each, Option):
                yield Declared(name, field, each)


def input_reader(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wrap a reader of a value, so that pydantic takes its HudMcpError for a wrong value."""

    def wrapped(value: Any) -> Any:
        try:
            return read(value)
        except HudMcpError as exc:
            raise ValueError(str(exc)) from exc

    return wrapped


def read_options(
    model: type[ValueT], given: Mapping[str, Any], spelled: Callable[[Declared], str]
) -> ValueT:
    """Read the values of options, by the names of their fields; HudMcpError for the first fault.

    The others keep their defaults, and are not in the result's `model_fields_set`. `spelled` gives
    the name of an option in the error.
    """
    for each in declared(model):
        value, choices = given.get(each.name), each.option.choices
        if choices and value is not None and value not in choices:
            raise HudMcpError(
                f"{spelled(each)} is {value!r}.{did_you_mean(value, choices)} There are "
                f"{', '.join(choices)}."
            )
    try:
        return model.model_validate(dict(given))
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
    if "ctx" in first and "error" in first["ctx"]:
        raise HudMcpError(str(first["ctx"]["error"]))
    name = str(first["loc"][0])
    shown = {each.name: spelled(each) for each in declared(model)}.get(name, name)
    said = first["msg"].removeprefix("Input ")
    raise HudMcpError(f"{shown} is {first['input']!r}; it {said}.")


def fields_by_keyword(model: type[BaseModel], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of keywords by the names of their fields; TypeError for an unknown one."""
    fields = {each.keyword: each.name for each in declared(model)}
    for keyword in given:
        if keyword not in fields:
            raise TypeError(
                f"There is no option {keyword!r}.{did_you_mean(keyword, fields)} There are "
                f"{', '.join(fields)}."
            )
    return {fields[keyword]: value for keyword, value in given.items()}
