"""An MCP server of a cluster of PostgreSQL: `python3 postgresql_server.py CLUSTER`."""

import sys

from postgresql import ADMIN, OWNER, Connection, PostgresError, running
from sql_server import MOST_ROWS, Rows, SqlError, serve

_TABLES = """SELECT table_name AS name, lower(table_type) AS type FROM information_schema.tables
WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1"""
_COLUMNS = """SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
  a.attnotnull AS required, COALESCE(a.attnum = ANY (i.indkey), false) AS pk
FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
WHERE a.attrelid = to_regclass('{name}') AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""


class PostgreSQL:
    """A running cluster. Each call has a connection of its own: nothing is kept between two."""

    def __init__(self, place: str) -> None:
        self._place = place

    def query(self, sql: str) -> Rows:
        """Read, and change nothing."""
        try:
            with Connection(self._place, OWNER) as connection:
                connection.run("BEGIN READ ONLY")
                # One statement, which ends this transaction at most.
                return connection.read(sql, MOST_ROWS + 1)
        except PostgresError as exc:
            raise SqlError(str(exc)) from exc

    def execute(self, sql: str) -> str:
        """Change, all statements or none."""
        done: list[str] = []
        failed = ""
        try:
            with Connection(self._place, OWNER) as connection:
                connection.run("BEGIN")
                try:
                    connection.run(sql)
                finally:
                    done = connection.tags
                connection.run("COMMIT")
        except PostgresError as exc:
            kept = "The part before COMMIT stands" if "COMMIT" in done else "Nothing was changed"
            failed = f"{exc}. {kept}."
        try:
            # A copy of the files is whole then.
            with Connection(self._place, ADMIN) as connection:
                connection.run("CHECKPOINT")
        except PostgresError as exc:  # such as on a full disk
            failed = f"{failed or 'Done.'} The database cannot write its files: {exc}."
        if failed:
            raise SqlError(failed)
        if "ROLLBACK" in done:
            return "Done, with a ROLLBACK of your own."
        changed = [tag.split() for tag in done if tag.startswith(("INSERT", "UPDATE", "DELETE"))]
        return f"Done: {sum(int(words[-1]) for words in changed)} rows were changed."

    def tables(self) -> Rows:
        """The tables and views."""
        return self.query(_TABLES)

    def describe(self, table: str) -> Rows:
        """The columns of a table."""
        return self.query(_COLUMNS.format(name=table.replace("'", "''")))


def main() -> None:
    """Serve on the standard streams until their end."""
    with running(sys.argv[1]) as place:
        serve(PostgreSQL(place))


if __name__ == "__main__":
    main()
