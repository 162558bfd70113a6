"""A PostgreSQL of one's own that syncs each commit, for as long as a benchmark runs."""

import os
import pwd
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psutil
import psycopg

__all__ = ["Database", "database"]

_WAIT_S = 60


class Database:
    """One that runs.

    Args:
        folder: Its socket's.
        pid: Its first process's.
    """

    def __init__(self, folder: Path, pid: int) -> None:
        self._folder = folder
        self._process = psutil.Process(pid)
        self._count = 0

    def connect(self) -> "psycopg.Connection[Any]":
        """Connect as its owner."""
        return psycopg.connect(
            f"host={self._folder} user=postgres dbname=postgres", autocommit=True
        )

    def new_url(self) -> str:
        """The URL of a place without tables."""
        self._count += 1
        with self.connect() as connection:
            connection.execute(f"CREATE SCHEMA place{self._count}".encode())
        query = {"host": self._folder, "options": f"-csearch_path=place{self._count}"}
        return f"postgresql+psycopg://postgres@/postgres?{urlencode(query)}"

    def cpu_s(self) -> float:
        """Processor seconds of all its processes, also of those that have ended."""
        total = 0.0
        for process in [self._process, *self._process.children(recursive=True)]:
            try:
                each = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += each.user + each.system + each.children_user + each.children_system
        return total

    def transactions(self) -> int:
        """How many it has committed so far."""
        with self.connect() as connection:
            connection.execute("SELECT pg_stat_force_next_flush()")
            row = connection.execute("SELECT sum(xact_commit) FROM pg_stat_database").fetchone()
        return int(row[0]) if row else 0

    def commits_per_s(self, writers: int, seconds: float) -> float:
        """How many rows so many writers commit in a second, one row a commit."""
        with self.connect() as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS tried (text text)")
        counts: list[int] = []
        end_s = time.perf_counter() + seconds

        def write() -> None:
            count = 0
            with self.connect() as connection:
                while time.perf_counter() < end_s:
                    connection.execute("INSERT INTO tried VALUES ('a row of some words')")
                    count += 1
            counts.append(count)

        threads = [threading.Thread(target=write) for _ in range(writers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(counts) / seconds


@contextmanager
def database() -> Iterator[Database | None]:
    """Have one while the block runs; None where PostgreSQL is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    initdb = shutil.which("initdb") or (found[-1] if found else None)
    if initdb is None:
        yield None
        return
    programs = Path(initdb).parent
    folder = Path(tempfile.mkdtemp(prefix="hud-pg-", dir="/tmp"))
    as_user: dict[str, Any] = {"cwd": folder, "stdout": subprocess.DEVNULL}
    if os.geteuid() == 0:  # it refuses to run as root
        user = pwd.getpwnam("postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)
        as_user |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    data = folder / "data"
    make = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8"]
    subprocess.run(make, check=True, **as_user)
    options = ["--listen_addresses=", f"--unix_socket_directories={folder}"]
    server = subprocess.Popen(
        [programs / "postgres", "-D", data, *options], stderr=subprocess.DEVNULL, **as_user
    )
    try:
        made = Database(folder, server.pid)
        _wait(made)
        yield made
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait(made: Database) -> None:
    end_s = time.monotonic() + _WAIT_S
    while True:
        try:
            made.connect().close()
        except psycopg.OperationalError:
            if time.monotonic() > end_s:
                raise
            time.sleep(0.05)
        else:
            return
