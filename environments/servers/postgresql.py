"""A private cluster of PostgreSQL, and its wire protocol, of the standard library.

`python3 postgresql.py CLUSTER` runs the statements of its standard input, each as a role, and
writes what each of them returns.
"""

import contextlib
import ctypes
import json
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, Self

Rows = tuple[list[str], list[list[str | None]]]
ADMIN, OWNER = "postgres", "shop"
"""The administrator, and the role of the agent, which reaches no file and no program."""
DATABASE = "shop"

_SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "16MB",
    "max_connections": "10",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "min_wal_size": "2MB",
    "max_wal_size": "8MB",
    # The folder lies in memory. It outlives processes alone.
    "fsync": "off",
    # Between two calls no file of the cluster changes: it can be copied while it runs.
    "autovacuum": "off",
    "bgwriter_lru_maxpages": "0",
    "checkpoint_timeout": "1d",
    "max_logical_replication_workers": "0",
    "log_min_messages": "fatal",
}
_AS_ROLE = {"search_path": "public", "statement_timeout": "20s", "client_encoding": "UTF8"}
_START_S, _ANSWER_S = 30.0, 40.0
_STARTING = "57P03"
_GONE = "08006"
_NO_RESULT = ("08", "53", "57", "58", "XX")
"""Classes of SQLSTATE in which a statement says nothing of the tables: no time, room or memory."""
_DIES_WITH = 1  # PR_SET_PDEATHSIG
_PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/bin")
_MAKE = (
    "{bin}/initdb -D cluster -U postgres -A trust -E UTF8 --locale=C --no-sync --wal-segsize=1 &&"
    " printf '%s;\\n\\n' 'CREATE ROLE shop LOGIN' 'CREATE DATABASE shop'"
    " 'GRANT CREATE ON DATABASE shop TO shop' | {bin}/postgres --single -j -D cluster postgres &&"
    # The others are two thirds of the cluster.
    " printf '%s;\\n\\n' 'ALTER SCHEMA public OWNER TO shop'"
    " 'UPDATE pg_database SET datistemplate = false' 'DROP DATABASE template0'"
    " 'DROP DATABASE template1' 'DROP DATABASE postgres'"
    " | {bin}/postgres --single -j -D cluster shop"
)


def find_programs() -> Path | None:
    """The folder of the newest PostgreSQL's programs; None where there is none."""
    found = [
        folder
        for place in _PLACES
        for folder in Path("/").glob(place.lstrip("/"))
        if (folder / "initdb").is_file() and (folder / "postgres").is_file()
    ]
    return max(found, key=_version, default=None)


def _version(folder: Path) -> int:
    numbers = re.findall(r"\d+", str(folder))
    return int(numbers[0]) if numbers else 0


def make_line(programs: Path) -> str:
    """The line of bash that makes the folder `cluster`, with the database and its owner."""
    return _MAKE.format(bin=programs)


class PostgresError(Exception):
    """The database has refused a statement; `code` is the SQLSTATE."""

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.code = code


class Connection:
    """A connection of one role to the database.

    Attributes:
        tags: The tags of the commands that the last `run` has completed.
    """

    def __init__(self, place: str, role: str, **settings: str) -> None:
        self.tags: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_ANSWER_S)
        self._file = self._socket.makefile("rb")
        try:
            self._socket.connect(f"{place}/.s.PGSQL.5432")
            words = {"user": role, "database": DATABASE, **_AS_ROLE, **settings}
            text = b"".join(f"{name}\0{value}\0".encode() for name, value in words.items()) + b"\0"
            self._socket.sendall(struct.pack("!II", len(text) + 8, 3 << 16) + text)
            self._answer()
        except BaseException as exc:
            self.close()
            if isinstance(exc, OSError):
                raise PostgresError(
                    f"The database does not answer: {exc.strerror or exc}", _GONE
                ) from exc
            raise

    def __enter__(self) -> Self:
        """Use it for a block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """End it, and wait for its end; what it has not committed is undone."""
        with contextlib.suppress(OSError, PostgresError):
            self._send(b"X", b"")
            self._file.read()
        self._file.close()
        self._socket.close()

    def run(self, sql: str) -> Rows:
        """Run statements, and return the rows of the last that has some."""
        self._send(b"Q", _text(sql))
        return self._answer()

    def read(self, sql: str, most: int) -> Rows:
        """Run one statement, and return its first rows."""
        self._send(b"P", b"\0" + _text(sql) + b"\0\0")
        self._send(b"B", bytes(8))
        self._send(b"D", b"P\0")
        self._send(b"E", b"\0" + struct.pack("!I", most))
        self._send(b"S", b"")
        return self._answer()

    def _send(self, kind: bytes, body: bytes) -> None:
        try:
            self._socket.sendall(kind + struct.pack("!I", len(body) + 4) + body)
        except OSError as exc:
            raise PostgresError(f"The connection is gone: {exc}", _GONE) from exc

    def _take(self, size: int) -> bytes:
        try:
            data = self._file.read(size)
        except OSError as exc:
            raise PostgresError(f"The database does not answer: {exc}", _GONE) from exc
        if len(data) < size:
            raise PostgresError("The database has ended the connection", _GONE)
        return data

    def _answer(self) -> Rows:
        """Read until the database is ready for the next statement."""
        names: list[str] = []
        rows: list[list[str | None]] = []
        failed: PostgresError | None = None
        self.tags = []
        while True:
            try:
                kind, size = struct.unpack("!cI", self._take(5))
            except PostgresError as exc:
                raise failed or exc from None  # a last error may have told why
            body = self._take(size - 4)
            if kind == b"E":
                failed = _read_error(body)
            elif kind == b"T":
                names, rows = _read_names(body), []
            elif kind == b"D":
                rows.append(_read_row(body))
            elif kind == b"C":
                self.tags.append(body[:-1].decode())
            elif kind == b"G":  # there is nothing to copy from
                self._send(b"f", b"COPY FROM STDIN has no data here\0")
            elif kind == b"Z":
                break
        if failed is not None:
            raise failed
        return names, rows


def _text(sql: str) -> bytes:
    # A NUL would end the statement, and half a character has no bytes.
    return sql.replace("\0", "?").encode("utf-8", "replace") + b"\0"


def _read_error(body: bytes) -> PostgresError:
    fields = {part[:1]: part[1:].decode("utf-8", "replace") for part in body.split(b"\0") if part}
    told = [fields[key].rstrip(".") for key in (b"M", b"D", b"H") if key in fields]
    return PostgresError(". ".join(told), fields[b"C"])


def _read_names(body: bytes) -> list[str]:
    at, names = 2, list[str]()
    for _ in range(struct.unpack_from("!H", body)[0]):
        end = body.index(0, at)
        names.append(body[at:end].decode())
        at = end + 19
    return names


def _read_row(body: bytes) -> list[str | None]:
    at, row = 2, list[str | None]()
    for _ in range(struct.unpack_from("!H", body)[0]):
        (size,) = struct.unpack_from("!i", body, at)
        at += 4
        row.append(None if size < 0 else body[at : at + size].decode("utf-8", "replace"))
        at += max(size, 0)
    return row


@contextlib.contextmanager
def running(cluster: str) -> Generator[str]:
    """Run a cluster, and yield the folder of its socket; it ends with this process."""
    programs = find_programs()
    if programs is None:
        raise RuntimeError("There is no PostgreSQL here.")
    folder = Path(cluster)
    folder.chmod(0o700)
    # The process that it names ended with an earlier server, or on another machine.
    (folder / "postmaster.pid").unlink(missing_ok=True)
    place = tempfile.mkdtemp()
    settings = {**_SETTINGS, "unix_socket_directories": place}
    words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    libc = ctypes.CDLL(None)
    with (Path(place) / "log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603  # the system's own
            [str(programs / "postgres"), "-D", cluster, *words],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            preexec_fn=lambda: libc.prctl(_DIES_WITH, signal.SIGQUIT),  # noqa: PLW1509  # one thread
        )  # fmt: skip
    try:
        _await_start(process, place)
        yield place
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(_START_S)


def _await_start(process: "subprocess.Popen[bytes]", place: str) -> None:
    until = time.monotonic() + _START_S
    while True:
        try:
            Connection(place, ADMIN).close()
        except PostgresError as exc:
            if exc.code not in (_STARTING, _GONE):
                raise
            if process.poll() is not None or time.monotonic() > until:
                said = (Path(place) / "log").read_text("utf-8", "replace")[-500:]
                raise RuntimeError(f"PostgreSQL does not start: {said or exc}") from exc
            time.sleep(0.01)
        else:
            return


def main() -> None:
    """Run statements, and write their rows, or the SQLSTATE of their error."""
    said: list[Any] = []
    with running(sys.argv[1]) as place:
        for role, sql in json.load(sys.stdin):
            # A row that a policy would hide is an error.
            with Connection(place, role, row_security="off" if role == OWNER else "on") as one:
                try:
                    said.append(one.run(sql)[1])
                except PostgresError as exc:
                    if exc.code.startswith(_NO_RESULT):
                        sys.exit(f"{exc} (SQLSTATE {exc.code}).")
                    said.append(exc.code)
    json.dump(said, sys.stdout)


if __name__ == "__main__":
    main()
