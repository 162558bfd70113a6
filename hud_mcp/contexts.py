"""Contexts for tasks, where README had them; `hud_mcp.loading.contexts` is their home."""

from hud_mcp.loading.contexts import (
    NamedContext,
    parse_sample,
    read_contexts,
    sample_contexts,
    split_of,
    spread,
)

__all__ = [
    "NamedContext",
    "parse_sample",
    "read_contexts",
    "sample_contexts",
    "split_of",
    "spread",
]
