"""Options of commands: derived from declared fields, and those that several commands have."""

from collections.abc import Callable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import click
from click.core import ParameterSource
from pydantic import BaseModel

from hud_mcp.cli.finite import FiniteFloat, WholeNumber
from hud_mcp.values.option import Declared, declared

__all__ = ["field_groups", "field_options", "given_fields", "is_given"]

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def field_options(
    model: type[BaseModel], complete: Mapping[str, Any] | None = None
) -> Callable[[CommandT], CommandT]:
    """Give a command an option for each field of a model that declares one.

    Args:
        model: The class with the fields.
        complete: What a shell completes, by the field's name.
    """

    def decorate(function: CommandT) -> CommandT:
        for each in reversed(list(declared(model))):
            function = _option(each, (complete or {}).get(each.name))(function)
        return function

    return decorate


def field_groups(*models: type[BaseModel]) -> dict[str, list[str]]:
    """Return the parameters of each group of a command's help that fields declare."""
    groups: dict[str, list[str]] = {}
    for each in (each for model in models for each in declared(model)):
        if not each.option.is_rare:
            groups.setdefault(each.option.heading, []).append(each.name)
    return groups


def is_given(ctx: click.Context, name: str) -> bool:
    """Whether somebody gave a value to a parameter."""
    return ctx.get_parameter_source(name) not in (None, ParameterSource.DEFAULT)


def given_fields(ctx: click.Context, model: type[BaseModel]) -> dict[str, Any]:
    """Return the values that somebody gave to a model's fields."""
    return {
        each.name: ctx.params[each.name] for each in declared(model) if is_given(ctx, each.name)
    }


def _option(declared_: Declared, complete: Any) -> Callable[[CommandT], CommandT]:
    field, option = declared_.field, declared_.option
    kinds = _kinds(field.annotation)
    arguments: dict[str, Any] = {
        "help": field.description,
        "hidden": option.is_rare,
        "metavar": option.metavar,
        "shell_complete": complete,
        "default": field.default,
    }
    if bool in kinds:
        arguments["is_flag"] = True
    elif get_origin(kinds[0]) is tuple and str in get_args(kinds[0]):
        arguments["multiple"] = True
    elif option.bare is not None:
        arguments |= {"is_flag": False, "flag_value": option.bare}
    else:
        arguments["type"] = _type(kinds, declared_)
    return click.option(declared_.flag, declared_.name, **arguments)


def _kinds(annotation: Any) -> Sequence[Any]:
    """Return the types of a field's values, without None."""
    if get_origin(annotation) is Annotated:
        return _kinds(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [kind for kind in get_args(annotation) if kind is not NoneType]
    return [annotation]


def _type(kinds: Sequence[Any], declared_: Declared) -> click.ParamType[Any] | None:
    choices = declared_.option.choices or (
        get_args(kinds[0]) if get_origin(kinds[0]) is Literal else ()
    )
    if choices:
        return click.Choice(choices)
    bounds = {
        name: getattr(each, name)
        for each in declared_.field.metadata
        for name in ("ge", "gt", "le", "lt")
        if hasattr(each, name)
    }
    if int in kinds and declared_.option.metavar == "N":
        highest = bounds["lt"] - 1 if "lt" in bounds else None
        return WholeNumber(bounds.get("ge"), highest)
    if float in kinds:
        return FiniteFloat(bounds.get("ge", bounds.get("gt")), min_open="gt" in bounds)
    return None
