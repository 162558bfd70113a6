"""The real program of a server's command, and the places of the machine that it needs.

A sandbox shows the programs of /usr. Others are shown read-only at their own paths, since scripts
and virtual environments hold absolute ones: with the interpreter and its library, and nothing else
of their place.
"""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hud_mcp.environment.environment import imported_files
from hud_mcp.errors import InvalidEnvironment, did_you_mean
from hud_mcp.plugins.servers.install import resolve
from hud_mcp.plugins.servers.places import Places, is_in_system
from hud_mcp.plugins.servers.runtimes import (
    note_python_package,
    show_javascript,
    show_npm_package,
    show_python,
)
from hud_mcp.sandbox.bubblewrap import GUEST_ROOT

__all__ = ["Program", "find_program"]

FOLDER = "{folder}"
"""The session's folder, in a word of a command."""

_REFUSED = {
    "docker kubectl nerdctl podman": "asks a daemon of this machine, which no sandbox reaches. "
    "Name the server's own program, as it is started in the image, or the URL of a server that "
    "runs already.",
    "doas pkexec ssh su sudo systemd-run": "does not work in a sandbox, whose programs have no "
    "rights of others. Name the server's own program.",
    "npm pnpm yarn": "runs a script of a project, whose files no session has. Name the program "
    "that the script starts, such as node dist/index.js.",
    "uv": "may install packages, and a session has no network. Run `uv sync` once, and name the "
    "program in the project's environment, such as .venv/bin/NAME.",
}
_PYTHON = re.compile(r"(python|pypy)[\d.]*")
_JAVASCRIPT = frozenset({"bun", "deno", "node"})
_SCRIPTED = _JAVASCRIPT | {"bash", "java", "perl", "ruby", "sh"}
_SCRIPTS = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx")
_WRAPPED = re.compile(r"^'''exec' \"?([^\"\s]+)")
"""The second line of an installed script whose interpreter's path is long or has blanks."""
_SHIM = re.compile(r"\b(pyenv|rbenv|nodenv|asdf|mise)\b")
_ASK_S = 10.0


@dataclass(frozen=True)
class Program:
    """A program that can be started in a sandbox.

    Attributes:
        argv: Its words, as they work inside.
        mounts: The read-only places that it needs: a path inside, to a path of the machine.
        version: The exact version of its package; "" if it is of none.
        digest: A digest of its parts, the same on every machine.
        name: The name of its package, or of its file.
    """

    argv: tuple[str, ...]
    mounts: Mapping[str, Path]
    version: str
    digest: str
    name: str


def find_program(command: Sequence[str], folder: Path) -> Program:
    """Return the program of a command; this blocks, and may install a package.

    Args:
        command: Its words. `{folder}` in one is the session's folder inside.
        folder: The environment's folder, from which on relative paths of programs and scripts are.

    Raises:
        InvalidEnvironment: It cannot run in a sandbox; the text says what to do.
        EnvironmentFailed: A place that only root can read cannot be copied.
    """
    words = [word.replace(FOLDER, GUEST_ROOT) for word in command]
    if not words or not words[0].strip():
        raise InvalidEnvironment("The command of a server is empty. Name a program.")
    _refuse(words)
    installed = resolve(words)
    search = _Search(folder.resolve(), trusted=installed is None)
    argv = search.find(installed.argv if installed else words)
    places = search.places
    if installed is not None:
        return Program(argv, places.mounts(), installed.version, installed.digest, installed.name)
    said = "\0".join([places.name, places.version, *words[1:], *sorted(places.parts)])
    digest = hashlib.sha256(said.encode()).hexdigest()
    return Program(argv, places.mounts(), places.version, digest, places.name)


def _refuse(words: Sequence[str]) -> None:
    name = Path(words[0]).name
    why = next((why for names, why in _REFUSED.items() if name in names.split()), None)
    if why is not None and list(words[:3]) != ["uv", "tool", "run"]:
        raise InvalidEnvironment(f"{name} {why}")


class _Search:
    """The search for the places of one program.

    `trusted` tells whether the author has installed it, and not a command that names a package.
    """

    def __init__(self, folder: Path, *, trusted: bool) -> None:
        self.places = Places(folder)
        self._folder = folder
        self._trusted = trusted

    def find(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the words with which a program starts inside, and note what it needs."""
        path, rest = self._behind(self._located(words[0])), tuple(words[1:])
        real = path.resolve()
        self.places.name = real.stem
        if _PYTHON.fullmatch(path.name):
            return self._python(path, rest)
        with path.open("rb") as file:
            head = file.read(4096)
        if head.startswith(b"#!"):
            return self._script(path, head.decode("utf-8", "replace"), rest)
        if not head.startswith(b"\x7fELF"):
            raise InvalidEnvironment(
                f"{path} is neither a program of Linux nor a script with an interpreter. Name "
                "the interpreter before it."
            )
        if path.name in _SCRIPTED:
            return (self._binary(path), *self._with_script(rest))
        if "node_modules" in real.parts:
            show_npm_package(self.places, real)
        elif not is_in_system(real):
            self.places.add_part([real])
        return (self._binary(path), *rest)

    def _located(self, word: str) -> Path:
        """Return the absolute path of a program, links as they are."""
        first = os.path.expanduser(word)  # noqa: PTH111  # "~" alone counts
        found = str(self._folder / first) if "/" in first else shutil.which(first)
        if found is not None and Path(found).is_file():
            return Path(os.path.normpath(found))
        if found is None:
            raise InvalidEnvironment(
                f"There is no program {first!r} on PATH. A package of PyPI is `uvx {first}` or "
                f"{first}==VERSION, and one of npm is `npx {first}`."
            )
        beside = Path(found).parent
        near = [each.name for each in beside.iterdir()] if beside.is_dir() else []
        raise InvalidEnvironment(
            f"There is no program at {found}.{did_you_mean(Path(found).name, near)}"
        )

    def _behind(self, path: Path) -> Path:
        """Return the program for which a version manager's script stands, or the path itself."""
        if path.parent.name != "shims" or path.is_symlink():
            return path
        manager = _SHIM.search(path.read_bytes()[:4096].decode("utf-8", "replace"))
        if manager is None:
            return path
        said = _asked([shutil.which(manager[1]) or manager[1], "which", path.name], self._folder)
        if not Path(said.strip()).is_file():
            raise InvalidEnvironment(
                f"{path} stands for a program that {manager[1]} chooses, and it names none here. "
                "Name the program itself."
            )
        return Path(said.strip())

    def _binary(self, path: Path) -> str:
        """Show a binary and the libraries that it loads; return the path that starts it."""
        real = path.resolve()
        self.places.show(real)
        # A package's binary names its own loader, which would run: nobody has named it.
        if self._trusted and not is_in_system(real) and (ldd := shutil.which("ldd")):
            said = _asked([ldd, str(real)], self._folder)
            for library in re.findall(r"(?m)(?:=>|^)\s*(/\S+)", said):
                self.places.show(Path(library))
        if path.name == real.name:
            return str(real)
        self.places.show(path)  # its own name may tell it its task
        return str(path)

    def _script(self, path: Path, head: str, rest: tuple[str, ...]) -> tuple[str, ...]:
        first, _, others = head[2:].partition("\n")
        wrapped = _WRAPPED.match(others)
        words = [wrapped[1]] if wrapped else first.split()
        if words and Path(words[0]).name == "env":
            words = [word for word in words[1:] if word not in ("-S", "--")]
        if not words:
            raise InvalidEnvironment(f"{path} names no interpreter after #!.")
        start, options = self._behind(self._located(words[0])), words[1:]
        if _PYTHON.fullmatch(start.name):
            self.places.show(path)
            show_python(self.places, start, trusted=self._trusted)
            rest = self._with_script(rest, (".py",))
            note_python_package(self.places, path)
            return (str(start), *options, str(path), *rest)
        if start.name in _JAVASCRIPT:
            rest = self._with_script(rest, _SCRIPTS) if path.name in ("ts-node", "tsx") else rest
            path = path.resolve()  # by which it finds its packages
            show_javascript(self.places, path)
        else:
            self.places.show(path)
            self.places.add_part([path])
        return (self._binary(start), *options, str(path), *rest)

    def _python(self, exe: Path, words: tuple[str, ...]) -> tuple[str, ...]:
        show_python(self.places, exe, trusted=self._trusted)
        if "-c" in words:
            return (str(exe), *words)
        if "-m" in words[:-1]:
            self.places.name = words[words.index("-m") + 1]
            return (str(exe), *words)
        return (str(exe), *self._with_script(words))

    def _with_script(
        self, words: tuple[str, ...], endings: tuple[str, ...] = ("",)
    ) -> tuple[str, ...]:
        """Show the script that an interpreter is given; later words are the script's."""
        for number, word in enumerate(words):
            real = (self._folder / word).resolve()
            if word.startswith("-") or not word.endswith(endings) or not real.is_file():
                continue
            self.places.name = real.stem
            if real.suffix in _SCRIPTS:
                show_javascript(self.places, real)
            else:
                needed = imported_files(real) if real.suffix == ".py" else {real}
                self.places.add_part(needed)
                for each in needed:
                    self.places.show(each)
            return (*words[:number], str(real), *words[number + 1 :])
        return words


def _asked(command: Sequence[str], folder: Path) -> str:
    try:
        return subprocess.run(  # noqa: S603  # a program of the user's own machine
            command, capture_output=True, text=True, check=False, timeout=_ASK_S, cwd=folder
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
