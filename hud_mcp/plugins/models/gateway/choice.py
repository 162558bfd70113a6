"""The choice of a job's providers: by its options, its agent, and the keys that are set."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from hud_mcp.agents.kind import ANY_MODEL
from hud_mcp.plugins.models.gateway.keys import KEYS, Secret, find_key
from hud_mcp.plugins.models.options import ModelOptions
from hud_mcp.plugins.models.spending import Prices

__all__ = ["Choice", "Route", "choose"]

DIALECTS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("messages",),
    "openai": ("responses", "chat"),
    "google": ("gemini",),
    "openai-compatible": ("chat",),
}
"""The dialects that providers speak themselves."""

_ALL = ("messages", "chat", "responses", "gemini")
_MAY_SPEAK = {"openai-compatible": ("responses", "messages")}
"""The dialects that many engines speak; one that does not is asked in another."""

_ADDRESSES = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
    "google": "https://generativelanguage.googleapis.com",
}
_ADDRESS_VARIABLES = {
    "anthropic": "ANTHROPIC_BASE_URL",
    "openai": "OPENAI_BASE_URL",
    "google": "GOOGLE_GEMINI_BASE_URL",
}
_OWN = {"claude-code": "anthropic", "claude": "anthropic", "codex": "openai", "gemini": "google"}
"""The providers that programs ask by themselves; `acp:claude` is one, too."""

_SMALL = re.compile(
    r"claude-(?:3-5-)?haiku-[\w.-]+|gpt-[\d.]+-(?:mini|nano)[\w.-]*|gemini-[\d.]+-flash[\w.-]*"
)
"""Models that programs ask beside the one that they are told: for titles, routes and reviews."""


@dataclass(frozen=True)
class Route:
    """The provider of one dialect's requests.

    Attributes:
        options: The options of its model; the name's model is `*` for any.
        address: The address of its API; that of OpenAI's has a version.
        secret: Its key.
        replaces: Whether each request is for the options' model, whichever it names.
    """

    options: ModelOptions
    address: str
    secret: Secret = field(repr=False)
    replaces: bool

    @property
    def speaks(self) -> tuple[str, ...]:
        """The dialects that its provider speaks for certain."""
        return DIALECTS[self.options.provider]

    @property
    def may_speak(self) -> tuple[str, ...]:
        """The dialects that its provider is tried in before they are translated."""
        return _MAY_SPEAK.get(self.options.provider, ())

    def model_for(self, asked: str) -> str | None:
        """Return the model of a request that names one; None if it may not have that one."""
        own = self.options.model
        if self.replaces or own in (asked, ANY_MODEL):
            return own if self.replaces else asked
        return asked if _SMALL.fullmatch(asked) else None

    def prices_of(self, model: str) -> Prices:
        """Return the prices of a model of this provider."""
        name = f"{self.options.provider}:{model}"
        return Prices(self.options.model_copy(update={"name": name}))


@dataclass(frozen=True)
class Choice:
    """The routes of a job by their dialects; without any, `why_not` says why."""

    routes: Mapping[str, Route]
    why_not: str = ""

    @property
    def models(self) -> tuple[str, ...]:
        """The models that the job names."""
        found = dict.fromkeys(route.options.model for route in self.routes.values())
        return tuple(name for name in found if name != ANY_MODEL)


def choose(
    options: ModelOptions | None, agent: str | None, environ: Mapping[str, str] = os.environ
) -> Choice:
    """Choose the providers of an agent that is another process.

    Args:
        options: The model that is named, with its limits; None, or one of the name `*`, for each
            that the agent names.
        agent: The name of a program, perhaps with a model; None for a command or a function.
        environ: The environment with the keys and addresses.

    Raises:
        HudMcpError: The named model needs a key, and none is set.
    """
    if options is not None and options.name != ANY_MODEL:
        key = find_key(options.provider)
        return Choice(_routes(options.provider, options, key, environ, replaces=True))
    program, _, model = (agent or "").removeprefix("acp:").partition(":")
    own = _OWN.get(program)
    routes: dict[str, Route] = {}
    for provider in [own] if own else [*_ADDRESSES]:
        if any(environ.get(name, "").strip() for name in KEYS[provider]):
            named = (model if own else "") or ANY_MODEL
            limits = {} if options is None else options.model_dump(exclude={"name", "base_url"})
            found = ModelOptions(name=f"{provider}:{named}", **limits)
            key = find_key(provider)
            routes |= _routes(provider, found, key, environ, replaces=False)
    if routes:
        return Choice(routes)
    names = [name for provider in ([own] if own else [*_ADDRESSES]) for name in KEYS[provider]]
    return Choice({}, f"there is no key ({' or '.join(names)}) and no --model")


def _routes(
    provider: str,
    options: ModelOptions,
    key: Secret,
    environ: Mapping[str, str],
    *,
    replaces: bool,
) -> dict[str, Route]:
    variable = _ADDRESS_VARIABLES.get(provider, "")
    given = options.base_url or environ.get(variable, "").strip() or _ADDRESSES[provider]
    route = Route(options, given.rstrip("/"), key, replaces=replaces)
    # A model that is named answers every dialect; another one only in those of its provider.
    return dict.fromkeys(_ALL if replaces else DIALECTS[provider], route)
