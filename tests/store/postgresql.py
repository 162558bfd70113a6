"""A PostgreSQL of one's own: a cluster in a temporary folder, on a socket in that folder."""

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psycopg
from waiting import wait_until

PLACES = (
    "/usr/lib/postgresql/*/bin",  # Debian, Ubuntu
    "/usr/pgsql-*/bin",  # Fedora, Red Hat
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
)


@cache
def find_programs() -> Path | None:
    """The folder of `initdb` and `postgres`; None where there is none."""
    found = [path for place in PLACES for path in Path("/").glob(place.removeprefix("/"))]
    on_path = shutil.which("initdb")
    if on_path:
        found.append(Path(on_path).resolve().parent)
    whole = [path for path in found if (path / "initdb").exists() and (path / "postgres").exists()]
    return max(whole, default=None)


class Cluster:
    """A server with a database of its own, that forgets what it was not asked to keep durable.

    Args:
        programs: Where `initdb` and `postgres` are.
    """

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="hud-pg-", dir="/tmp"))
        self._user = _unprivileged()
        if self._user is not None:
            os.chown(self.folder, self._user, -1)
        self._process: subprocess.Popen[bytes] | None = None
        self._count = 0
        subprocess.run(
            [
                *(programs / "initdb", "--pgdata", self.folder / "data", "--no-sync"),
                *("--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            **self._as_user(),
        )

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": self.folder,
            "fsync": "off",
            "full_page_writes": "off",
            "autovacuum": "off",
            "timezone": "Asia/Kolkata",  # what comes back in UTC was made so
            "max_connections": 300,
            "deadlock_timeout": "2s",  # after which it looks once
            "log_destination": "stderr",
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.folder / "data", *options],
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509  # it calls the kernel alone
                **self._as_user(),
            )
        wait_until(self._answers, said=lambda: "the server takes no connections")

    def _answers(self) -> bool:
        """Whether it takes connections; one that has ended never will.

        Raises:
            OperationalError: It has ended.
        """
        try:
            psycopg.connect(self.conninfo("postgres")).close()
        except psycopg.OperationalError:
            if self._process is None or self._process.poll() is not None:
                raise
            return False
        return True

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server, as an operator would who does not wait for its clients."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def remove(self) -> None:
        """Stop it at once, and leave nothing."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def new_schema(self) -> str:
        """Make a place without tables, which takes a thousandth of a database's time; its URL."""
        self._count += 1
        name = f"place{self._count}"
        with psycopg.connect(self.conninfo("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        query = urlencode({"host": self.folder, "options": f"-csearch_path={name}"})
        return f"postgresql+psycopg://postgres@/postgres?{query}"

    def conninfo(self, database: str) -> str:
        """How libpq finds a database of it."""
        return f"host={self.folder} user=postgres dbname={database}"

    def _as_user(self) -> dict[str, Any]:
        """How a program is started: PostgreSQL refuses to run as root."""
        options: dict[str, Any] = {"cwd": self.folder}
        if self._user is not None:
            options |= {"user": self._user, "group": pwd.getpwuid(self._user).pw_gid}
            options |= {"extra_groups": []}
        return options


def _unprivileged() -> int | None:
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    raise RuntimeError("no user that PostgreSQL could run as")


def _end_with_parent() -> None:
    """A run of tests that is killed leaves no server behind."""
    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGINT)
