"""What a job's page shows of what its runs took: time, steps, tokens and cost."""

from collections.abc import Iterable
from dataclasses import asdict

from hud_mcp.analysis.groups import TimedRun
from hud_mcp.analysis.spending import spending_of
from hud_mcp.plugins.view.web.values import Json

__all__ = ["spending_data"]


def spending_data(runs: Iterable[TimedRun]) -> Json | None:
    """What runs took; None where none has ended.

    Args:
        runs: Those of a job.
    """
    found = spending_of(runs)
    return None if found is None else asdict(found)
