"""The sampler, where CARL has it."""

from hud_mcp.carl.sampler import ContextSampler

__all__ = ["ContextSampler"]
