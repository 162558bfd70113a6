"""`scripts/install.py`: what it asks the machine's package manager for, and what people read."""

import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from skips import skip_here

from hud_mcp.worlds.browser.chromium import find_chromium

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not sys.platform.startswith("linux"), reason="not on this machine: package managers"
    ),
]

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "install.py"
PACKAGES = (
    "bubblewrap tigervnc-standalone-server chromium openssh-client curl openssl git make procps"
)
WHAT = (
    "bubblewrap, Xvnc, a Chromium with windows, an OpenSSH client, curl, OpenSSL, Git, GNU Make, "
    "pgrep"
)
PROGRAMS = "bwrap Xvnc chromium ssh curl openssl git make pgrep"


class Machine:
    """A machine with no program but a package manager, which does as the test says.

    Args:
        folder: An empty one.
    """

    def __init__(self, folder: Path) -> None:
        self.programs = folder / "programs"
        self.programs.mkdir()
        self.asked = folder / "asked"

    def add(self, name: str, script: str) -> None:
        """Put a program there."""
        file = self.programs / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    def add_apt(self, install: str) -> None:
        """Put `apt-get` there, which notes how it is called and runs this to install."""
        self.add("sudo", '[ "$1" = -n ] && shift; exec "$@"')
        self.add(
            "apt-get",
            f'echo "$@" >> {shlex.quote(str(self.asked))}\n[ "$1" = update ] || {{ {install}\n}}',
        )

    def install(self, goal: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Make it ready for a goal."""
        env = {
            **os.environ,
            "PATH": str(self.programs),
            "HUD_MCP_CHROMIUM": find_chromium() or "",
            **variables,
        }
        return subprocess.run(
            [sys.executable, str(SCRIPT), goal], env=env,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """It, where this one has PostgreSQL and nginx, which are looked for by their places."""
    if not list(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        skip_here("PostgreSQL is not where Debian has it")
    if not Path("/usr/sbin/nginx").exists():
        skip_here("nginx is not where Debian has it")
    return Machine(tmp_path)


@pytest.mark.long
def test_everything_is_asked_for_at_once_and_then_found(machine: Machine) -> None:
    """One run of the package manager brings all that `make test` lacks; it says what."""
    machine.add_apt(
        f"for name in {PROGRAMS}; do printf '#!/bin/sh\\n' > {machine.programs}/$name; "
        f"/bin/chmod +x {machine.programs}/$name; done"
    )
    done = machine.install("test")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"Installing {WHAT}.\n"
    update, install = machine.asked.read_text().splitlines()
    assert update.startswith("update")
    assert install.startswith("install -y")
    assert install.endswith(PACKAGES)


@pytest.mark.long
def test_a_package_that_is_unknown_does_not_keep_the_others_away(machine: Machine) -> None:
    """What the package manager has is installed; only the rest is named."""
    ssh = machine.programs / "ssh"
    machine.add_apt(f"printf '#!/bin/sh\\n' > {ssh}; /bin/chmod +x {ssh}")
    machine.add("apt-cache", '[ "$3" = openssh-client ]')
    done = machine.install("test")
    rest = PACKAGES.replace(" openssh-client", "")
    assert machine.asked.read_text().splitlines()[1].endswith(" openssh-client")
    assert f"apt-get has no {', '.join(rest.split())}" in done.stderr
    assert done.stderr.endswith(f"apt-get install -y {rest}\n")
    assert done.returncode == 1


@pytest.mark.long
def test_what_cannot_be_installed_is_named_with_the_one_command(machine: Machine) -> None:
    """What is missing, why it could not be had, and what to type; no noise."""
    machine.add_apt(
        'echo Reading...; echo "E: Failed to fetch it"; echo "E: Maybe run update?"; exit 100'
    )
    done = machine.install("test")
    sudo = "" if os.geteuid() == 0 else "sudo "
    assert done.returncode == 1
    assert done.stderr.splitlines()[1:] == [
        f"make test needs {WHAT}; apt-get said: E: Failed to fetch it.",
        "Run this, then try again:",
        f"    {sudo}apt-get update && {sudo}apt-get install -y {PACKAGES}",
    ]


@pytest.mark.long
def test_a_machine_without_a_package_manager_is_told_what_it_lacks(machine: Machine) -> None:
    """Nobody knows the command there."""
    done = machine.install("test")
    assert done.returncode == 1
    assert done.stderr == f"make test needs {WHAT}: install them, then try again.\n"


@pytest.mark.long
def test_a_machine_that_has_everything_is_left_alone(machine: Machine) -> None:
    """No package manager is asked, and nothing is said."""
    machine.add_apt("exit 1")
    done = machine.install("demo")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not machine.asked.exists()


@pytest.mark.long
def test_a_chromium_that_was_named_and_is_not_there_is_told(machine: Machine) -> None:
    """In the library's own words; nothing is installed in its place."""
    machine.add_apt("exit 0")
    done = machine.install("demo", HUD_MCP_CHROMIUM="/no/such/chromium")
    assert done.returncode == 1
    assert done.stderr.startswith("'/no/such/chromium' is not a program that can be run.")
    assert not machine.asked.exists()


@pytest.mark.long
def test_a_chromium_that_does_not_start_is_told(machine: Machine) -> None:
    """It is there, so only starting it shows that it is of no use."""
    machine.add(
        "broken",
        "echo 'broken: error while loading shared libraries: libnss3.so: cannot "
        "open shared object file: No such file or directory' >&2; exit 127",
    )
    done = machine.install("demo", HUD_MCP_CHROMIUM=str(machine.programs / "broken"))
    assert done.returncode == 1
    assert "It needs libnss3.so, which is not installed." in done.stderr
