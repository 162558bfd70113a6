"""Which sources are HUD environments: a server bridges them, and no process loads them."""

__all__ = ["is_bridged"]

_SCHEMES = ("tcp://", "hud:")


def is_bridged(source: str) -> bool:
    """Whether a source names a HUD environment: `tcp://host:port` or `hud:path/to/env.py`."""
    return source.startswith(_SCHEMES)
