"""The image, as people start it: with Docker, on a machine that has one."""

import os
import subprocess
from pathlib import Path

from skips import skip_here

__all__ = ["COMMAND_S", "Image"]

COMMAND_S = 1800.0
"""How long one run may take on a busy machine."""


class Image:
    """The image that `make image` has built.

    Args:
        name: What Docker calls it.
        set_folder: A folder that containers see at /set.
    """

    def __init__(self, name: str, set_folder: Path) -> None:
        self.name = name
        self.folder = set_folder
        set_folder.chmod(0o755)

    @classmethod
    def named(cls, set_folder: Path) -> "Image":
        """The one that is named in the environment."""
        name = os.environ.get("HUD_MCP_TEST_IMAGE")
        if not name:
            skip_here("no image is named: `make image` builds it, and names it")
        return cls(name, set_folder)

    def command(self, *arguments: str, options: tuple[str, ...] = ()) -> list[str]:
        """The command line that runs something in it; it has no network but where one is given."""
        network = () if "--network" in options else ("--network", "none")
        seen = ("--volume", f"{self.folder}:/set:ro")
        return ["docker", "run", "--rm", *network, *seen, *options, self.name, *arguments]

    def run(
        self, *arguments: str, options: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return docker(*self.command(*arguments, options=options)[1:])

    def python(self, program: str, *, options: tuple[str, ...] = ()) -> str:
        """What a program prints that runs in it."""
        done = self.run("-c", program, options=("--entrypoint", "python", *options))
        assert done.returncode == 0, done.stderr
        return done.stdout


def docker(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of Docker's to its end."""
    return subprocess.run(
        ["docker", *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=COMMAND_S, check=False,
    )  # fmt: skip
