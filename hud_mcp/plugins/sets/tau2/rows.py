"""tau2-bench: rows of businesses, each with the files that its sessions begin with."""

import gzip
import re
import tomllib
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
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
_DOMAINS = ("retail", "airline", "telecom", "mock")
"""The businesses whose tools `environments/tau2` has."""
_HAS_USER_DB = ("mock", "telecom")
_POLICIES = {
    "telecom": {"main_policy": "main_policy", "tech_support_policy": "tech_support_manual"}
}
"""The files of policies that have several, by the names that they have for the agent."""
_MOST_KEY_CHARS = 160
_MOST_BYTES = 256 * 1024**2
"""Of one file, unpacked: a short archive may hold much."""


def read(files: Files, choice: Choice) -> list[Task]:
    """Read the rows of each business that the files have, or of the named one.

    Rows outside the benchmark's base split are read where a split of theirs is named.
    """
    part = (choice.part or "").casefold()
    named = [each for each in _DOMAINS if each == part]
    tasks = [task for each in named or _DOMAINS for task in _domain(files, each, part)]
    if not tasks:
        looked = " or ".join(f"{each}/tasks.json" for each in named or _DOMAINS)
        told = f"tau2: there is no {looked} with its database and policy beside it. Get "
        raise SourceNotFound(f"{told}{files.published.page}.")
    return tasks


def _domain(files: Files, name: str, part: str) -> list[Task]:
    rows = _content(files, name, "tasks.json")
    db, policy = _database(files, name, "db"), _policy(files, name)
    if rows is None or db is None or policy is None:
        files.notes.append(f"{name} is left out: its files are not there.")
        return []
    read_rows = list(json_rows(rows, f"{_TOP}/{name}/tasks.json", _TITLE))
    try:
        splits = orjson.loads(_content(files, name, "split_tasks.json") or b"{}")
        of = {each: set(map(str, keys)) for each, keys in splits.items()}
        base = of.get("base") or {str(raw["id"]) for _, raw in read_rows}
        wanted = base if of.get(part, base) <= base else of[part]
        chosen = [(where, raw) for where, raw in read_rows if str(raw["id"]) in wanted]
        user_db = _database(files, name, "user_db") if name in _HAS_USER_DB else None
        bundle = {
            "db": db,
            "user_db": user_db or {},
            "policy": policy,
            "tasks": {str(raw["id"]): raw for _, raw in chosen},
        }
    except (ValueError, TypeError, KeyError, AttributeError) as exc:
        raise InvalidTask(f"{_TOP}/{name}: these are not files of tau2: {exc!r}.") from exc
    kept = keep_bytes(orjson.dumps(bundle))
    return as_tasks(chosen, partial(_task, files, name, kept, of), _TITLE)


def _database(files: Files, domain: str, name: str) -> Any:
    try:
        data = _content(files, domain, f"{name}.json")
        if data is not None:
            return orjson.loads(data)
        data = _content(files, domain, f"{name}.toml")
        return None if data is None else tomllib.loads(data.decode())
    except ValueError as exc:
        raise InvalidTask(f"{_TOP}/{domain}: {name} is no database of tau2: {exc}.") from exc


def _policy(files: Files, domain: str) -> str | None:
    """Return the policy of a business; None where a file of it is missing."""
    several = _POLICIES.get(domain, {"": "policy"})
    texts = {tag: _content(files, domain, f"{of}.md", f"{of}.txt") for tag, of in several.items()}
    told = [
        f"<{tag}>\n{text.decode()}\n</{tag}>" if tag else text.decode()
        for tag, text in texts.items()
        if text is not None
    ]
    return "\n".join(told) if len(told) == len(several) else None


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
    files: Files, domain: str, kept: str, splits: Mapping[str, Collection[str]], _: int, raw: Any
) -> Task:
    criteria: dict[str, Any] = raw.get("evaluation_criteria") or {}
    key, basis = str(raw["id"]), criteria.get("reward_basis") or ()
    within = [each for each in ("test", "train", "base", *splits) if key in splits.get(each, ())]
    split = next(iter(within), "base")
    is_judged = "NL_ASSERTION" in basis and bool(criteria.get("nl_assertions"))
    kind = {"needs": ["judge"]} if is_judged else {}
    parts = list(dict.fromkeys((domain, split, *within)))
    return Task.model_validate(
        {
            "id": row_id("tau2", domain, _short(key)),
            "env": f"tau2-{domain}",
            "template": "customer",
            "args": {"row": key, "files": kept},
            "metadata": {"split": split, "parts": parts, **kind},
            "source": f"{files.published.credit(f'{_TOP}/{domain}/tasks.json')}, row {key}",
        }
    )


def _short(key: str) -> str:
    """Return a row's key without brackets, as short as an id, and still of this row alone."""
    plain = re.sub(r"[^\w.-]+", "-", key).strip("-")
    if len(plain) <= _MOST_KEY_CHARS:
        return plain
    return f"{plain[:_MOST_KEY_CHARS]}-{sha256(key.encode()).hexdigest()[:8]}"


SET = ImportedSet(_TITLE, read)
