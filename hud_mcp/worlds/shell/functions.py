"""The functions that `setup` and `evaluate` of a shell's tasks may name, on files and commands.

Files are looked at in the session's sandbox, where an agent may have put them. Commands that
evaluate run in a verifier, where it has not been.
"""

import posixpath
from typing import Annotated

from pydantic import AfterValidator

from hud_mcp.environment.function import Function, Phase
from hud_mcp.errors import ActionFailed
from hud_mcp.sandbox.bubblewrap import GUEST_ROOT
from hud_mcp.worlds.shell.verifier import VerifierResult
from hud_mcp.worlds.shell.world import ShellWorld

__all__ = ["SHELL_FUNCTIONS"]

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
