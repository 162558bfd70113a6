"""The declaration of a shell: its folder, its limits, and the functions and tools of its tasks.

Functions look at files in the session's sandbox, where an agent may have put them. Commands that
evaluate run in a verifier, where it has not been.
"""

import io
import os
import posixpath
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import anyio.to_thread
from pydantic import AfterValidator

from hud_mcp.base.egress import AllowList
from hud_mcp.environment.function import Function, Phase
from hud_mcp.environment.spec import Opening, WorldSpec
from hud_mcp.environment.tool import Tool
from hud_mcp.errors import (
    ActionFailed,
    EnvironmentFailed,
    InvalidEnvironment,
    LimitReached,
    did_you_mean,
)
from hud_mcp.sandbox import Isolation, Sandbox, SandboxLimits, SandboxOptions
from hud_mcp.sandbox.bubblewrap import GUEST_ROOT
from hud_mcp.values.needs import Needs
from hud_mcp.values.observation import Observation, Screenshot, crop_screenshot
from hud_mcp.worlds.shell.actions import SHELL_ACTIONS, PathOfFile, shell_tools
from hud_mcp.worlds.shell.stage import Author
from hud_mcp.worlds.shell.verifier import VerifierResult
from hud_mcp.worlds.shell.world import ShellWorld

MOST_PIXELS = 25_000_000
"""The most pixels of a picture: a small file may unpack to more than the server's memory."""


async def view_picture(shell: ShellWorld, path: PathOfFile) -> Observation:
    """Look at a picture in the task's folder: a PNG or a JPEG."""
    data = await shell.read_bytes(path)
    picture = await anyio.to_thread.run_sync(_picture, path, data)
    size = f"{picture.width_px} x {picture.height_px} px"
    return Observation(text=f"{path}, {size}.", image=picture)


def _picture(path: str, data: bytes) -> Screenshot:
    """Return a picture that can be decoded to its end: models' providers refuse others."""
    try:
        picture = Screenshot.from_bytes(data)
        if picture.width_px * picture.height_px <= MOST_PIXELS:
            crop_screenshot(picture, (0, 0, 1, 1))
            return picture
    except (ValueError, OSError, SyntaxError) as exc:
        raise ActionFailed(f"{path} is not a PNG and no JPEG that can be read.") from exc
    size = f"{picture.width_px} x {picture.height_px} px"
    raise ActionFailed(f"{path} has {size}; at most {MOST_PIXELS} pixels are shown.")


_SHOWN_CHARS = 500


def _in_folder(path: str) -> str:
    """Return an author's path, from the folder on; a `ValueError` if no file can have that path."""
    if "\0" in path:
        raise ValueError("has a sign that no path can have")
    # By the name inside: the folder has another one if nothing is isolated.
    whole = posixpath.normpath(posixpath.join(GUEST_ROOT, path))
    if whole != GUEST_ROOT and not whole.startswith(f"{GUEST_ROOT}/"):
        raise ValueError(f"is not in {GUEST_ROOT}; name a path in it")
    return posixpath.relpath(whole, GUEST_ROOT)


FilePath = Annotated[str, AfterValidator(_in_folder)]
"""A path that is checked when a task meets its environment, before anybody works."""


async def write_file(shell: ShellWorld, path: FilePath, content: str) -> None:
    """Write a whole text file; missing folders are made."""
    await shell.write(path, content)


async def file_exists(shell: ShellWorld, path: FilePath, *more: FilePath) -> float:
    """1.0 where every path is there, as a file or a folder."""
    for each in (path, *more):
        try:
            if not await shell.exists(each):
                return 0.0
        except ActionFailed:  # a link of the agent's leads out of the folder on the way there
            return 0.0
    return 1.0


async def file_contains(
    shell: ShellWorld, path: FilePath, texts: str | list[str], *more: str | list[str]
) -> float:
    """1.0 where the text file is there and every text occurs in it; case counts."""
    named = [each if isinstance(each, list) else [each] for each in (texts, *more)]
    wanted = [text for group in named for text in group]
    if not wanted or not all(wanted):
        raise ActionFailed("There is no text to look for, or an empty one. Name one.")
    try:
        content = await shell.read(path)
    except ActionFailed:  # not there, a folder, no text, or too long: the agent made it so
        return 0.0
    return float(all(text in content for text in wanted))


async def run(
    shell: ShellWorld, phase: Phase, command: str, seconds: float | None = None
) -> float | None:
    """Run a line of bash. In `setup` it must exit 0; in `evaluate` it is 1.0 where it does."""
    if phase is Phase.EVALUATE:
        done = await _verified(shell, command, "", seconds)
        return float(done.exit_code == 0 and done.stopped is None)
    ended = await shell.run(command, timeout_s=seconds)
    if ended.exit_code != 0 or ended.stopped is not None:
        raise ActionFailed(f"{command!r:.200} did not exit 0: {str(ended)[-_SHOWN_CHARS:]}")
    return None


async def prints(
    shell: ShellWorld, command: str, text: str, stdin: str = "", seconds: float | None = None
) -> float:
    """1.0 where a line of bash exits 0 and writes the text; newlines at its end do not count."""
    done = await _verified(shell, command, stdin, seconds)
    right = done.stdout.rstrip("\n") == text.rstrip("\n")
    return float(right and done.exit_code == 0 and done.stopped is None)


async def _verified(
    shell: ShellWorld, command: str, stdin: str, seconds: float | None
) -> VerifierResult:
    async with shell.verifier(copy=".", originals="tests") as clean:
        return await clean.run(command, stdin=stdin, timeout_s=seconds)


SHELL_FUNCTIONS = (
    Function(write_file, use="setup"),
    Function(file_exists, use="evaluate", weak="An agent can make an empty file of that name."),
    Function(file_contains, use="evaluate", weak="An agent can write the words and nothing else."),
    Function(run, weak="The agent's code can exit with 0 without the work: use `prints` for that."),
    Function(prints, use="evaluate"),
)
"""The functions of every environment whose world is a shell."""


MIB = 1024 * 1024


class Shell(WorldSpec):
    """Declares that an environment's world is a shell in a sandbox, with its own files.

    Every session has a folder of its own, `/workspace` inside, which begins as a copy of
    `root`. Programs are those of the machine's /usr. Commands do not see its other files and
    processes, and cannot write to the machine. The network reaches only the hosts in `allow`. If
    no sandbox can be made, sessions do not start.

    Args:
        root: The folder that sessions begin with a copy of, from the environment's folder. An
            absolute path that is not there, or None, gives an empty one. It is never written.
        allow: Hosts that may be reached over HTTP and HTTPS through the proxy that the usual
            variables name: `example.com`, `*.example.com`, `example.com:443`, or `*` for the
            public web.
        env: Environment variables of every command. It gets none of the server's.
        readonly: More read-only paths inside, each with its path of the machine.
        parts: Paths at which a folder of `/workspace` is seen too, such as `/testbed`, which is
            `/workspace/testbed`: for files that have to lie elsewhere.
        limits: The limits of a session.
        isolation: `none` runs commands on the machine itself, as the server's user. Only for
            agents that are trusted with it.
        snapshot_bytes: The largest snapshot, compressed.

    Raises:
        InvalidEnvironment: An option cannot work.
    """

    name = "shell"
    needs = Needs(cpus=0.25, memory_mb=128)
    world_type = ShellWorld
    actions = frozenset({"wait", "custom"})
    runs_commands = True
    text_form = 2
    custom_actions = SHELL_ACTIONS
    tools_suffice = True
    tools: tuple[Tool, ...] = shell_tools(ShellWorld, lambda shell, use: use(shell))
    functions: tuple[Function, ...] = SHELL_FUNCTIONS

    def __init__(
        self,
        root: str | Path | None = None,
        *,
        allow: Iterable[str] = (),
        env: Mapping[str, str] | None = None,
        readonly: Mapping[str, str | Path] | None = None,
        parts: Iterable[str] = (),
        limits: SandboxLimits | None = None,
        isolation: Isolation = "bwrap",
        snapshot_bytes: int = 64 * MIB,
    ) -> None:
        self._root = Path(root) if root is not None else None
        self._readonly = {guest: Path(path) for guest, path in (readonly or {}).items()}
        self._snapshot_bytes = snapshot_bytes
        self.options = SandboxOptions(
            isolation=isolation,
            hosts=AllowList(allow),
            env=_checked_env(env or {}),
            readonly=self._readonly,
            parts=tuple(parts),
            limits=limits or SandboxLimits(),
        )
        self.open_world = bool(self.options.hosts.patterns) or isolation == "none"

    async def open(self, opening: Opening) -> ShellWorld:
        """Open a session's shell. If it fails or is cancelled, nothing of this session stays open.

        Raises:
            EnvironmentFailed: The machine cannot make a sandbox, or the folder does not fit. The
                text says what to do.
        """
        sandbox = await Sandbox.open(self._options_from(opening.folder))
        try:
            if self._root is not None:
                await self._fill(sandbox, opening.folder / self._root)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await sandbox.close()
            raise
        return ShellWorld(
            sandbox,
            most_snapshot_bytes=self._snapshot_bytes,
            author=Author(opening.folder, opening.folder / self._root if self._root else None),
        )

    def check(self, folder: Path) -> None:
        """Refuse a folder that is not there, before anything is opened.

        Raises:
            InvalidEnvironment: A folder is missing, or contains the environment's file. The error
                names it as it was written, and a close name of a missing one.
        """
        for named in (self._root, *self._readonly.values()):
            if named is not None and folder.resolve().is_relative_to((folder / named).resolve()):
                raise InvalidEnvironment(
                    f"Shell: {str(named)!r} contains the environment's file, which agents must "
                    "not read. Name a folder that has only the agents' files."
                )
            if named is None or (folder / named).exists():
                continue
            if named is self._root and named.is_absolute():
                continue
            beside = [p.name for p in folder.iterdir()] if folder.is_dir() else []
            raise InvalidEnvironment(
                f"Shell: there is no {str(named)!r} beside the environment's file."
                f"{did_you_mean(named.name, beside)}"
            )

    def shares_setup(self, functions: Sequence[Function]) -> bool:
        """Whether only the sandbox can change: no host, and no other path of the machine."""
        options = self.options
        alone = options.isolation == "bwrap" and not options.hosts.patterns and not self._readonly
        own = all(any(each is known for known in SHELL_FUNCTIONS) for each in functions)
        return alone and own and type(self).open is Shell.open

    def _options_from(self, folder: Path) -> SandboxOptions:
        if not self._readonly:
            return self.options
        sources = {guest: folder / path for guest, path in self._readonly.items()}
        return replace(self.options, readonly=sources)

    async def _fill(self, sandbox: Sandbox, source: Path) -> None:
        if not await anyio.to_thread.run_sync(source.is_dir):
            if self._root is not None and self._root.is_absolute():
                return
            raise EnvironmentFailed(f"The shell's folder {str(self._root)!r} is not there.")
        most = self.options.limits.disk_bytes
        try:
            data = await anyio.to_thread.run_sync(_packed, source, most)
        except LimitReached as exc:
            raise EnvironmentFailed(
                f"The shell's folder {str(self._root)!r} has more than {most} bytes; raise "
                "SandboxLimits(disk_bytes=…), or show it inside with readonly=."
            ) from exc
        await sandbox.folder.unpack(data, clear=False)


def _packed(source: Path, most_bytes: int) -> bytes:
    """Return a folder of the author's as a tar; `LimitReached` if it has too many bytes."""
    total = 0

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
        nonlocal total
        total += info.size
        if total > most_bytes:
            raise LimitReached(f"more than {most_bytes} bytes")
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        return info

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in sorted(os.listdir(source)):  # noqa: PTH208  # names, not paths
            archive.add(source / name, arcname=name, filter=plain)
    return out.getvalue()


def _checked_env(env: Mapping[str, str]) -> dict[str, str]:
    for name, value in env.items():
        if not name or "=" in name or "\0" in name + value:
            raise InvalidEnvironment(f"env: {name!r} cannot name an environment variable.")
    return dict(env)
