"""One change of one file: shown first, with a backup, and undone if it turns out wrong."""

import difflib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from hud_mcp.errors import HudMcpError, InvalidConfiguration, SourceNotFound, name_known
from hud_mcp.plugins.install import jsonc, toml
from hud_mcp.plugins.install.client import CLIENTS, Client, Entry, Machine, find_client, is_own

_AROUND = 2
"""Lines shown before and after what changes; others may hold secrets."""
_LINE_CHARS = 160


@dataclass(frozen=True)
class Change:
    """A change of one file, or of a link's target. `before` is None if the file does not exist."""

    path: Path
    before: bytes | None
    after: bytes

    @property
    def is_empty(self) -> bool:
        """Whether nothing would change."""
        return self.before == self.after

    def lines(self) -> Iterator[str]:
        """Yield the lines of the change in the form of `diff -u`."""
        before, after = ((each or b"").decode().splitlines() for each in (self.before, self.after))
        name = str(self.path)
        for line in difflib.unified_diff(before, after, name, name, n=_AROUND, lineterm=""):
            yield line if len(line) <= _LINE_CHARS else f"{line[: _LINE_CHARS - 1]}…"

    def write(self) -> Path | None:
        """Keep a backup, replace the file as a whole, and return the path of the backup.

        Raises:
            HudMcpError: The file has changed since it was read. It is left unchanged.
        """
        if _content(self.path) != self.before:
            raise HudMcpError(f"{self.path} changed during the command. Run it again.")
        backup = None
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.before is not None:
            backup = _free(self.path, f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
            _replace(backup, self.before, like=self.path)
        _replace(self.path, self.after, like=self.path)
        return backup

    def undo(self, backup: Path | None = None) -> None:
        """Put back the content from before, unless somebody else has changed the file since.

        The backup that `write` returned is removed.
        """
        if self.is_empty or _content(self.path) != self.after:
            return
        if self.before is None:
            self.path.unlink()
        else:
            _replace(self.path, self.before, like=self.path)
        if backup is not None:
            backup.unlink(missing_ok=True)


class Configuration:
    """The configuration of one client.

    Raises:
        InvalidConfiguration: The file cannot be read. The text has its path, line and column.
    """

    def __init__(self, client: Client, path: Path) -> None:
        self._client = client
        self._language = toml if client.style == "toml" else jsonc
        self.path = path.resolve()
        self.content = _content(self.path)
        try:
            text = (self.content or b"").decode()
            self._mark = "\ufeff" if text.startswith("\ufeff") else ""
            self._text = text.removeprefix("\ufeff")
            self._value = self._language.read(self._text)
        except UnicodeDecodeError as exc:
            raise InvalidConfiguration(
                f"{self.path} is not UTF-8: byte {exc.start}. It stays as it was."
            ) from None
        except InvalidConfiguration as exc:
            raise InvalidConfiguration(f"{self.path}, {exc} It stays as it was.") from None

    def find(self, name: str) -> Any:
        """Return the written entry of a name; None if it has none."""
        return self.entries().get(name)

    def entries(self, *outer: str) -> dict[str, Any]:
        """Return every written entry by its name; `outer` are names around those of the servers."""
        value: Any = self._value
        for key in (*outer, *self._client.keys):
            value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}

    def with_entry(self, name: str, entry: Entry) -> Change:
        """Return the change that adds a server, or gives one of that name another command.

        A person's own additions to an entry stay in it.
        """
        path = (*self._client.keys, name)
        value = entry.value(self._client)
        former = self.find(name)
        text = self._text
        try:
            if isinstance(former, dict) and "command" in former:
                for key, each in value.items():
                    text = self._language.put(text, (*path, key), each)
            else:
                text = self._language.put(text, path, value)
        except InvalidConfiguration as exc:
            raise InvalidConfiguration(f"{self.path}, {exc} It stays as it was.") from None
        return self._change(text)

    def without_entry(self, name: str) -> Change:
        """Return the change that takes a server away, and nothing else."""
        return self._change(self._language.drop(self._text, (*self._client.keys, name)))

    def _change(self, text: str) -> Change:
        if text == self._text:
            return Change(self.path, self.content, self.content or b"")
        return Change(self.path, self.content, f"{self._mark}{text}".encode())


def find_entries(client: str, name: str, folder: Path) -> dict[str, dict[str, Any]]:
    """Return the entry of a name of a client in a folder, or of a file; all but ours without one.

    The project's own entry comes before one for all projects; each has its folder as `cwd`. Parent
    folders are not searched: somebody else may write them.

    Raises:
        SourceNotFound: There is no client or no entry of that name; the text lists those that are.
        InvalidConfiguration: The entry starts this package, or a file cannot be read.
    """
    here, file = folder.resolve(), Path(client).expanduser()
    if is_file := file.suffix in (".json", ".toml") and file.is_file():
        of = [c for c in CLIENTS.values() if (c.style == "toml") == (file.suffix == ".toml")]
        title, found = client, [Configuration(each, file) for each in of]
    else:
        known = find_client(client)
        files = [known.file(Machine.here()), *([here / known.project] * bool(known.project))]
        title, found = known.title, [Configuration(known, each) for each in files]
    every = {n: each for one in found for n, each in one.entries().items()}
    every |= found[0].entries("projects", str(here))
    places = " and ".join(dict.fromkeys(str(each.path) for each in found))
    if name and not isinstance(every.get(name), dict):
        hint = name_known(name, every, what="It has")
        raise SourceNotFound(f"{title} has no server {name!r} in {places}.{hint}")
    if name and is_own(every[name]):
        raise InvalidConfiguration(f"{name!r} of {title} is hud-mcp itself.")
    chosen = {n: e for n, e in every.items() if n == name or not (name or is_own(e))}
    for n, e in chosen.items():
        if not isinstance(e, dict) or not isinstance(cast("Any", e).get("cwd", ""), str):
            raise InvalidConfiguration(
                f"{places}: the entry {n!r} is no server. Expected an object whose cwd, if it has "
                "one, is a text. Mend it, or take it out."
            )
    text = json.dumps(chosen, default=str)
    for variable, path in (("workspaceFolder", here), ("userHome", Path.home())):
        text = text.replace(f"${{{variable}}}", json.dumps(str(path))[1:-1])
    top = file.resolve().parent if is_file else here
    return {n: {**e, "cwd": str(top / e.get("cwd", ""))} for n, e in json.loads(text).items()}


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _free(path: Path, mark: str) -> Path:
    number = 0
    while (
        found := path.with_name(f"{path.name}.{mark}{f'-{number}' * bool(number)}.bak")
    ).exists():
        number += 1
    return found


def _replace(path: Path, content: bytes, *, like: Path) -> None:
    """Write a file whole or not at all, with the access rights of another one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if like.exists():
            Path(name).chmod(like.stat().st_mode & 0o777)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
