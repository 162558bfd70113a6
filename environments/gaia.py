"""Tasks of the GAIA benchmark: a shell with the public web, where a row's file lies ready."""

import anyio.to_thread

from hud_mcp import Environment, Shell, ShellWorld, dataset_file, view_picture

env = Environment("gaia", version="0.1.0", world=Shell(allow=("*",)))
env.tool(read_only=True)(view_picture)


@env.function(name="dataset_file", use="setup")
async def put_dataset_file(shell: ShellWorld, path: str, sha256: str) -> None:
    """Put a file of the imported set into the folder, by its digest."""
    kept = dataset_file(sha256)
    await shell.write(path, await anyio.to_thread.run_sync(kept.read_bytes))
