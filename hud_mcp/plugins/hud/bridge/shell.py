"""`ssh/2` as a shell: commands and files, all by commands, for servers without sftp.

It ignores the configuration, the keys and the agent of this machine's user.
"""

import asyncio
import contextlib
import posixpath
import shlex
import signal
import stat as modes
from collections.abc import Mapping
from contextlib import AsyncExitStack
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hud_mcp.base import libraries
from hud_mcp.errors import ActionFailed, EnvironmentFailed, NotInstalled
from hud_mcp.sandbox import Entry, FileInfo
from hud_mcp.sandbox.commands import Excerpt, shell_status
from hud_mcp.worlds.shell.actions import replace_text
from hud_mcp.worlds.shell.results import CommandResult

if TYPE_CHECKING:
    import asyncssh


MOST_READ_BYTES = 1024 * 1024
_CONNECT_S = 20.0
_PREPARE_S = 30.0
_AGAIN_S = 0.2
_FILE_S = 30.0
_STOP_S = 2.0
_KEPT_BYTES = 256 * 1024
"""The bytes of an output that are kept: this many of its beginning and of its end."""
_CHUNK_BYTES = 64 * 1024


def shell_problem(params: Mapping[str, Any]) -> str | None:
    """Return the reason why an `ssh/2` capability cannot be bridged, or None."""
    if params.get("shell") in ("cmd", "powershell"):
        return "its shell is that of Windows"
    return None if find_spec("asyncssh") else "it needs `pip install hud-mcp[ssh]`"


class RemoteShell:
    """One session's shell over ssh. Made by `open`."""

    def __init__(self, connection: "asyncssh.SSHClientConnection") -> None:
        self._connection = connection

    @classmethod
    async def open(
        cls, address: tuple[str, int], binding: Mapping[str, Any], stack: AsyncExitStack
    ) -> "RemoteShell":
        """Connect to the address that `stack` holds open.

        Raises:
            OSError, asyncssh.Error, TimeoutError: It cannot be reached, or refuses the key.
            NotInstalled: asyncssh is missing.
        """
        asyncssh = _asyncssh()
        params: dict[str, Any] = dict(binding["params"])
        async with asyncio.timeout(_CONNECT_S):
            connection = await asyncssh.connect(
                *address,
                username=str(params.get("user") or "agent"),
                client_keys=_keys(params),
                known_hosts=_known(params),
                config=None,
                agent_path=None,
                client_host_keysign=False,
                gss_host=None,
                keepalive_interval=15,
                keepalive_count_max=4,
            )
        shell = cls(connection)
        preparing = asyncio.create_task(_prepare(connection))
        try:
            await asyncio.shield(preparing)
        except BaseException:
            # The stream stays open until the server has made its sandbox; see `_prepare`.
            _leaving.add(leaving := asyncio.create_task(_leave(preparing, shell, stack.pop_all())))
            leaving.add_done_callback(_leaving.discard)
            raise
        return shell

    @property
    def is_open(self) -> bool:
        """Whether it is connected."""
        return not self._connection.is_closed()

    async def run(self, command: str, *, timeout_s: float | None = None) -> CommandResult:
        """Run a command line until it ends, or its time is over.

        If this call is cancelled, it asks the command to end. If the connection broke (OSError,
        asyncssh.Error), the command may have run.
        """
        code, output, stopped = await self._run(command, timeout_s=timeout_s or _FILE_S)
        return CommandResult(shell_status(code), output.decode("utf-8", "replace"), stopped)

    async def run_for_agent(self, command: str, *, timeout_s: float | None = None) -> CommandResult:
        """Do the same: on the HUD side, only agents run commands."""
        return await self.run(command, timeout_s=timeout_s)

    async def read(self, path: str) -> str:
        """Return a text file of at most 1 MiB; ActionFailed tells a missing or unreadable one."""
        return (await self._read_text(path)).decode("utf-8", "replace")

    async def _read_text(self, path: str) -> bytes:
        data = await self._read(path)
        if b"\0" in data:
            raise ActionFailed(f"{path} is not text: it has NUL bytes in it.")
        return data

    async def write(self, path: str, content: str | bytes) -> None:
        """Write a whole file and missing folders of its path, or raise ActionFailed."""
        data = content.encode() if isinstance(content, str) else content
        folder = posixpath.dirname(path)
        make = f"mkdir -p -- {_quoted(folder)} && " if folder not in ("", "/") else ""
        await self._do(f"{make}cat > {_quoted(path)}", path, stdin=data)

    async def edit(self, path: str, old: str, new: str, *, every: bool = False) -> int:
        """Replace a text in a file; it must be there exactly once, unless `every` is set.

        ActionFailed says that it is not, or that the file has NUL bytes. Nothing changed then.
        """
        before = await self._read_text(path)
        data, count = replace_text(before, old, new, every=every, path=path)
        await self.write(path, data)
        return count

    async def list(self, path: str = ".") -> "list[Entry]":
        """Return the entries of a folder by name; ActionFailed says that it does not exist."""
        data = await self._do(f"ls -1Ap -- {_quoted(path)}", path)
        names = data.decode("utf-8", "replace").splitlines()
        return [Entry(name.rstrip("/"), _info(is_folder=name.endswith("/"))) for name in names]

    async def close(self) -> None:
        """Disconnect. It may be called twice."""
        self._connection.abort()
        closed = asyncio.ensure_future(self._connection.wait_closed())
        await asyncio.wait([closed], timeout=_STOP_S)

    async def _read(self, path: str) -> bytes:
        data = await self._do(f"head -c {MOST_READ_BYTES + 1} -- {_quoted(path)}", path)
        if len(data) > MOST_READ_BYTES:
            raise ActionFailed(
                f"{path} has more than {MOST_READ_BYTES} bytes; read parts of it with a command."
            )
        return data

    async def _do(self, command: str, path: str, *, stdin: bytes = b"") -> bytes:
        """Run a command of ours; the last line of its error output becomes ActionFailed."""
        errors = bytearray()
        code, output, stopped = await self._run(
            command, timeout_s=_FILE_S, stdin=stdin, errors=errors, most_bytes=2 * MOST_READ_BYTES
        )
        if stopped is not None:
            raise ActionFailed(f"{path}: {stopped}.")
        if code != 0:
            said = errors.decode("utf-8", "replace").strip().splitlines()
            raise ActionFailed(said[-1][:300] if said else f"{path}: exit code {code}.")
        return output

    async def _run(
        self,
        command: str,
        *,
        timeout_s: float,
        stdin: bytes = b"",
        errors: bytearray | None = None,
        most_bytes: int = _KEPT_BYTES,
    ) -> tuple[int, bytes, str | None]:
        """Run a command. If `errors` is given, stderr goes there instead of the output."""
        asyncssh = _asyncssh()
        written = Excerpt(most_bytes)
        stopped: str | None = None
        process: Any = None
        try:
            async with asyncio.timeout(timeout_s):
                process = await self._connection.create_process(
                    command,
                    stdin=asyncssh.PIPE if stdin else asyncssh.DEVNULL,
                    stderr=asyncssh.PIPE if errors is not None else asyncssh.STDOUT,
                    encoding=None,
                )
                reading = [_collect(process.stdout, written.add)]
                if errors is not None:
                    reading.append(_collect(process.stderr, _bounded(errors)))
                if stdin:
                    reading.append(_feed(process, stdin))
                await asyncio.gather(*reading)
                await process.wait_closed()
        except TimeoutError:
            stopped = f"it took longer than {timeout_s:g} s"
            await _stop(process)
        except asyncio.CancelledError:
            await _stop(process)
            raise
        if process is None:
            return 1, b"", stopped or "it did not begin"
        code: int | None = process.returncode
        if stopped is None and code is None:
            raise asyncssh.ConnectionLost("the command ended without an exit status")
        return -signal.SIGTERM if code is None else code, written.taken(), stopped


def _bounded(into: bytearray) -> Any:
    def add(chunk: bytes) -> None:
        into.extend(chunk[: max(0, _CHUNK_BYTES - len(into))])

    return add


async def _collect(stream: Any, add: Any) -> None:
    while chunk := await stream.read(_CHUNK_BYTES):
        add(chunk)


async def _feed(process: Any, data: bytes) -> None:
    # It may end before it has read everything; its exit status tells.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(data)
        await process.stdin.drain()
        process.stdin.write_eof()


async def _stop(process: Any) -> None:
    if process is None:
        return
    asyncssh = _asyncssh()
    with contextlib.suppress(OSError, asyncssh.Error):
        process.kill()
    process.close()
    await asyncio.wait([asyncio.ensure_future(process.wait_closed())], timeout=_STOP_S)


_leaving: set[asyncio.Task[None]] = set()


async def _prepare(connection: "asyncssh.SSHClientConnection") -> None:
    """Let the server make its sandbox, which HUD's does for the very first command.

    Meanwhile it refuses all others; and if the first command is cut off, it refuses everybody from
    then on. Therefore nothing may cancel this, and a refused caller asks again.
    """
    end = asyncio.get_running_loop().time() + _PREPARE_S
    while True:
        async with asyncio.timeout_at(end):
            done = await connection.run("true", check=False, encoding=None)
        said = done.stderr if isinstance(done.stderr, bytes) else b""
        if b"cannot prepare shell" not in said or asyncio.get_running_loop().time() + 1 > end:
            return
        await asyncio.sleep(_AGAIN_S)


async def _leave(preparing: asyncio.Task[None], shell: RemoteShell, stack: AsyncExitStack) -> None:
    await asyncio.wait([preparing])
    if not preparing.cancelled():
        preparing.exception()  # the caller has gone
    await shell.close()
    await stack.aclose()


def _asyncssh() -> Any:
    try:
        return libraries.asyncssh
    except ImportError:
        raise NotInstalled(
            "A shell over ssh needs `pip install hud-mcp[ssh]`. Nothing was done."
        ) from None


def _keys(params: Mapping[str, Any]) -> Any:
    asyncssh = _asyncssh()
    if params.get("client_key"):
        try:
            return [asyncssh.import_private_key(str(params["client_key"]))]
        except asyncssh.KeyImportError as exc:
            raise EnvironmentFailed(
                f"The shell's client_key is not a private key: {exc}."
            ) from None
    return [str(params["client_key_path"])] if params.get("client_key_path") else []


def _known(params: Mapping[str, Any]) -> Any:
    """Return the only key that the server may have."""
    asyncssh = _asyncssh()
    try:
        key = asyncssh.import_public_key(str(params.get("host_pubkey") or ""))
    except asyncssh.KeyImportError:
        raise EnvironmentFailed(
            "The shell's host_pubkey is not a public key, so the server cannot be verified."
        ) from None
    return [key], [], []


def _quoted(path: str) -> str:
    """Return a path as a word of a command line; ActionFailed says that it cannot be a path."""
    if not path or "\0" in path:
        raise ActionFailed(f"{path!r} cannot be a path.")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise ActionFailed(f"{path!r} cannot be a path: it is not Unicode.") from None
    return shlex.quote(path)


def _info(*, is_folder: bool) -> FileInfo:
    mode = modes.S_IFDIR if is_folder else modes.S_IFREG
    return FileInfo(mode, size=0, modified=0, accessed=0, uid=0, gid=0, links=1)
