"""Providers' own computer tools, as pure functions for a loop of your own.

`read_…` returns a call as actions, `…_result` is the provider's result, `…_tool` its entry of the
request. A `Frame` has the two sizes of the screen.
"""

from hud_mcp.plugins.models.computer_use.anthropic import (
    ANTHROPIC_BETAS,
    AnthropicComputer,
    anthropic_computer_result,
    anthropic_computer_tool,
    read_anthropic_computer,
)
from hud_mcp.plugins.models.computer_use.browser_toolset import (
    Tab,
    anthropic_browser_result,
    anthropic_browser_tool,
    read_anthropic_browser,
)
from hud_mcp.plugins.models.computer_use.frame import Frame, Wanted
from hud_mcp.plugins.models.computer_use.gemini import (
    gemini_computer_result,
    gemini_computer_tool,
    gemini_frame,
    read_gemini_computer,
)
from hud_mcp.plugins.models.computer_use.openai import (
    openai_computer_result,
    openai_computer_tool,
    read_openai_computer,
)

__all__ = [
    "ANTHROPIC_BETAS",
    "AnthropicComputer",
    "Frame",
    "Tab",
    "Wanted",
    "anthropic_browser_result",
    "anthropic_browser_tool",
    "anthropic_computer_result",
    "anthropic_computer_tool",
    "gemini_computer_result",
    "gemini_computer_tool",
    "gemini_frame",
    "openai_computer_result",
    "openai_computer_tool",
    "read_anthropic_browser",
    "read_anthropic_computer",
    "read_gemini_computer",
    "read_openai_computer",
]
