"""The files of a set: in a folder of the user's, or from their published place into a cache."""

import hashlib
import json
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlsplit

from filelock import FileLock
from platformdirs import user_cache_path

from hud_mcp.base.text import read_text_bytes
from hud_mcp.errors import SourceNotFound
from hud_mcp.plugins.sets.download import Download, NotPublished, Unreachable

__all__ = ["dataset_file"]


PLACE_VARIABLE = "HUD_MCP_DATASETS"
"""A folder or an address in place of every published one."""


@dataclass(frozen=True)
class Token:
    """The user's token for a gated place.

    Attributes:
        host: The only host that gets it.
        variables: Environment variables that may hold it, the first one first.
        terms: The page where a person accepts the terms.
    """

    host: str
    variables: tuple[str, ...]
    terms: str


@dataclass(frozen=True)
class Published:
    """The place of a set's files; `sets.toml` says what each field is."""

    key: str
    title: str
    about: str
    base: str
    page: str
    licence: str
    parts: str
    token: Token | None = None
    extra: str | None = None
    sha256: Mapping[str, str] = field(default_factory=dict[str, str])
    servers: Mapping[str, str] = field(default_factory=dict[str, str])
    here: Sequence[str] = ()

    def credit(self, path: str) -> str:
        """Return the origin of a file's rows, with its repository and its licence."""
        return f"{path} of {self.page.rpartition(' of ')[2]} ({self.licence})"


@cache
def _records() -> dict[str, Published]:
    text = Path(__file__).with_name("sets.toml").read_text(encoding="utf-8")
    found: dict[str, Published] = {}
    for row in tomllib.loads(text)["set"]:
        token: dict[str, Any] | None = row.pop("token", None)
        if token is not None:
            token["variables"] = tuple(token["variables"])
            row["token"] = Token(**token)
        found[row["title"]] = Published(**row)
    return found


def published(title: str) -> Published:
    """Return the record of a set in `sets.toml`."""
    return _records()[title]


_TOKEN_VARIABLE = "HUD_MCP_DATASETS_TOKEN"  # noqa: S105  # its name, not a token
_LOCK_S = 600.0

Report = Callable[[str], None]


class Files:
    """The files of one set, by the paths at which they are published. `notes` are for people."""

    def __init__(self, published: Published) -> None:
        self.published = published
        self.notes: list[str] = []

    def path(self, name: str, *, url: str | None = None) -> Path:
        """Return a file of this machine with the content of a published path.

        `url` is its address, if it is not beside the others.

        Raises:
            SourceNotFound: The file cannot be had; the text names it, its origin, and its place.
        """
        raise NotImplementedError

    def read(self, name: str) -> bytes:
        """Return the content of a file; see `path`."""
        return read_text_bytes(self.path(name))

    def read_optional(self, name: str) -> bytes | None:
        """Return the content of a file; None if no file has that name.

        Raises:
            SourceNotFound: It is not known whether the file exists.
        """
        try:
            return self.read(name)
        except NotPublished:
            return None


class InFolder(Files):
    """Files that lie in a folder of the user's.

    They are found by the path at which they are published, or by the end of it: a copy of the
    repository, or its files side by side.
    """

    def __init__(self, folder: Path, published: Published) -> None:
        super().__init__(published)
        self.folder = folder

    def path(self, name: str, *, url: str | None = None) -> Path:
        """See `Files`."""
        parts = name.split("/")
        ends = ["/".join(parts[start:]) for start in range(len(parts))]
        beneath = [self.folder / self.published.key, self.folder]
        for candidate in (folder / end for end in ends for folder in beneath):
            if candidate.is_file():
                self._compare(candidate, self.published.sha256.get(name))
                return candidate
        raise NotPublished(
            f"{self.folder} has no {name} of {self.published.title}, nor {parts[-1]}. Download "
            f"it from {url or self.published.page}, and put it there."
        )

    def _compare(self, path: Path, sha256: str | None) -> None:
        if sha256 is None:
            return
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != sha256:
            self.notes.append(
                f"{path} is not what was published: its digest is {found[:12]}, not {sha256[:12]}."
            )


@dataclass
class _Index:
    path: Path
    files: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    @classmethod
    def read(cls, path: Path) -> "_Index":
        try:
            found: Any = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return cls(path)
        if not isinstance(found, dict):
            return cls(path)
        return cls(path, cast("dict[str, dict[str, str]]", found))

    def write(self) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.files, indent=1, sort_keys=True), encoding="utf-8")
        new.replace(self.path)


class Cached(Files):
    """Files that are fetched from their published place when they are first wanted.

    Args:
        base: The address before their paths.
        published: The set.
        refresh: Whether known files are fetched again.
        report: A function that gets the progress, a line for people.
    """

    def __init__(
        self, base: str, published: Published, *, refresh: bool = False, report: Report | None
    ) -> None:
        super().__init__(published)
        self._base = base.rstrip("/")
        self._refresh = refresh
        self._report = report
        self._fetched: set[str] = set()
        self._folder = cached_index(published.key).parent

    def path(self, name: str, *, url: str | None = None) -> Path:
        """See `Files`; a place of the user's stands for other addresses too."""
        target = self._folder.joinpath(*name.split("/"))
        self._folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self._folder / ".lock", timeout=_LOCK_S):
            index = _Index.read(cached_index(self.published.key))
            known = index.files.get(name, {})
            if url is None or self._base != self.published.base.rstrip("/"):
                url = f"{self._base}/{quote(name)}"
            if self._is_there(target, known, url) and (not self._refresh or name in self._fetched):
                return target
            self._fetch(name, url, target, index)
        return target

    def _is_there(self, target: Path, known: Mapping[str, str], url: str) -> bool:
        if not target.is_file() or known.get("url") != url:
            return False
        return hashlib.sha256(target.read_bytes()).hexdigest() == known.get("sha256")

    def _fetch(self, name: str, url: str, target: Path, index: _Index) -> None:
        """Fetch a file beside the old one, and put it in its place if it is the expected one.

        Raise SourceNotFound if it is another one than before, or cannot be had.
        """
        fresh = target.with_name(f"{target.name}.fetched")
        download = Download(
            url, fresh, headers=self._headers(url), report=self._report, refused=self._refused()
        )
        try:
            found = download.fetch()
        except Unreachable as exc:
            raise Unreachable(self._how_to_get(name, str(exc))) from exc
        known = index.files.get(name, {})
        before = self.published.sha256.get(name) or (
            known.get("sha256") if known.get("url") == url else None
        )
        if before is not None and found != before:
            said = (
                f"{url} has changed: its digest is {found[:12]}, and it was {before[:12]} when "
                "this was written."
            )
            if not self._refresh:
                fresh.unlink()
                raise SourceNotFound(
                    f"{said} Nothing was replaced. Look at what changed, then accept it with "
                    "refresh=True, or `hud-mcp taskset import --refresh`."
                )
            self.notes.append(f"{said} The new one is used, as refresh says.")
        target.unlink(missing_ok=True)
        fresh.replace(target)
        self._fetched.add(name)
        index.files[name] = {"sha256": found, "url": url}
        index.write()

    def _headers(self, url: str) -> dict[str, str]:
        """Return the headers for an address: a token goes only to the place that it is for."""
        if not url.startswith(f"{self._base}/"):
            return {}
        token = os.environ.get(_TOKEN_VARIABLE) if os.environ.get(PLACE_VARIABLE) else None
        own = self.published.token
        if token is None and own is not None and urlsplit(url).hostname == own.host:
            token = next((os.environ[name] for name in own.variables if os.environ.get(name)), None)
        return {"authorization": f"Bearer {token}"} if token else {}

    def _refused(self) -> str:
        own = self.published.token
        if os.environ.get(PLACE_VARIABLE):
            return f"Put the token of this place into {_TOKEN_VARIABLE}."
        if own is None:
            return "It should be open to everyone."
        return (
            f"{self.published.title} is given to those who accept its terms: do so at {own.terms}, "
            f"then put your own token into {own.variables[0]}."
        )

    def _how_to_get(self, name: str, why: str) -> str:
        return (
            f"{self.published.title} needs {name}, which is not there yet. {why} It is published "
            f"as {self.published.page}. Without a network, put it into a folder and name that in "
            f"{PLACE_VARIABLE}: FOLDER/{self.published.key}/{name}."
        )


def cache_folder() -> Path:
    """Return the folder of this user's cache."""
    return user_cache_path("hud-mcp")


def cached_index(key: str) -> Path:
    """Return the file that lists what the cache has of a set."""
    return cache_folder() / "datasets" / key / "index.json"


def fetched_file(address: str, *, refresh: bool, report: Report | None) -> Path:
    """Fetch a file of tasks by its address into the cache, and return it.

    Raises:
        SourceNotFound: The address is not that of a file of tasks, or the file cannot be had.
    """
    base, _, name = address.rpartition("/")
    if not urlsplit(address).path.endswith((".jsonl", ".json")):
        raise SourceNotFound(f"{address}: name the address of a .jsonl or a .json file.")
    key = f"addresses/{hashlib.sha256(base.encode()).hexdigest()[:16]}"
    place = Published(key=key, title=name, about="", base=base, page=address, licence="", parts="")
    files = Cached(base, place, refresh=refresh, report=report)
    return files.path(name.partition("?")[0])


def open_files(
    published: Published,
    *,
    place: str | Path | None = None,
    refresh: bool = False,
    report: Report | None = None,
) -> Files:
    """Return the files of a set: from a place, else from `HUD_MCP_DATASETS`, else as published.

    The place is a folder or an address. With `refresh`, known files are fetched again.

    Raises:
        SourceNotFound: The folder is not there.
    """
    named = str(place) if place is not None else os.environ.get(PLACE_VARIABLE, "")
    if named.startswith(("http://", "https://")):
        base = named if place is not None else f"{named.rstrip('/')}/{published.key}"
        return Cached(base, published, refresh=refresh, report=report)
    if named:
        folder = Path(named).expanduser()
        if not folder.is_dir():
            where = "" if place is not None else f" ({PLACE_VARIABLE})"
            raise SourceNotFound(f"There is no folder {named!r}{where} to read data sets from.")
        return InFolder(folder, published)
    return Cached(published.base, published, refresh=refresh, report=report)


def keep_file(path: Path) -> str:
    """Keep a file, and return its SHA-256. A row names it so, and no other file of the machine."""
    return keep_bytes(path.read_bytes())


def keep_bytes(data: bytes) -> str:
    """Keep the content of a file as `keep_file` does, and return its SHA-256."""
    digest = hashlib.sha256(data).hexdigest()
    kept = _kept(digest)
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        new = kept.with_suffix(f".{os.getpid()}")
        new.write_bytes(data)
        new.replace(kept)
    return digest


def dataset_file(sha256: str) -> Path:
    """Return a file that was kept.

    Raises:
        SourceNotFound: There is none of that digest, or it is not what it was.
    """
    kept = _kept(sha256)
    plain = sha256.isalnum() and kept.is_file()
    if not plain or hashlib.sha256(kept.read_bytes()).hexdigest() != sha256:
        raise SourceNotFound(
            f"The file {sha256[:12]}… of a data set is not on this machine; import the set here "
            "again with `hud-mcp taskset import`."
        )
    return kept


def _kept(sha256: str) -> Path:
    return cache_folder() / "files" / sha256[:2] / sha256
