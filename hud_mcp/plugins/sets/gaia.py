"""GAIA: questions with one short answer, some with a file; gated, so each user has a copy."""

import io
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, cast

import orjson

from hud_mcp.environment.task import Task
from hud_mcp.errors import InvalidTask, SourceNotFound
from hud_mcp.loading import libraries
from hud_mcp.loading.choice import Choice, given_file, row, row_id
from hud_mcp.loading.wording import GAIA_ASKED
from hud_mcp.plugins.sets.download import NotPublished
from hud_mcp.plugins.sets.files import Files, keep_file

__all__ = ["read"]

GYM = "gaia"
_YEAR = "2023"
_SPLITS = ("validation", "test")


def read(files: Files, choice: Choice) -> list[Task]:
    """The rows of both splits; those of `test` have no answers, and cannot be graded.

    Raises:
        SourceNotFound: A file cannot be had.
        InvalidTask: One is not what GAIA publishes.
    """
    tasks: list[Task] = []
    for split in _SPLITS:
        if (choice.part or "").casefold() in _SPLITS and choice.part != split:
            continue
        for number, raw in enumerate(_rows(files, split), 1):
            try:
                tasks.append(_task(files, raw, split, choice))
            except (KeyError, TypeError, ValueError) as exc:
                raise InvalidTask(
                    f"{_YEAR}/{split}/metadata.jsonl:{number}: this is not a row of GAIA: {exc!r}."
                ) from exc
    if not tasks:
        raise SourceNotFound(f"GAIA: there are no rows in {_YEAR} of {files.published.page}.")
    return tasks


def _rows(files: Files, split: str) -> Iterable[Mapping[str, Any]]:
    """The rows of a split; none of `test` where only the other one is there."""
    name = f"{_YEAR}/{split}/metadata.jsonl"
    try:
        data = files.read(name)
    except NotPublished as exc:
        parquet = f"{_YEAR}/{split}/metadata.parquet"
        if (table := files.read_optional(parquet)) is None:
            if split == _SPLITS[0]:
                raise SourceNotFound(f"{exc} Nor is there {parquet}.") from exc
            return []
        return _from_parquet(table)
    try:
        return [
            cast("dict[str, Any]", orjson.loads(line)) for line in data.splitlines() if line.strip()
        ]
    except orjson.JSONDecodeError as exc:
        raise InvalidTask(f"{name}: this is not JSON Lines: {exc}.") from exc


def _from_parquet(data: bytes) -> list[Mapping[str, Any]]:
    return libraries.parquet.read_table(io.BytesIO(data)).to_pylist()


def _task(files: Files, raw: Mapping[str, Any], split: str, choice: Choice) -> Task:
    name, truth = str(raw.get("file_name") or ""), raw.get("Final answer")
    level = int(raw["Level"])
    gradable = truth not in (None, "", "?")
    parts: list[str] = [str(raw["Question"])]
    setup: list[list[Any]] = []
    if name:
        kept = keep_file(files.path(f"{_YEAR}/{split}/{name}"))
        call, told = given_file(PurePosixPath(name).name, kept, in_shell=choice.gym in (None, GYM))
        setup.append(call)
        parts.append(told)
    return row(
        row_id("gaia", raw["task_id"]),
        choice.gym or GYM,
        "\n\n".join([*parts, GAIA_ASKED]),
        parts=[f"level{level}", split],
        split=split,
        source=f"{_YEAR}/{split} of the data set gaia-benchmark/GAIA, {raw['task_id']}",
        setup=setup,
        evaluate=[["gaia_match", str(truth)]],
        not_runnable=None if gradable else "its answer is not published",
        metadata={"level": level, "needs": ["network"]},
        config={"allow": ["*"]},
    )
