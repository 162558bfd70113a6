"""The places of the machine that a sandbox shows of a server's program, and its parts."""

import hashlib
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from hud_mcp.errors import InvalidEnvironment
from hud_mcp.plugins.servers.copies import Place, readable_copy, stage_folder
from hud_mcp.sandbox.bubblewrap import GUEST_ROOT
from hud_mcp.sandbox.shown import system_folders


def is_in_system(path: Path) -> bool:
    """Return whether every sandbox shows a path already."""
    return any(path.is_relative_to(folder) for folder in system_folders())


class Places:
    """The places of one program.

    Attributes:
        folder: The environment's folder, which no place may contain.
        name: The name of the program's package, or of its file.
        version: The version of its package; "" if it is of none.
        parts: Digests of its parts, the same on every machine.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = self.version = ""
        self.parts: set[str] = set()
        self._shown: dict[str, Place] = {}

    def show(self, guest: Path, source: Path | None = None, without: Iterable[str] = ()) -> None:
        """Show a file or folder at a path inside, without some folders in it.

        Raises:
            InvalidEnvironment: It has the environment's files, or cannot be shown at this path.
        """
        real = (source or guest).resolve()
        if is_in_system(guest):  # nothing can be mounted there
            if is_in_system(real):
                return
            guest = real
        if self.holds_answers(real):
            raise InvalidEnvironment(
                f"{real} is part of the server's program, and has the environment's files, which "
                "agents must not read. Move one of them to a folder of its own."
            )
        if guest.is_relative_to(GUEST_ROOT):
            raise InvalidEnvironment(
                f"{guest} is part of the server's program, and {GUEST_ROOT} is the folder of a "
                "session inside. Move the program elsewhere."
            )
        self._shown[str(guest)] = Place(real, tuple(without))

    def holds_answers(self, folder: Path) -> bool:
        """Return whether a folder has the environment's own one, or the shipped environments."""
        own = Path(str(files("hud_mcp"))).resolve().parent
        from_sources = (own / "taskset_data").is_dir()
        return self.folder.is_relative_to(folder) or (from_sources and own.is_relative_to(folder))

    def add_part(self, paths: Iterable[Path]) -> None:
        """Add files' names and contents to the digest."""
        digest = hashlib.sha256()
        for path in sorted(paths, key=lambda each: (each.name, str(each))):
            if path.is_file():
                digest.update(f"{path.name}\0".encode() + path.read_bytes())
        self.parts.add(digest.hexdigest())

    def mounts(self) -> dict[str, Path]:
        """Return the read-only mounts that show the places, each parent before its children.

        Raises:
            EnvironmentFailed: A place that only root can read cannot be copied.
        """
        mounts: dict[str, Path] = {}
        for guest in sorted(self._shown, key=lambda each: Path(each).parts):
            place = self._shown[guest]
            if self._is_in_another(Path(guest), place):
                continue
            copy = readable_copy(place)
            mounts[guest] = copy or place.source
            for name in place.without if copy is None else ():
                mounts[f"{guest}/{name}"] = empty = stage_folder() / "empty"
                empty.mkdir(mode=0o755, exist_ok=True)
        return mounts

    def _is_in_another(self, guest: Path, place: Place) -> bool:
        for above in guest.parents:
            outer = self._shown.get(str(above))
            if outer is not None and not outer.without:
                return (outer.source / guest.relative_to(above)).resolve() == place.source
        return False
