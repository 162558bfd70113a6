"""Reward by context, where README had it; `hud_mcp.analysis.generalisation` is its home."""

from hud_mcp.analysis.generalisation import (
    Bin,
    ContextualRun,
    FeatureRewards,
    Gap,
    Generalisation,
    SplitRewards,
    generalisation,
)

__all__ = [
    "Bin",
    "ContextualRun",
    "FeatureRewards",
    "Gap",
    "Generalisation",
    "SplitRewards",
    "generalisation",
]
