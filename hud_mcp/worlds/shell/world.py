"""The live shell of one session: commands and files, in its sandbox."""

import builtins
import errno
import posixpath
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import anyio

from hud_mcp.base.text import clip_text
from hud_mcp.environment.agent_data import note_agent_data
from hud_mcp.environment.world import World
from hud_mcp.errors import ActionFailed, BrokenByAgent, EnvironmentFailed
from hud_mcp.sandbox import Entry, Finished, Sandbox
from hud_mcp.sandbox.bubblewrap import GUEST_ROOT
from hud_mcp.values.action import Action, ActionEffect, CustomAction, WaitAction
from hud_mcp.values.observation import Look, Observation
from hud_mcp.worlds.shell.actions import SHELL_ACTIONS, one_line, replace_text
from hud_mcp.worlds.shell.results import CommandResult, folder_lines, how_ended, is_agents, refusal
from hud_mcp.worlds.shell.snapshots import FolderSnapshots
from hud_mcp.worlds.shell.stage import Author
from hud_mcp.worlds.shell.verifier import Verifier, open_verifier

T = TypeVar("T")

MOST_READ_BYTES = 1024 * 1024
"""The longest file that is read or edited as text."""

_SHOWN_ENTRIES = 60


class ShellWorld(World):
    """One session's shell. Made by `Shell.open`.

    A template gets it by annotating a parameter with this class. Each command is a new shell that
    starts in the folder. Files and background processes stay until the session ends. Everything
    here happens inside the sandbox, with the agent's rights. A template reads only what the agent
    could have written, and no link leads out of the folder.
    """

    def __init__(
        self, sandbox: Sandbox, *, most_snapshot_bytes: int, author: Author | None = None
    ) -> None:
        self._sandbox = sandbox
        self._author = author or Author()
        self._at_close: list[Callable[[], Awaitable[None]]] = []
        self._snapshots = FolderSnapshots(sandbox, most_bytes=most_snapshot_bytes)
        self._last = ""
        self._closed = False
        self._broken = ""

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox itself, for things that this class does not offer."""
        self._check_usable()
        return self._sandbox

    @property
    def died(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride]  # asked of it
        """The reason why its sandbox can no longer be used; None while it can."""
        if self._broken:
            return self._broken
        return None if self._closed or self._sandbox.alive else "The sandbox has ended."

    async def is_dead(self) -> bool:
        """Whether its sandbox can no longer be used."""
        return self.died is not None

    def note_change(self) -> None:
        """Note that files may change without this object, so that no older pack is a snapshot."""
        self._snapshots.expire()

    @property
    def root(self) -> str:
        """The folder's path for commands."""
        return self._sandbox.root

    async def run(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float | None = None,
        stdin: str = "",
        cwd: str = "",
        env: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """Run a command to its end.

        Args:
            command: A line for bash, or a program with its arguments.
            timeout_s: The longest duration, at most the sandbox's own limit.
            stdin: Its standard input.
            cwd: The folder to start in, relative to the session's own.
            env: More environment variables.

        Raises:
            ActionFailed: `cwd` is not in the folder, `timeout_s` is not above 0, or the command has
                a NUL in it. Nothing ran.
            BrokenByAgent: The folder `cwd` is missing, or cannot be entered. Nothing ran.
            EnvironmentFailed: The sandbox has ended.

        If this call is cancelled, it kills the command and its processes.
        """
        self._check_command(command, timeout_s)
        self._check_path(cwd)
        self._snapshots.expire()
        finished = await self._doing(
            self.sandbox.run(command, timeout_s=timeout_s, stdin=stdin.encode(), cwd=cwd, env=env),
            cwd,
        )
        return _result(finished)

    async def run_for_agent(self, command: str, *, timeout_s: float | None = None) -> CommandResult:
        """Run an agent's own command; in `/` if the folder cannot be entered.

        The agent can then repair the folder. Graders use `run`, which refuses instead.

        Raises:
            ActionFailed: The reasons of `run`.
            EnvironmentFailed: The sandbox has ended.
        """
        try:
            done = await self.run(command, timeout_s=timeout_s)
        except BrokenByAgent as exc:
            elsewhere = self.sandbox.run(command, timeout_s=timeout_s, cwd=None)
            done = _result(await self._doing(elsewhere, self.root))
            done = replace(done, output=f"[{exc} This ran in /.]\n{done.output}")
        # Not of commands of the author's, which agents must not read.
        self._last = f"Last command: {one_line(command)} → {how_ended(done)}"
        return done

    def _check_command(self, command: str | Sequence[str], timeout_s: float | None) -> None:
        line = command if isinstance(command, str) else " ".join(command)
        if "\0" in line:
            raise ActionFailed("The command contains NUL, which no command may. Nothing ran.")
        if timeout_s is not None and not timeout_s > 0:
            raise ActionFailed(f"timeout_s is above 0, not {timeout_s:g}. Nothing ran.")

    async def read(self, path: str) -> str:
        """Return a text file's content.

        Raises:
            ActionFailed: No file of the folder can have that path.
            BrokenByAgent: The file is missing, is not text, is too long or cannot be read. Or a
                link on its path leads outside the folder.
        """
        data = await self._read_text(path)
        return note_agent_data(data.decode("utf-8", "replace"))

    async def read_bytes(self, path: str) -> bytes:
        """Return a file's content, at most 1 MiB, or fail like `read`."""
        self._check_path(path)
        reading = self.sandbox.files.read(path, most_bytes=MOST_READ_BYTES)
        return note_agent_data(await self._doing(reading, path))

    async def write(self, path: str, content: str | bytes) -> None:
        """Write a whole file, and make the folders on its way.

        Raises:
            ActionFailed: No file of the folder can have that path, or that size.
            BrokenByAgent: The path is not a file, leads out of the folder or cannot be written, or
                the folder has no room left.
        """
        self._check_path(path)
        self._snapshots.expire()
        data = content.encode() if isinstance(content, str) else content
        most = self.sandbox.files.most_bytes
        if len(data) > most:
            raise ActionFailed(
                f"{path}: it has {len(data)} bytes, and the folder has room for {most}."
            )
        await self._doing(self.sandbox.files.write(path, data), path)

    async def edit(self, path: str, old: str, new: str, *, every: bool = False) -> int:
        """Replace a text in a file, and return the number of replacements.

        Args:
            path: The file.
            old: The present text. It must occur once, unless `every` is set.
            new: The new text.
            every: Whether to replace each occurrence.

        Raises:
            ActionFailed: The text is missing, or occurs more than once. Nothing changed.
        """
        before = await self._read_text(path)
        data, count = replace_text(before, old, new, every=every, path=path)
        await self.write(path, data)
        return count

    async def _read_text(self, path: str) -> bytes:
        data = await self.read_bytes(path)
        if b"\0" in data:
            raise BrokenByAgent(f"{path} is not text: it has {len(data)} bytes and NUL among them.")
        return data

    async def list(self, path: str = ".") -> "list[Entry]":
        """Return the entries of a folder, by name; at most 1000.

        Raises:
            ActionFailed: No folder of the session can have that path.
            BrokenByAgent: It is missing, is not a folder, cannot be read, or leads outside.
        """
        self._check_path(path)
        entries, _total = await self._doing(self.sandbox.files.entries(path), path)
        return entries

    async def exists(self, path: str) -> bool:
        """Whether a file or folder of that name exists; it fails like `list`."""
        self._check_path(path)
        return await self._doing(self.sandbox.files.exists(path), path)

    async def end_processes(self) -> None:
        """Kill every process in the sandbox, so that nothing disturbs the grading."""
        await self._doing(self.sandbox.end_processes())

    async def stop_agent(self) -> None:
        """Stop the agent's processes as grading begins, until a command is run here."""
        await self._doing(self.sandbox.hold())

    def verifier(
        self,
        files: str | Path | None = None,
        copy: str | Iterable[str] | Mapping[str, str] = (),
        *,
        originals: Iterable[str] = (),
        network: bool = False,
    ) -> AbstractAsyncContextManager[Verifier]:
        """Open a fresh sandbox for grading, where the agent has not been.

        It has the author's files, and copies of the agent's named outputs, as data. Files and
        folders keep their permissions, without setuid and setgid. A link in a folder is kept if it
        leads to another copy. It copies files that programs run automatically (`conftest.py`,
        `sitecustomize.py`, `*.pth`, git's hooks …) only if you name them. The agent's processes are
        stopped while it copies.

        Args:
            files: A file, or a folder whose content is put into the verifier's folder, from the
                environment's folder on. They are read-only, and stand in front of outputs of the
                same path. Outputs in a folder of theirs are read-only too.
            copy: Paths in the agent's folder; or a mapping of them to paths in the verifier's.
                `.` is the whole folder. `Verifier.missing` names the missing paths.
            originals: Patterns of names, such as `test_*`; `tests` for the usual names of tests;
                `*` for all. Such files of the world's own `root` come from there, unless `copy`
                names them or their folder.
            network: Whether it may reach the session's hosts. Otherwise it reaches nothing.

        Raises:
            GraderFailed: The `files` do not exist, or a path of `copy` is not in the folder.
            BrokenByAgent: The agent made a copy impossible, such as with too much data.
            EnvironmentFailed: The machine cannot make a sandbox, or the session's has ended.

        If its block is left in any way, the verifier and all in it are gone.
        """
        return open_verifier(
            self.sandbox,
            self._author,
            files=files,
            copy=copy,
            originals=(originals,) if isinstance(originals, str) else tuple(originals),
            network=network,
        )

    async def act(self, action: Action) -> ActionEffect:
        """Perform one action: `wait`, or `custom` with one of this world's own."""
        self._check_usable()
        if isinstance(action, WaitAction):
            self._snapshots.expire()
            await anyio.sleep(action.time / 1000)
            return ActionEffect()
        if isinstance(action, CustomAction):
            return await SHELL_ACTIONS.perform(self, action)
        raise ActionFailed(
            f"There is nothing to {action.type!r} here: this is a shell. Use the custom action "
            "'run' with a command."
        )

    async def observe(self, look: Look) -> Observation:
        """Return the folder's contents, and the end of the last command."""
        self._check_usable()
        if not look.text:
            return Observation()
        lines = await self._folder_lines()
        if self._last:
            lines.append(self._last)
        if self._snapshots.notice:
            lines.append(self._snapshots.notice)
        return Observation(text=clip_text("\n".join(lines), look.max_text_chars))

    async def _folder_lines(self) -> "builtins.list[str]":
        """Return the folder's content, or the reason why it cannot be listed, the agent's doing."""
        # A folder on the machine itself is another one in each session, and this text is not.
        name = self.root if self.root == GUEST_ROOT else "."
        try:
            entries, total = await self._doing(self.sandbox.files.entries(limit=_SHOWN_ENTRIES))
        except BrokenByAgent as exc:
            return [f"Folder {name}: not to be listed. {exc}"]
        return folder_lines(name, entries, total)

    @property
    def left_out(self) -> Sequence[str]:  # pyright: ignore[reportIncompatibleVariableOverride]  # asked of it
        """The parts that the last snapshot lacked, or that the last restore did not bring back."""
        return self._snapshots.left_out

    async def snapshot(self) -> bytes:
        """Return the folder as a compressed tar, for `restore`.

        It stores files, folders and links with their modes and times. It lacks processes, and files
        outside the folder, as in /tmp. `left_out` names sockets and pipes in it, which belong to
        what runs.

        Raises:
            LimitReached: It is larger than the spec allows. Nothing changed.
            SnapshotFailed: Something in the folder cannot be kept, or not in time. Nothing changed.
            EnvironmentFailed: The sandbox has ended.
        """
        self._check_usable()
        return await self._snapshots.take(self._last)

    async def restore(self, data: bytes) -> None:
        """Restore the folder from a snapshot. Its present contents are removed.

        `left_out` and later observations then name the missing parts.

        Raises:
            EnvironmentFailed: The data is not a snapshot of a shell, or the disk has no room.
                The folder may then be incomplete: only `close` may be called.
        """
        self._check_usable()
        try:
            self._last = await self._snapshots.restore(data)
        except BaseException as exc:
            self._broken = f"The folder was not restored: {exc or 'it was interrupted.'}"
            raise

    async def snapshot_setup(self) -> bytes:
        """Return a snapshot, but fail also if a process runs or a file lies elsewhere."""
        self._check_usable()
        return await self._snapshots.take_whole(self._last)

    async def close(self) -> None:
        """End everything that runs and remove every file. It may be called twice."""
        self._closed = True
        try:
            while self._at_close:
                await self._at_close.pop()()
        finally:
            await self._sandbox.close()

    def at_close(self, end: Callable[[], Awaitable[None]]) -> None:
        """End something before the sandbox ends."""
        self._at_close.append(end)

    def _check_usable(self) -> None:
        if self._closed:
            raise EnvironmentFailed("This shell is closed. Start a new task.")
        if self._broken:
            raise EnvironmentFailed(self._broken)
        if not self._sandbox.alive:
            raise EnvironmentFailed("The sandbox has ended. Start a new task.")

    def _check_path(self, path: str) -> None:
        """Refuse a path that is its author's mistake, with any content of the folder."""
        try:
            relative = self.sandbox.files.relative(path)
        except OSError as exc:
            raise ActionFailed(refusal(exc, path, self.root)) from exc
        if posixpath.normpath(relative).split("/")[0] == "..":
            exc = OSError(errno.EXDEV, "it leads out of the folder")
            raise ActionFailed(refusal(exc, path, self.root))

    async def _doing(self, work: Awaitable[T], path: str = "") -> T:
        try:
            return await work
        except OSError as exc:
            text = refusal(exc, path or str(exc.filename or ""), self.root)
            isolated = self._sandbox.isolation == "bwrap"
            failure = BrokenByAgent if is_agents(exc, isolated=isolated) else ActionFailed
            raise failure(text) from exc


def _result(finished: Finished) -> CommandResult:
    return CommandResult(finished.code, note_agent_data(finished.text), finished.reason)
