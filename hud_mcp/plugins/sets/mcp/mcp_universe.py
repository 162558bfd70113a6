"""MCP-Universe: questions over MCP servers, graded by chains of functions, or by a model."""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

from hud_mcp.environment.task import Task
from hud_mcp.loading.public import Choice
from hud_mcp.plugins.sets.files import Files
from hud_mcp.plugins.sets.imports import ImportedSet, as_tasks, json_rows, row, row_id
from hud_mcp.plugins.sets.mcp import places
from hud_mcp.plugins.sets.mcp.places import field_of

_TITLE = "MCP-Universe"
_FILES = "FILESYSTEM_DIRECTORY"
"""The benchmark's variable for the folder of files; `--host` gives it, as it does others."""
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_CHAIN = re.compile(r"(\s*(json|raw|len|foreach|list|get\([^(),]+\))\s*(->|$))+")
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "in", "contain"))
_JUDGE = ".llm_as_a_judge"
"""The environment `mcp-filesystem` has these steps, comparisons and the judge."""


def read(files: Files, choice: Choice) -> list[Task]:
    """Read each JSON file of tasks in a copy of the repository."""
    folder = places.own_folder(files)
    inner = folder / "mcpuniverse" / "benchmark"
    top = inner if inner.is_dir() else folder
    missing = f"it needs the files of its server: --host {_FILES}=DIR"
    start = places.begin(choice.hosts.get(_FILES), missing)
    tasks: list[Task] = []
    for path in sorted(top.rglob("*.json")):
        make = partial(_task, (files, choice, start, path.relative_to(top)))
        tasks += as_tasks(_rows(path, top, choice), make, _TITLE)
    return tasks or places.no_rows(files, top, "files of JSON with mcp_servers and evaluators")


def _rows(path: Path, top: Path, choice: Choice) -> Iterator[tuple[str, Any]]:
    values = {name: json.dumps(value)[1:-1] for name, value in choice.hosts.items()}
    text = _VARIABLE.sub(lambda name: values.get(name[1], name[0]), places.text_of(path, top))
    for where, raw in json_rows(text.encode(), str(path), _TITLE):
        if isinstance(raw, dict) and {"evaluators", "mcp_servers"} & raw.keys():
            yield where, cast("Any", raw)  # other files are lists of servers, say


def _task(of: tuple[Files, Choice, places.Begin, Path], index: int, raw: dict[str, Any]) -> Task:
    files, choice, start, path = of
    question = asked = field_of(raw, "instruction" if "instruction" in raw else "question", str)
    servers = [field_of(each, "name", str) for each in field_of(raw, "mcp_servers", list, [])]
    evaluators = field_of(raw, "evaluators", list)
    env, setup, reasons = places.begin_over(servers, start, files, gym=choice.gym)
    prepares = [field_of(each, "prepare_func", str) for each in field_of(raw, "prepares", list, [])]
    unset = dict.fromkeys(_VARIABLE.findall(json.dumps([asked, evaluators])))
    more = [f"it needs --host {name}=VALUE" for name in unset]
    more += [f"it needs the preparation {name}" for name in prepares]
    more += [f"it needs the evaluator {name}" for each in evaluators if (name := _unknown(each))]
    if form := field_of(raw, "output_format", dict, {}):
        told = json.dumps(form, indent=2, ensure_ascii=False)
        question += f"\n\nAnswer with JSON of this form, and with nothing else:\n{told}"
    return row(
        row_id("mcp-universe", *path.with_suffix("").parts, raw.get("instance_id", index)),
        env,
        question,
        parts=list(dict.fromkeys((str(raw.get("category")), path.parent.name, *servers))),
        split="test",
        source=files.published.credit(path.as_posix()),
        setup=setup,
        evaluate=[["mcp_universe", evaluators, asked]],
        not_runnable="; ".join([*reasons, *more]) or None,
        metadata={"needs": ["judge"] * any(_JUDGE in str(each.get("op")) for each in evaluators)},
    )


def _unknown(each: Any) -> str:
    """Return the name of an evaluator that is not here, or has nothing to compare with."""
    func, op = field_of(each, "func", str), field_of(each, "op", str, "")
    if op.endswith(_JUDGE):
        return "" if field_of(field_of(each, "op_args", dict), "correct_answer", str) else op
    if not _CHAIN.fullmatch(func):
        return func or "without a function"
    known = op in ("", "=", "!=") or (op in _COMPARISONS and each.get("value") not in (None, ""))
    return "" if known else op


SET = ImportedSet(_TITLE, read)
