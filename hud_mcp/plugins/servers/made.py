"""The files with which sessions begin, made once by a command and stored by its digest."""

import hashlib
import tempfile
from pathlib import Path

import anyio
import anyio.to_thread

from hud_mcp.environment.spec import Opening
from hud_mcp.errors import ActionFailed, InvalidEnvironment, LimitReached, SnapshotFailed
from hud_mcp.plugins.servers.install import cache_folder
from hud_mcp.worlds.shell.spec import Shell

__all__ = ["make_files"]

_MOST_BYTES = 64 * 1024 * 1024
_SAID_CHARS = 600


async def make_files(shell: Shell, line: str, begun: str, folder: Path) -> bytes:
    """Return a folder as a tar: the stored one, or that which a line of bash makes in a sandbox.

    Args:
        shell: The place of the command, with the files that it begins with.
        line: The command.
        begun: A digest of those files.
        folder: The environment's folder.

    Raises:
        InvalidEnvironment: The command fails, or its files cannot be stored.
        EnvironmentFailed: The machine cannot make a sandbox.
    """
    digest = hashlib.sha256(f"{line}\0{begun}".encode()).hexdigest()
    file = cache_folder("made") / f"{digest}.tar"
    if file.is_file():
        return await anyio.to_thread.run_sync(file.read_bytes)
    world = await shell.open(Opening(folder=folder))
    try:
        done = await world.run(line)
        if done.exit_code != 0 or done.stopped is not None:
            said = str(done)[-_SAID_CHARS:]
            raise InvalidEnvironment(f"ToolServer: make={line!r:.200} failed: {said}")
        await world.end_processes()
        packed = await world.sandbox.folder.pack(most_bytes=_MOST_BYTES)
    except (ActionFailed, LimitReached, SnapshotFailed) as exc:
        raise InvalidEnvironment(f"ToolServer: make={line!r:.200}: {exc}") from exc
    finally:
        with anyio.CancelScope(shield=True):
            await world.close()
    if packed.lost:
        raise InvalidEnvironment(f"ToolServer: make={line!r:.200} leaves {packed.lost[0]}.")
    await anyio.to_thread.run_sync(_store, file, packed.data)
    return packed.data


def _store(file: Path, data: bytes) -> None:
    # Several processes may make them at once: the last one counts.
    with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as part:
        part.write(data)
    Path(part.name).replace(file)
