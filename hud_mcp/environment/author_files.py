"""The loader of an author's Python file as a module, with the files beside it alone."""

import importlib.util
import inspect
import re
import sys
import traceback
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType

from hud_mcp.base.secrets import hide
from hud_mcp.environment.environment import Environment
from hud_mcp.errors import HudMcpError, InvalidEnvironment, SourceNotFound, did_you_mean

_PACKAGE = __name__.partition(".")[0]

_OPTIONS = sorted(
    {
        name
        for declared in (Environment.__init__, Environment.template, Environment.tool)
        for name in inspect.signature(declared).parameters
    }
    - {"self", "v5"}
)
"""The keywords of declarations, for suggestions."""


def load_module(path: str | Path) -> ModuleType:
    """Load an author's file, once. It can import the files beside it.

    Raises:
        SourceNotFound: It is not a Python file.
        InvalidEnvironment: It fails to load; the text names the file and the line.
    """
    path = Path(path)
    resolved = path.resolve()
    name = _module_name(resolved)
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, resolved)
    if spec is None or spec.loader is None:
        raise SourceNotFound(f"{path} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    folder = resolved.parent
    hide(resolved, folder)
    # An author's file imports what lies beside it, and not what lies beside another one.
    sys.path[:] = [str(folder), *(place for place in sys.path if place != str(folder))]
    aside = _namesakes(folder)
    for other in aside:
        del sys.modules[other]
    _folders.add(folder)
    before = _being_loaded.set(resolved)
    try:
        spec.loader.exec_module(module)
    except HudMcpError:
        del sys.modules[name]
        raise
    except Exception as exc:
        del sys.modules[name]
        raise InvalidEnvironment(_why_not_loaded(exc, resolved)) from exc
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        _being_loaded.reset(before)
        sys.modules.update(aside)
    return module


def file_being_loaded() -> Path | None:
    """Return the author's file whose loading calls this; None outside of a loading."""
    return _being_loaded.get()


def loaded_module(path: Path) -> ModuleType | None:
    """Return the module of an author's file; None if the file was not loaded."""
    return sys.modules.get(_module_name(path.resolve()))


def _module_name(resolved: Path) -> str:
    return f"hud_mcp_source_{abs(hash(str(resolved))):x}"


_being_loaded: ContextVar[Path | None] = ContextVar("_being_loaded", default=None)

_folders: set[Path] = set()
"""The folders of all loaded files."""


def _namesakes(folder: Path) -> dict[str, ModuleType]:
    """Return the modules from beside other files that share a name with a file in this folder."""
    others = _folders - {folder}
    found: dict[str, ModuleType] = {}
    for name, module in list(sys.modules.items()):
        first = name.partition(".")[0]
        if _home(sys.modules.get(first)) not in others or first == _PACKAGE:
            continue
        if (folder / f"{first}.py").is_file() or (folder / first).is_dir():
            found[name] = module
    return found


def _home(module: ModuleType | None) -> Path | None:
    places = list(getattr(module, "__path__", ())) or [getattr(module, "__file__", None)]
    return Path(places[0]).parent if isinstance(places[0], str) else None


def _why_not_loaded(exc: Exception, path: Path) -> str:
    folder = str(path.parent)
    if isinstance(exc, SyntaxError):
        where = f"{exc.filename or path}:{exc.lineno or 1}"
        return f"{where}: {exc.msg}. Correct this line, then start again."
    frames = traceback.extract_tb(exc.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)]
    where = f"{own[-1].filename}:{own[-1].lineno}" if own else str(path)
    hint = " Install it, or correct its name." if isinstance(exc, ImportError) else ""
    unexpected = re.search(r"unexpected keyword argument '(\w+)'", str(exc))
    if unexpected:
        hint = did_you_mean(unexpected[1], _OPTIONS)
    return f"{where}: {type(exc).__name__}: {exc}.{hint}"
