"""Tasksets by name or path, as `load_taskset` of the HUD SDK has them."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import anyio.to_thread

from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import SourceNotFound
from hud_mcp.loading import libraries
from hud_mcp.loading.choice import Choice
from hud_mcp.loading.published import Published, find_published
from hud_mcp.loading.sets import find_sets
from hud_mcp.loading.source import find_taskset

__all__ = ["load_taskset"]

Report = Callable[[str], None]


async def load_taskset(
    name: str | Path,
    *,
    split: str | None = None,
    hosts: Mapping[str, str] | None = None,
    gym: str | None = None,
    seed: int = 0,
    size: int = 100,
    refresh: bool = False,
    report: Report | None = None,
) -> Taskset:
    """Load a taskset.

    Args:
        name: A shipped set (`quickstart`), or `all` that need nothing more; a file of tasks
            (`.jsonl`, `.json`, `.py`), a folder of such files, a name whose file is in the
            working folder, an address of a file, or a public set that people know, whole or in
            part: `WebVoyager`, `GAIA-level1`, `ReasoningGym-leg_counting`. A public set is
            fetched once, into the user's cache; `HUD_MCP_DATASETS`, a folder or an address,
            stands for its published place.
        split: Only the rows of one split or difficulty, such as `validation` or `hard`.
        hosts: Replacements of hosts or placeholders in the rows of a public set.
        gym: The environment of the rows, for a public set that names none.
        seed: The seed of a generated set.
        size: The number of rows of a generated set.
        refresh: Whether to fetch files again, and accept changes.
        report: Gets lines about the progress and about remarks for people.

    Raises:
        SourceNotFound: There is none, or a file cannot be had; the text lists what there is, or
            says where the file comes from and where to put it.
        InvalidTask: Naming the file, the line and the field of the first bad row; or there is no
            such part or split.
        InvalidEnvironment: A Python file does not load.
        NotInstalled: The set needs an optional package.

    If this call is cancelled, the next call continues from the files fetched so far.
    """
    text = str(name)
    choice = Choice(hosts=dict(hosts or {}), gym=gym, seed=seed, size=size)

    def work() -> Taskset:
        if text.startswith(("http://", "https://")):
            return Taskset.from_file(_fetched(text, refresh=refresh, report=report))
        if _is_public(text):
            return _imported(text, choice, refresh=refresh, report=report)
        return find_sets([text]).read().tasks

    path = Path(text)
    if path.suffix == ".py" or (path / "env.py").is_file():
        found = Taskset.from_file(find_taskset(text))  # an author's file runs where its caller runs
    else:
        found = await anyio.to_thread.run_sync(work)
    return found if split is None else found.split(split)


def _is_public(name: str) -> bool:
    """Whether nothing of that name is nearer than a public set."""
    if find_published(name) is None:
        return False
    path = Path(name)
    return not (path.exists() or any(Path(f"{name}{end}").is_file() for end in _ENDINGS))


_ENDINGS = (".jsonl", ".json", ".py")


def _imported(name: str, choice: Choice, *, refresh: bool, report: Report | None) -> Taskset:
    done = libraries.import_published(name, choice, refresh=refresh, report=report)
    if done is None:
        raise SourceNotFound(f"There is no public set {name!r}.")
    if report is not None:
        for note in done.notes:
            report(note)
    return Taskset(done.tasks, name=done.name)


def _fetched(address: str, *, refresh: bool, report: Report | None) -> Path:
    """A file of tasks by its address."""
    base, _, name = address.rpartition("/")
    if not urlsplit(address).path.endswith(_ENDINGS[:2]):
        raise SourceNotFound(f"{address}: name the address of a .jsonl or a .json file.")
    key = f"addresses/{hashlib.sha256(base.encode()).hexdigest()[:16]}"
    published = Published(
        key=key, title=name, about="", base=base, page=address, licence="", parts="", importer=""
    )
    return libraries.Cached(base, published, refresh=refresh, report=report).path(
        name.partition("?")[0]
    )
