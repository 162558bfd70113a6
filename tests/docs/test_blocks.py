"""Every block of README and docs is run as a reader runs it: in order, from an empty folder.

A page is one session of a reader. Files that it shows are saved, programs are run, and commands
are typed; servers that a command starts go on until the page ends. What a page shows as output is
what is printed: `…` stands for any text of a line, and a line of it for any lines.
"""

import json
import os
import re
import shlex
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from page_blocks import PAGES, Block, Page
from tables import each_of

FAILS = {("docs/check.md", "hud-mcp check env.py"): 1, ("docs/tasks.md", "hud-mcp eval"): 1}
"""A page, and how a command of it begins, to the exit status that it is to have."""

MOST_MARKS = 34
"""How many blocks or commands are marked as not run, at most; lower it when one goes."""

COMMAND_S = 180
"""What one command may take on a busy machine."""

PORTS = ("8000", "8765")
"""Ports that the pages name; each page is given free ones in their place."""

SERVERS = re.compile(
    r"hud-mcp serve .*--http|hud-mcp channel serve|hud-mcp view|python -m hud_mcp\.(?:channel|env)"
    r"|python model_server\.py"
)
"""Commands that serve until they are stopped."""

INSTALLS = re.compile(r"hud-mcp (?:un)?install ")
"""Commands that write into the reader's home."""

RUN = ("python", "console", "text", "json")
"""Languages of blocks that are run, compared or parsed; a file of any language is saved."""

READY = re.compile(r"https?://|HUD_SERVE_PORT=|[Ll]istening|running on", re.IGNORECASE)
"""What such a command says once it can be connected to."""


@pytest.mark.browser
@pytest.mark.sandbox
@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(
    "each",
    [
        pytest.param(each, marks=() if each.name == "README.md" else pytest.mark.long)
        for each in PAGES
    ],
    ids=lambda each: each.name,
)
def test_a_page_works_as_it_is_written(each: Page, tmp_path: Path) -> None:
    """Each block is saved, run or compared, and none is passed over."""
    with reading(tmp_path) as reader:
        for block in each.blocks:
            reader.read(each, block)


@pytest.mark.parametrize(("where", "begins"), FAILS)
def test_an_exception_is_a_command_of_a_page(where: str, begins: str) -> None:
    """What is on the list of exceptions stands in a page; no list outlives its page."""
    shown = [
        command
        for each in PAGES
        if where == each.name
        for block in each.blocks
        for command in commands(block)
    ]
    assert any(command.startswith(begins) for command in shown)


@each_of("each", PAGES, ids=lambda each: each.name)
def test_every_block_of_a_page_is_run_or_marked_with_a_reason(each: Page) -> None:
    """No fence is passed over; a mark stands before a block, and names a command that is in it."""
    assert len(re.findall(r"^ *(?:```|~~~)", each.text, re.MULTILINE)) == 2 * len(each.blocks)
    assert each.text.count("<!-- no-run") == sum(len(block.marks) for block in each.blocks)
    for block in each.blocks:
        where = f"{each.name}:{block.line}"
        assert block.file or block.marks or block.language in RUN, f"{where} is neither"
        for begins in filter(None, block.marks):
            assert any(command.startswith(begins) for command in commands(block)), where


@each_of("each", PAGES, ids=lambda each: each.name)
def test_no_page_installs_packages_while_it_is_tested(each: Page) -> None:
    """An installation would change the environment of all tests after it."""
    for block in each.blocks:
        for command in commands(block):
            installs = command.startswith("pip install")
            assert not installs or block.why_not_run(command), f"{each.name}: {command}"


@each_of("each", PAGES, ids=lambda each: each.name)
def test_the_commands_of_a_workflow_are_run_by_its_page(each: Page) -> None:
    """Those of ours, but for what installs; a reader's pipeline does what was tried."""
    typed_here = [command for block in each.blocks for command in commands(block)]
    for workflow in each.programs("yaml"):
        for command in re.findall(r"- run: ((?:hud-mcp|python) .+)", workflow):
            assert " install " in command or command in typed_here, f"{each.name}: {command}"


def test_marks_do_not_become_more() -> None:
    """What is not run is few, and becomes fewer."""
    assert sum(len(block.marks) for each in PAGES for block in each.blocks) <= MOST_MARKS


@each_of("each", PAGES, ids=lambda each: each.name)
def test_a_file_that_a_page_shows_is_used_by_it(each: Page) -> None:
    """A reader saves a file for something that follows: a command, a program, another file."""
    for block in each.blocks:
        if block.file in (None, "env.py", "tasksets.toml"):  # what commands find by themselves
            continue
        path = Path(block.file)
        rest = "".join(other.text.replace(f"# {path}\n", "") for other in each.blocks)
        assert any(name in rest for name in (path.name, f"{path.parts[0]}/", path.stem)), path


@dataclass
class Reader:
    """Somebody who works through one page.

    Attributes:
        folder: Where the reader's files are; empty at first.
        environment: The variables of what the reader runs.
        ports: Free ports, for those that the page names.
        servers: What runs, by its port, or by its command where it names none.
        printed: What the last program printed.
    """

    folder: Path
    environment: dict[str, str]
    ports: dict[str, str]
    servers: dict[str, "Server"] = field(default_factory=dict)
    printed: str | None = None

    def read(self, page: Page, block: Block) -> None:
        """Do what a block is there for."""
        where = f"{page.name}:{block.line}"
        if "" in block.marks:
            return
        if block.file is not None:
            path = self.folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.filled(block.text), encoding="utf-8")
        elif block.language == "python":
            self.printed = self.run(
                [sys.executable, "-W", "error", "-c", self.filled(block.text)], where, 0
            )
        elif block.language == "console":
            for command, shown in typed(block):
                failing = (
                    status
                    for (name, begins), status in FAILS.items()
                    if name == page.name and command.startswith(begins)
                )
                if block.why_not_run(command) is None:
                    self.type(command, shown, where, next(failing, 0))
        elif block.language == "text":
            assert self.printed is not None, f"{where} shows what nothing has printed"
            assert_shown(block.text.splitlines(), self.printed, where)
        else:
            assert block.language == "json", f"{where}: nobody runs this"
            json.loads(block.text)

    def type(self, command: str, shown: list[str], where: str, status: int) -> None:
        """Type a command, and see that it prints what the page says."""
        line = self.filled(command)
        if SERVERS.search(line):
            self.serve(line, where)
            return
        self.printed = self.run(["bash", "-c", line], f"{where}: {line}", status)
        if shown:
            assert_shown(shown, self.printed, where)

    def run(self, command: list[str], where: str, status: int) -> str:
        """Run a command to its end; return what it prints, or the errors of one that does not."""
        environment = self.environment
        if INSTALLS.search(command[-1]):  # into a home that is nobody's
            environment = {**environment, "HOME": environment["XDG_DATA_HOME"]}
        done = subprocess.run(
            command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=COMMAND_S, check=False,
        )  # fmt: skip
        assert done.returncode == status, f"{where}\n{done.stdout}\n{done.stderr}"
        return done.stdout or done.stderr

    def serve(self, line: str, where: str) -> None:
        """Start a server, in place of one on the same port, and wait until it is there."""
        named = [port for port in self.ports.values() if port in line] or [line]
        for port in named:
            if (former := self.servers.pop(port, None)) is not None:
                former.stop()
        server = Server.start(shlex.split(line, comments=True), self.folder, self.environment)
        self.servers |= dict.fromkeys(named, server)
        assert server.is_there(), f"{where}: {line}\n{''.join(server.said)}"

    def filled(self, text: str) -> str:
        """A text with free ports, a /tmp of this reader's, and the ids of what it has recorded."""
        text = text.replace("/tmp/", f"{self.environment['XDG_STATE_HOME']}/")
        for port, free in self.ports.items():
            text = re.sub(rf"\b{port}\b", free, text)
        for word, table in (("JOB", "jobs"), ("TRAJECTORY", "sessions")):
            if re.search(rf"(?<![-\w=])\b{word}\b", text):
                text = re.sub(rf"(?<![-\w=])\b{word}\b", self.newest(table), text)
        return text

    def newest(self, table: str) -> str:
        """The id of the newest job or trajectory, as `hud-mcp jobs` shows it."""
        with closing(sqlite3.connect(self.environment["HUD_MCP_STORE"])) as store:
            [(found,)] = store.execute(f"SELECT id FROM {table} ORDER BY rowid DESC LIMIT 1")
        return str(found)


@dataclass(frozen=True)
class Server:
    """A command that serves until it is stopped.

    Attributes:
        process: What was started.
        said: Its lines so far.
        ready: Set once it has said that it is there, or has ended.
        listener: The thread that reads its lines.
    """

    process: subprocess.Popen[str]
    said: list[str]
    ready: threading.Event
    listener: threading.Thread

    @classmethod
    def start(cls, command: list[str], folder: Path, environment: dict[str, str]) -> "Server":
        """Start a command."""
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        said: list[str] = []
        ready = threading.Event()

        def listen() -> None:
            for line in process.stdout or ():
                said.append(line)
                if READY.search(line):
                    ready.set()
            ready.set()

        listener = threading.Thread(target=listen)
        listener.start()
        return cls(process, said, ready, listener)

    def is_there(self) -> bool:
        """Whether it serves; waits until it says so, or ends."""
        return self.ready.wait(COMMAND_S) and self.process.poll() is None

    def stop(self) -> None:
        """Tell it to end; what does not end by that is killed, and fails the test."""
        self.process.terminate()
        try:
            self.process.wait(60)
        finally:
            self.process.kill()
            self.process.wait()
            self.listener.join(60)
            if self.process.stdout is not None:
                self.process.stdout.close()


@contextmanager
def reading(place: Path) -> Iterator[Reader]:
    """A reader with an empty folder; whatever was started has ended when this returns."""
    folder, elsewhere = place / "reader", place / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    outside = {name: value for name, value in os.environ.items() if not foreign(name)}
    environment = {
        **outside,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HUD_MCP_STORE": str(elsewhere / "store.sqlite3"),
        "XDG_CONFIG_HOME": str(elsewhere),
        "XDG_DATA_HOME": str(elsewhere),
        "XDG_STATE_HOME": str(elsewhere),
        "BROWSER": "true",
        "COLUMNS": "100",
    }
    reader = Reader(folder, environment, dict(zip(PORTS, free_ports(len(PORTS)), strict=True)))
    try:
        yield reader
    finally:
        for server in reader.servers.values():
            server.stop()


def foreign(name: str) -> bool:
    """Whether a variable is of this test run and no reader has it."""
    kept = ("HUD_MCP_CHROMIUM", "PLAYWRIGHT_BROWSERS_PATH")
    return name.startswith(("HUD_", "PYTEST_", "PYTHON")) and name not in kept


def free_ports(count: int) -> list[str]:
    """Ports of the loopback that nothing listens on."""
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [str(each.getsockname()[1]) for each in taken]
    finally:
        for each in taken:
            each.close()


def commands(block: Block) -> list[str]:
    """The commands that a block shows."""
    return [command for command, _ in typed(block)] if block.language == "console" else []


def typed(block: Block) -> Iterator[tuple[str, list[str]]]:
    """The commands of a block, each with the lines that it prints."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, *shown = part.replace("\\\n", "").splitlines()
        yield command, shown


def assert_shown(shown: list[str], printed: str, where: str) -> None:
    """See that what was printed is what the page shows."""
    lines = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
        for line in map(str.rstrip, shown)
    )
    assert re.fullmatch(pattern, lines), f"{where} shows\n{''.join(shown)}\nand got\n{printed}"
