"""Models as agents: a model gets the tools of any client, the prompt, and the screen's size.

Here are the names of models' libraries, which come with `hud-mcp[agents]`; each loads when it is
first used.
"""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    import genai_prices as genai_prices
    from pydantic_ai import exceptions as exceptions
    from pydantic_ai import messages as messages
    from pydantic_ai.direct import model_request as model_request
    from pydantic_ai.direct import model_request_stream as model_request_stream
    from pydantic_ai.models import ModelRequestParameters as ModelRequestParameters
    from pydantic_ai.models.anthropic import AnthropicModel as AnthropicModel
    from pydantic_ai.models.google import GoogleModel as GoogleModel
    from pydantic_ai.models.openai import OpenAIChatModel as OpenAIChatModel
    from pydantic_ai.models.openai import OpenAIResponsesModel as OpenAIResponsesModel
    from pydantic_ai.output import OutputObjectDefinition as OutputObjectDefinition
    from pydantic_ai.providers.anthropic import AnthropicProvider as AnthropicProvider
    from pydantic_ai.providers.google import GoogleProvider as GoogleProvider
    from pydantic_ai.providers.openai import OpenAIProvider as OpenAIProvider
    from pydantic_ai.providers.openai_compatible import (
        OpenAICompatibleProvider as OpenAICompatibleProvider,
    )
    from pydantic_ai.tools import ToolDefinition as ToolDefinition
else:
    __getattr__ = lazy_names(__name__)
