"""Tasks of the GAIA benchmark: a shell with the public web, where a row's file lies ready."""

import anyio.to_thread

from hud_mcp import Answer, Environment, Shell, ShellWorld, dataset_file, gaia_match

env = Environment("gaia", version="0.1.0", world=Shell(allow=("*",)))


@env.function(name="dataset_file", use="setup")
async def put_dataset_file(shell: ShellWorld, path: str, sha256: str) -> None:
    """Put a file of the imported set into the folder, by its digest."""
    kept = dataset_file(sha256)
    await shell.write(path, await anyio.to_thread.run_sync(kept.read_bytes))


@env.function(use="evaluate")
async def gaia_final_answer(answer: Answer[str], truth: str) -> float:
    """1.0 where GAIA's scorer takes what follows FINAL ANSWER for right."""
    return gaia_match(answer.raw.rpartition("FINAL ANSWER:")[2].strip(), truth)
