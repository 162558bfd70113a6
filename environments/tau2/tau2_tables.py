"""The database of a desk: tables of rows by id, of which a session copies what it changes."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from hud_mcp import ActionFailed

__all__ = ["Database", "Row", "Table"]

Row = dict[str, Any]


class Table(Mapping[str, Row]):
    """Rows by their ids. Those of the files are shared by all sessions, and never changed.

    Args:
        noun: What one row is, for errors.
        shared: The rows of the files.
    """

    def __init__(self, noun: str, shared: Mapping[str, Row]) -> None:
        self._noun = noun
        self._shared = shared
        self._own: dict[str, Row] = {}

    def __getitem__(self, key: str) -> Row:
        """A row to look at; ActionFailed where there is none."""
        if key in self._own:
            return self._own[key]
        if key not in self._shared:
            raise ActionFailed(f"{self._noun} {key!r} not found")
        return self._shared[key]

    def __contains__(self, key: object) -> bool:
        return key in self._own or key in self._shared

    def __iter__(self) -> Iterator[str]:
        yield from self._shared
        yield from (key for key in self._own if key not in self._shared)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def edit(self, key: str) -> Row:
        """A row to change, which is this session's own; ActionFailed where there is none."""
        if key not in self._own:
            self._own[key] = deepcopy(self[key])
        return self._own[key]

    def put(self, key: str, row: Row) -> Row:
        """Add a row, or replace one."""
        self._own[key] = row
        return row

    @property
    def changed(self) -> dict[str, Any]:
        """The rows that differ from those of the files, in a form that is the same for the same."""
        own = {key: _plain(row) for key, row in self._own.items()}
        shared = self._shared
        return {k: row for k, row in own.items() if k not in shared or row != _plain(shared[k])}

    def merge(self, rows: Mapping[str, Any]) -> None:
        """Put values into rows, as deep as they go; new rows are added."""
        for key, values in rows.items():
            _merge(self.edit(key) if key in self else self.put(key, {}), values)


class Database:
    """The tables of one side of a desk, by their names."""

    def __init__(self, nouns: Mapping[str, str], rows: Mapping[str, Mapping[str, Row]]) -> None:
        self.tables = {name: Table(noun, rows.get(name, {})) for name, noun in nouns.items()}

    def __getitem__(self, name: str) -> Table:
        return self.tables[name]

    def merge(self, rows: Mapping[str, Mapping[str, Any]]) -> None:
        """Put values into rows of several tables."""
        for name, each in rows.items():
            self.tables[name].merge(each)

    @property
    def digest(self) -> str:
        """The SHA-256 of all rows that differ from those of the files.

        Whole numbers count the same with and without a fraction, and no value the same as no field.
        """
        changed = {name: table.changed for name, table in self.tables.items()}
        return hashlib.sha256(json.dumps(changed, sort_keys=True).encode()).hexdigest()


def _merge(row: Row, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if isinstance(value, Mapping) and isinstance(row.get(name), dict):
            _merge(row[name], value)
        else:
            row[name] = deepcopy(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        # A field without a value is the same as none: the files leave such fields out.
        return {name: _plain(each) for name, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
