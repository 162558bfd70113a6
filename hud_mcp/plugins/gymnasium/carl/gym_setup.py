"""Environments made quietly or refused with advice, isolated from others, and registered."""

import copy
import os
import sys
import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module, metadata
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, cast

from hud_mcp.errors import HudMcpError, InvalidEnvironment, did_you_mean
from hud_mcp.plugins.gymnasium import libraries

if TYPE_CHECKING:
    import gymnasium
    from gymnasium import spaces


def make_quietly(env_id: str, **kwargs: Any) -> "gymnasium.Env[Any, Any]":
    """Call `gymnasium.make` without its checker, a display or a greeting."""
    # Read when pygame and SDL load: standard output may be a protocol's.
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    if kwargs.get("render_mode") != "human" and not os.environ.get("DISPLAY"):
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    kwargs.setdefault("disable_env_checker", True)  # it compares with spaces that contexts widen
    _load_first(env_id)
    made: gymnasium.Env[Any, Any] = libraries.gymnasium.make(env_id, **kwargs)
    return made


def render_modes(env_id: str) -> list[str]:
    """Return the modes in which an environment can be drawn, as far as its class says so."""
    declared: dict[str, Any] = getattr(_creator_of(env_id), "metadata", {})
    return list(declared.get("render_modes", ()))


def is_mujoco(env_id: str) -> bool:
    """Whether an environment, maybe of somebody else, draws as Gymnasium's of MuJoCo do."""
    kinds = getattr(_creator_of(env_id), "__mro__", ())
    return any(kind.__module__.startswith("gymnasium.envs.mujoco.") for kind in kinds)


def _creator_of(env_id: str) -> Any:
    _load_first(env_id)
    spec = libraries.gymnasium.registry.get(env_id)
    creator: Any = None if spec is None else spec.entry_point
    return libraries.load_env_creator(creator) if isinstance(creator, str) else creator


def set_render_mode(env: "gymnasium.Env[Any, Any]", mode: str | None) -> None:
    """Set an environment's mode of drawing, or raise `InvalidEnvironment` and change nothing."""
    bare: Any = env.unwrapped
    modes = [str(each) for each in env.metadata.get("render_modes", ())]
    if mode is not None and mode not in modes:
        raise InvalidEnvironment(
            f"{type(bare).__name__} cannot be drawn as {mode!r}.{did_you_mean(mode, modes)} Its "
            f"modes are: {', '.join(modes) or 'none'}."
        )
    if env.render_mode != bare.render_mode:
        raise InvalidEnvironment(
            f"A wrapper draws {type(bare).__name__} as {env.render_mode!r}; create the "
            f"environment again with render_mode={mode!r}."
        )
    if mode == bare.render_mode:
        return
    if hasattr(bare, "screen"):  # pygame's surface is of one mode; the next drawing makes another
        if bare.render_mode == "human":
            bare.close()
        bare.screen = bare.clock = None
    bare.render_mode = mode


def _load_first(env_id: str) -> None:
    spec = libraries.gymnasium.registry.get(env_id)
    if spec is not None and "box2d" in str(spec.entry_point) and "Box2D" not in sys.modules:
        load_box2d(str(spec.entry_point).partition(":")[0].rpartition(".")[2])


def unknown(env_id: str, known_ids: Iterable[str]) -> InvalidEnvironment:
    """Return the error for an unknown id, with the ids that may have been meant."""
    hint = did_you_mean(env_id, known_ids)
    return InvalidEnvironment(
        f"Gymnasium has no environment {env_id!r}.{hint} Name one that is registered, "
        "`module:id` for one that a module registers, or a contextual one, such as CARLCartPole."
    )


_EXTRAS = {
    "ConfigSpace": "gymnasium", "gymnasium": "gymnasium", "mujoco": "mujoco", "numpy": "gymnasium",
    "pygame": "gymnasium",
}  # fmt: skip
"""The extra that brings a missing module, by the module."""


@contextmanager
def explained(env_id: str) -> Generator[None]:
    """Raise an error with advice if an environment cannot be made."""
    try:
        yield
    except InvalidEnvironment:
        raise
    except HudMcpError as exc:
        raise InvalidEnvironment(f"Gymnasium({env_id!r}): {exc}") from exc
    except ModuleNotFoundError as exc:
        extra = _EXTRAS.get(str(exc.name))
        todo = f"pip install 'hud-mcp[{extra}]'" if extra else f"install {exc.name}"
        raise InvalidEnvironment(
            f"Gymnasium({env_id!r}): {exc.name} is not installed; {todo}."
        ) from exc
    except Exception as exc:
        todo = ""
        if type(exc).__name__ == "DependencyNotInstalled":
            todo = (
                " `pip install 'hud-mcp[box2d]'` installs Box2D and pygame, "
                "`pip install 'hud-mcp[mujoco]'` MuJoCo."
            )
        raise InvalidEnvironment(
            f"Gymnasium({env_id!r}) cannot be made: {type(exc).__name__}: {exc}.{todo}"
        ) from exc


def load_box2d(name: str) -> ModuleType:
    """Load one of Gymnasium's modules over Box2D, without Box2D's warnings."""
    # Where warnings are errors, Box2D's own three end the process.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_module(f"gymnasium.envs.box2d.{name}")


def set_class(env: Any, kind: type[Any]) -> None:
    """Make a bare environment one of a subclass, which adds nothing in `__init__`, in place."""
    own = cast("type[Any]", type(env))
    if issubclass(kind, own):
        env.__class__ = kind
    elif not isinstance(env, kind):  # an author's subclass, whose methods stay
        env.__class__ = type(own.__name__, (kind, own), {"__module__": own.__module__})


def isolated_class(
    kind: type[Any], module: ModuleType, changes: Mapping[str, Any]
) -> tuple[type[Any], dict[str, Any]]:
    """Build a subclass whose methods read names of their own, and return these to be changed."""
    # Constants of a module are the whole process's; the copies belong to one environment.
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


def unbounded(space: "spaces.Space[Any]") -> "spaces.Space[Any]":
    """Return the same space, without bounds for numbers of floating point."""
    inside: Any = space  # their generics are partly untyped
    if isinstance(space, libraries.spaces.Box) and libraries.numpy.issubdtype(
        inside.dtype, libraries.numpy.floating
    ):
        return libraries.spaces.Box(
            -libraries.numpy.inf, libraries.numpy.inf, space.shape, inside.dtype.type
        )
    if isinstance(space, libraries.spaces.Dict):
        return libraries.spaces.Dict({key: unbounded(each) for key, each in inside.spaces.items()})
    return inside


_STATISTICS = ("center", "extent", "meaninertia", "meanmass", "meansize")


class Constants:
    """The constants of one `MjModel`; the statistics that its file sets stay."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._data: Any = libraries.mujoco.MjData(model)
        computed: Any = copy.deepcopy(model)
        libraries.mujoco.mj_setConst(computed, libraries.mujoco.MjData(computed))
        self._given = {
            name: copy.copy(value)
            for name in _STATISTICS
            if not libraries.numpy.array_equal(
                value := getattr(model.stat, name), getattr(computed.stat, name)
            )
        }

    def update(self) -> None:
        """Compute the constants from the model's present values."""
        # MuJoCo's documentation asks for it: masses decide, for instance, how stiff a contact is.
        libraries.mujoco.mj_setConst(self._model, self._data)
        for name, value in self._given.items():
            setattr(self._model.stat, name, value)


def constants_of(env: Any) -> Constants | None:
    """Return the constants of an environment's model; None without a model of MuJoCo's."""
    model = getattr(env, "model", None)
    return Constants(model) if isinstance(model, libraries.mujoco.MjModel) else None


def register_ids(names: Iterable[str]) -> None:
    """Register environments as `carl/CARLCartPole-v0` is, now or once Gymnasium is loaded."""
    gymnasium = sys.modules.get("gymnasium")
    if gymnasium is None or not hasattr(gymnasium, "registry"):
        sys.meta_path.insert(0, _WhenGymnasiumLoads(tuple(names)))
    else:
        _register(gymnasium, names)


def _register(gymnasium: Any, names: Iterable[str]) -> None:
    try:
        metadata.distribution("carl-bench")
    except metadata.PackageNotFoundError:
        pass
    else:
        return
    for name in names:
        env_id = f"carl/{name}-v0"
        if env_id not in gymnasium.registry:
            # What is wrapped is made with Gymnasium's own wrappers; contexts widen its space.
            gymnasium.register(
                env_id,
                entry_point=f"hud_mcp.plugins.gymnasium.carl:{name}",
                order_enforce=False,
                disable_env_checker=True,
            )


class _WhenGymnasiumLoads(MetaPathFinder):
    """Registers once Gymnasium's module has run; finds nothing itself."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find Gymnasium as the other finders do, and have it run with what follows it."""
        if fullname != "gymnasium":
            return None
        others = [finder for finder in sys.meta_path if finder is not self]
        found = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((each for each in found if each is not None), None)
        loader: Any = None if spec is None else spec.loader
        if loader is not None:
            run = loader.exec_module

            def run_and_register(module: ModuleType) -> None:
                run(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                    _register(module, self._names)

            loader.exec_module = run_and_register
        return spec
