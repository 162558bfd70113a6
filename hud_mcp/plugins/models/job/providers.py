"""The providers of models: their keys in the environment, and the making of their models."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hud_mcp.base.text import mask
from hud_mcp.errors import HudMcpError, NotInstalled
from hud_mcp.plugins.models.job import libraries
from hud_mcp.plugins.models.job.options import ModelOptions

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from hud_mcp.plugins.models.job.wire import WireClient

__all__ = ["KEYS", "Secret", "find_key", "make_model", "need_libraries"]

KEYS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "openai-compatible": ("OPENAI_COMPATIBLE_API_KEY",),
}
"""Environment variables that hold a provider's key; the first that is set counts."""

_NEEDS_NONE = "openai-compatible"
"""A server of one's own often takes no key."""


@dataclass(frozen=True)
class Secret:
    """A provider's key; empty if none is needed."""

    value: str = field(repr=False)

    def masked(self, text: str) -> str:
        """Return a text without the key, which a provider may have written into it."""
        return mask(text, self.value, "[the key]")


def need_libraries() -> None:
    """Raise `NotInstalled`, with the command to install them, if the libraries are missing."""
    try:
        _ = (libraries.model_request, libraries.genai_prices)
    except ImportError:
        raise _not_installed() from None


def find_key(provider: str) -> Secret:
    """Return a provider's key, or raise a `HudMcpError` that names the variable to set."""
    names = KEYS[provider]
    found = next((value for name in names if (value := os.environ.get(name, "").strip())), "")
    if not found and provider != _NEEDS_NONE:
        raise HudMcpError(
            f"{provider} needs a key, and {' or '.join(names)} is not set. Set it in the "
            "environment of this command. The record does not keep it."
        )
    return Secret(found)


def make_model(options: ModelOptions, key: Secret, client: "WireClient | None" = None) -> "Model":
    """Make a model that can be asked, or raise `NotInstalled` without its library."""
    try:
        return _MAKERS[options.provider](options, key.value, client)
    except ImportError:
        raise _not_installed() from None


def _anthropic(options: ModelOptions, key: str, client: "WireClient | None") -> "Model":
    provider = libraries.AnthropicProvider(api_key=key, http_client=client, **_where(options))
    return libraries.AnthropicModel(options.model, provider=provider)


def _openai(options: ModelOptions, key: str, client: "WireClient | None") -> "Model":
    provider = libraries.OpenAIProvider(api_key=key, http_client=client, **_where(options))
    return libraries.OpenAIResponsesModel(options.model, provider=provider)


def _google(options: ModelOptions, key: str, client: "WireClient | None") -> "Model":
    provider = libraries.GoogleProvider(api_key=key, http_client=client, **_where(options))
    return libraries.GoogleModel(options.model, provider=provider)


def _compatible(options: ModelOptions, key: str, client: "WireClient | None") -> "Model":
    provider = libraries.OpenAICompatibleProvider(
        _NEEDS_NONE, base_url=options.base_url or "", api_key=key or None, http_client=client
    )
    return libraries.OpenAIChatModel(options.model, provider=provider)


def _where(options: ModelOptions) -> dict[str, Any]:
    return {} if options.base_url is None else {"base_url": options.base_url}


def _not_installed() -> NotInstalled:
    return NotInstalled(
        "A model as the agent needs more libraries: pip install 'hud-mcp[agents]'. Nothing was "
        "done."
    )


_MAKERS = {
    "anthropic": _anthropic,
    "openai": _openai,
    "google": _google,
    "openai-compatible": _compatible,
}
