"""The folders, the variables and the processes that a program sees as it works as an agent."""

import os
import re
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import Self

import orjson

from hud_mcp.agents.kind import RunModel
from hud_mcp.base.process import child_environment
from hud_mcp.base.secrets import hidden_paths
from hud_mcp.registry import service
from hud_mcp.sandbox.bubblewrap import NOBODY

__all__ = ["Surroundings"]

_IS_ROOT = sys.platform != "win32" and os.geteuid() == 0

_HOME = ("HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME",
         "XDG_DATA_HOME", "XDG_STATE_HOME")  # fmt: skip
"""Variables of places where a person's programs keep logins and keys."""
_CACHES = {"UV_CACHE_DIR": ".cache/uv", "NPM_CONFIG_CACHE": ".npm", "PIP_CACHE_DIR": ".cache/pip"}
"""Caches of packages hold no keys, and to fill one takes long."""


class Surroundings:
    """The places of one program, which end with it.

    With a model of a gateway, the program has a home and a temporary folder of its own, no
    variable with a provider's key, and on Linux no other process in its `/proc`. Without one it
    has what this process has: the login of a person is in their home.

    Args:
        model: The model of its run; None if the program asks its own.
        note: Shows a line to people.

    Attributes:
        folder: An empty folder that nobody else reads.
        variables: All its environment variables.
    """

    def __init__(self, model: RunModel | None, note: Callable[[str], None]) -> None:
        self._model = model
        self._note = note
        self._user = 0
        self._prefix: Sequence[str] | None = None
        self.folder = Path()
        self.variables: dict[str, str] = {}

    def __enter__(self) -> Self:
        """Make the folders."""
        self._made = tempfile.TemporaryDirectory(prefix="hud-mcp-", ignore_cleanup_errors=True)
        # Other programs of the same user find no folder whose name they cannot guess.
        Path(self._made.name).chmod(0o711)
        self.folder = Path(self._made.name, token_hex(8))
        self.folder.mkdir(mode=0o700)
        self.variables = child_environment()
        if self._model is not None:
            self._part(self._model)
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the folders, with all that the program left there."""
        self._made.cleanup()

    def _part(self, model: RunModel) -> None:
        """Give the program a home and a temporary folder, and its model; take keys away."""
        is_secret = service("provider variables")
        own = {n: value for n, value in self.variables.items() if not is_secret(n)}
        home, before = self.folder / "home", Path.home()
        for place in (home, self.folder / "tmp"):
            place.mkdir(mode=0o700)
        caches = {} if _IS_ROOT and hides_processes() else _CACHES  # nobody may not write there
        kept = {n: str(before / at) for n, at in caches.items() if (before / at).is_dir()}
        if site.ENABLE_USER_SITE:
            kept["PYTHONUSERBASE"] = site.getuserbase()
        self.variables = {
            **{n: value for n, value in own.items() if n not in _HOME},
            **{n: value for n, value in kept.items() if n not in own},
            "HOME": str(home),
            "TMPDIR": str(self.folder / "tmp"),
            **model.variables,
        }

    def write(self, name: str, content: object) -> Path:
        """Write JSON to a path below the folder, for nobody else to read, and return its path."""
        path = self.folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(orjson.dumps(content))
            if self._user:
                os.fchown(descriptor, self._user, self._user)
        return path

    def command(self, command: Sequence[str], folder: Path | None = None) -> list[str]:
        """Return a command that runs another one with no process of others in its `/proc`.

        The environment of this process, and of those above it, holds the provider's key. If this
        is root, the other one runs as nobody, or with a warning if nobody cannot read its files.
        """
        if self._model is None:
            return list(command)
        if self._prefix is None:  # once: later on the program may have put links into its folder
            self._prefix = _hidden() if hides_processes() else ()
            if _IS_ROOT:
                self._leave_root(command, (folder or Path()).resolve())
        return [*self._prefix, *command]

    def _leave_root(self, command: Sequence[str], place: Path) -> None:
        files = _files_of(command, place)
        as_nobody = [*_hidden(*_views((place, self.folder), files)), *_AS_NOBODY]
        tried = [*as_nobody, "/bin/sh", "-c", _READS, str(place), *map(str, files)]
        for self._user in (NOBODY, 0):
            for path in (self.folder, *self.folder.rglob("*")):
                os.chown(path, self._user, self._user, follow_symlinks=False)
            if self._user and hides_processes() and _succeeds(tried):
                self._prefix = as_nobody
                return
        _note_once(self._note, _AS_ROOT)


_AS_ROOT = "The agent runs as root, which reads all: nobody can start it. docs/gateway.md says why."
_READS = 'cd -- "$0" && for each; do [ -r "$each" ] || exit 1; done'
_AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
              "--bounding-set=-all", "--inh-caps=-all", "--")  # fmt: skip
_SHARED = (".local", ".config", ".cache", "share")  # programs lie beside logins there


@cache
def _note_once(note: Callable[[str], None], text: str) -> None:
    note(text)


def _files_of(command: Sequence[str], folder: Path) -> dict[Path, None]:
    """Return the files that a command's words name, with the programs that run scripts."""
    words = re.sub(r"['\";|&<>()]", " ", " ".join(command)).split()
    found: dict[Path, None] = {}
    for word in words:
        file = Path(shutil.which(word) or folder / word)
        if os.path.isfile(file) and file not in found:  # noqa: PTH113  # too long a word is no error
            found |= dict.fromkeys((file, file.resolve()))
            with suppress(OSError), file.open("rb") as content:
                if (first := content.readline(1_000)).startswith(b"#!"):
                    words += first[2:].decode(errors="replace").split()
    return found


def _views(folders: Sequence[Path], files: Iterable[Path]) -> Iterator[str]:
    """Yield arguments that cover the home and records, and show a program's own parts of them."""
    home, found = Path.home(), [Path(site.getuserbase(), "lib"), *files, *folders]
    found += map(Path, (sys.prefix, sys.base_prefix, *os.get_exec_path()))
    covers, shown = {home}, set(folders)
    for path in filter(Path.exists, found):
        # Nobody enters a folder that is closed to others, nor what lies below it.
        above = [each for each in path.parents if each == home or not each.stat().st_mode & 0o001]
        covers.update(above[-1:])
        if above and path not in folders:
            parts, at = path.parts, len(above[0].parts)
            while parts[at] in _SHARED and at + 1 < len(parts):
                at += 1
            shown.add(Path(*parts[: at + 1]))
    for each in filter(Path.is_dir, sorted(covers)):
        yield from ("--tmpfs", str(each))
    for each in sorted(shown):
        yield from () if home.is_relative_to(each) else ("--bind", str(each), str(each))
    for each in sorted(map(Path, hidden_paths())):
        if each.exists() and not any(path.is_relative_to(each) for path in found):
            yield from ("--tmpfs",) if each.is_dir() else ("--bind", "/dev/null")
            yield str(each)
    yield from ("--unshare-ipc", "--perms", "1777", "--tmpfs", "/dev/shm")  # noqa: S108  # covered


def _hidden(*views: str) -> Sequence[str]:
    hides = ("--unshare-pid", "--proc", "/proc", "--die-with-parent", "--")
    return ("bwrap", "--dev-bind", "/", "/", *views, *hides)


@cache
def hides_processes() -> bool:
    """Whether this machine can start a program that sees no process but its own."""
    has_it = sys.platform == "linux" and shutil.which("bwrap") is not None
    return has_it and _succeeds([*_hidden(), "true"])


def _succeeds(command: Sequence[str]) -> bool:
    return not subprocess.run(command, capture_output=True, check=False).returncode  # noqa: S603  # programs that PATH names
