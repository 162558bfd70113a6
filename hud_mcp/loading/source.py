"""One source of environments: its place, the loading of its files, and their loading anew.

A source is a shipped name, a Python file, a folder with an `env.py`, or one of these with an
environment's name. The registry adds schemes: `gym:ID`, `hud:FILE`, `tcp://HOST:PORT`.
"""

import importlib.util
import linecache
import re
import sys
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Generator,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from hud_mcp.environment.author_files import load_module, loaded_module
from hud_mcp.environment.environment import Environment, imported_files
from hud_mcp.environment.task import Task
from hud_mcp.errors import InvalidEnvironment, SourceNotFound, did_you_mean, name_known
from hud_mcp.registry import find, table

__all__ = [
    "Scheme",
    "Source",
    "declared_tasks",
    "lasting_source",
    "load_environments",
    "narrow_sources",
    "opened",
    "scheme_of",
]

LISTING = "`hud-mcp tasks` lists the sets of tasks with their environments."
"""The command that lists all shipped environments, for errors."""

_ALSO_DECLARED = {
    "intercode-workspace": "intercode",
    **{f"servers-{k}": "servers" for k in ("files", "git", "memory", "postgresql", "sql", "time")},
    **{f"service-{each}": "service" for each in ("energy", "shop")},
    **{f"tau2-{each}": "tau2" for each in ("airline", "mock", "retail", "telecom")},
}
"""Shipped environments that are declared in the file of another one."""


def shipped_folder(name: str) -> Path:
    """Return the folder `environments` or `taskset_data`, beside the package or inside it."""
    package = Path(__file__).resolve().parents[1]
    inside = package / name
    return inside if inside.is_dir() else package.parent / name


def shipped_environments() -> dict[str, Path]:
    """Return the file of each shipped environment by its name."""
    folder = shipped_folder("environments")
    found = {p.stem: p for p in folder.glob("*.py") if not p.name.startswith("_")}
    return dict(sorted((found | {p.parent.name: p for p in folder.glob("*/env.py")}).items()))


def is_also_a_set(name: str) -> bool:
    """Whether a shipped environment and a shipped taskset have this name."""
    rows = shipped_folder("taskset_data") / f"{name}.jsonl"
    return name in shipped_environments() and rows.is_file()


def shipped_name(env: str) -> str | None:
    """Return the name of the shipped file that declares an environment; None if no file does."""
    shipped = shipped_environments()
    name = _ALSO_DECLARED.get(env, env)
    return name if name in shipped else None


def default_sources() -> tuple[str, ...]:
    """Return the sources of a `serve` without arguments: `./env.py`, else the quickstart's."""
    if Path("env.py").is_file():
        return ("env.py",)
    return ("letter_count", "browser")


_SCHEME = re.compile(r"[a-z][a-z0-9+-]+")


@dataclass(frozen=True)
class Scheme:
    """A kind of source that is no file: an entry in a plugin's table `sources`.

    Attributes:
        load: Makes the environments of a source in this process, each once; None if they run in a
            server elsewhere.
        open: Opens a source of a server elsewhere, and closes it afterwards. It takes `python`, an
            interpreter for that server or None.
        lasting: Returns a source that means the same from any folder.
        named: Returns the source of an environment by its name; None if the scheme has none of it.
    """

    load: Callable[[str], list[Environment]] | None = None
    open: Callable[..., AbstractAsyncContextManager[list[Environment]]] | None = None
    lasting: Callable[[str], str] = str
    named: Callable[[str], str | None] = lambda _: None


class Source:
    """One source of environments, as a user writes it.

    Attributes:
        is_remote: Whether a server elsewhere runs the environments, so that no process of ours
            loads them.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._scheme = scheme_of(text)
        self.is_remote = self._scheme is not None and self._scheme.load is None

    def load(self) -> list[Environment]:
        """Load the environments in this process.

        Raises:
            SourceNotFound: The source does not exist, or is remote.
            InvalidEnvironment: The file fails to load, or declares none.
            NotInstalled: The source needs an optional package.
        """
        if self._scheme is None:
            return _declared_at(self.text)
        if self._scheme.load is None:
            raise SourceNotFound(f"{self.text} is a server elsewhere; name a file or a name here.")
        return self._scheme.load(self.text)

    @asynccontextmanager
    async def opens(self, *, python: str | None = None) -> AsyncGenerator[list[Environment]]:
        """Load the environments, or connect to the server that has them, for this block.

        Raises:
            SourceNotFound, InvalidEnvironment, NotInstalled: As for `load`.
            EnvironmentFailed, ChannelFailed: The server cannot be reached.
        """
        if self._scheme is None or self._scheme.open is None:
            yield self.load()
            return
        async with self._scheme.open(self.text, python=python) as environments:
            yield environments


@asynccontextmanager
async def opened(
    sources: Iterable[str], *, python: str | None = None, taken: Collection[str] = ()
) -> AsyncGenerator[list[Environment]]:
    """Connect to the remote ones among some sources for this block.

    No environment may have one of the taken names.

    Raises:
        InvalidEnvironment: Two environments have one name.
        EnvironmentFailed, ChannelFailed, SourceNotFound: A server cannot be reached.
    """
    names, environments = list(taken), list[Environment]()
    async with AsyncExitStack() as stack:
        for source in map(Source, sources):
            if not source.is_remote:
                continue
            for each in await stack.enter_async_context(source.opens(python=python)):
                if each.name in names:
                    raise InvalidEnvironment(
                        f"Two environments are named {each.name!r}, and one is at {source.text}. "
                        "Serve them separately, or rename one."
                    )
                names.append(each.name)
                environments.append(each)
        yield environments


def scheme_of(text: str) -> Scheme | None:
    """Return the scheme of a source; None for a file or a shipped name."""
    name, colon, _ = text.partition(":")
    if not colon or not _SCHEME.fullmatch(name):
        return None
    # A file or a shipped name before a colon is nearer than a scheme of another distribution.
    is_near = name in shipped_environments() or Path(name).exists()
    return None if is_near and name not in table("sources") else find("sources", name)


def load_environments(sources: Iterable[str]) -> list[Environment]:
    """Load environments, each once, in order.

    Args:
        sources: Each a shipped name (`browser`), a Python file (`path/to/env.py`), a folder
            with an `env.py`, or one of these with the name of an environment in it
            (`env.py:shop`); or any Gymnasium environment (`gym:CartPole-v1`), with options
            (`gym:CARLCartPole?context=train&screen=0`). Plugins may add more schemes.

    Raises:
        SourceNotFound: A source does not exist; the text lists those that do.
        InvalidEnvironment: The file fails to load or declares none, or two
            environments have one name.
    """
    loaded: dict[str, Environment] = {}
    for source in sources:
        for environment in Source(source).load():
            other = loaded.setdefault(environment.name, environment)
            same = other.file == environment.file and other.digest == environment.digest
            if not same:
                raise InvalidEnvironment(
                    f"Two environments are named {environment.name!r}: in {_place(other)} and "
                    f"in {_place(environment)}. Serve them separately, or rename one."
                )
    return list(loaded.values())


def declared_tasks(environments: Iterable[Environment]) -> list[Task]:
    """Return the tasks that authors' files declare beside templates, each once, in order.

    They are public names of a task, a taskset or a list, such as `tasks = [count(word="x")]`. Tasks
    of other environments are left out.
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
    """Return a source that means the same from any folder."""
    if (scheme := scheme_of(source)) is not None:
        return scheme.lasting(source)
    place, colon, name = source.rpartition(":")
    if colon and Path(place).exists():
        return f"{Path(place).resolve()}:{name}"
    return str(Path(source).resolve()) if Path(source).exists() else source


def narrow_sources(sources: Iterable[str], names: Collection[str]) -> list[str]:
    """Return sources that load only environments of some names, as far as files can tell.

    A file may declare environments that need more than a job's tasks do.

    Raises:
        SourceNotFound: A source does not exist.
        InvalidEnvironment: A file fails to load, or declares two environments of one name.
    """
    narrowed: list[str] = []
    for source in sources:
        is_file = scheme_of(source) is None
        place, wanted = _split(source) if is_file else (source, None)
        declared = _declared_in(load_module(_find_file(place))) if is_file else []
        used = [each.name for each in declared if each.name in names]
        is_wider = wanted is None and 0 < len(used) < len(declared)
        narrowed += [f"{place}:{name}" for name in used] if is_wider else [source]
    return narrowed


def _place(environment: Environment) -> str:
    return environment.made_of or str(environment.file)


def _declared_at(source: str) -> list[Environment]:
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


def _check_world(environment: Environment) -> None:
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


Stamps = Mapping[Path, tuple[int, int] | None]
"""The time of each file's last change, and its size; None for a missing file."""


def python_files(environments: Iterable[Environment]) -> set[Path]:
    """Return the files whose code makes these environments: their own, and those they import."""
    found: set[Path] = set()
    for environment in environments:
        for file in {environment.file, environment.source or environment.file}:
            if file.is_file():
                found |= imported_files(file.resolve())
    return found


def inputs_of(environments: Iterable[Environment], tasks: Iterable[Path]) -> set[Path]:
    """Return every file that these environments and their tasks are made of."""
    served = [each for each in environments if each.file.is_file()]
    found = python_files(served) | set(tasks)
    for environment in served:
        found |= set(environment.world.files(environment.file.resolve().parent))
    return found


def stamps_of(files: Iterable[Path]) -> Stamps:
    """Return the stamps that show that a file was written again."""
    found: dict[Path, tuple[int, int] | None] = {}
    for file in files:
        try:
            stat = file.stat()
        except OSError:
            found[file] = None
        else:
            found[file] = (stat.st_mtime_ns, stat.st_size)
    return found


@contextmanager
def forgotten(files: Iterable[Path]) -> Generator[None]:
    """Forget the modules of these files, so that the body loads them again.

    If the body fails, the former modules are there again.
    """
    wanted = {str(file) for file in files}
    gone = {
        name: module
        for name, module in sys.modules.items()
        if (place := getattr(module, "__file__", None)) and str(Path(place).resolve()) in wanted
    }
    for name in gone:
        del sys.modules[name]
    for file in wanted:  # a second edit within a second, of the same size, has the same bytecode
        Path(importlib.util.cache_from_source(file)).unlink(missing_ok=True)
    importlib.invalidate_caches()
    linecache.checkcache()
    try:
        yield
    except BaseException:
        sys.modules.update(gone)
        raise
