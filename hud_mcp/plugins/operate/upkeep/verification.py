"""Whether a store is sound: its database, and the pictures that its steps refer to."""

import hashlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from hud_mcp.base.lines import printable
from hud_mcp.plugins.operate import sql
from hud_mcp.plugins.operate.upkeep import pictures
from hud_mcp.plugins.operate.upkeep.values import Finding
from hud_mcp.record.place import read_place
from hud_mcp.store import sql as store_sql

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["verify"]

_OF_A_KIND = 100
"""The most findings that are listed one by one."""

OnProgress = Callable[[int, int], None]


def verify(
    url: str,
    folder: Path,
    on_progress: OnProgress | None,
    bring: Callable[[Path], None] | None = None,
) -> list[Finding]:
    """Look at everything; change nothing.

    `on_progress` gets the number of examined rows and pictures, and of all. `bring` fetches a
    picture that lies in an object store.
    """
    path = read_place(url)[1]
    engine = sql.soundness.open_to_look(url, path)
    done = total = 0

    def step() -> None:
        nonlocal done
        done += 1
        if on_progress is not None and done % 200 == 0:
            on_progress(done, max(done, total))

    try:
        with engine.connect() as connection:
            total = sql.soundness.count_rows(connection)
            total += sum(1 for _ in pictures.list_pictures(folder))
            found = _limited(sql.soundness.look_at(connection, step))
            return [*found, *_limited(_pictures(connection, url, folder, step, bring))]
    except (store_sql.SQLAlchemyError, OSError) as exc:
        remedy = "restore the store from a copy, or start its database"
        return [Finding("unreadable", f"the database: {store_sql.engine.why(exc)}", remedy)]
    finally:
        engine.dispose()


def _limited(found: Iterator[Finding]) -> list[Finding]:
    """Return the first findings of each kind, and the number of the others."""
    kept: list[Finding] = []
    counts: Counter[str] = Counter()
    last: dict[str, Finding] = {}
    for each in found:
        counts[each.kind] += 1
        last[each.kind] = each
        if counts[each.kind] <= _OF_A_KIND:
            kept.append(each)
    for kind, count in counts.items():
        if count > _OF_A_KIND:
            kept.append(Finding(kind, f"and {count - _OF_A_KIND} more", last[kind].remedy))
    return kept


def _pictures(
    connection: "Connection",
    url: str,
    folder: Path,
    step: Callable[[], None],
    bring: Callable[[Path], None] | None,
) -> Iterator[Finding]:
    wanted = _referred(connection)
    if bring is not None:
        _bring_all(connection, folder, bring)
    restore = "restore the folder of pictures from a copy; else pages show the step without it"
    unused = size = 0
    with closing(wanted):
        name, session_id = next(wanted, (None, ""))
        for file in pictures.list_pictures(folder):
            while name is not None and name < file.name:
                yield Finding("missing picture", f"{printable(name)}, of {session_id}", restore)
                name, session_id = next(wanted, (None, ""))
            if name == file.name:
                if _digest(file.path) != file.name[:64]:
                    what = f"{name}, of {session_id}: its content is not what its name says"
                    yield Finding("damaged picture", what, restore)
                name, session_id = next(wanted, (None, ""))
            elif file.age_s >= pictures.YOUNG_S:
                unused, size = unused + 1, size + file.size
            step()
        while name is not None:
            yield Finding("missing picture", f"{printable(name)}, of {session_id}", restore)
            name, session_id = next(wanted, (None, ""))
    if unused and not pictures.other_stores(folder, url):
        what = f"{unused} pictures of {size} bytes, which no step refers to"
        remedy = "`hud-mcp store vacuum` removes them"
        yield Finding("unused pictures", what, remedy, harmless=True)


def _bring_all(connection: "Connection", folder: Path, bring: Callable[[Path], None]) -> None:
    with closing(_referred(connection)) as found:
        for name, _ in found:
            if name is not None and pictures.is_picture(name):
                bring(folder / name[:2] / name)


def _referred(connection: "Connection") -> "Generator[tuple[str | None, str], None, None]":
    """Yield the pictures that steps refer to; none if the steps cannot be read."""
    try:
        with closing(sql.holdings.picture_names(connection)) as found:
            yield from found
    except store_sql.SQLAlchemyError:
        return


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
