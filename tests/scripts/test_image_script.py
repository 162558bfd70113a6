"""What `make image` says where it cannot do its work, before it installs or makes anything."""

import os
import subprocess
from pathlib import Path

from waiting import PATIENCE_S

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "image.sh"
NOBODY = 65534


def refused(*arguments: str, user: int | None = None) -> str:
    """What it says of a command line that it refuses."""
    done = subprocess.run(
        ["bash", "-s", *arguments], input=SCRIPT.read_text(), capture_output=True, text=True,
        timeout=PATIENCE_S, check=False, cwd="/", user=user,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    return done.stderr


def test_a_step_that_there_is_not_is_told_with_those_that_there_are() -> None:
    """Nothing is built."""
    assert refused("bulid") == (
        "image.sh: there is no step 'bulid'; there are all, build and test.\n"
    )


def test_whoever_is_not_root_is_told_who_builds_an_image() -> None:
    """Two of the programs that it calls need the rights."""
    user = NOBODY if os.geteuid() == 0 else None
    assert "built by root on Linux" in refused("all", user=user)
