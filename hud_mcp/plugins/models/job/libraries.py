"""Models' libraries, each loaded when it is first used. They come with ``hud-mcp[agents]``."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    import genai_prices
    from pydantic_ai import exceptions, messages
    from pydantic_ai.direct import model_request
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.anthropic import AnthropicProvider
    from pydantic_ai.providers.google import GoogleProvider
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
    from pydantic_ai.tools import ToolDefinition

    from hud_mcp.plugins.models.job.wire import WireClient
else:
    __getattr__ = lazy_names(
        __name__,
        "genai_prices",
        "pydantic_ai.exceptions",
        "pydantic_ai.messages",
        "pydantic_ai.direct:model_request",
        "pydantic_ai.models:ModelRequestParameters",
        "pydantic_ai.models.anthropic:AnthropicModel",
        "pydantic_ai.models.google:GoogleModel",
        "pydantic_ai.models.openai:OpenAIChatModel",
        "pydantic_ai.models.openai:OpenAIResponsesModel",
        "pydantic_ai.providers.anthropic:AnthropicProvider",
        "pydantic_ai.providers.google:GoogleProvider",
        "pydantic_ai.providers.openai:OpenAIProvider",
        "pydantic_ai.providers.openai_compatible:OpenAICompatibleProvider",
        "pydantic_ai.tools:ToolDefinition",
        "hud_mcp.plugins.models.job.wire:WireClient",
    )

__all__ = [
    "AnthropicModel",
    "AnthropicProvider",
    "GoogleModel",
    "GoogleProvider",
    "ModelRequestParameters",
    "OpenAIChatModel",
    "OpenAICompatibleProvider",
    "OpenAIProvider",
    "OpenAIResponsesModel",
    "ToolDefinition",
    "WireClient",
    "exceptions",
    "genai_prices",
    "messages",
    "model_request",
]
