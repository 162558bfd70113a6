"""The needs of one session of an environment, for its placement on a machine."""

import math
import re
from collections.abc import Iterable
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, ValidationError, field_validator

from hud_mcp.errors import InvalidEnvironment
from hud_mcp.values.action import Value

__all__ = ["Needs"]

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_MOST_CPUS = 1024.0
_MOST_MB = 4 * 1024 * 1024


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"give a number, and not {value!r}")  # noqa: TRY004  # pydantic tells of it
    return value


class Needs(Value):
    """The resources that one session takes from its world's machine.

    A server takes this much for each session that it runs at once.
    """

    cpus: Annotated[float, BeforeValidator(_number)] = Field(
        default=0.05,
        gt=0,
        le=_MOST_CPUS,
        description="Processors that it keeps busy; 0.25 is one in four.",
    )
    memory_mb: Annotated[int, BeforeValidator(_number)] = Field(
        default=32, gt=0, le=_MOST_MB, description="Memory of it and its processes, in megabytes."
    )
    browser: bool = Field(default=False, strict=True, description="Whether it opens a browser.")
    extras: tuple[str, ...] = Field(
        default=(), description="What else a machine must offer, each by a name, such as `gpu`."
    )

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as exc:
            first = exc.errors(include_url=False)[0]
            field = ".".join(map(str, first["loc"]))
            known = ", ".join(type(self).model_fields)
            wrong = "is not a field" if first["type"] == "extra_forbidden" else first["msg"]
            raise InvalidEnvironment(
                f"Needs({field}={first['input']!r}): {wrong}. Its fields are {known}."
            ) from None

    @field_validator("extras", mode="before")
    @classmethod
    def _are_names(cls, extras: Any) -> Any:
        if isinstance(extras, str) or not isinstance(extras, Iterable):
            raise ValueError(f"give a list of names, and not {extras!r}")  # noqa: TRY004  # the same
        names: list[Any] = list(extras)  # pyright: ignore[reportUnknownArgumentType]
        for name in names:
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise ValueError(
                    f"{name!r} is not a name: small letters, digits, - and _, after a letter"
                )
        return tuple(dict.fromkeys(sorted(names)))

    @classmethod
    def most(cls, each: "Iterable[Needs]") -> Self:
        """Needs that suffice for a session of any of them."""
        listed = list(each) or [cls()]
        return cls(
            cpus=max(needs.cpus for needs in listed),
            memory_mb=max(needs.memory_mb for needs in listed),
            browser=any(needs.browser for needs in listed),
            extras=[name for needs in listed for name in needs.extras],
        )

    @property
    def offered(self) -> frozenset[str]:
        """The named resources that a machine must offer."""
        return frozenset((*self.extras, *(["browser"] if self.browser else [])))

    def of_server(self, sessions: int) -> tuple[float, int]:
        """The resources of a server that runs this many sessions at once.

        Returns:
            Processors, of which Ray counts whole ones above one, and bytes of memory.
        """
        cpus = self.cpus * sessions
        return (
            math.ceil(cpus) if cpus > 1 else round(cpus, 4)
        ), self.memory_mb * sessions * 1_000_000

    def __str__(self) -> str:
        """The needs in words for people."""
        parts = [f"{self.cpus:g} of a processor" if self.cpus < 1 else f"{self.cpus:g} processors"]
        parts = [*parts, f"{self.memory_mb} MB", *(("a browser",) if self.browser else ())]
        parts = [*parts, *self.extras]
        return f"{', '.join(parts[:-1])} and {parts[-1]}"
