"""Packages of npm and PyPI that are MCP servers, each installed once by its exact version.

No code of a package runs outside a sandbox: npm runs no scripts, and pip installs wheels alone.
Nothing of a package is imported here either, since a file of it could be run by a start of Python.
"""

import hashlib
import importlib.util
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson
from platformdirs import user_cache_path

from hud_mcp.base import libraries
from hud_mcp.errors import InvalidEnvironment, did_you_mean
from hud_mcp.store.files import make_private_folder

__all__ = ["Installed", "Wanted", "cache_folder", "is_installed", "parse", "resolve"]

logger = logging.getLogger(__name__)

_INSTALL_S = 600.0
_NAMES = {
    "npm": (re.compile(r"(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*"), "npm"),
    "pypi": (re.compile(r"(?ai)[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?(\[[a-z0-9._,-]+\])?"), "PyPI"),
}
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+!_-]*")
_SAID_CHARS = 600

Registry = Literal["npm", "pypi"]


@dataclass(frozen=True)
class Wanted:
    """A package that a command names.

    Attributes:
        registry: Its registry.
        name: Its name there, with extras of PyPI.
        version: The exact version; "" for the newest at the first start.
        program: The program of it; "" for the only one, or the one that has its name.
        arguments: The arguments of the program.
    """

    registry: Registry
    name: str
    version: str = ""
    program: str = ""
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Installed:
    """An installed package, and the command of its program.

    Attributes:
        argv: The path of its program, and the arguments.
        version: Its exact version.
        folder: Its installation.
        name: Its name in the registry.
        digest: A digest of it and all that it needs, with their versions.
    """

    argv: tuple[str, ...]
    version: str
    folder: Path
    name: str
    digest: str


def resolve(words: Sequence[str]) -> Installed | None:
    """Return the installed package of a command, or None if it names a program of this machine.

    The first call installs it, which takes some seconds; a later one asks no network.

    Raises:
        InvalidEnvironment: An option is unknown, or the package cannot be installed.
    """
    wanted = parse(words)
    if wanted is None:
        return None
    folder = _home(wanted)
    is_npm = wanted.registry == "npm"
    with libraries.filelock.FileLock(folder / "lock", timeout=2 * _INSTALL_S, mode=0o600):
        version = wanted.version or _newest(wanted, folder / "LATEST")
        place = folder / version
        if not (place / "INSTALLED").is_file():
            # A start of ours that was broken off leaves half of one.
            shutil.rmtree(place, ignore_errors=True)
            logger.warning("%s %s is installed, once, into %s.", wanted.name, version, place)
            lock = (_install_npm if is_npm else _install_pypi)(wanted.name, version, place)
            note = {"digest": hashlib.sha256(lock).hexdigest()}
            (place / "INSTALLED").write_bytes(orjson.dumps(note))
    note = orjson.loads((place / "INSTALLED").read_bytes())
    program = (_program_of_npm if is_npm else _program_of_pypi)(wanted, place)
    argv = (str(program), *wanted.arguments)
    return Installed(argv, version, place, wanted.name, str(note["digest"]))


def is_installed(wanted: Wanted) -> bool:
    """Whether a package is installed here; no network is asked."""
    home = _home(wanted)
    latest = home / "LATEST"
    version = wanted.version or (latest.read_text().strip() if latest.is_file() else "none")
    return (home / version / "INSTALLED").is_file()


def parse(words: Sequence[str]) -> Wanted | None:
    """Return the package that a command names; None for a program of this machine.

    Raises:
        InvalidEnvironment: An option or a name cannot be understood.
    """
    for runner, read in _RUNNERS.items():
        if tuple(words[: len(runner)]) == runner:
            return read(words[len(runner) :])
    first, rest = words[0], tuple(words[1:])
    if "==" in first:
        return _of_pypi("", words)
    name, at, version = first.rpartition("@")
    scoped = first.startswith("@") and first.count("/") == 1
    if scoped or (at and name and "/" not in name):
        name, version = (name, version) if at and name else (first, "")
        return _checked(Wanted("npm", name, _exact(version), arguments=rest))
    return None


def _split(command: str, words: Sequence[str], names: Sequence[str]) -> tuple[str, list[str]]:
    """Return the package that an option of a command names, or "", and the words after options."""
    spec, left = "", list(words)
    while left and left[0].startswith("-"):
        word, _, value = left.pop(0).partition("=")
        if word == "--":
            break
        if word in _FLAGS:
            continue
        if word not in names:
            raise InvalidEnvironment(
                f"{command} {word}: this option is not known here.{did_you_mean(word, names)} "
                f"Known are {', '.join([*names, *_FLAGS])}. Install the package yourself, and "
                "name its program, if it needs another one."
            )
        spec = value or (left.pop(0) if left else "")
    if not left:
        raise InvalidEnvironment(f"{command} names no package.")
    return spec, left


def _npx(words: Sequence[str]) -> Wanted:
    spec, command = _split("npx", words, ("-p", "--package"))
    named = spec or command[0]
    at = named.rfind("@")
    name, version = (named[:at], named[at + 1 :]) if at > 0 else (named, "")
    program = command[0] if spec else ""
    return _checked(Wanted("npm", name, _exact(version), program, tuple(command[1:])))


def _uvx(words: Sequence[str]) -> Wanted:
    return _of_pypi(*_split("uvx", words, ("--from",)))


_FLAGS = ("-y", "--yes", "-q", "--quiet")
_RUNNERS: dict[tuple[str, ...], Callable[[Sequence[str]], Wanted]] = {
    ("npx",): _npx,
    ("uvx",): _uvx,
    ("uv", "tool", "run"): _uvx,
    ("pipx", "run"): lambda words: _of_pypi(*_split("pipx run", words, ("--spec",))),
}


def _of_pypi(spec: str, command: Sequence[str]) -> Wanted:
    named = spec or command[0]
    name, _, version = named.partition("==" if "==" in named else "@")
    # The program of `uvx NAME@V` is NAME, and that of `--from SPEC PROGRAM` is the word after it.
    program = command[0] if spec else name.partition("[")[0]
    return _checked(Wanted("pypi", name, _exact(version), program, tuple(command[1:])))


def _exact(version: str) -> str:
    if version in ("", "latest"):
        return ""
    if not _VERSION.fullmatch(version) or not version[0].isdigit():
        raise InvalidEnvironment(
            f"{version!r} is no exact version. Name one such as 1.2.3, or none for the newest."
        )
    return version


def _checked(wanted: Wanted) -> Wanted:
    pattern, where = _NAMES[wanted.registry]
    if not pattern.fullmatch(wanted.name):
        raise InvalidEnvironment(
            f"{wanted.name!r} is no name of a package of {where}. A package from elsewhere has to "
            "be installed first; then name its program."
        )
    return wanted


def cache_folder(*names: str) -> Path:
    """Return a folder of this plugin's cache, which only its owner can enter."""
    top = user_cache_path("hud-mcp") / "servers"
    folder = top.joinpath(*names)
    make_private_folder(folder)
    # Programs are started from it: a folder of an older mask is closed.
    top.chmod(0o700)
    return folder


def _home(wanted: Wanted) -> Path:
    """Return the folder of a package's installations."""
    is_npm = wanted.registry == "npm"
    name = wanted.name.replace("/", "+") if is_npm else _normal(wanted.name)
    return cache_folder(wanted.registry, name)


def _normal(name: str) -> str:
    """Return the one name under which PyPI knows a package; extras are part of it here."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _newest(wanted: Wanted, latest: Path) -> str:
    """Return the newest version at the first start, which later starts keep to."""
    if latest.is_file():
        return latest.read_text(encoding="utf-8").strip()
    found = _newest_npm(wanted.name) if wanted.registry == "npm" else _newest_pypi(wanted.name)
    if not _VERSION.fullmatch(found):
        raise InvalidEnvironment(f"{wanted.name} has no version that can be installed.")
    part = latest.with_suffix(".part")
    part.write_text(f"{found}\n", encoding="utf-8")
    part.replace(latest)
    return found


def _run(command: Sequence[str], what: str) -> str:
    """Run an installer to its end; its processes end with it, and its last words are the error."""
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(  # noqa: S603  # an installer of this machine
                list(command),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said,
                start_new_session=True,
            )  # fmt: skip
        except OSError as exc:
            raise InvalidEnvironment(f"{what}: {command[0]} cannot be started: {exc}.") from exc
        try:
            out, _ = process.communicate(timeout=_INSTALL_S)
        except BaseException as exc:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(exc, subprocess.TimeoutExpired):
                raise InvalidEnvironment(f"{what} took over {_INSTALL_S:g} s.") from None
            raise
        said.seek(0)
        errors = said.read().decode("utf-8", "replace").strip()
    if process.returncode:
        raise InvalidEnvironment(f"{what} failed. {errors[-_SAID_CHARS:]}")
    return out.decode("utf-8", "replace")


def _npm() -> str:
    found = shutil.which("npm")
    if found is None:
        raise InvalidEnvironment(
            "A server from npm needs Node.js with npm, and there is no npm on PATH. Install it."
        )
    return found


def _newest_npm(name: str) -> str:
    said = _run([_npm(), "view", name, "version", "--json"], f"The look-up of {name}")
    try:
        found: Any = orjson.loads(said)
    except ValueError:
        return ""
    return found if isinstance(found, str) else ""


def _install_npm(name: str, version: str, place: Path) -> bytes:
    place.mkdir(mode=0o700)
    quiet = ["--no-audit", "--no-fund", "--loglevel", "error"]
    how = ["--prefix", str(place), "--ignore-scripts", "--save-exact"]
    command = [_npm(), "install", *how, *quiet, f"{name}@{version}"]
    _run(command, f"The installation of {command[-1]}")
    return (place / "package-lock.json").read_bytes()


def _program_of_npm(wanted: Wanted, place: Path) -> Path:
    modules = place / "node_modules"
    described: Any = orjson.loads((modules / wanted.name / "package.json").read_bytes())
    binaries: Any = described.get("bin") or {}
    own = wanted.name.rpartition("/")[2]
    names = [own] if isinstance(binaries, str) else sorted(binaries)
    return modules / ".bin" / _chosen(wanted, names, own)


_HAS_PIP = importlib.util.find_spec("pip") is not None
_PIP_WHEELS = ("--quiet", "--no-input", "--disable-pip-version-check", "--only-binary", ":all:")


def _newest_pypi(name: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        # With a target, pip does not mind the interpreter's own packages.
        pip = [sys.executable, "-m", "pip"] if _HAS_PIP else _pip(Path(folder, "venv"))
        how = ["--dry-run", "--no-deps", "--ignore-installed", "--target", folder, *_PIP_WHEELS]
        command = [*pip, "install", "--report", "-", *how, name]
        report: Any = orjson.loads(_run(command, f"The look-up of {name}"))
    return str(report["install"][0]["metadata"]["version"])


def _pip(place: Path) -> list[str]:
    """Make a virtual environment, and return the command of pip for it."""
    make = [sys.executable, "-m", "venv", *(["--without-pip"] if _HAS_PIP else []), str(place)]
    _run(make, "The making of a virtual environment")
    python = str(place / "bin" / "python")
    return [sys.executable, "-m", "pip", "--python", python] if _HAS_PIP else [python, "-m", "pip"]


def _install_pypi(name: str, version: str, place: Path) -> bytes:
    package = f"{name}=={version}"
    command = [*_pip(place), "install", *_PIP_WHEELS, package]
    try:
        _run(command, f"The installation of {package}")
    except InvalidEnvironment as exc:
        raise InvalidEnvironment(
            f"{exc} Only wheels are installed, since building a package would run its code outside "
            "a sandbox. If it has none, install it yourself, and name its program."
        ) from None
    # Not by its own pip: a file of a package would run with it.
    return "\n".join(sorted(each.name for each in _infos(place))).encode()


def _infos(place: Path) -> Iterator[Path]:
    return place.glob("lib/python*/site-packages/*.dist-info")


def _program_of_pypi(wanted: Wanted, place: Path) -> Path:
    own = _normal(wanted.name.partition("[")[0])
    names: list[str] = []
    for info in _infos(place):
        entries = info / "entry_points.txt"
        if _normal(info.name.partition("-")[0]) == own and entries.is_file():
            text = entries.read_text(encoding="utf-8")
            section = re.search(r"(?ms)^\[console_scripts\]\n(.*?)(?=^\[|\Z)", text)
            names = re.findall(r"(?m)^([^\s=]+)\s*=", section[1]) if section else []
    return place / "bin" / _chosen(wanted, names, wanted.program)


def _chosen(wanted: Wanted, names: Sequence[str], own: str) -> str:
    """Return the name of a package's program: the named one, its own, or the only one."""
    is_named = wanted.program not in ("", wanted.name.partition("[")[0])
    if is_named and wanted.program in names:
        return wanted.program
    if not is_named and (own in names or len(names) == 1):
        return own if own in names else names[0]
    said = f"has no program {wanted.program!r}" if is_named else "does not say which program it is"
    listed = f"It has: {', '.join(names)}." if names else "It has none."
    raise InvalidEnvironment(f"{wanted.name} {said}.{did_you_mean(wanted.program, names)} {listed}")
