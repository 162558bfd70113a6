"""The properties of an environment that was made, and the reasons if it cannot be made."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hud_mcp.errors import HudMcpError, InvalidEnvironment, did_you_mean
from hud_mcp.plugins.gymnasium import carl, libraries
from hud_mcp.plugins.gymnasium.actions import ActionForm
from hud_mcp.plugins.gymnasium.carl.gym_setup import unbounded
from hud_mcp.plugins.gymnasium.known import Known
from hud_mcp.plugins.gymnasium.spaces import space_to_json
from hud_mcp.values.context import ContextSpace

_EXTRAS = {
    "ConfigSpace": "gymnasium", "gymnasium": "gymnasium", "mujoco": "mujoco", "numpy": "gymnasium",
    "pygame": "gymnasium",
}  # fmt: skip
"""The extra that brings a missing module, by the module."""

_SMALL = (
    "gymnasium.envs.classic_control.",
    "gymnasium.envs.toy_text.",
    "hud_mcp.plugins.gymnasium.carl.classic",
)
"""The modules of environments whose step is a few lines of arithmetic."""


@dataclass(frozen=True)
class Probe:
    """The properties of an environment that was made once."""

    form: ActionForm
    known: Known
    context_space: ContextSpace
    draws: bool
    draws_steps: bool
    is_quick: bool
    replayable: bool
    most_steps: int | None
    spaces: dict[str, Any] | None
    screen_fault: str | None


def is_mujoco(env_id: str) -> bool:
    """Whether an environment, maybe of somebody else, draws as Gymnasium's of MuJoCo do."""
    creator: Any = libraries.gymnasium.registry[env_id].entry_point
    if isinstance(creator, str):
        creator = libraries.load_env_creator(creator)
    kinds = getattr(creator, "__mro__", ())
    return any(kind.__module__.startswith("gymnasium.envs.mujoco.") for kind in kinds)


def spaces_to_json(env: Any) -> dict[str, Any] | None:
    """Return the spaces of actions and observations as JSON; None if they have no JSON form."""
    seen: Any = env.observation_space
    if isinstance(env, carl.CARLEnv):  # other contexts may lead beyond the default's bounds
        seen = libraries.spaces.Dict({**seen.spaces, env.state_key: unbounded(seen[env.state_key])})
    try:
        return {
            "action": space_to_json(env.action_space),
            "observation": space_to_json(seen),
        }
    except InvalidEnvironment:
        return None


def is_small(env: Any) -> bool:
    """Whether a step is some arithmetic of Gymnasium's, in wrappers that are its own or ours."""
    while (inner := getattr(env, "env", None)) is not None:
        if not type(env).__module__.startswith(
            ("gymnasium.wrappers.", "hud_mcp.plugins.gymnasium.carl.")
        ):
            return False
        env = inner
    return type(env).__module__.startswith(_SMALL)


def unknown(env_id: str, known_ids: Iterable[str]) -> InvalidEnvironment:
    """Return the error for an unknown id, with the ids that may have been meant."""
    hint = did_you_mean(env_id, known_ids)
    return InvalidEnvironment(
        f"Gymnasium has no environment {env_id!r}.{hint} Name one that is registered, "
        "`module:id` for one that a module registers, or a contextual one, such as CARLCartPole."
    )


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
