"""Where environments and tasksets come from: a shipped name, a file, a file and a name, `gym:ID`.

This module owns the finding and the loading; declaring is the file's own business.
"""

import importlib
import importlib.util
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode

from hud_mcp.environment.author_files import load_module, loaded_module
from hud_mcp.environment.environment import Environment
from hud_mcp.environment.task import Task
from hud_mcp.errors import (
    InvalidEnvironment,
    NotInstalled,
    SourceNotFound,
    did_you_mean,
    name_known,
)
from hud_mcp.loading.bridged import is_bridged

__all__ = [
    "LISTING",
    "declared_tasks",
    "default_sources",
    "gymnasium_source",
    "is_also_a_set",
    "lasting_source",
    "load_environments",
    "narrow_sources",
    "shipped_environments",
    "shipped_folder",
    "shipped_name",
]


LISTING = "`hud-mcp tasks` lists the sets of tasks with their environments."
"""What lists all shipped environments."""

_GYM = "gym:"
_GYM_NAME = re.compile(r"CARL[A-Z][A-Za-z0-9]*|[A-Za-z0-9_-]+-v\d+")
"""How environments made of Gymnasium ids are called, as rows name them."""

_ALSO_DECLARED = {"intercode-workspace": "intercode"}
"""Shipped environments that are declared in the file of another one."""


def shipped_folder(name: str) -> Path:
    """The folder `environments` or `taskset_data`, beside the package or inside it."""
    package = Path(__file__).resolve().parents[1]
    inside = package / name
    return inside if inside.is_dir() else package.parent / name


def shipped_environments() -> dict[str, Path]:
    """The environments that come with the package: name to file."""
    folder = shipped_folder("environments")
    found = {p.stem: p for p in folder.glob("*.py") if not p.name.startswith("_")}
    found |= {p.parent.name: p for p in folder.glob("*/env.py")}
    return dict(sorted(found.items()))


def is_also_a_set(name: str) -> bool:
    """Whether the name of a shipped environment is that of a shipped taskset too."""
    rows = shipped_folder("taskset_data") / f"{name}.jsonl"
    return name in shipped_environments() and rows.is_file()


def shipped_name(env: str) -> str | None:
    """What the shipped file is called that declares an environment; None where none does."""
    shipped = shipped_environments()
    name = _ALSO_DECLARED.get(env, env)
    return name if name in shipped else None


def default_sources() -> tuple[str, ...]:
    """What `serve` serves when nothing is named: `./env.py`, else the quickstart environments."""
    if Path("env.py").is_file():
        return ("env.py",)
    return ("letter_count", "browser")


def load_environments(sources: Iterable[str]) -> list[Environment]:
    """Load environments, each once, in order.

    Args:
        sources: Each a shipped name (`browser`), a Python file (`path/to/env.py`), a folder
            with an `env.py`, or one of these with the name of an environment in it
            (`env.py:shop`); or any Gymnasium environment (`gym:CartPole-v1`), with options
            (`gym:CARLCartPole?context=train&screen=0`).

    Raises:
        SourceNotFound: A source does not exist; the text lists those that do.
        InvalidEnvironment: The file fails to load or declares none, or two
            environments have one name.
    """
    loaded: dict[str, Environment] = {}
    for source in sources:
        for environment in _load(source):
            other = loaded.setdefault(environment.name, environment)
            same = other.file == environment.file and other.digest == environment.digest
            if not same:
                raise InvalidEnvironment(
                    f"Two environments are named {environment.name!r}: in {_place(other)} and "
                    f"in {_place(environment)}. Serve them separately, or rename one."
                )
    return list(loaded.values())


def declared_tasks(environments: Iterable[Environment]) -> list[Task]:
    """The tasks that authors' files declare beside templates, such as `tasks = [count(word="x")]`.

    What is public in a file and is a task, a taskset, or a list of tasks; each once, in order.

    Args:
        environments: Those that are served: the files that declare them are looked at, and
            tasks of other environments are left out.
    """
    served = list(environments)
    names = {environment.name for environment in served}
    found: list[Task] = []
    for file in dict.fromkeys(environment.file.resolve() for environment in served):
        module = loaded_module(file)
        for name, value in vars(module).items() if module is not None else ():
            if name.startswith("_") or isinstance(value, str | bytes):
                continue
            if not isinstance(value, Task | Sequence):
                continue
            rows: Iterable[Any] = [value] if isinstance(value, Task) else cast("Any", value)
            found += [row for row in rows if isinstance(row, Task) and row.env in names]
    return [row for number, row in enumerate(found) if row not in found[:number]]


def lasting_source(source: str) -> str:
    """A source that means the same from any folder."""
    if source.startswith(_GYM):
        env_id, options = _split_options(source)
        lasting = {
            name: str(Path(value).resolve()) if Path(value).is_file() else value
            for name, value in options.items()
        }
        return f"{_GYM}{env_id}" + (f"?{urlencode(lasting, safe='/')}" if lasting else "")
    place, colon, name = source.rpartition(":")
    if colon and Path(place).exists():
        return f"{Path(place).resolve()}:{name}"
    return str(Path(source).resolve()) if Path(source).exists() else source


def gymnasium_source(name: str) -> str | None:
    """The source of a Gymnasium environment by the name of its environment; None for others."""
    return f"{_GYM}{name}" if _GYM_NAME.fullmatch(name) else None


def _place(environment: Environment) -> str:
    return environment.made_of or str(environment.file)


def _load(source: str) -> list[Environment]:
    if source.startswith(_GYM):
        return [_load_gymnasium(source)]
    place, wanted = _split(source)
    path = _find_file(place)
    environments = _declared_in(load_module(path))
    if not environments:
        raise InvalidEnvironment(f"{path} declares no Environment; write `env = Environment(…)`.")
    chosen = [e for e in environments if wanted is None or e.name == wanted]
    for environment in chosen:
        _check_world(environment)
        environment.loaded(source=path.resolve())
    if not chosen:
        names = [e.name for e in environments]
        raise SourceNotFound(
            f"{path} has no environment {wanted!r}.{did_you_mean(wanted, names)} It has: "
            f"{', '.join(names)}."
        )
    return chosen


def narrow_sources(sources: Iterable[str], names: Collection[str]) -> list[str]:
    """Sources that load no environment beside those of some names, as far as files can tell.

    A file may declare environments that need more than a job's tasks do.

    Args:
        sources: As for `load_environments`, or bridged.
        names: The environments that are wanted.

    Raises:
        SourceNotFound: A source does not exist.
        InvalidEnvironment: A file fails to load, or declares two environments of one name.
    """
    narrowed: list[str] = []
    for source in sources:
        is_file = not (source.startswith(_GYM) or is_bridged(source))
        place, wanted = _split(source) if is_file else (source, None)
        declared = _declared_in(load_module(_find_file(place))) if is_file else []
        used = [each.name for each in declared if each.name in names]
        is_wider = wanted is None and 0 < len(used) < len(declared)
        narrowed += [f"{place}:{name}" for name in used] if is_wider else [source]
    return narrowed


def _load_gymnasium(source: str) -> Environment:
    """Make an environment of a Gymnasium id, once for each way to write it.

    Raises:
        NotInstalled: The extra that it needs is not there.
    """
    missing = [n for n in ("gymnasium", "ConfigSpace") if importlib.util.find_spec(n) is None]
    if missing:
        raise NotInstalled(
            f"{source} needs {' and '.join(missing)}: pip install 'hud-mcp[gymnasium]', or "
            "'hud-mcp[box2d]' with Box2D."
        )
    module: Any = load_module(shipped_folder("environments") / "gym" / "make.py")
    made: dict[str, Environment] = module.__dict__.setdefault("made", {})
    lasting = lasting_source(source)
    if lasting in made:
        return made[lasting]
    env_id, options = _split_options(source)
    if not env_id:
        raise SourceNotFound(f"{source!r} names no environment; write one, as in gym:CartPole-v1.")
    try:
        known: list[str] = module.option_names(env_id)
        if unknown := [name for name in options if name not in known]:
            raise InvalidEnvironment(
                f"{source}: there is no option {unknown[0]!r}.{did_you_mean(unknown[0], known)} "
                f"There are: {', '.join(known)}."
            )
        environment: Environment = module.make(env_id, options)
    except ValueError as exc:
        raise InvalidEnvironment(f"{source}: {exc}") from exc
    environment.loaded(text=lasting)
    made[lasting] = environment
    return environment


def _split_options(source: str) -> tuple[str, dict[str, str]]:
    """The id and the options of `gym:ID?name=value&name=value`."""
    env_id, _, options = source.removeprefix(_GYM).partition("?")
    return env_id, dict(parse_qsl(options, keep_blank_values=True))


def _check_world(environment: Environment) -> None:
    """Let a kind of world that can tell early what it misses do so, with the file's name."""
    try:
        environment.world.check(environment.folder)
    except InvalidEnvironment as exc:
        raise InvalidEnvironment(f"{environment.file}: {exc}") from None


def _split(source: str) -> tuple[str, str | None]:
    place, colon, name = source.rpartition(":")
    is_file = Path(place).suffix == ".py" and Path(place).is_file()  # names may have slashes
    if not colon or not (is_file or ("/" not in name and "\\" not in name)):
        return source, None
    return place, name


def _find_file(place: str) -> Path:
    path = Path(place)
    if path.suffix == ".py" and path.is_file():
        return path
    if (path / "env.py").is_file() and ("/" in place or "\\" in place or place in (".", "..")):
        return path / "env.py"
    shipped = shipped_environments()
    if place in shipped:
        return shipped[place]
    if (path / "env.py").is_file():
        return path / "env.py"
    known = name_known(place, shipped, what="The shipped ones are", listing=LISTING)
    raise SourceNotFound(
        f"There is no environment at {place!r}.{known} A source is also a Python file, a folder "
        "with an env.py, or a Gymnasium environment, such as gym:CartPole-v1."
    )


def _declared_in(module: ModuleType) -> list[Environment]:
    found: dict[str, Environment] = {}
    for name, value in vars(module).items():
        if not isinstance(value, Environment) or name.startswith("_"):
            continue
        if found.setdefault(value.name, value) is not value:
            raise InvalidEnvironment(
                f"{module.__file__} declares two environments named {value.name!r}; rename one."
            )
    return list(found.values())
