"""A package that a command names is installed once, by its exact version, without its code."""

import json
import os
import stat
import threading
import zipfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from programs import make_modules, write
from tables import each_of

from hud_mcp.errors import InvalidEnvironment
from hud_mcp.plugins.servers.install import Wanted, parse, resolve
from hud_mcp.plugins.servers.program import find_program
from hud_mcp.sandbox import Finished

Run = Callable[..., Awaitable[Finished]]

pytestmark = [pytest.mark.sandbox, pytest.mark.anyio]

CLIENT = {"name": "a client", "version": "1"}
FS = "@modelcontextprotocol/server-filesystem"


@each_of(
    "line, wanted",
    [
        (f"npx -y {FS} .", Wanted("npm", FS, arguments=(".",))),
        (f"npx --yes {FS}@2026.8.31", Wanted("npm", FS, "2026.8.31")),
        (f"npx {FS}@latest --x", Wanted("npm", FS, arguments=("--x",))),
        ("npx -y -p acme@1.0.0 tool -v", Wanted("npm", "acme", "1.0.0", "tool", ("-v",))),
        ("npx --package=acme tool", Wanted("npm", "acme", "", "tool")),
        ("uvx git-server", Wanted("pypi", "git-server", "", "git-server")),
        ("uvx git-server@1.2 -x", Wanted("pypi", "git-server", "1.2", "git-server", ("-x",))),
        ("uvx --from acme[cli]==1 tool", Wanted("pypi", "acme[cli]", "1", "tool")),
        ("uv tool run acme", Wanted("pypi", "acme", "", "acme")),
        ("pipx run acme==2.0", Wanted("pypi", "acme", "2.0", "acme")),
        ("pipx run --spec acme tool", Wanted("pypi", "acme", "", "tool")),
        ("acme==2026.10.19 --a b", Wanted("pypi", "acme", "2026.10.19", "acme", ("--a", "b"))),
        ("acme@1.2.3 word", Wanted("npm", "acme", "1.2.3", arguments=("word",))),
        (f"{FS}@1.2.3", Wanted("npm", FS, "1.2.3")),
        (FS, Wanted("npm", FS)),
        ("python server.py", None),
        ("./server@home", None),
        ("/opt/me@work/server", None),
    ],
)
def test_a_command_names_a_package(line: str, wanted: Wanted | None) -> None:
    """As npx, uvx and pipx read it, or by its exact version alone."""
    assert parse(line.split()) == wanted


@each_of(
    "line, told",
    [
        ("npx --shell-auto-fallback x", "--shell-auto-fallback"),
        ("uvx --with other acme", "--with"),
        ("uvx --form acme tool", "--from"),
        ("npx -y", "no package"),
        ("npx acme@^1.2", "exact version"),
        ("npx github:someone/acme", "installed first"),
        ("uvx --from git+https://example.com/acme acme", "installed first"),
        ("uvx ../acme", "installed first"),
        ("npx acme@1.2/../../x", "exact version"),
    ],
)
def test_what_cannot_be_installed_is_refused(line: str, told: str) -> None:
    """By its name, before anything is asked for."""
    with pytest.raises(InvalidEnvironment, match=told):
        parse(line.split())


def make_wheel(folder: Path, name: str, version: str, *, programs: str = "") -> Path:
    """A wheel with a module that tells its version."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    ran = str(folder / "ran")
    scripts = programs or f"{name} = {name}:main\n"
    contents = {
        f"{name}.py": f"import sys\ndef main():\n    print({version!r}, *sys.argv[1:])\n",
        # A start of the environment's Python would run this.
        f"{name}.pth": f"import os; os.access({str(folder)!r}, 2) and os.mkdir({ran!r})\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{scripts}",
    }
    contents[f"{info}/RECORD"] = "".join(f"{each},,\n" for each in [*contents, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for each, text in contents.items():
            archive.writestr(each, text)
    return path


@pytest.fixture
def wheels(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which pip finds everything: no network is asked."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(home / "wheels"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return home / "wheels"


async def test_a_package_of_pypi_is_installed_once(wheels: Path, home: Path, start: Run) -> None:
    """The newest, whose version stays: a later start asks nobody, and none of its code has run."""
    (home / ".cache/hud-mcp/servers").mkdir(parents=True, mode=0o755)
    make_wheel(wheels, "acme", "1.0")
    program = find_program(["uvx", "acme", "word"], home)
    assert (program.name, program.version) == ("acme", "1.0")
    make_wheel(wheels, "acme", "2.0")
    assert find_program(["uvx", "acme", "word"], home) == program
    assert (await start(program)).text == "1.0 word\n"
    assert not (wheels / "ran").exists()
    # Nobody else of the machine reads what is installed, or puts a program there.
    assert stat.S_IMODE((home / ".cache/hud-mcp/servers").stat().st_mode) == 0o700


@pytest.mark.long
async def test_another_version_is_another_program(wheels: Path, home: Path, start: Run) -> None:
    """Beside the first, which sessions may use; its digest tells them apart."""
    for version in ("1.0", "2.0"):
        make_wheel(wheels, "acme", version)
    older, newer = (find_program([f"acme=={version}"], home) for version in ("1.0", "2.0"))
    assert (await start(newer)).text == "2.0\n"
    assert newer.digest != older.digest


def test_starts_at_once_install_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One lock a package: the second waits, and finds the first one's installation."""
    make_modules(home / "made", hoisted=True)
    write(home / "made/package-lock.json", "{}")
    text = f"""#!/bin/sh
        echo "$@" >> {home}/asked
        case "$1" in view) echo '"4.5.6"';; *) cp -r {home}/made/. "$3"; sleep 0.2;; esac
    """
    write(home / "bin/npm", text, mode=0o755)
    monkeypatch.setenv("PATH", f"{home}/bin:{os.environ['PATH']}")
    found: list[str] = []

    def one() -> None:
        installed = resolve(["npx", "-y", "@acme/server"])
        found.append(installed.version if installed else "")

    threads = [threading.Thread(target=one) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    asked = (home / "asked").read_text().splitlines()
    assert found == ["4.5.6"] * 3
    assert [each.split()[0] for each in asked] == ["view", "install"]
    assert "--ignore-scripts" in asked[1]
    assert "@acme/server@4.5.6" in asked[1]


@pytest.mark.long
def test_a_broken_installation_is_made_again(wheels: Path, home: Path) -> None:
    """A failed one counts for nothing, and the error is that of the installer."""
    with pytest.raises(InvalidEnvironment, match="acme"):
        resolve(["acme==1.0"])
    make_wheel(wheels, "acme", "1.0")
    installed = resolve(["acme==1.0"])
    assert installed is not None
    (installed.folder / "INSTALLED").unlink()
    (installed.folder / "bin" / "acme").unlink()
    again = resolve(["acme==1.0"])
    assert again is not None
    assert Path(again.argv[0]).is_file()


@pytest.mark.long
def test_a_package_with_several_programs_asks_which(wheels: Path, home: Path) -> None:
    """The error lists them, and tells a close one."""
    make_wheel(wheels, "acme", "1.0", programs="one = acme:main\nother = acme:main\n")
    with pytest.raises(InvalidEnvironment, match="one, other"):
        resolve(["uvx", "acme"])
    installed = resolve(["uvx", "--from", "acme", "other"])
    assert installed is not None
    assert Path(installed.argv[0]).name == "other"
    with pytest.raises(InvalidEnvironment, match=r"mean.*other"):
        resolve(["uvx", "--from", "acme", "othr"])


@pytest.mark.peers
@pytest.mark.parametrize(
    "line",
    [
        f"npx -y {FS}@2026.8.31 .",
        "npx -y @modelcontextprotocol/server-memory@2026.8.31",
        "mcp-server-git==2026.10.19",
        "uvx mcp-server-time@2026.10.19 --local-timezone UTC",
    ],
)
async def test_the_reference_servers_start_without_a_network(
    line: str, home: Path, start: Run
) -> None:
    """From the registries themselves; each answers a client's handshake in a sandbox."""
    ask = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": ask}
    program = find_program(line.split(), home)
    done = await start(program, stdin=f"{json.dumps(message)}\n".encode())
    assert '"serverInfo"' in done.text, done.text
