"""The live shell of one session: commands and files, in its sandbox."""

import errno
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import anyio

from hud_mcp.action import Action, ActionEffect, CustomAction, WaitAction
from hud_mcp.errors import ActionFailed, EnvironmentFailed
from hud_mcp.observation import Look, Observation, clip_text
from hud_mcp.sandbox import Entry, Finished, Sandbox
from hud_mcp.sandbox.bubblewrap import GUEST_ROOT
from hud_mcp.worlds.shell.commands import one_line, replace_text, run_action
from hud_mcp.worlds.shell.stage import Author
from hud_mcp.worlds.shell.verifier import Verifier, open_verifier

__all__ = ["CommandResult", "ShellWorld"]

T = TypeVar("T")

MOST_READ_BYTES = 1024 * 1024
"""The longest file that is read or edited as text."""

_FORM = 1
_SHOWN_ENTRIES = 60


@dataclass(frozen=True)
class CommandResult:
    """How a command ended.

    Attributes:
        exit_code: 0 for success; negative for the signal that ended it.
        output: What it wrote, on both streams; the middle is left out where it was long.
        stopped: Why it was stopped from outside, or None.
    """

    exit_code: int
    output: str
    stopped: str | None = None

    def __str__(self) -> str:
        """The output and, where it was no success, how it ended."""
        if self.stopped is not None:
            end = f"[stopped: {self.stopped}]"
        elif self.exit_code == 0:
            end = "" if self.output else "[exit code 0, no output]"
        else:
            end = f"[exit code {self.exit_code}]"
        return "\n".join(part for part in (self.output.rstrip("\n"), end) if part)


class ShellWorld:
    """One session's shell. Made by `Shell.open`.

    A template gets it by annotating a parameter with this class. Each command is a shell of
    its own that starts in the folder; files and what runs in the back stay until the session
    ends. Everything here is done inside the sandbox, with the agent's rights: what a template
    reads is what an agent could have written there, and no link leads it out of the folder.
    """

    def __init__(
        self, sandbox: Sandbox, *, most_snapshot_bytes: int, author: Author | None = None
    ) -> None:
        self._sandbox = sandbox
        self._author = author or Author()
        self._at_close: list[Callable[[], Awaitable[None]]] = []
        self._most_snapshot_bytes = most_snapshot_bytes
        self._last = ""
        self._packed: bytes | None = None
        self._closed = False
        self._broken = ""

    @property
    def sandbox(self) -> Sandbox:
        """Where it lives, for what is not offered here."""
        self._check_usable()
        return self._sandbox

    def note_change(self) -> None:
        """Note that files may have changed, or will, past this object.

        Else the next snapshot may be an older one.
        """
        self._packed = None

    @property
    def root(self) -> str:
        """The folder, as commands name it."""
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
            timeout_s: Longer than this it may not take; the sandbox's limit is the most.
            stdin: What it reads.
            cwd: A folder, from the session's own.
            env: More environment variables.

        Raises:
            ActionFailed: The folder `cwd` is not there, `timeout_s` is not above 0, or the
                command has a NUL in it. Nothing ran.
            EnvironmentFailed: The sandbox has ended.

        If this call is cancelled, the command and what it started are killed.
        """
        line = command if isinstance(command, str) else " ".join(command)
        if "\0" in line:
            raise ActionFailed("A command has no NUL in it, and this one does. Nothing ran.")
        if timeout_s is not None and not timeout_s > 0:
            raise ActionFailed(f"timeout_s is above 0, not {timeout_s:g}. Nothing ran.")
        self._packed = None
        finished = await self._doing(
            self.sandbox.run(command, timeout_s=timeout_s, stdin=stdin.encode(), cwd=cwd, env=env),
            cwd,
        )
        self._last = f"Last command: {one_line(line)} → {_ending(finished)}"
        return CommandResult(finished.code, finished.text, finished.reason)

    async def read(self, path: str) -> str:
        """A text file's content.

        Raises:
            ActionFailed: It is not there, is no file, is too long, or leads out of the folder.
        """
        data = await self.read_bytes(path)
        if b"\0" in data:
            raise ActionFailed(f"{path} is no text: it has {len(data)} bytes and NUL among them.")
        return data.decode("utf-8", "replace")

    async def read_bytes(self, path: str) -> bytes:
        """A file's content, of at most 1 MiB.

        Raises:
            ActionFailed: As for `read`.
        """
        return await self._doing(self.sandbox.files.read(path, most_bytes=MOST_READ_BYTES), path)

    async def write(self, path: str, content: str | bytes) -> None:
        """Write a whole file; folders on its way are made.

        Raises:
            ActionFailed: It is no file, leads out of the folder, or there is no room.
        """
        self._packed = None
        data = content.encode() if isinstance(content, str) else content
        await self._doing(self.sandbox.files.write(path, data), path)

    async def edit(self, path: str, old: str, new: str, *, every: bool = False) -> int:
        """Replace a text in a file, and return how often it was.

        Args:
            path: The file.
            old: What is there: exactly once, unless `every` is set.
            new: What is to be there.
            every: Whether each occurrence is replaced.

        Raises:
            ActionFailed: It is not there, or more than once. Nothing changed.
        """
        text, count = replace_text(await self.read(path), old, new, every=every, path=path)
        await self.write(path, text)
        return count

    async def list(self, path: str = ".") -> "list[Entry]":
        """What a folder has in it, by name; at most 1000 entries.

        Raises:
            ActionFailed: It is not there, is no folder, or leads out of the folder.
        """
        entries, _total = await self._doing(self.sandbox.files.entries(path), path)
        return entries

    async def exists(self, path: str) -> bool:
        """Whether there is something of that name."""
        return await self._doing(self.sandbox.files.exists(path), path)

    async def end_processes(self) -> None:
        """Kill everything that runs in the sandbox, so that nothing disturbs what grades."""
        await self._doing(self.sandbox.end_processes())

    async def stop_agent(self) -> None:
        """Stop what the agent left running, until a command is run here, as grading begins."""
        await self._doing(self.sandbox.hold())

    def verifier(
        self,
        files: str | Path | None = None,
        copy: str | Iterable[str] | Mapping[str, str] = (),
        *,
        originals: Iterable[str] = (),
        network: bool = False,
    ) -> AbstractAsyncContextManager[Verifier]:
        """A fresh sandbox for grading, where the agent has not been.

        It has the author's files, and of the agent's folder the named outputs alone, copied as
        data: regular files and folders. Links, pipes and the like are not copied, nor is what
        programs run by themselves (`conftest.py`, `sitecustomize.py`, `*.pth`, git's hooks …),
        unless it is named. What the agent left running is stopped while they are copied.

        Args:
            files: A file, or a folder whose content is put into the verifier's folder, from the
                environment's folder on. They are read-only, and stand in front of outputs of the
                same path. Outputs in a folder of theirs are read-only too.
            copy: Paths in the agent's folder; or a mapping of them to paths in the verifier's.
                `.` is the whole folder. What is not there is in `Verifier.missing`.
            originals: Patterns of names, such as `test_*`; `tests` for whatever is called as
                tests are; `*` for all. Such files of the world's own `root` come from there,
                unless `copy` names them or their folder.
            network: Whether it may reach what the session may; else nothing.

        Raises:
            GraderFailed: There are no such `files`, or a path of `copy` is not in the folder.
            BrokenByAgent: The agent made a copy impossible, as with too much of it.
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
        """Perform one action: `wait`, or `custom` with one of this world's own.

        Raises:
            ActionFailed: It was refused, and the text says why.
            EnvironmentFailed: The sandbox has ended.
        """
        self._check_usable()
        if isinstance(action, WaitAction):
            self._packed = None
            await anyio.sleep(action.time / 1000)
            return ActionEffect()
        if isinstance(action, CustomAction):
            return await run_action(self, action.action, action.args or {})
        raise ActionFailed(
            f"There is nothing to {action.type!r} here: this is a shell. Use the custom action "
            "'run' with a command."
        )

    async def observe(self, look: Look) -> Observation:
        """Return what the folder has in it, and how the last command ended.

        Raises:
            EnvironmentFailed: The sandbox has ended.
        """
        self._check_usable()
        if not look.text:
            return Observation()
        entries, total = await self._doing(self.sandbox.files.entries(limit=_SHOWN_ENTRIES))
        # A folder on the machine itself is another one in each session, and this text is not.
        name = self.root if self.root == GUEST_ROOT else "."
        lines = [f"Folder {name}: {f'{total} entries' if total else 'empty'}"]
        lines += [_entry_line(entry) for entry in entries]
        if total > len(entries):
            lines.append(f"… {total - len(entries)} more; list them with a command.")
        if self._last:
            lines.append(self._last)
        return Observation(text=clip_text("\n".join(lines), look.max_text_chars))

    async def snapshot(self) -> bytes:
        """The folder as a compressed tar, for `restore`.

        It keeps files, folders and links with their modes and times; not what runs, nor what
        lies outside of the folder, as in /tmp.

        Raises:
            LimitReached: It is larger than the spec allows. Nothing changed.
            EnvironmentFailed: The sandbox has ended, or the folder cannot be read.
        """
        sandbox = self.sandbox
        goes_on = bool((await sandbox.usage()).processes)
        packed = None if goes_on else self._packed
        if packed is None:
            packed = await sandbox.pack(most_bytes=self._most_snapshot_bytes)
            self._packed = None if goes_on else packed  # what goes on may change it yet
        sha256 = hashlib.sha256(packed).hexdigest()
        head = json.dumps({"form": _FORM, "last": self._last, "sha256": sha256}).encode()
        return head + b"\n" + packed

    async def restore(self, data: bytes) -> None:
        """Make the folder what it was at a snapshot; what is in it now is removed.

        Raises:
            EnvironmentFailed: The data is no snapshot of a shell, or there is no room for it. The
                folder may then have a part of it: only `close` may be called.
        """
        try:
            last, packed = _open_snapshot(data)
            await self.sandbox.end_processes()
            await self.sandbox.unpack(packed)
        except BaseException as exc:
            self._broken = f"The folder was not restored: {exc or 'it was interrupted.'}"
            raise
        self._packed, self._last = packed, last

    async def close(self) -> None:
        """End everything that runs and remove every file. Closing twice is no error."""
        self._closed = True
        try:
            while self._at_close:
                await self._at_close.pop()()
        finally:
            await self._sandbox.close()

    def at_close(self, end: Callable[[], Awaitable[None]]) -> None:
        """Have something ended before the sandbox is."""
        self._at_close.append(end)

    def _check_usable(self) -> None:
        if self._closed:
            raise EnvironmentFailed("This shell is closed. Start a new task.")
        if self._broken:
            raise EnvironmentFailed(self._broken)
        if not self._sandbox.alive:
            raise EnvironmentFailed("The sandbox has ended. Start a new task.")

    async def _doing(self, work: Awaitable[T], path: str = "") -> T:
        try:
            return await work
        except OSError as exc:
            raise ActionFailed(_refusal(exc, path or str(exc.filename or ""), self.root)) from exc


def _open_snapshot(data: bytes) -> tuple[str, bytes]:
    """The last command's line and the packed folder.

    Raises:
        EnvironmentFailed: It is no snapshot, or a damaged one.
    """
    head, _, packed = data.partition(b"\n")
    try:
        fields: dict[str, Any] = json.loads(head)
        form, last, sha256 = fields["form"], str(fields["last"]), fields["sha256"]
    except (ValueError, TypeError, KeyError):
        form, last, sha256 = None, "", ""
    if form != _FORM:
        raise EnvironmentFailed(
            f"This is no snapshot of a shell in form {_FORM}. Start a new task."
        )
    if hashlib.sha256(packed).hexdigest() != sha256:
        raise EnvironmentFailed("This snapshot of a shell is damaged. Start a new task.")
    return last, packed


def _refusal(exc: OSError, path: str, root: str) -> str:
    named = path or "The folder"
    if exc.errno == errno.EXDEV:
        return f"{named} is not in {root}, or a link on its way leads out of it. Use a path in it."
    if exc.errno == errno.ENOENT:
        return f"{named} is not there. List the folder to see what is."
    if exc.errno in (errno.ENOSPC, errno.EFBIG):
        why = exc.strerror if exc.errno == errno.EFBIG else "there is no room left in the folder"
        return f"{named}: {why}. Remove what is not needed, or use a part of it."
    return f"{named}: {exc.strerror or exc}."


def _ending(finished: Finished) -> str:
    if finished.reason is not None:
        return f"stopped: {finished.reason}"
    return f"exit code {finished.code}"


def _entry_line(entry: Entry) -> str:
    name = entry.name.encode("utf-8", "replace").decode()
    name = "".join(sign if sign.isprintable() else "?" for sign in name)
    if entry.info.is_folder:
        return f"  {name}/"
    return f"  {name}@" if entry.info.is_link else f"  {name}  {entry.info.size} bytes"
