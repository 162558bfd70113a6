"""MCPMark: work on files, graded by each task's own program; other services say what they need."""

import ast
import sys
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from hud_mcp.environment.task import Task
from hud_mcp.errors import InvalidTask, SourceNotFound
from hud_mcp.loading.public import Choice
from hud_mcp.plugins.sets.files import Files, keep_bytes
from hud_mcp.plugins.sets.imports import ImportedSet, NotRunnable, as_tasks, row, row_id
from hud_mcp.plugins.sets.mcp.places import GYMS, keep_folder, needed, own_folder, text_of

_TITLE = "MCPMark"
_HERE = "filesystem"
_FILES = "test_environments"
"""The benchmark's folder of files, by category; `--host test_environments=DIR` names another."""
_KEYS = {
    "github": "GITHUB_TOKENS, and an organisation of yours",
    "insforge": "INSFORGE_API_KEY",
    "notion": "SOURCE_NOTION_API_KEY and EVAL_NOTION_API_KEY, and two workspaces",
    "playwright": "a browser and the public web",
    "playwright_webarena": "a browser and the sites of WebArena",
    "postgres": "POSTGRES_HOST and POSTGRES_PASSWORD, and its databases",
    "supabase": "SUPABASE_API_KEY",
}
"""The needs of the services, by the variables of the benchmark."""
_ASKED = (
    "The test directory is /workspace.\n\nNote: Based on your understanding, solve the task all at "
    "once by yourself, don't ask for my opinions on anything."
)
"""The second sentence is the benchmark's own."""
_LEAST_PARTS = 4
"""A service, a category, a task and a file; newer versions have a suite after the service."""


class _Origin(BaseModel):
    url: str | None = Field(default=None, alias="stateUrl")


class _Meta(BaseModel):
    """The read fields of a task's `meta.json`."""

    category_id: Annotated[str, Field(pattern=r"^\w[^/\\]*$")] | None = None
    difficulty: str | None = None
    tags: list[str] = []
    origin: _Origin | None = Field(default=None, alias="meta_data")


def read(files: Files, choice: Choice) -> list[Task]:
    """Read the rows of every service below `tasks` of a copy of the repository."""
    folder = own_folder(files)
    top = folder / "tasks" if (folder / "tasks").is_dir() else folder
    found = sorted(top.rglob("description.md"))
    rows = [each for each in found if len(each.relative_to(top).parts) >= _LEAST_PARTS]
    if not rows:
        raise SourceNotFound(
            f"{top} has no tasks of {_TITLE}: expected SERVICE/SUITE/CATEGORY/TASK/description.md "
            f"there. Get {files.published.page}."
        )
    make = partial(_task, files, choice, top, cache(keep_folder))
    named = ((ascii(str(each))[1:-1], each) for each in rows)
    return as_tasks(named, make, _TITLE)


def _task(
    files: Files, choice: Choice, top: Path, keep: Callable[[Path], str], _: int, path: Path
) -> Task:
    parts = path.relative_to(top).parts
    service, suite = parts[0], parts[1] if len(parts) > _LEAST_PARTS else "standard"
    category, name = parts[-3:-1]
    "/".join(parts).encode()  # a name of other bytes has no place in a row
    meta = _meta(path.with_name("meta.json"), top)
    setup, evaluate, why = (), (), None
    try:
        if service != _HERE:
            why = needed([service], _KEYS)
        else:
            start = _start(choice, top, meta.category_id or category, meta)
            setup = [["dataset_folder", keep(start)]]
            program = _program(path.with_name("verify.py"), top)
            evaluate = [["mcpmark_verify", keep_bytes(program.encode())]]
    except NotRunnable as exc:
        why = str(exc)
    return row(
        row_id("mcpmark", service, suite, category, name),
        choice.gym or GYMS[_HERE],
        f"{text_of(path, top).strip()}\n\n{_ASKED}",
        parts=list(dict.fromkeys((service, suite, category))),
        split=suite,
        source=files.published.credit(f"tasks/{'/'.join(parts[:-1])}"),
        setup=setup,
        evaluate=evaluate,
        not_runnable=why,
        metadata={"tags": meta.tags, "level": meta.difficulty},
    )


def _meta(path: Path, top: Path) -> _Meta:
    if not path.exists():
        return _Meta()
    try:
        return _Meta.model_validate_json(text_of(path, top))
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise InvalidTask(f"{path}: {f'{field}: ' if field else ''}{first['msg']}.") from exc


def _start(choice: Choice, top: Path, category: str, meta: _Meta) -> Path:
    """Return the folder of the user's with the files of a category; raise NotRunnable without."""
    given = choice.hosts.get(_FILES)
    places = [Path(given).expanduser()] if given else [top.parent / _FILES, top / _FILES]
    found = next((each / category for each in places if (each / category).is_dir()), None)
    if found is None:
        url = meta.origin.url if meta.origin is not None else None
        told = f" of {url}" if url else ""
        raise NotRunnable(f"it needs the files{told} in the folder {_FILES}/{category}")
    return found


def _program(path: Path, top: Path) -> str:
    """Return the text of a program that needs nothing but Python; raise NotRunnable if it does."""
    if not path.exists():
        raise NotRunnable("it has no verify.py")
    text = text_of(path, top)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes in texts, which run as well
            tree = ast.parse(text)
    except (SyntaxError, ValueError) as exc:
        line = getattr(exc, "lineno", None) or 1
        raise InvalidTask(f"{path}:{line}: this is no program of Python: {exc}.") from exc
    for node in ast.walk(tree):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{'.' * node.level}{node.module or node.names[0].name}"]
        for name in names:
            if name.split(".")[0] not in sys.stdlib_module_names:
                raise NotRunnable(f"its verify.py needs the module {name}")
        if isinstance(node, ast.Name) and node.id == "__file__":
            raise NotRunnable("its verify.py reads files beside it")
    return text


SET = ImportedSet(_TITLE, read)
