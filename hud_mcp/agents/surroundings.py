"""The folders, the variables and the processes that a program sees as it works as an agent."""

import os
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

import orjson

from hud_mcp.agents.kind import RunModel
from hud_mcp.base.process import child_environment
from hud_mcp.registry import service

__all__ = ["Surroundings"]

_HOME = ("HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME",
         "XDG_DATA_HOME", "XDG_STATE_HOME")  # fmt: skip
"""Variables of places where a person's programs keep logins and keys."""
_CACHES = {"UV_CACHE_DIR": ".cache/uv", "NPM_CONFIG_CACHE": ".npm", "PIP_CACHE_DIR": ".cache/pip"}
"""Caches of packages hold no keys, and to fill one takes long."""


class Surroundings:
    """The places of one program, which end with it.

    With a model of a gateway, the program has a home and a temporary folder of its own, no
    variable with a provider's key, and on Linux no other process in its `/proc`. Without one it
    has what this process has: the login of a person is in their home.

    Args:
        model: The model of its run; None if the program asks its own.

    Attributes:
        folder: An empty folder that nobody else reads.
        variables: All its environment variables.
    """

    def __init__(self, model: RunModel | None) -> None:
        self._model = model
        self.folder = Path()
        self.variables: dict[str, str] = {}

    def __enter__(self) -> Self:
        """Make the folders."""
        self._made = tempfile.TemporaryDirectory(prefix="hud-mcp-", ignore_cleanup_errors=True)
        self.folder = Path(self._made.name)
        self.variables = child_environment()
        if self._model is not None:
            self._part(self._model)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the folders, with all that the program left there."""
        self._made.cleanup()

    def _part(self, model: RunModel) -> None:
        """Give the program a home and a temporary folder, and its model; take keys away."""
        is_secret = service("provider variables")
        own = {n: value for n, value in self.variables.items() if not is_secret(n)}
        home, before = self.folder / "home", Path.home()
        for place in (home, self.folder / "tmp"):
            place.mkdir(mode=0o700)
        kept = {n: str(before / at) for n, at in _CACHES.items() if (before / at).is_dir()}
        if site.ENABLE_USER_SITE:
            kept["PYTHONUSERBASE"] = site.getuserbase()
        self.variables = {
            **{n: value for n, value in own.items() if n not in _HOME},
            **{n: value for n, value in kept.items() if n not in own},
            "HOME": str(home),
            "TMPDIR": str(self.folder / "tmp"),
            **model.variables,
        }

    def write(self, name: str, content: object) -> Path:
        """Write a file of JSON that nobody else reads, and return its path.

        Args:
            name: Its path below the folder.
            content: Its content.
        """
        path = self.folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(orjson.dumps(content))
        return path

    def command(self, command: Sequence[str]) -> list[str]:
        """Return a command that runs another one with no process of others in its `/proc`.

        The environment of this process, and of those above it, holds the provider's key.
        """
        if self._model is None or not hides_processes():
            return list(command)
        return [*_hidden(), *command]


def _hidden() -> Sequence[str]:
    bwrap = shutil.which("bwrap") or "bwrap"
    return (
        *(bwrap, "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc"),
        *("--die-with-parent", "--"),
    )


@cache
def hides_processes() -> bool:
    """Whether this machine can start a program that sees no process but its own."""
    if sys.platform != "linux" or shutil.which("bwrap") is None:
        return False
    tried = [*_hidden(), "true"]
    environment: Mapping[str, str] = {"PATH": os.environ.get("PATH", "")}
    done = subprocess.run(tried, env=environment, capture_output=True, check=False)  # noqa: S603  # a program that PATH names
    return done.returncode == 0
