"""What is built works with other installers: `uvx` with the wheel, `mcpb` with a bundle."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from made_homes import make_home
from other_python import OtherPython

from hud_mcp.plugins.install.change import Configuration
from hud_mcp.plugins.install.client import CLIENTS, Entry, kept_variables
from hud_mcp.plugins.install.install import try_entry

pytestmark = pytest.mark.peers

ROOT = Path(__file__).resolve().parents[2]
MCPB, PARSER = "@anthropic-ai/mcpb@2.1.2", "jsonc-parser@3.3.1"
PARSE = """
const {parse} = require("jsonc-parser"), fs = require("fs"), errors = [];
const options = {allowTrailingComma: true, disallowComments: false};
const value = parse(fs.readFileSync(process.argv[1], "utf8"), errors, options);
console.log(JSON.stringify([value, errors]));
"""
RUN_S = 900


def run(*command: str | Path, folder: Path, **variables: str) -> str:
    """Run a command to its end; return what it prints."""
    done = subprocess.run(
        [str(each) for each in command], cwd=folder, env={**os.environ, **variables},
        capture_output=True, text=True, timeout=RUN_S, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with `uv`, `uvx`, and a Python that has twine."""
    check = "import importlib.metadata as m, uv, twine; uv.find_uv_bin(); print(m.version('uv'))"
    uv = OtherPython(".venv-uv", ("uv", "twine"), check, "", "uv and twine", RUN_S)
    return uv.find(tmp_path_factory).parent


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program of bundles, and the parser that VS Code reads its settings with."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("not on this machine: npm, which brings mcpb")
    folder = tmp_path_factory.mktemp("npm")
    run(npm, "install", "--silent", "--no-fund", "--no-audit", MCPB, PARSER, folder=folder)
    return folder


@pytest.fixture(scope="module")
def mcpb(node: Path) -> Path:
    """The program of bundles."""
    return node / "node_modules" / ".bin" / "mcpb"


@pytest.mark.parametrize("name", ["cursor", "vscode", "gemini", "zed"])
def test_an_editors_own_parser_reads_what_was_written(
    name: str, node: Path, tmp_path: Path
) -> None:
    """With its comments and trailing commas, without an error, and the same as we read it."""
    path = make_home(tmp_path, name, "linux")[1]
    client, entry = CLIENTS[name], Entry("/opt/hud-mcp", ["serve", "browser"])
    Configuration(client, path).with_entry("hud-mcp", entry).write()
    value, errors = json.loads(run("node", "-e", PARSE, path, folder=node))
    assert errors == []
    servers = value[client.keys[0]]
    assert Entry.read(servers["hud-mcp"]) == entry
    assert servers["other"] == {"command": "npx", "args": ["-y", "other"]}
    assert value["theme"] == "dark"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this project, as it is published."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    run(*build, folder=ROOT)
    (built,) = folder.glob("*.whl")
    return built


def test_what_the_wheel_says_of_itself_can_be_published(programs: Path, wheel: Path) -> None:
    """`make release` asks the same."""
    said = run(programs / "python", "-m", "twine", "check", "--strict", wheel, folder=ROOT)
    assert "PASSED" in said


def test_the_wheel_alone_installs_itself_into_a_client(
    programs: Path, wheel: Path, tmp_path: Path
) -> None:
    """`uvx --from WHEEL` writes a command that outlives its own environment, and works."""
    variables = {
        "HOME": str(tmp_path),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "UV_CACHE_DIR": str(tmp_path / "cache"),
        "HUD_MCP_STORE": str(tmp_path / "store.sqlite3"),
    }
    command = [programs / "uvx", "--python", sys.executable, "--from", wheel, "hud-mcp"]
    said = run(*command, "install", "windsurf", "letter_count", folder=tmp_path, **variables)
    assert "Graded: count-r-strawberry" in said
    path = tmp_path / ".codeium" / "windsurf" / "mcp_config.json"
    entry = Entry.read(Configuration(CLIENTS["windsurf"], path).find("hud-mcp"))
    assert entry.command == str(programs / "uvx")
    assert str(wheel) in entry.args
    assert str(tmp_path / "cache") not in " ".join(entry.args)


def test_a_bundle_is_valid_and_what_its_manifest_starts_grades_a_task(
    programs: Path, mcpb: Path, wheel: Path, tmp_path: Path
) -> None:
    """It is packed anew by the program of bundles too; and an installed wheel can be handed on."""
    (tmp_path / "shop").mkdir()
    source = tmp_path / "shop" / "env.py"
    shutil.copy(ROOT / "environments" / "letter_count.py", source)
    own = [sys.executable, "-m", "hud_mcp", "bundle", source]
    run(*own, "--wheel", wheel, "-o", "a.mcpb", folder=tmp_path)
    run(mcpb, "unpack", "a.mcpb", "unpacked", folder=tmp_path)
    assert "passes" in run(mcpb, "validate", "unpacked/manifest.json", folder=tmp_path)
    assert "total files: 5" in run(mcpb, "pack", "unpacked", "again.mcpb", folder=tmp_path)
    config = json.loads((tmp_path / "unpacked/manifest.json").read_text())["server"]["mcp_config"]
    assert config["command"] == "uv"
    placed = [each.replace("${__dirname}", str(tmp_path / "unpacked")) for each in config["args"]]
    env = {
        **kept_variables(["uvx"]),
        "HUD_MCP_STORE": str(tmp_path / "store.sqlite3"),
        "UV_PYTHON": sys.executable,
    }
    (trial,) = anyio.run(try_entry, Entry(str(programs / "uv"), placed, env))
    assert (trial.environment, trial.reward) == ("letter_count", 0.0)
    installed = tmp_path / "unpacked" / ".venv" / "bin" / "hud-mcp"
    run(installed, "bundle", "letter_count", "-o", "b.mcpb", folder=tmp_path)
    run(mcpb, "unpack", "b.mcpb", "second", folder=tmp_path)
    (packed,) = (tmp_path / "second" / "wheels").glob("*.whl")
    pip = [programs / "uv", "pip", "install", "--no-deps", "--target", "third", packed]
    run(*pip, folder=tmp_path)
    assert (tmp_path / "third" / "hud_mcp" / "environments" / "letter_count.py").is_file()
