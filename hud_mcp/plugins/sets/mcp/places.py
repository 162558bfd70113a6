"""The places of these sets: a folder of the user's, copies of its folders, and servers."""

import io
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from hud_mcp.errors import SourceNotFound
from hud_mcp.plugins.sets.files import Files, InFolder, keep_bytes
from hud_mcp.plugins.sets.imports import NotRunnable

HERE, GYM, SEVERAL = "filesystem", "mcp-filesystem", "mcp-local"
"""The server for files, the shipped environment over it, and that over several servers."""
_WITHOUT_FILES = {"calculator"}

_MOST_BYTES = 400 * 1024**2
"""A session has a folder of 1 GiB, in which the archive lies beside its content at first."""

Begin = tuple[list[list[Any]], list[str]]
"""The setup calls of a row, and the reasons why it does not run here."""


def own_folder(files: Files) -> Path:
    """Return the user's folder of a set, whose files have no list at their published place.

    Raises:
        SourceNotFound: The user named none.
    """
    known = files.published
    if not isinstance(files, InFolder):
        told = f"{known.title} is read from a folder of yours: get {known.page}, and name it with "
        raise SourceNotFound(f"{told}--from, or put it into HUD_MCP_DATASETS as {known.key}.")
    beneath = files.folder / known.key
    return beneath if beneath.is_dir() else files.folder


def no_rows(files: Files, folder: Path, expected: str) -> NoReturn:
    """Refuse a folder without any row of a set."""
    told = f"{folder} has no tasks of {files.published.title}: expected {expected}. Get "
    raise SourceNotFound(f"{told}{files.published.page}.")


def text_of(path: Path, top: Path) -> str:
    """Return a text beneath a folder; SourceNotFound for none, and for a link out of the folder."""
    try:
        if not path.resolve().is_relative_to(top.resolve()):
            raise SourceNotFound(f"{path} is a link out of {top}. Copy the file there.")
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as exc:
        raise SourceNotFound(f"{path}: this cannot be read as text in UTF-8: {exc}.") from exc


def field_of(raw: Any, name: str, kind: type[Any], default: Any = None) -> Any:
    """Return a field of a row; a ValueError that names it for one of another kind."""
    found = raw.get(name, default) if hasattr(raw, "get") else raw
    if not isinstance(found, kind):
        raise ValueError(f"{name}: expected {kind.__name__}, got {found!r:.80}")  # noqa: TRY004
    return found


def begin(given: str | Path | None, missing: str) -> Begin:
    """Keep a folder as a tar for sessions; its links are kept, and not followed.

    Raises:
        SourceNotFound: Something in it cannot be read.
    """
    folder = Path(given or "\0").expanduser()
    if not folder.is_dir():
        return [], [missing]
    room = _MOST_BYTES

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
        nonlocal room
        room -= info.size
        if room < 0:
            raise NotRunnable(f"its folder {folder.name} has over {_MOST_BYTES >> 20} MiB")
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        info.mode |= 0o700 if info.isdir() else 0o600
        return info if info.isreg() or info.isdir() or info.issym() or info.islnk() else None

    out = io.BytesIO()
    try:
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
            archive.add(folder.resolve(), arcname=".", filter=plain)
    except OSError as exc:
        raise SourceNotFound(f"{exc.filename or folder} cannot be read: {exc.strerror}.") from exc
    except NotRunnable as exc:
        return [], [str(exc)]
    return [["dataset_folder", keep_bytes(out.getvalue())]], []


def local(files: Files) -> set[str]:
    """Return the servers of a set that run here."""
    return {HERE, *files.published.here}


def begin_over(
    servers: Iterable[str], begun: Begin, files: Files, *, gym: str | None = None
) -> tuple[str, list[list[Any]], list[str]]:
    """Return the environment of a row over servers, its setup, and why it does not run here.

    `gym`, an environment of the user's, has the servers and their files itself.
    """
    names, keys = list(dict.fromkeys(servers)), files.published.servers
    if gym is not None:
        return gym, [], []
    if names and set(names) <= local(files):
        setup, reasons = begun if set(names) - _WITHOUT_FILES else ([], [])
        return GYM if names == [HERE] else SEVERAL, setup, reasons
    told = [f"{name} ({keys[name]})" if name in keys else name for name in names]
    needed = f"it needs the server{'s' * (len(told) > 1)} {', '.join(told) or 'that it means'}"
    return SEVERAL, [], [needed]
