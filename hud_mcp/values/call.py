"""A call in a task: a function of its environment, with arguments.

People write `setup` and `evaluate` of a task in many forms, which are the HUD SDK's. Files and the
record have one: `[{"function": "goto", "args": ["/"]}]`.
"""

import inspect
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from pydantic import Field, field_validator, model_serializer
from pydantic_core import PydanticSerializationError, to_jsonable_python

from hud_mcp.base.text import clip_repr
from hud_mcp.errors import did_you_mean
from hud_mcp.values.action import Value

__all__ = [
    "ACT",
    "CANCEL_TASK",
    "CORE_TOOLS",
    "LIST_TASKS",
    "NOTE",
    "OWN_SESSION",
    "RESPONSE",
    "SCREENSHOT",
    "START_TASK",
    "STEP",
    "TASK_STATUS",
    "FunctionConfig",
    "FunctionConfigs",
    "HudStyleConfig",
    "HudStyleConfigs",
    "read_calls",
    "read_json_calls",
]


_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_KEYS = ("function", "args", "id", "metadata")
_SHOWN_CHARS = 80


class FunctionConfig(Value):
    """One call. Its length and its items are those of its arguments, as in the HUD SDK."""

    function: str = Field(description="The function's name; dots part it, as `browser.maximize`.")
    args: tuple[Any, ...] = Field(default=(), description="JSON values, in order.")
    id: str | None = Field(default=None, description="Names the call; HUD's.")
    metadata: dict[str, Any] | None = Field(default=None, description="Anything; HUD's.")

    @field_validator("function")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot name a function; write it as in 'page_contains'")
        return name

    @field_validator("args", mode="before")
    @classmethod
    def _is_json(cls, given: Any) -> tuple[Any, ...]:
        listed: list[Any] = [*given] if isinstance(given, list | tuple) else [given]
        if all(type(each) is str for each in listed):  # most are, and sets have thousands of rows
            return tuple(listed)
        if any(map(inspect.isawaitable, listed)):
            raise ValueError(f"an argument is a JSON value: {_let_go(listed)}")
        try:
            plain: list[Any] = to_jsonable_python(listed)
        except (PydanticSerializationError, ValueError) as exc:
            raise ValueError(f"an argument is a JSON value: {exc}") from None
        if not all(map(_is_finite, plain)):
            raise ValueError("an argument must have finite numbers")
        return tuple(plain)

    @classmethod
    def of_flat(cls, names: Sequence[str]) -> "FunctionConfig":
        """Return the call of a flat list of texts, unless each of them names a function."""
        made = _FlatCall if all(_NAME.fullmatch(name) for name in names[1:]) else cls
        return made(function=names[0], args=tuple(names[1:]))

    @property
    def is_flat(self) -> bool:
        """Whether it was written as a flat list of names, which may also mean several calls."""
        return False

    def settled(self) -> "FunctionConfig":
        """Return the same call, after an environment has decided that it is one."""
        if not self.is_flat:
            return self
        return FunctionConfig(function=self.function, args=self.args)

    def __len__(self) -> int:
        return len(self.args)

    def __getitem__(self, index: int) -> Any:
        return self.args[index]

    def __iter__(self) -> Iterator[Any]:  # pyright: ignore[reportIncompatibleMethodOverride]  # HUD's: over the arguments, where pydantic's is over fields
        return iter(self.args)

    def __str__(self) -> str:
        """The call in Python's form."""
        return f"{self.function}({', '.join(map(repr, self.args))})"

    @model_serializer
    def _as_row(self) -> dict[str, Any]:
        row: dict[str, Any] = {"function": self.function, "args": list(self.args)}
        row |= {} if self.id is None else {"id": self.id}
        return row | ({} if self.metadata is None else {"metadata": self.metadata})


class _FlatCall(FunctionConfig):
    """A call that was written as a flat list of names; a class, so that others pay nothing."""

    @property
    def is_flat(self) -> bool:
        """See `FunctionConfig`."""
        return True

    def __repr_name__(self) -> str:
        return FunctionConfig.__name__


HudStyleConfig = FunctionConfig
"""The name in the SDK's first releases."""

FunctionConfigs: TypeAlias = (
    str | tuple[Any, ...] | Mapping[str, Any] | FunctionConfig | Sequence[Any] | None
)
"""The forms of calls: a name; a tuple of a name and arguments; a mapping; a list of these; None."""

HudStyleConfigs = FunctionConfigs


def read_calls(given: Any) -> tuple[FunctionConfig, ...]:
    """Read calls in Python's forms, a tuple for one and a list for several, or raise ValueError."""
    return _read(given, from_json=False)


def read_json_calls(given: Any) -> tuple[FunctionConfig, ...]:
    """Read calls in a file's forms, in which a list may be one call.

    `[["goto", "/"], ["click", "#next"]]` are two calls. A flat list is one call if its items cannot
    all be names: `["goto", "https://example.com"]`. If each may be a name, the environment decides:
    see `Environment.bind`.

    Raises:
        ValueError: As for `read_calls`.
    """
    return _read(given, from_json=True)


def _read(given: Any, *, from_json: bool) -> tuple[FunctionConfig, ...]:
    if _is_nothing(given):
        return ()
    if not isinstance(given, list):
        return (_call(given),)
    items = [item for item in cast("list[Any]", given) if not _is_nothing(item)]
    if len(items) > 1 and isinstance(items[0], str):
        if from_json and all(isinstance(item, str) for item in items):
            return (FunctionConfig.of_flat(cast("list[str]", items)),)
        if from_json and not all(isinstance(item, str | list | dict) for item in items):
            return (_call(tuple(items)),)
        _refuse_flat(items)
    return tuple(_call(tuple(cast("list[Any]", i)) if isinstance(i, list) else i) for i in items)


def _is_nothing(given: Any) -> bool:
    return given is None or (isinstance(given, list | tuple | Mapping) and not given)


def _refuse_flat(items: Sequence[Any]) -> None:
    """Refuse a list that was meant as one call, if it cannot be several."""
    name, *args = items
    if any(isinstance(item, str) and not _NAME.fullmatch(item) for item in args):
        raise ValueError(
            f"a list is a sequence of calls, but {_shown(list(items))} has an item that is not "
            f"a name; write {_shown([[name, *args]])} for one call"
        )


def _call(given: Any) -> FunctionConfig:
    if isinstance(given, FunctionConfig):
        return given
    if isinstance(given, str):
        return FunctionConfig(function=given)
    if isinstance(given, tuple):
        name, *args = cast("tuple[Any, ...]", given) or (None,)
        if not isinstance(name, str):
            hint = "; write several calls in a list" if isinstance(name, tuple | Mapping) else ""
            raise ValueError(  # noqa: TRY004  # pydantic reports ValueErrors by field
                f"a call begins with its function's name, not with {_shown(name)}{hint}"
            )
        return FunctionConfig(function=name, args=tuple(args))
    if isinstance(given, Mapping):
        return _call_of_mapping(cast("Mapping[str, Any]", given))
    raise ValueError(_why_none(given))


def _call_of_mapping(given: Mapping[str, Any]) -> FunctionConfig:
    unknown = [key for key in given if key not in _KEYS]
    if unknown:
        hint = did_you_mean(unknown[0], _KEYS)
        raise ValueError(f"a call has no {unknown[0]!r}.{hint} It has: {', '.join(_KEYS)}")
    name = given.get("function")
    if not isinstance(name, str):
        raise ValueError(  # noqa: TRY004  # pydantic reports ValueErrors by field
            f"a call's 'function' is its name, not {_shown(name)}"
        )
    args: Any = given.get("args", [])
    args = [] if args is None else args
    return FunctionConfig(
        function=name, args=args, id=given.get("id"), metadata=given.get("metadata")
    )


def _why_none(given: Any) -> str:
    """Describe the fault of a value that is no form of a call."""
    if inspect.isawaitable(given):
        return f"this is not a call: {_let_go([given])}"
    if callable(given):
        name = getattr(given, "__name__", "function")
        return f"a function is called by its name; write {name!r} and register it with env.function"
    return (
        f"{_shown(given)} is not a call; write a name, a tuple of a name and its arguments, a "
        "dict with 'function' and 'args', or a list of these"
    )


def _let_go(given: Sequence[Any]) -> str:
    """Describe coroutines in the place of data, and close them."""
    for each in filter(inspect.iscoroutine, given):
        each.close()  # or Python would warn at its end
    return "a coroutine was given; name the function and its arguments, as in ('goto', '/')"


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return all(map(_is_finite, cast("Mapping[str, Any]", value).values()))
    return not isinstance(value, list) or all(map(_is_finite, cast("list[Any]", value)))


def _shown(value: Any) -> str:
    return clip_repr(value, _SHOWN_CHARS)


LIST_TASKS: Final = "list_tasks"
START_TASK: Final = "start_task"
STEP: Final = "step"
ACT: Final = "act"
SCREENSHOT: Final = "screenshot"
MESSAGE_USER: Final = "message_user"
RESPONSE: Final = "response"
TASK_STATUS: Final = "task_status"
CANCEL_TASK: Final = "cancel_task"
NOTE: Final = "note"

OWN_SESSION: Final = "hud_session"
"""Names the session in a call of a tool that has an argument `session` of its own."""


CORE_TOOLS: Final = frozenset(
    {
        LIST_TASKS, START_TASK, STEP, ACT, SCREENSHOT, MESSAGE_USER, RESPONSE, TASK_STATUS,
        CANCEL_TASK, NOTE,
    }
)  # fmt: skip
"""The names of core tools, which an environment's own tools may not have."""
