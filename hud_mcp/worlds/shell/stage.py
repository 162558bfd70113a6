"""The author's files for one verifier, in a folder of this machine that nobody else finds."""

import os
import secrets
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hud_mcp.errors import GraderFailed, did_you_mean
from hud_mcp.sandbox.shown import agents_may_read, anyone_may_enter

_SITE = '''\
"""Lets a program import what lies beside it, after all that the system has."""

import importlib.machinery
import os
import sys


class System:
    """Finds what the system has before what a tool puts in front of it, as unittest does."""

    path = list(sys.path)

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if path is not None or name in ("test", "tests"):
            return None
        found = importlib.machinery.PathFinder.find_spec(name, cls.path)
        return found if found is not None and found.origin is not None else None


def place():
    words = iter(sys.orig_argv[1:])
    for word in words:
        if word in ("-W", "-X"):
            next(words, None)
        elif not word.startswith("-"):
            return os.path.dirname(os.path.abspath(word))
        elif word != "-" and ("c" in word or "m" in word) and not word.startswith("--"):
            break
    return os.getcwd()


sys.meta_path.insert(0, System)
sys.path.append(place())
'''
"""The `sitecustomize.py` of a verifier's Pythons. It looks last in the program's own folder.

Python itself would look there first, and an agent can put modules of the system's names there.
"""


@dataclass(frozen=True)
class Author:
    """The folder of the environment's file, and the one whose copy sessions begin with, or None."""

    folder: Path = field(default_factory=Path)
    root: Path | None = None

    def find(self, files: str | Path) -> Path:
        """Return a file, named from the environment's folder on, or raise `GraderFailed`."""
        found = self.folder / files
        if found.exists():
            return found
        beside = [p.name for p in self.folder.iterdir()] if self.folder.is_dir() else []
        raise GraderFailed(
            f"files: there is no {str(files)!r} beside the environment's file."
            f"{did_you_mean(Path(files).name, beside)}"
        )


class Stage:
    """Copies of the author's files, until a verifier is closed.

    Its Pythons begin with the modules in `site`; `files` is what its folder shows.
    """

    def __init__(self) -> None:
        self._top = Path(tempfile.mkdtemp(prefix="hud-mcp-verifier-", dir=_scratch()))
        self._top.chmod(0o711)  # others may enter it by a known path, and cannot list it
        # A sandbox that is another user must be able to enter, so only the name is secret.
        hidden = self._top / secrets.token_hex(16)
        self.files = hidden / "files"
        self.site = hidden / "site"
        self._empty = hidden / "empty"
        for folder in (hidden, self.files, self.site, self._empty):
            folder.mkdir(mode=0o755)
            folder.chmod(0o755)  # the umask may have cut the mode of `mkdir`
        (self.site / "sitecustomize.py").write_text(_SITE)
        (self.site / "usercustomize.py").write_text("")

    def add(self, source: Path) -> None:
        """Add a folder's content, or one file.

        It is a `GraderFailed` if the source cannot be read, or agents can read it too.
        """
        if agents_may_read(source):
            raise GraderFailed(
                f"files: {source.name!r} is in a folder of the system that sandboxes show. Move "
                "it beside the environment's file."
            )
        try:
            if source.is_dir():
                ignore = shutil.ignore_patterns("__pycache__")
                shutil.copytree(source, self.files, ignore=ignore, dirs_exist_ok=True)
            else:
                shutil.copy(source, self.files / source.name)
        except (OSError, shutil.Error) as exc:
            raise GraderFailed(f"files: {source.name!r} cannot be read: {exc}.") from exc
        for folder, _folders, names in os.walk(self.files):
            Path(folder).chmod(0o755)
            for name in names:
                path = Path(folder, name)
                path.chmod(0o555 if path.stat().st_mode & 0o100 else 0o444)

    def mounts(self, root: str, site: str) -> dict[str, Path]:
        """Return the read-only paths of a sandbox, each with its path on this machine."""
        found = {f"{root}/{path.name}": path for path in sorted(self.files.iterdir())}
        if any(path.suffix == ".py" for path in found.values()):
            found.setdefault(f"{root}/__pycache__", self._empty)  # else compiled files go there
        return {**found, site: self.site}

    def close(self) -> None:
        """Remove everything. It may be called twice."""
        shutil.rmtree(self._top, ignore_errors=True)


def _scratch() -> str:
    """Return the folder for temporary ones. For a server that is root, others may enter it."""
    usual = tempfile.gettempdir()
    if os.name == "posix" and os.geteuid() == 0 and not anyone_may_enter(Path(usual)):
        return "/tmp"  # noqa: S108  # its path is hidden
    return usual
