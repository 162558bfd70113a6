"""A class of its own for one environment, so that what it reads belongs to it alone.

Gymnasium's Box2D environments read constants of their modules, which every environment of
the process shares. Here their methods are rebuilt, once for each environment, over a copy
of the module's names; the code is Gymnasium's, unchanged.
"""

from collections.abc import Mapping
from types import FunctionType, ModuleType
from typing import Any, cast

__all__ = ["isolated_class", "set_class"]


def set_class(env: Any, kind: type[Any]) -> None:
    """Make an environment one of a subclass of its class, in place.

    Args:
        env: The bare environment, without wrappers.
        kind: A subclass of one of its classes, without attributes that `__init__` sets.
    """
    own = cast("type[Any]", type(env))
    if issubclass(kind, own):
        env.__class__ = kind
    elif not isinstance(env, kind):  # an author's subclass, whose methods stay
        env.__class__ = type(own.__name__, (kind, own), {"__module__": own.__module__})


def isolated_class(
    kind: type[Any], module: ModuleType, changes: Mapping[str, Any]
) -> tuple[type[Any], dict[str, Any]]:
    """Build a subclass whose methods read names of their own.

    Args:
        kind: A class that is defined in `module`.
        module: Where the names are copied from.
        changes: Names that differ from the first.

    Returns:
        The subclass, and its names, to be changed in place.
    """
    names = {**vars(module), **changes}
    methods = {
        name: _over(value, names)
        for name, value in vars(kind).items()
        if isinstance(value, FunctionType) and value.__globals__ is vars(module)
    }
    made = type(kind.__name__, (kind,), {**methods, "__module__": kind.__module__})
    return made, names


def _over(function: FunctionType, names: dict[str, Any]) -> FunctionType:
    made = FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__doc__ = function.__doc__
    return made
