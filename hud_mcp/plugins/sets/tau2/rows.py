"""tau2-bench: rows of businesses, each with the files that its sessions begin with."""

import gzip
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import orjson

from hud_mcp.environment.task import Task
from hud_mcp.errors import InvalidTask, SourceNotFound
from hud_mcp.loading.public import Choice
from hud_mcp.plugins.sets.download import NotPublished
from hud_mcp.plugins.sets.files import Files, keep_bytes
from hud_mcp.plugins.sets.imports import ImportedSet, as_tasks, json_rows, row_id

_TITLE = "tau2"
_TOP = "data/tau2/domains"
_DOMAINS = ("retail", "airline", "mock")
"""The businesses whose tools `environments/tau2` has."""
_HAS_USER_DB = ("mock",)
_MOST_BYTES = 256 * 1024**2
"""Of one file, unpacked: a short archive may hold much."""


def read(files: Files, choice: Choice) -> list[Task]:
    """Read the rows of each business that the files have, or of the named one."""
    named = [each for each in _DOMAINS if each == (choice.part or "").casefold()]
    tasks = [task for each in named or _DOMAINS for task in _domain(files, each)]
    if not tasks:
        looked = " or ".join(f"{each}/tasks.json" for each in named or _DOMAINS)
        told = f"tau2: there is no {looked} with db.json and policy.md beside it. Get "
        raise SourceNotFound(f"{told}{files.published.page}.")
    return tasks


def _domain(files: Files, name: str) -> list[Task]:
    rows = _content(files, name, "tasks.json")
    db = _content(files, name, "db.json")
    policy = _content(files, name, "policy.md", "policy.txt")
    if rows is None or db is None or policy is None:
        files.notes.append(f"{name} is left out: its files are not there.")
        return []
    user_db = _content(files, name, "user_db.json") if name in _HAS_USER_DB else None
    read_rows = list(json_rows(rows, f"{_TOP}/{name}/tasks.json", _TITLE))
    try:
        bundle = {
            "db": orjson.loads(db),
            "user_db": orjson.loads(user_db or b"{}"),
            "policy": policy.decode(),
            "tasks": {str(raw["id"]): raw for _, raw in read_rows},
        }
        splits = orjson.loads(_content(files, name, "split_tasks.json") or b"{}")
        of = {str(key): part for part in ("base", "train", "test") for key in splits.get(part, ())}
    except (ValueError, TypeError, KeyError, AttributeError) as exc:
        raise InvalidTask(f"{_TOP}/{name}: these are not files of tau2: {exc!r}.") from exc
    kept = keep_bytes(orjson.dumps(bundle))
    return as_tasks(read_rows, partial(_task, files, name, kept, of), _TITLE)


def _content(files: Files, domain: str, *names: str) -> bytes | None:
    """Return a file of a business, unpacked; None where there is none of these names."""
    for name in (each for plain in names for each in (plain, f"{plain}.gz")):
        with suppress(NotPublished):
            path = files.path(f"{_TOP}/{domain}/{name}")
            if path.parent.name != domain:  # a file that lies elsewhere is another business's
                continue
            if path.suffix != ".gz":
                return path.read_bytes()
            with gzip.open(path) as packed:
                data = packed.read(_MOST_BYTES + 1)
            if len(data) > _MOST_BYTES:
                raise SourceNotFound(f"{path} has over {_MOST_BYTES >> 20} MiB unpacked.")
            return data
    return None


def _task(
    files: Files, domain: str, kept: str, splits: Mapping[str, str], _: int, raw: Any
) -> Task:
    criteria: dict[str, Any] = raw.get("evaluation_criteria") or {}
    key, basis = str(raw["id"]), criteria.get("reward_basis") or ()
    split = splits.get(key, "base")
    is_judged = "NL_ASSERTION" in basis and bool(criteria.get("nl_assertions"))
    kind = {"needs": ["judge"]} if is_judged else {}
    return Task.model_validate(
        {
            "id": row_id("tau2", domain, key),
            "env": f"tau2-{domain}",
            "template": "customer",
            "args": {"row": key, "files": kept},
            "metadata": {"split": split, "parts": list(dict.fromkeys((domain, split))), **kind},
            "source": f"{files.published.credit(f'{_TOP}/{domain}/tasks.json')}, row {key}",
        }
    )


SET = ImportedSet(_TITLE, read)
