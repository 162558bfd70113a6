"""The places of these sets: a folder of the user's, copies of its folders, and servers."""

import io
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from hud_mcp.errors import SourceNotFound
from hud_mcp.plugins.sets.files import Files, InFolder, keep_bytes
from hud_mcp.plugins.sets.imports import NotRunnable

GYMS = {"filesystem": "mcp-filesystem"}
"""The shipped environment of each server that runs here, by the server's name in these sets."""

_MOST_BYTES = 400 * 1024**2
"""A session has a folder of 1 GiB, in which the archive lies beside its content at first."""


def own_folder(files: Files) -> Path:
    """Return the user's folder of a set, whose files have no list at their published place.

    Raises:
        SourceNotFound: The user named none.
    """
    known = files.published
    if not isinstance(files, InFolder):
        raise SourceNotFound(
            f"{known.title} is read from a folder of yours. Get {known.page}, and name its folder "
            f"with --from, or put it into HUD_MCP_DATASETS as {known.key}."
        )
    beneath = files.folder / known.key
    return beneath if beneath.is_dir() else files.folder


def text_of(path: Path, top: Path) -> str:
    """Return the text of a file beneath a folder.

    Raises:
        SourceNotFound: It cannot be read, or a link leads out of the folder.
        ValueError: It is not UTF-8.
    """
    try:
        if not path.resolve().is_relative_to(top.resolve()):
            raise SourceNotFound(f"{path} is a link out of {top}. Copy the file there.")
        return path.read_text(encoding="utf-8-sig")
    except OSError as exc:
        raise SourceNotFound(f"{path} cannot be read: {exc.strerror}.") from exc


def keep_folder(folder: Path) -> str:
    """Keep a folder as a tar, and return its SHA-256; its links are kept, and not followed.

    Raises:
        NotRunnable: It has too many bytes.
        SourceNotFound: Something in it cannot be read.
    """
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
            archive.add(folder, arcname=".", filter=plain)
    except OSError as exc:
        raise SourceNotFound(f"{exc.filename or folder} cannot be read: {exc.strerror}.") from exc
    return keep_bytes(out.getvalue())


def needed(servers: Iterable[str], keys: Mapping[str, str]) -> str:
    """Return a sentence's end about servers and the variables with their keys."""
    told = [f"{name} ({keys[name]})" if name in keys else name for name in servers]
    return f"it needs the server{'s' * (len(told) > 1)} {', '.join(told)}"
