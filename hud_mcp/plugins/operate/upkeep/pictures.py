"""The folder of pictures: its files, its stores, and the pictures that none of them refers to.

It may belong to several stores: all SQLite files beside it, and those that left their URL in it. A
picture of any of them stays, as does every other file. If one store cannot be read, all pictures
stay.
"""

import os
import re
import secrets
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from heapq import merge
from pathlib import Path

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    Text,
    cast,
    create_engine,
    func,
    make_url,
    select,
    type_coerce,
)
from sqlalchemy.exc import SQLAlchemyError

from hud_mcp.base.lines import printable
from hud_mcp.errors import StoreFailed
from hud_mcp.record.place import read_place, shown_url
from hud_mcp.store.files import MARKS
from hud_mcp.store.sql.engine import why
from hud_mcp.store.sql.schema import sound_json, steps

_AT_ONCE = 5000
"""Rows that are held; the database sorts the others, on its disk if they are many."""


def picture_names(connection: Connection) -> Generator[tuple[str, str], None, None]:
    """Yield each picture's name, once and in order, with a session that refers to it.

    It takes as much memory for a million steps as for a thousand.
    """
    shot, sha256, extension = _told(connection)
    # A step is taken apart once, as that is most of the time; its picture is, where it is new.
    told = (
        select(shot.label("shot"), func.min(steps.c.session_id).label("session_id"))
        .where(cast(steps.c.row, Text).contains('"screenshot"'))
        .group_by(shot)
        .subquery()
    )
    is_text = connection.dialect.name == "sqlite"  # as all JSON is there
    parts = type_coerce(told.c.shot, JSON) if is_text else cast(told.c.shot, JSON)
    name = parts[sha256].as_string() + "." + parts[extension].as_string()
    named = select(name.label("name"), told.c.session_id).subquery()
    # In the order of Python's texts, whatever the database's language.
    binary = "BINARY" if connection.dialect.name == "sqlite" else "C"
    query = select(named).order_by(named.c.name.collate(binary), named.c.session_id)
    # PostgreSQL would ask each step whether it has a name, by taking it apart again: this asks.
    last: str | None = None
    with connection.execute(query, execution_options={"yield_per": _AT_ONCE}) as rows:
        for found, session_id in rows:
            if found is not None and found != last:
                yield found, session_id
                last = found


def _told(connection: Connection) -> tuple[ColumnElement[str], int | str, int | str]:
    """Return the text of a step's picture, and the places of its name's two parts."""
    row = sound_json(connection, steps.c.row)
    if connection.dialect.name != "sqlite":
        return cast(row["screenshot"], Text), "sha256", "extension"
    paths = ("$.screenshot.sha256", "$.screenshot.extension")
    return func.json_extract(row, *paths, type_=Text), 0, 1


def _names_elsewhere(url: str) -> Generator[str, None, None]:
    """Yield the names of another store's pictures, without a migration; none if it has none.

    Raise SQLAlchemyError if it cannot be read.
    """
    engine = create_engine(make_url(url), hide_parameters=True)
    try:
        with engine.connect() as connection:
            if not engine.dialect.has_table(connection, steps.name):
                return
            with closing(_own_names(connection)) as found:
                yield from found
    finally:
        engine.dispose()


YOUNG_S = 3600.0
"""A file that was written or used so recently may be waiting for its row."""

_FOLDER = re.compile(r"[0-9a-f]{2}")
_PICTURE = re.compile(r"[0-9a-f]{64}\.(png|jpg)")
_HALF_WRITTEN = re.compile(r"tmp[a-z0-9_]{8}|removing-[0-9a-f]{16}-.*")
"""The names of files that a process leaves if it is killed while it writes or removes a picture."""
_HEAD = b"SQLite format 3\0"


@dataclass(frozen=True)
class PictureFile:
    """A file in the folder of pictures, written or used again `age_s` ago."""

    path: Path
    size: int
    age_s: float

    @property
    def name(self) -> str:
        """Its name, by which steps refer to it."""
        return self.path.name


def list_pictures(folder: Path) -> Iterator[PictureFile]:
    """Yield the pictures in a folder, in the order of their names; nothing that is a link."""
    return _files(folder, lambda part, name: name[:2] == part and _PICTURE.fullmatch(name))


def _list_foreign(folder: Path) -> Iterator[PictureFile]:
    """Yield the files in a folder of pictures that are no pictures of a store."""
    return _files(folder, lambda part, name: name[:2] != part or not _PICTURE.fullmatch(name))


def _files(folder: Path, is_wanted: Callable[[str, str], object]) -> Iterator[PictureFile]:
    for part in _entries(folder):
        if not (_FOLDER.fullmatch(part.name) and part.is_dir(follow_symlinks=False)):
            continue
        for each in _entries(Path(part.path)):
            if each.is_file(follow_symlinks=False) and is_wanted(part.name, each.name):
                try:
                    told = each.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                age_s = time.time() - told.st_mtime
                yield PictureFile(Path(each.path), told.st_size, age_s)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda each: each.name)
    except (FileNotFoundError, NotADirectoryError):
        return []


def unused(files: Iterable[PictureFile], names: Iterable[str]) -> Iterator[PictureFile]:
    """Yield the files that no name refers to; both are in order."""
    wanted = iter(names)
    name = next(wanted, None)
    for file in files:
        while name is not None and name < file.name:
            name = next(wanted, None)
        if name != file.name:
            yield file


def remove_unused(folder: Path, names: Iterable[str]) -> tuple[int, int, int]:
    """Remove the pictures that are not named, and half-written files; younger ones stay.

    Return the number of removed pictures, their bytes, and the number of young ones that stay.
    """
    count = size = young = 0
    for file in unused(list_pictures(folder), names):
        if file.age_s < YOUNG_S:
            young += 1
        elif _remove(file.path):
            count, size = count + 1, size + file.size
    for file in _list_foreign(folder):
        if _HALF_WRITTEN.fullmatch(file.name) and file.age_s >= YOUNG_S:
            file.path.unlink(missing_ok=True)
            size += file.size
    return count, size, young


def _remove(path: Path) -> bool:
    """Remove a picture, unless it was used again since it was looked at.

    A user of an existing picture sets its time. That comes before the move, and is seen after it;
    or it finds no file, and writes another one.
    """
    aside = path.with_name(f"removing-{secrets.token_hex(8)}-{path.name[:8]}")
    try:
        path.rename(aside)
        if time.time() - aside.stat().st_mtime < YOUNG_S:
            aside.rename(path)
            return False
        aside.unlink()
    except FileNotFoundError:
        return False
    return True


def is_picture(name: str) -> bool:
    """Whether a name is one of a picture; a hand may have written any other."""
    return _PICTURE.fullmatch(name) is not None


def other_stores(folder: Path, url: str) -> list[str]:
    """Return the URLs of the other stores that use a folder, without passwords."""
    own = shown_url(url)
    found: dict[str, None] = {}
    for each in _entries(folder / MARKS):
        try:
            said = Path(each.path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            said = f"a store that {printable(each.name)!r} does not name"
        path = read_place(said)[1]
        if path is None or path.is_file():
            found[said] = None
    for each in _entries(folder.parent):
        if each.is_file() and _is_sqlite(Path(each.path)):
            found[shown_url(f"sqlite:///{Path(each.path)}")] = None
    mine = read_place(url)[1]
    others = (name for name in found if name != own)
    return [name for name in others if not (mine and _is_same(mine, read_place(name)[1]))]


def all_names(connection: Connection, others: Iterable[str]) -> Generator[str, None, None]:
    """Yield the names of the pictures that a store and others refer to, in order.

    Raises:
        StoreFailed: A store cannot be read. It is raised before any later name.
    """
    streams = [_own_names(connection), *(_names_of(url) for url in others)]
    try:
        yield from merge(*streams)
    finally:
        for stream in streams:
            stream.close()


def _own_names(connection: Connection) -> Generator[str, None, None]:
    with closing(picture_names(connection)) as found:
        for name, _ in found:
            yield name


def _names_of(url: str) -> Generator[str, None, None]:
    try:
        yield from _names_elsewhere(url)
    except (SQLAlchemyError, OSError, ImportError) as exc:
        raise StoreFailed(
            f"{shown_url(url)} keeps its pictures in the same folder, and cannot be read: "
            f"{why(exc)}."
        ) from exc


def _is_sqlite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_HEAD)) == _HEAD
    except OSError:
        return False


def _is_same(one: Path, other: Path | None) -> bool:
    try:
        return other is not None and one.samefile(other)
    except OSError:
        return False
