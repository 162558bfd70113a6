"""The place of a record: a SQLite file, or a database by its URL."""

import os
import re
from pathlib import Path

from platformdirs import user_data_path

from hud_mcp.errors import StoreFailed

STORE_VARIABLE = "HUD_MCP_STORE"
PICTURES_VARIABLE = "HUD_MCP_PICTURES"

_SQLITE_FILE = re.compile(
    r"sqlite(\+pysqlite)?:///(?!:memory:|file:)(?P<path>[^?]+)(?P<query>\?.*)?"
)
_POSTGRESQL = re.compile(r"^postgres(ql)?://")
_KINDS = frozenset({"sqlite", "postgresql"})
_HEAD = b"SQLite format 3\0"


def default_store_file() -> Path:
    """Return the file of the default store, in the user's data folder."""
    return user_data_path("hud-mcp") / "store.sqlite3"


def default_store_url() -> str:
    """Return the default store: `HUD_MCP_STORE`, else the user's own."""
    return os.environ.get(STORE_VARIABLE) or str(default_store_file())


def read_pictures_place(given: Path | str | None, folder: Path) -> tuple[Path, str | None]:
    """Return the folder of pictures on this machine, and the URL that it has copies of, or None.

    It is the given place, `HUD_MCP_PICTURES`, or a folder beside the store.
    """
    own = folder / "screenshots"
    named = given or os.environ.get(PICTURES_VARIABLE)
    if named is None or named == "":
        return own, None
    if isinstance(named, str) and "://" in named:
        return own, named
    return Path(named).expanduser().absolute(), None


def is_store_named(given: str | None) -> bool:
    """Whether somebody has named the store; the user's own may not be there yet."""
    return bool(given or os.environ.get(STORE_VARIABLE))


def read_place(given: str) -> tuple[str, Path | None]:
    """Return a store's URL in its usual form, and its file if it is SQLite's."""
    if "://" not in given:
        path = Path(given).expanduser().absolute()
        return f"sqlite:///{path}", path
    match = _SQLITE_FILE.fullmatch(given)
    if match is not None:
        path = Path(match["path"]).absolute()
        return f"sqlite:///{path}{match['query'] or ''}", path
    return _POSTGRESQL.sub("postgresql+psycopg://", given), None


def shown_url(given: str) -> str:
    """Return a store's URL for people: without a password, and without options."""
    url, path = read_place(given)
    if path is not None:
        return f"sqlite:///{path}"
    kind, _, rest = url.partition("://")
    where, _, query = rest.partition("?")
    user, at, host = where.rpartition("@")
    # A socket's folder is where the database is; what else is asked for may be a password.
    kept = [part for part in query.split("&") if part.startswith(("host=", "port="))]
    shown = f"{kind}://{user.partition(':')[0]}{at}{host}"
    return f"{shown}?{'&'.join(kept)}" if kept else shown


def kind_problem(url: str) -> str | None:
    """Return the error text if the URL names an unsupported database, else None."""
    kind = url.partition(":")[0].partition("+")[0]
    if kind in _KINDS:
        return None
    return (
        f"a store is a SQLite file, or in PostgreSQL, and not in {kind!r}. Give a file's path, or "
        "a URL such as postgresql://user@host/database"
    )


def check_place(given: str | None) -> None:
    """Refuse a place that cannot be a store, before anything of it is touched.

    Raises:
        StoreFailed: It is a folder, a file of another kind, or a database of another kind. The
            text names the place, which is for its user and for no agent.
    """
    url, path = read_place(given or default_store_url())
    if path is None:
        if (problem := kind_problem(url)) is not None:
            raise StoreFailed(f"The store cannot be opened: {problem}.")
        return
    if path.is_dir():
        raise StoreFailed(
            f"The store cannot be opened: {path} is a folder. Name a file in it, such as "
            f"{path / default_store_file().name}."
        )
    if path.exists() and not path.is_file():
        raise StoreFailed(f"The store cannot be opened: {path} is not a file. Name another one.")
    if path.is_file() and _is_foreign(path):
        raise StoreFailed(
            f"The store cannot be opened: {path} is not an SQLite file, and stays as it is. "
            "Name another file."
        )


def _is_foreign(path: Path) -> bool:
    """Whether a file begins as no SQLite file does; an empty one may become a store."""
    try:
        with path.open("rb") as file:
            head = file.read(len(_HEAD))
    except OSError:  # opening it says why
        return False
    return bool(head) and head != _HEAD
