"""A template that runs: its generator, and the way to its prompt."""

from collections.abc import AsyncGenerator
from typing import Any, TypeAlias

from hud_mcp.errors import InvalidTemplate
from hud_mcp.template import Prompt, Template, read_prompt

__all__ = ["Play", "first_prompt"]

Play: TypeAlias = AsyncGenerator[Any, Any]
"""A template that runs on a world."""


async def first_prompt(play: Play, template: Template) -> Prompt:
    """Run a template to its prompt.

    Raises:
        InvalidTemplate: It has none.
    """
    try:
        value = await anext(play)
    except StopAsyncIteration:
        raise InvalidTemplate(
            f"{template.where}: {template.noun} ended without yielding a prompt."
        ) from None
    return read_prompt(value, where=template.where)
