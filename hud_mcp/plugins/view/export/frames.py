"""The runs of a job as a data frame of pandas or polars, whichever is there."""

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

from hud_mcp.errors import HudMcpError, NotInstalled
from hud_mcp.plugins.view.export import libraries
from hud_mcp.plugins.view.export.columns import COLUMNS, trajectory_row
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory

__all__ = ["find_library"]

Make = Callable[[Job, Sequence[Trajectory]], Any]

_KNOWN = ("pandas", "polars")
_PANDAS = {"text": "string", "json": "string", "int": "Int32", "long": "Int64",
           "number": "Float64", "time": "datetime64[us, UTC]"}  # fmt: skip


def find_library(wanted: str | None) -> Make:
    """What makes data frames.

    Args:
        wanted: `pandas` or `polars`; None for what is installed, pandas first.

    Raises:
        NotInstalled: There is neither, or not the one that is wanted.
        HudMcpError: There is no such library.
    """
    if wanted is not None and wanted not in _KNOWN:
        raise HudMcpError(f"library={wanted!r}: give 'pandas' or 'polars', or leave it out.")
    names = _KNOWN if wanted is None else (wanted,)
    for name in names:
        if importlib.util.find_spec(name) is not None:
            return _pandas if name == "pandas" else _polars
    raise NotInstalled(
        f"A data frame needs {' or '.join(names)}: pip install {names[0]}. `hud-mcp export` writes "
        "JSON Lines and Parquet without it."
    )


def _pandas(job: Job, found: Sequence[Trajectory]) -> Any:
    rows = [trajectory_row(each, job) for each in found]
    columns = COLUMNS["trajectories"]
    series = {
        column.name: libraries.pandas.Series(
            [row[column.name] for row in rows], dtype=_PANDAS[column.type]
        )
        for column in columns
    }
    return libraries.pandas.DataFrame(series)


def _polars(job: Job, found: Sequence[Trajectory]) -> Any:
    polars = libraries.polars
    types = {
        "text": polars.String, "json": polars.String, "int": polars.Int32, "long": polars.Int64,
        "number": polars.Float64, "time": polars.Datetime("us", "UTC"),
    }  # fmt: skip
    schema = {column.name: types[column.type] for column in COLUMNS["trajectories"]}
    return polars.DataFrame([trajectory_row(each, job) for each in found], schema=schema)
