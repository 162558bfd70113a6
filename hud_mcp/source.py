"""`load_environments`, where README had it; `hud_mcp.loading.source` is its home."""

from hud_mcp.loading.source import (
    load_environments,
)

__all__ = [
    "load_environments",
]
