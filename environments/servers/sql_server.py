"""An MCP server of a database, of the standard library: `python3 sql_server.py FILE` for SQLite."""

import csv
import io
import json
import sqlite3
import sys
from collections.abc import Sequence
from typing import Any, Protocol

MOST_ROWS = 200
Rows = tuple[list[str], Sequence[list[Any]]]


class SqlError(Exception):
    """The database has refused a statement."""


class Database(Protocol):
    """The statements that a database runs; what it refuses is a `SqlError`."""

    def query(self, sql: str) -> Rows:
        """Read, and change nothing."""
        ...

    def execute(self, sql: str) -> str:
        """Change, all statements or none."""
        ...

    def tables(self) -> Rows:
        """The tables and views."""
        ...

    def describe(self, table: str) -> Rows:
        """The columns of a table."""
        ...


class SQLite:
    """A file of SQLite."""

    def __init__(self, file: str) -> None:
        self._connection = sqlite3.connect(file, isolation_level=None)
        # A view or a trigger that somebody has left calls no function of risk.
        self._connection.execute("PRAGMA trusted_schema=OFF")

    def query(self, sql: str) -> Rows:
        """Read, and change nothing."""
        self._connection.execute("PRAGMA query_only=ON")
        try:
            found = self._connection.execute(sql)
            names = [each[0] for each in found.description or ()]
            return names, [list(row) for row in found.fetchmany(MOST_ROWS + 1)]
        except sqlite3.Error as exc:
            raise SqlError(str(exc)) from exc
        finally:
            self._connection.execute("PRAGMA query_only=OFF")

    def execute(self, sql: str) -> str:
        """Change, all statements or none."""
        before = self._connection.total_changes
        try:
            # The script's own BEGIN would be a second one, which is refused.
            self._connection.executescript(f"BEGIN;\n{sql}\n;COMMIT;")
        except sqlite3.Error as exc:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise SqlError(f"{exc}. Nothing was changed.") from exc
        return f"Done: {self._connection.total_changes - before} rows were changed."

    def tables(self) -> Rows:
        """The tables and views."""
        return self.query("SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view')")

    def describe(self, table: str) -> Rows:
        """The columns of a table."""
        quoted = table.replace("'", "''")
        return self.query(
            f"SELECT name, type, \"notnull\" AS required, pk FROM pragma_table_info('{quoted}')"  # noqa: S608
        )


def schema(name: str, said: str) -> dict[str, Any]:
    """The schema of a tool with one argument."""
    properties = {name: {"type": "string", "description": said}}
    return {"type": "object", "properties": properties, "required": [name]}


TOOLS = [
    {
        "name": "list_tables",
        "description": "List the tables and views of the database.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "describe_table",
        "description": "List the columns of a table.",
        "inputSchema": schema("table", "The table's name."),
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "query",
        "description": f"Run one SELECT, and return at most {MOST_ROWS} rows as CSV.",
        "inputSchema": schema("sql", "The statement."),
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "execute",
        "description": "Run statements that change the database, all of them or none.",
        "inputSchema": schema("sql", "The statements, with semicolons between them."),
        "annotations": {"readOnlyHint": False, "destructiveHint": True},
    },
]


def shown(rows: Rows) -> str:
    """Rows as CSV."""
    names, found = rows
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([names, *found[:MOST_ROWS]])
    more = "(There are more rows.)\n" if len(found) > MOST_ROWS else ""
    return out.getvalue() + more


def call(database: Database, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Call a tool; an error of the database is the tool's."""
    try:
        if name == "list_tables":
            said = shown(database.tables())
        elif name == "describe_table":
            said = shown(database.describe(str(given.get("table", ""))))
        elif name == "query":
            said = shown(database.query(str(given.get("sql", ""))))
        elif name == "execute":
            said = database.execute(str(given.get("sql", "")))
        else:
            return {"content": [{"type": "text", "text": f"No tool {name}."}], "isError": True}
    except SqlError as exc:
        return {"content": [{"type": "text", "text": str(exc)}], "isError": True}
    return {"content": [{"type": "text", "text": said}]}


def answer(database: Database, asked: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request; None for an unknown method."""
    method, params = asked["method"], asked.get("params") or {}
    if method == "initialize":
        info = {"name": "sql", "version": "1.0.0"}
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": info,
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return call(database, str(params.get("name")), params.get("arguments") or {})
    return None


def serve(database: Database) -> None:
    """Serve on the standard streams until their end."""
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        result = answer(database, asked)
        error = {"code": -32601, "message": "There is no such method."}
        said = {"error": error} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)


if __name__ == "__main__":
    serve(SQLite(sys.argv[1]))
