"""What an environment may be made with: its name, its world, its policies."""

import inspect
import warnings
from collections.abc import Mapping
from typing import Any

from hud_mcp.environment.arguments import source_line
from hud_mcp.environment.world import WorldSpec
from hud_mcp.errors import InvalidEnvironment
from hud_mcp.values.needs import Needs

__all__ = [
    "REWARD_POLICIES",
    "check_hook",
    "check_name",
    "check_needs",
    "check_reward_policy",
    "check_v5_keywords",
    "check_world",
]

REWARD_POLICIES = ("hidden", "on_submit", "per_step")
"""Who sees the reward: nobody but the record, the agent at the end, the agent at each step."""

_NAME_CHARS = 64
_V5_KEYWORDS = frozenset(
    {
        "auth", "cache_expiration_seconds", "conflict_resolution", "dereference_schemas",
        "exclude_tags", "icons", "include_fastmcp_meta", "include_tags", "instructions",
        "lifespan", "mask_error_details", "middleware", "on_duplicate", "on_duplicate_prompts",
        "on_duplicate_resources", "on_duplicate_tools", "providers", "resource_prefix_format",
        "sampling_handler", "sampling_handler_behavior", "session_state_store",
        "strict_input_validation", "tasks", "tool_serializer", "tool_transformations", "tools",
        "transforms", "website_url",
    }
)  # fmt: skip
"""What HUD's Environment took before version 6, when it was an MCP server of FastMCP's."""


def check_hook(hook: Any, kind: str) -> None:
    """Refuse a hook that nobody could await; one that is no plain function is tried.

    Args:
        hook: What was decorated.
        kind: `initialize` or `shutdown`.

    Raises:
        InvalidEnvironment: It is not an async function.
    """
    if not callable(hook):
        raise InvalidEnvironment(
            f"@env.{kind} decorates an async function, not {hook!r:.60}. Write "
            f"`@env.{kind}` above `async def …():`."
        )
    plain = inspect.isfunction(hook) and hook.__name__ != "<lambda>"
    if plain and not inspect.iscoroutinefunction(inspect.unwrap(hook)):
        raise InvalidEnvironment(
            f"{source_line(hook)}: the {kind} hook {hook.__name__!r} is not async. Write "
            f"`async def {hook.__name__}():`."
        )


def check_name(name: Any, where: str) -> None:
    """Allow any line of text: HUD does, and MCP is given names that its hosts allow.

    Raises:
        InvalidEnvironment: It is none, or too long for the record.
    """
    is_line = isinstance(name, str) and name == name.strip() and name.isprintable()
    if is_line and 0 < len(name) <= _NAME_CHARS:
        return
    raise InvalidEnvironment(
        f"{where}: {name!r:.80} cannot name an environment; give a line of text without spaces "
        f"around it, at most {_NAME_CHARS} characters."
    )


def check_v5_keywords(given: Mapping[str, Any]) -> None:
    """Warn of keywords that HUD's environments took before version 6.

    Raises:
        TypeError: One was never a keyword.
    """
    unknown = sorted(set(given) - _V5_KEYWORDS)
    if unknown:  # as Python's own for a function without such a parameter
        raise TypeError(f"Environment.__init__() got an unexpected keyword argument {unknown[0]!r}")
    if given:
        names = ", ".join(sorted(given))
        warnings.warn(
            f"Environment() ignores {names}: HUD's environments take that no more since version 6.",
            DeprecationWarning,
            stacklevel=3,  # where the environment is made
        )


def check_world(world: Any, where: str) -> None:
    """Refuse what declares no world.

    Raises:
        InvalidEnvironment: It is a class, or no declaration of a world.
    """
    if isinstance(world, type):
        raise InvalidEnvironment(
            f"{where}: world={world.__name__} is a class; write world={world.__name__}(…)."
        )
    if world is not None and not isinstance(world, WorldSpec):
        raise InvalidEnvironment(
            f"{where}: {world!r} is not a world; give what declares one, such as Browser() or "
            "Shell(). A world of your own is declared by a class that derives from WorldSpec."
        )


def check_needs(needs: Any, where: str) -> None:
    """Refuse what does not say what a session needs.

    Raises:
        InvalidEnvironment: It is something else.
    """
    if needs is not None and not isinstance(needs, Needs):
        raise InvalidEnvironment(
            f"{where}: needs={needs!r} says no needs; write needs=Needs(cpus=2, memory_mb=1000)."
        )


def check_reward_policy(reward: str | None, where: str) -> None:
    """Refuse what is not a reward policy.

    Raises:
        InvalidEnvironment: There is no such policy.
    """
    if reward is not None and reward not in REWARD_POLICIES:
        raise InvalidEnvironment(
            f"{where}: reward={reward!r} is not a reward policy; choose one of "
            f"{', '.join(REWARD_POLICIES)}."
        )
