"""The places that programs of Python and JavaScript need: interpreter, libraries, packages."""

import ast
import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from hud_mcp.plugins.servers.places import Places, is_in_system

_HOISTED = (".package-lock.json", ".modules.yaml", ".yarn-integrity")
"""The files of a `node_modules` whose packages need each other; a global one has none of them."""
_MOST_LINKS = 40


def show_python(places: Places, exe: Path, *, trusted: bool) -> None:
    """Show an interpreter with its library, and the virtual environment that it belongs to.

    Args:
        places: They are shown among these.
        exe: The interpreter's path, links as they are.
        trusted: Whether the author has installed its packages: they may name folders elsewhere.
    """
    prefix = exe.parent.parent
    if not (prefix / "pyvenv.cfg").is_file():
        _show_installation(places, exe, packages=True)
        _note_packages(places, exe.resolve().parent.parent, trusted=trusted)
        return
    for name in ("bin", "lib", "lib64", "pyvenv.cfg"):
        if (prefix / name).exists():
            places.show(prefix / name)
    _note_packages(places, prefix, trusted=trusted)
    text = (prefix / "pyvenv.cfg").read_text(encoding="utf-8")
    settings = dict(re.findall(r"(?m)^\s*([\w-]+)\s*=\s*(.*?)\s*$", text))
    whole = settings.get("include-system-site-packages", "").lower() == "true"
    outside = _first_outside(exe, prefix)
    home = Path(settings.get("home", outside.parent))
    # A link of the environment leads to the first; Python looks for its library beside the other.
    for each in (outside, home / exe.resolve().name):
        if each.is_file() and not each.is_relative_to(prefix):
            _show_installation(places, each, packages=whole)


def _first_outside(exe: Path, prefix: Path) -> Path:
    """Return the first path outside an environment to which its interpreter's link leads."""
    found = exe
    for _ in range(_MOST_LINKS):
        if not found.is_symlink() or not found.is_relative_to(prefix):
            break
        found = Path(os.path.normpath(found.parent / found.readlink()))
    return found


def _show_installation(places: Places, exe: Path, *, packages: bool) -> None:
    real = exe.resolve()
    places.show(exe)
    library = real.parent.parent / "lib"
    if is_in_system(real) or not library.is_dir():
        return
    hidden = () if packages else library.glob("python*/*-packages")
    without = [str(each.relative_to(library)) for each in hidden]
    # The interpreter finds its modules from its own path, and its linked library by the real one.
    for prefix in (exe.parent.parent, real.parent.parent):
        places.show(prefix / "lib", library, without)


def _note_packages(places: Places, prefix: Path, *, trusted: bool) -> None:
    """Note an environment's packages, and show the folders of those that are edited elsewhere."""
    for packages in prefix.glob("lib/python*/site-packages"):
        places.parts.update(each.name for each in packages.glob("*.dist-info"))
        for place in _edited(packages) if trusted else ():
            # A folder with the answers is no agent's: an import from it fails, with its name.
            if not place.is_absolute() or not place.exists() or places.holds_answers(place):
                continue
            places.show(place)
            places.add_part(place.rglob("*.py") if place.is_dir() else [place])


def _edited(packages: Path) -> Iterator[Path]:
    """Yield the places that path files name, and those that finders of Setuptools map."""
    for file in packages.glob("*.pth"):
        yield from map(Path, file.read_text(encoding="utf-8", errors="replace").splitlines())
    for file in packages.glob("__editable__*_finder.py"):
        text = file.read_text(encoding="utf-8", errors="replace")
        for found in re.findall(r"(?m)^(?:MAPPING|NAMESPACES)\b[^=]*=\s*(\{.*\})\s*$", text):
            with contextlib.suppress(ValueError, SyntaxError):
                mapped: dict[str, str | list[str]] = ast.literal_eval(found)
                for place in mapped.values():
                    for each in [place] if isinstance(place, str) else place:
                        # A module is mapped without its ending.
                        yield from (Path(each), Path(f"{each}.py"))


def note_python_package(places: Places, script: Path) -> None:
    """Note the package of Python that has an installed script."""
    found = script.resolve().parent.parent.glob("lib/python*/site-packages/*.dist-info")
    for entries in (each / "entry_points.txt" for each in found):
        text = entries.read_text(encoding="utf-8") if entries.is_file() else ""
        if re.search(rf"(?m)^{re.escape(script.name)}\s*=", text):
            name, _, places.version = entries.parent.name.removesuffix(".dist-info").partition("-")
            places.name = name.replace("_", "-")
            return
    if not is_in_system(script):
        places.add_part([script])


def show_javascript(places: Places, script: Path) -> None:
    """Show a script of JavaScript with its package, or with the parts of its project."""
    if "node_modules" in script.parts:
        show_npm_package(places, script)
        return
    root = next((each for each in script.parents if (each / "package.json").is_file()), None)
    if root is None:
        places.show(script)
        places.add_part([script])
        return
    _note_description(places, root)
    top = root / script.relative_to(root).parts[0]
    shown = [root / "package.json", top]
    if top == script:
        # It may load every file that lies beside it: none is shown if the answers do, too.
        shown = [each for each in root.iterdir() if not each.name.startswith(".")]
        if places.holds_answers(root):
            shown = [root]
    for each in shown:
        if each.name != "node_modules":
            places.show(each)
            places.add_part(each.rglob("*") if each.is_dir() else [each])
    for above in script.parents:
        if (above / "node_modules").is_dir():
            places.show(above / "node_modules")


def show_npm_package(places: Places, file: Path) -> None:
    """Show the installed package of npm that a file belongs to, with those that it needs."""
    at = file.parts.index("node_modules") + 1
    modules = Path(*file.parts[:at])
    own = modules.joinpath(*file.parts[at : at + 1 + file.parts[at].startswith("@")])
    hoisted = any((modules / name).exists() for name in _HOISTED)
    whole = hoisted or (modules.parent / "package.json").is_file()
    places.show(modules if whole else own)
    _note_description(places, own)
    lock = modules / _HOISTED[0]
    places.add_part([lock if lock.is_file() else file])


def _note_description(places: Places, folder: Path) -> None:
    try:
        found: Any = orjson.loads((folder / "package.json").read_bytes())
        places.name = str(found.get("name") or places.name)
        places.version = str(found.get("version") or "")
    except (OSError, ValueError, AttributeError):
        return
