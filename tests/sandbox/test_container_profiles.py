"""A shell under a container's filter of system calls, which the kernel applies for real."""

import subprocess
import sys
from pathlib import Path

import pytest

from hud_mcp.sandbox.bubblewrap import PROFILE

pytestmark = pytest.mark.sandbox

UNDER = Path(__file__).with_name("under_profile.py")
SHELL = """
import sys
import anyio
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.world import Opening
from hud_mcp.worlds.shell import Shell

async def main():
    try:
        shell = await Shell().open(Opening())
    except EnvironmentFailed as exc:
        print(exc)
        return
    done = await shell.run("echo it runs > file; cat file; unshare --user true; echo $?")
    print(done.output)
    await shell.close()

anyio.run(main)
"""
REFUSED = dict.fromkeys(("add_key", "bpf", "init_module", "keyctl", "open_tree", "reboot"), 1)
"""By name, the number of the error that each ends with: it is not permitted."""
CALLS = f"""
import ctypes, pyseccomp
libc, found = ctypes.CDLL(None, use_errno=True), {{}}
for name in {list(REFUSED)}:
    libc.syscall(pyseccomp.resolve_syscall(pyseccomp.system_arch(), name), -1, -1, -1, -1, -1)
    found[name] = ctypes.get_errno()
print(found)
"""


def under(which: str, *command: str) -> str:
    """What a program writes that runs under a profile."""
    done = subprocess.run(
        [sys.executable, str(UNDER), which, *command],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_under_the_default_profile_a_shell_says_how_the_container_is_started(
    machine: None,
) -> None:
    """The profile that it names is a file that is there."""
    told = under("default", sys.executable, "-c", SHELL)
    assert told.startswith("The sandbox did not start. This container refuses it namespaces.")
    assert "`docker run --security-opt seccomp=seccomp.json " in told
    assert f"`docker run --rm --entrypoint cat hud-mcp {PROFILE}`" in told
    assert told.endswith("It said: bwrap: No permissions to create new namespace\n")
    assert PROFILE.exists()


def test_under_the_shipped_profile_a_shell_runs(machine: None) -> None:
    """And what runs in it makes no namespace, as everywhere."""
    told = under("shipped", sys.executable, "-c", SHELL).split("\n")
    assert told[0] == "it runs"
    assert told[2] == "1", told


@pytest.mark.long
def test_the_shipped_profile_refuses_everything_else_that_the_default_does() -> None:
    """Calls that would be answered otherwise: their arguments are none that the kernel knows."""
    assert under("shipped", sys.executable, "-c", CALLS) == f"{REFUSED}\n"
    assert under("default", sys.executable, "-c", CALLS) == f"{REFUSED}\n"
