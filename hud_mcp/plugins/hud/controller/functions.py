"""The functions of a controller as functions that a task may name."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from hud_mcp.environment.function import Function
from hud_mcp.plugins.hud.controller.world import ControllerWorld

__all__ = ["controller_functions"]

_OWN = frozenset({"step", "get_urls"})
"""What the live environment itself calls."""


class _Omitted:
    """Stands for an argument that the controller's own default is for."""

    def __repr__(self) -> str:
        return "…"


_OMITTED = _Omitted()


def controller_functions(found: Mapping[str, Any]) -> tuple[Function, ...]:
    """Functions of a controller by their dotted paths.

    Args:
        found: Each path, to its parameters as `inside/names.py` writes them; None where they
            are unknown.
    """
    made: list[Function] = []
    for path, takes in found.items():
        if path not in _OWN:
            where = f"hud_controller.{path}"
            made.append(Function(_function(path, takes), name=path, where=where))
    return tuple(made)


def _function(path: str, takes: Mapping[str, Any] | None) -> Callable[..., Awaitable[Any]]:
    async def call(world: ControllerWorld, *args: Any) -> Any:
        return await world.invoke(path, [each for each in args if each is not _OMITTED])

    kinds = inspect.Parameter
    parameters = [kinds("world", kinds.POSITIONAL_ONLY)]
    for name, optional in () if takes is None else takes["names"]:
        default = _OMITTED if optional else kinds.empty
        called = "world_" if name == "world" else str(name)
        parameters.append(kinds(called, kinds.POSITIONAL_ONLY, default=default))
    rest = "args" if takes is None else takes["rest"]
    if rest is not None:
        parameters.append(kinds(rest, kinds.VAR_POSITIONAL))
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {"world": ControllerWorld}
    call.__name__ = path.rpartition(".")[2]
    call.__doc__ = f"{path} of the controller."
    return call
