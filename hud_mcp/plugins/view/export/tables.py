"""Tables: Parquet for training, and data frames of pandas or polars.

`trajectories`, `steps` and `turns` are joined by `trajectory_id`. A step's screenshot is a struct
of `bytes` and `path`, which Hugging Face `datasets` decodes as an image. Values of differing shape
(arguments, actions, info) are JSON text. `README.md` beside them is a dataset card.
"""

import importlib.util
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self, cast

import anyio.to_thread

from hud_mcp.base import __version__
from hud_mcp.errors import HudMcpError, NotInstalled
from hud_mcp.plugins.view.export import libraries
from hud_mcp.plugins.view.export.columns import COLUMNS, step_row, trajectory_row, turn_rows
from hud_mcp.plugins.view.export.exporting import Export, Output, Selection
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory

ROW_GROUP_BYTES = 16_000_000
"""Texts and pictures in a row group, before compression: a writer and a reader hold that much."""

ROW_GROUP_ROWS = 1000

_IMAGE_FEATURE = '{"info": {"features": {"screenshot": {"_type": "Image"}}}}'
"""The metadata with which Hugging Face `datasets` decodes the column."""


@asynccontextmanager
async def _write_parquet(output: Output) -> AsyncGenerator[Callable[[Trajectory], None]]:
    """Open the tables. Memory holds one trajectory and one group of rows, however large the job.

    Raises:
        NotInstalled: The extra `parquet` is needed.
    """
    arrow = _load_arrow()
    folder, selection = output.path, output.selection
    with (
        _Table(folder / "trajectories.parquet", "trajectories", arrow) as trajectories,
        _Table(folder / "steps.parquet", "steps", arrow) as steps,
        _Table(folder / "turns.parquet", "turns", arrow) as turns,
    ):

        def write(trajectory: Trajectory) -> None:
            trajectories.add(trajectory_row(trajectory, selection.job))
            for step in trajectory.steps:
                data = output.pictures.read(step.screenshot) if step.screenshot else None
                steps.add(step_row(trajectory, step, data))
            for row in turn_rows(trajectory):
                turns.add(row)

        yield write
    (folder / "README.md").write_text(_card(selection), encoding="utf-8")


export_parquet = Export("parquet", "three tables for training.", "folder", _write_parquet)


def _load_arrow() -> Any:
    try:
        _ = libraries.parquet
    except ImportError as exc:
        raise NotInstalled(
            "Parquet needs pyarrow, which is not installed; pip install 'hud-mcp[parquet]'."
        ) from exc
    return libraries.pyarrow


class _Table:
    """A writer of rows in groups of a bounded size."""

    def __init__(self, path: Path, name: str, arrow: Any) -> None:
        self._arrow = arrow
        fields = [
            arrow.field(c.name, _types(arrow)[c.type], metadata={"description": c.says})
            for c in COLUMNS[name]
        ]
        metadata = {"hud_mcp_version": __version__}
        if name == "steps":
            metadata["huggingface"] = _IMAGE_FEATURE
        self._schema = arrow.schema(fields, metadata=metadata)
        self._writer = arrow.parquet.ParquetWriter(path, self._schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_exc: object) -> None:
        if kind is None:
            self._flush()
        self._writer.close()

    def add(self, row: dict[str, Any]) -> None:
        self._rows.append(row)
        self._bytes += _size(row)
        if self._bytes >= ROW_GROUP_BYTES or len(self._rows) >= ROW_GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._arrow.Table.from_pylist(self._rows, self._schema))
        self._rows.clear()
        self._bytes = 0


def _types(arrow: Any) -> dict[str, Any]:
    text, whole = arrow.string(), arrow.int32()
    action = [("type", text), ("performed", arrow.bool_()), ("json", text)]
    return {
        "text": text,
        "json": text,
        "int": whole,
        "long": arrow.int64(),
        "number": arrow.float64(),
        "flag": arrow.bool_(),
        "time": arrow.timestamp("us", tz="UTC"),
        "actions": arrow.list_(arrow.struct(action)),
        "image": arrow.struct([("bytes", arrow.binary()), ("path", text)]),
        "longs": arrow.list_(arrow.int64()),
        "numbers": arrow.list_(arrow.float64()),
        "texts": arrow.list_(text),
    }


def _size(row: dict[str, Any]) -> int:
    texts = sum(len(v) for v in row.values() if isinstance(v, str))
    texts += sum(8 * len(cast("list[Any]", v)) for v in row.values() if isinstance(v, list))
    picture = row.get("screenshot")
    return texts + (len(picture["bytes"]) if picture else 0) + 200


def _card(selection: Selection) -> str:
    configs = "\n".join(
        f"- config_name: {name}\n  data_files: {name}.parquet"
        for name in ("steps", "trajectories", "turns")
    )
    tables = "\n\n".join(
        f"## {name}.parquet\n\n| column | type | what it holds |\n|---|---|---|\n"
        + "\n".join(f"| `{each.name}` | {each.type} | {each.says} |" for each in columns)
        for name, columns in COLUMNS.items()
    )
    return (
        f"---\nconfigs:\n{configs}\n---\n\n# {selection.id}\n\n"
        f"Written by hud-mcp {__version__}. The tables are joined by `trajectory_id`. The columns "
        "`task_json`, `receipt_json`, `info_json`, `error` and `log` may hold reference answers "
        "or a user's goal: they are not for an agent's eyes.\n\n"
        f"{tables}\n"
    )


_KNOWN = ("pandas", "polars")
_PANDAS = {"text": "string", "json": "string", "int": "Int32", "long": "Int64",
           "number": "Float64", "time": "datetime64[us, UTC]"}  # fmt: skip


async def job_dataframe(job: Job, library: str | None = None) -> Any:
    """Read a job's runs as a data frame with the columns of the table `trajectories`.

    Raises:
        NotInstalled: Neither pandas nor polars is there, or not the named one.
        HudMcpError: No such library is known.
        SourceNotFound: The store does not have this job.
        StoreFailed: The store cannot be read, or a row of the job is damaged.
    """
    if library is not None and library not in _KNOWN:
        raise HudMcpError(f"library={library!r}: give 'pandas' or 'polars', or leave it out.")
    names = _KNOWN if library is None else (library,)
    installed = next((name for name in names if importlib.util.find_spec(name) is not None), None)
    if installed is None:
        raise NotInstalled(
            f"A data frame needs {' or '.join(names)}: pip install {names[0]}. `hud-mcp export` "
            "writes JSON Lines and Parquet without it."
        )
    found = await job.load_trajectories()
    make = _pandas if installed == "pandas" else _polars
    return await anyio.to_thread.run_sync(make, [trajectory_row(each, job) for each in found])


def _pandas(rows: Sequence[dict[str, Any]]) -> Any:
    series = {
        column.name: libraries.pandas.Series(
            [row[column.name] for row in rows], dtype=_PANDAS[column.type]
        )
        for column in COLUMNS["trajectories"]
    }
    return libraries.pandas.DataFrame(series)


def _polars(rows: Sequence[dict[str, Any]]) -> Any:
    polars = libraries.polars
    types = {
        "text": polars.String, "json": polars.String, "int": polars.Int32, "long": polars.Int64,
        "number": polars.Float64, "time": polars.Datetime("us", "UTC"),
    }  # fmt: skip
    schema = {column.name: types[column.type] for column in COLUMNS["trajectories"]}
    return polars.DataFrame(rows, schema=schema)
