"""A command on a terminal of its own, as a person sees it."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from waiting import PATIENCE_S, wait_until

if sys.platform != "win32":
    import pty

__all__ = ["Terminal"]

ROOT = Path(__file__).resolve().parents[1]


class Terminal:
    """A command on a terminal of its own.

    Args:
        folder: Where it runs.
        arguments: Of `hud-mcp`.
        program: What the interpreter runs instead of it.
        variables: More of its environment.
    """

    def __init__(
        self, folder: Path, *arguments: str, program: Sequence[str] = (), **variables: str
    ) -> None:
        self._ours, theirs = pty.openpty()
        os.set_blocking(self._ours, False)
        self.process = subprocess.Popen(
            [sys.executable, *(program or ("-m", "hud_mcp")), *arguments],
            cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), **variables,
                 "HUD_MCP_STORE": str(folder / "store.sqlite3")},
        )  # fmt: skip
        os.close(theirs)
        self._said = b""

    @property
    def said(self) -> str:
        """What stands on it by now."""
        try:
            while read := os.read(self._ours, 65_536):
                self._said += read
        except OSError:  # nothing more, or its process has gone
            pass
        return self._said.decode().replace("\r\n", "\n")

    def wait_for(self, text: str) -> str:
        """Wait until a text stands on it, and return all that does."""
        wait_until(
            lambda: text in self.said or self.process.poll() is not None, said=lambda: self.said
        )
        assert text in self.said
        return self.said

    def type(self, text: str) -> None:
        """Type on it."""
        os.write(self._ours, text.encode())

    def ended(self) -> int:
        """Wait for its end, and return its status."""
        wait_until(lambda: (self.said, self.process.poll())[1] is not None, said=lambda: self.said)
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        """End what runs."""
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
