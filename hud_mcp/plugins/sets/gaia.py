"""GAIA: questions with one short answer, some with a file; gated, so each user has a copy."""

import io
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from hud_mcp.base import libraries
from hud_mcp.environment.task import Task
from hud_mcp.errors import SourceNotFound
from hud_mcp.loading.protocols import Conduct, Protocol
from hud_mcp.loading.public import Choice
from hud_mcp.plugins.sets.download import NotPublished
from hud_mcp.plugins.sets.files import Files, keep_file
from hud_mcp.plugins.sets.imports import ImportedSet, as_tasks, given_file, json_rows, row, row_id

_TITLE = "GAIA"
_GYM = "gaia"
_ASKED = "Answer with nothing but that: a number, a few words, or a list with commas."
_PUBLISHED_PROMPT = (
    "You are a general AI assistant. I will ask you a question. Report your thoughts, and finish "
    "your answer with the following template: FINAL ANSWER: [YOUR FINAL ANSWER]. YOUR FINAL ANSWER "
    "should be a number OR as few words as possible OR a comma separated list of numbers and/or "
    "strings. If you are asked for a number, don't use comma to write your number neither use "
    "units such as $ or percent sign unless specified otherwise. If you are asked for a string, "
    "don't use articles, neither abbreviations (e.g. for cities), and write the digits in plain "
    "text unless specified otherwise. If you are asked for a comma separated list, apply the above "
    "rules depending of whether the element to be put in the list is a number or a string."
)
"""The prompt of the benchmark's authors."""
_YEAR = "2023"
_SPLITS = ("validation", "test")


def read(files: Files, choice: Choice) -> list[Task]:
    """Read the rows of both splits. Those of `test` have no answers, and cannot be graded."""
    tasks: list[Task] = []
    for split in _SPLITS:
        if (choice.part or "").casefold() in _SPLITS and choice.part != split:
            continue
        rows = _rows(files, split)
        tasks += as_tasks(rows, partial(_task, files, split, choice), _TITLE)
    if not tasks:
        raise SourceNotFound(f"GAIA: there are no rows in {_YEAR} of {files.published.page}.")
    return tasks


def _rows(files: Files, split: str) -> Iterable[tuple[str, Any]]:
    """Read the rows of a split, each after its place; none of `test` if a copy lacks that split."""
    name = f"{_YEAR}/{split}/metadata.jsonl"
    try:
        data = files.read(name)
    except NotPublished as exc:
        parquet = f"{_YEAR}/{split}/metadata.parquet"
        if (table := files.read_optional(parquet)) is None:
            if split == _SPLITS[0]:
                raise SourceNotFound(f"{exc} Nor is there {parquet}.") from exc
            return []
        rows = libraries.parquet.read_table(io.BytesIO(table)).to_pylist()
        return [(f"{parquet}, row {index}", raw) for index, raw in enumerate(rows)]
    return json_rows(data, name, _TITLE)


def _task(files: Files, split: str, choice: Choice, _: int, raw: Mapping[str, Any]) -> Task:
    name, truth = str(raw.get("file_name") or ""), raw.get("Final answer")
    level = int(raw["Level"])
    gradable = truth not in (None, "", "?")
    parts: list[str] = [str(raw["Question"])]
    setup: list[list[Any]] = []
    if name:
        kept = keep_file(files.path(f"{_YEAR}/{split}/{name}"))
        call, told = given_file(PurePosixPath(name).name, kept, in_shell=choice.gym in (None, _GYM))
        setup.append(call)
        parts.append(told)
    return row(
        row_id("gaia", raw["task_id"]),
        choice.gym or _GYM,
        "\n\n".join([*parts, _ASKED]),
        parts=[f"level{level}", split],
        split=split,
        source=f"{_YEAR}/{split} of the data set gaia-benchmark/GAIA, {raw['task_id']}",
        setup=setup,
        evaluate=[["gaia_match", str(truth)]],
        not_runnable=None if gradable else "its answer is not published",
        metadata={"level": level, "needs": ["network"]},
        config={"allow": ["*"]},
    )


def _as_published(task: Task, conduct: Conduct) -> Task:
    """Return a row in its authors' wording, graded by the text after FINAL ANSWER."""
    del conduct  # no model judges
    begun = (task.prompt or "").removeprefix(_PUBLISHED_PROMPT).strip()
    asked = begun.removesuffix(_ASKED).rstrip()
    call = task.evaluate[0].model_copy(update={"function": "gaia_final_answer"})
    prompt = f"{_PUBLISHED_PROMPT}\n\n{asked}"
    return task.model_copy(update={"prompt": prompt, "evaluate": (call,)})


SET = ImportedSet(_TITLE, read)

PROTOCOL = Protocol(
    _TITLE,
    ("gaia_match", "gaia_final_answer"),
    as_published=_as_published,
    parts=("level1", "level2", "level3"),
)
