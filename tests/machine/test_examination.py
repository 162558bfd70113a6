"""`hud-mcp doctor` and `hud-mcp browser`: what they find, what they say, and how they exit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from terminals import Terminal
from waiting import PATIENCE_S

from hud_mcp.cli import main
from hud_mcp.cli.serving import _refuse_impossible
from hud_mcp.environment import Environment
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.install import places
from hud_mcp.plugins.install import places as platforms
from hud_mcp.plugins.install.packages import PackageManager
from hud_mcp.worlds.shell import Shell

ROOT = Path(__file__).resolve().parents[2]
SHELL = "from hud_mcp import Environment, Shell\nenv = Environment('box', world=Shell())\n"
NONE = "from hud_mcp import Environment\nenv = Environment('plain')\n"


def examine(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """What `hud-mcp` says to a pipe, in a process with a PATH and files of its own."""
    return subprocess.run(
        [sys.executable, "-m", "hud_mcp", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=3 * PATIENCE_S, check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HUD_MCP_STORE": str(folder / "s.sqlite3"),
             **variables},
    )  # fmt: skip


@pytest.mark.browser
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="not on this machine: bubblewrap")
def test_what_is_needed_and_missing_fails_with_what_to_do(tmp_path: Path) -> None:
    """One object; what the named environment needs fails, and the rest is only absent."""
    (tmp_path / "env.py").write_text(SHELL)
    programs = tmp_path / "programs"
    programs.mkdir()
    done = examine(
        tmp_path, "doctor", "--json", PATH=str(programs), HUD_MCP_CHROMIUM="/no/chromium"
    )
    told = json.loads(done.stdout)
    found = {each["name"]: each for each in told["findings"]}
    assert (done.returncode, told["ok"]) == (1, False)
    assert found["bubblewrap"] == {
        "name": "bubblewrap", "state": "failed", "said": "is not installed",
        "do": "Install bubblewrap.",
    }  # fmt: skip
    assert found["Chromium"]["state"] == "absent"
    assert "browser install" in found["Chromium"]["do"]
    assert found["Playwright's driver"]["state"] == "ok"
    assert all(each["do"] for each in told["findings"] if each["state"] != "ok")


@pytest.mark.long
def test_a_store_that_cannot_be_written_fails(tmp_path: Path) -> None:
    """Its folder's name is a file's: the line says so, and where another store is named."""
    (tmp_path / "file").write_text("")
    (tmp_path / "env.py").write_text(NONE)
    store = str(tmp_path / "file" / "s.sqlite3")
    given = ["doctor", str(tmp_path / "env.py"), "--json", "--store", store]
    shown = CliRunner().invoke(main, given)
    assert shown.exit_code == 1, shown.output
    in_words = CliRunner().invoke(main, [each for each in given if each != "--json"]).stdout
    states = [line.split()[0] for line in in_words.splitlines() if not line.startswith(" ")]
    assert states == sorted(states, key=lambda state: state != "failed")
    assert sum("extras" in line.split()[:2] for line in in_words.splitlines()) <= 2
    found = next(e for e in json.loads(shown.stdout)["findings"] if e["name"] == "store")
    assert found["state"] == "failed"
    assert "HUD_MCP_STORE" in found["do"]


@pytest.mark.long
def test_nothing_is_installed_where_nobody_can_be_asked(tmp_path: Path) -> None:
    """In a pipe, the one command is named, and no package manager is called."""
    programs = tmp_path / "programs"
    programs.mkdir()
    asked = tmp_path / "asked"
    apt = programs / "apt-get"
    apt.write_text(f"#!/bin/sh\necho $@ >> {asked}\n")
    apt.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_CHROMIUM, "browser", "install"],
        cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": str(programs), "PYTHONPATH": str(ROOT),
             "PLAYWRIGHT_BROWSERS_PATH": str(tmp_path / "none")}, timeout=3 * PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 1
    assert "There is no terminal to ask on, so nothing was installed." in done.stderr
    assert "browser install --yes`" in done.stderr
    assert not asked.exists()


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="not on this machine: terminals of POSIX")
def test_a_terminal_is_asked_with_the_size_and_no_leaves_everything_as_it_is(
    tmp_path: Path, terminals: list[Terminal]
) -> None:
    """The package manager has told how much it is; after a no it installs nothing."""
    programs = tmp_path / "programs"
    programs.mkdir()
    asked = tmp_path / "asked"
    scripts = {
        "sudo": '[ "$1" = -n ] && shift; exec "$@"',
        "apt-cache": '[ "$3" = chromium-headless-shell ] || [ "$3" = fonts-dejavu-core ]',
        "apt-get": f"echo $@ >> {asked}\necho \"'http://d/c.deb' c.deb 96468992 SHA256:0\"",
    }
    for name, script in scripts.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    terminal = Terminal(
        tmp_path, "browser", "install", program=("-c", WITHOUT_CHROMIUM),
        PATH=str(programs), PLAYWRIGHT_BROWSERS_PATH=str(tmp_path / "none"),
    )  # fmt: skip
    terminals.append(terminal)
    said = terminal.wait_for("[Y/n]")
    assert "Install chromium-headless-shell from apt-get (92 MB)?" in said
    terminal.type("n\n")
    assert terminal.ended() == 1
    assert "Nothing was installed." in terminal.said
    assert asked.read_text().splitlines() == [
        (
            "install --print-uris -y -qq --no-install-recommends "
            "chromium-headless-shell fonts-dejavu-core"
        )
    ]


WITHOUT_CHROMIUM = """
from hud_mcp.worlds.browser import chromium
chromium._CANDIDATES = ()
from hud_mcp.cli import main
main()
"""


@pytest.mark.parametrize(
    ("system", "said"), [("Darwin", "macOS cannot run"), ("Windows", "WSL 2"), ("Linux", None)]
)
def test_a_shell_that_no_system_can_isolate_is_refused_at_the_start(
    system: str, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the remedy; one that is not isolated may run, and so may one on Linux."""
    monkeypatch.setattr(platforms, "is_wsl1", lambda: False)
    why = platforms.refusal(Shell(), system)
    assert platforms.refusal(Shell(isolation="none"), system) is None
    if said is None:
        assert why is None
        return
    assert why is not None
    assert said in why
    monkeypatch.setattr(platforms.refusal, "__defaults__", (system,))
    with pytest.raises(HudMcpError, match="box cannot run here"):
        _refuse_impossible([Environment("box", world=Shell())])


def test_a_clock_before_the_installation_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that woke in 1970 reads every lease as one of the future."""
    assert places.look_at_clock().state == "ok"
    monkeypatch.setattr(places.time, "time", lambda: 0.0)
    assert places.look_at_clock().state == "failed"


def test_a_package_manager_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What apt-get tells of its progress is told on, and is no complaint."""
    script = tmp_path / "apt-get"
    script.write_text(
        "#!/bin/sh\necho 'dlstatus:1:40.5:Retrieving file 1 of 2'\n"
        "echo 'pmstatus:chromium:80:Installing chromium'\necho 'E: no'\nexit 100\n"
    )
    script.chmod(0o755)
    for name in ("sudo", "apt-cache"):
        (tmp_path / name).write_text('#!/bin/sh\n[ "$1" = -n ] && shift && exec "$@"\nexit 0\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    told: list[tuple[float, str]] = []
    manager = PackageManager("apt-get")
    manager.install(["chromium"], lambda percent, what: told.append((percent, what)))
    assert told == [(40.5, "Retrieving file 1 of 2"), (80.0, "Installing chromium")]
    assert manager.complaint == "apt-get said: E: no"


NOTHING_DRAWS = """
import sys
from pathlib import Path
from hud_mcp.plugins.gymnasium import opengl
there = Path(sys.argv.pop(1))
opengl._try = lambda backend: None if there.exists() and backend == "egl" else "no library"
from hud_mcp.cli import main
main()
"""


@pytest.mark.long
@pytest.mark.parametrize("fixes", [False, True])
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="not on this machine: apt-get")
def test_the_opengl_packages_are_installed_on_request_alone(tmp_path: Path, *, fixes: bool) -> None:
    """The finding names the packages; `--fix` has them installed and finds that something draws."""
    pytest.importorskip("mujoco", reason="not on this machine: mujoco")
    programs, asked, there = tmp_path / "programs", tmp_path / "asked", tmp_path / "there"
    programs.mkdir()
    scripts = {
        "sudo": '[ "$1" = -n ] && shift; exec "$@"',
        "apt-cache": "exit 0",
        "apt-get": f'echo $@ >> {asked}\nif [ "$1" = install ]; then echo > {there}; fi',
    }
    for name, script in scripts.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    (tmp_path / "env.py").write_text(NONE)
    given = {name: value for name, value in os.environ.items() if name != "MUJOCO_GL"}
    done = subprocess.run(
        [sys.executable, "-c", NOTHING_DRAWS, str(there), "doctor", "--json",
         *(["--fix"] if fixes else [])],
        cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        env={**given, "PATH": str(programs), "PYTHONPATH": str(ROOT),
             "XDG_CACHE_HOME": str(tmp_path), "HUD_MCP_STORE": str(tmp_path / "s.sqlite3")},
        timeout=3 * PATIENCE_S,
    )  # fmt: skip
    findings = {each["name"]: each for each in json.loads(done.stdout)["findings"]}
    found = findings["MuJoCo's OpenGL"]
    if fixes:
        assert (found["state"], found["said"]) == ("ok", "egl draws")
        assert "libegl1 libgl1 libgl1-mesa-dri" in asked.read_text()
    else:
        assert found["state"] == "absent"
        assert "apt-get install -y libegl1 libgl1 libgl1-mesa-dri" in found["do"]
        assert not asked.exists()
