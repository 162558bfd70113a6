"""`hud-mcp bundle` makes one file with the wheel and what is served."""

import hashlib
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from jsonschema import validate
from tables import each_of

import hud_mcp
from hud_mcp.cli import main

ROOT = Path(hud_mcp.__file__).parents[1]
DATA = ROOT / "tests" / "data"
ENVIRONMENT = "from hud_mcp import Environment\nenv = Environment({name!r})\n"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A file that goes in as it is."""
    path = tmp_path / "hud_mcp-0.1.0-py3-none-any.whl"
    path.write_bytes(b"a wheel")
    return path


def schema(name: str) -> dict[str, Any]:
    """The published schema of that name."""
    found: dict[str, Any] = json.loads((DATA / f"{name}.schema.json").read_text())
    return found


def author(folder: Path, name: str) -> Path:
    """A person's environment, with things beside it that are nobody else's."""
    folder.mkdir(parents=True)
    (folder / "env.py").write_text(ENVIRONMENT.format(name=name))
    for beside in ("site/index.html", ".git/config", ".venv/pyvenv.cfg", "__pycache__/env.pyc"):
        (folder / beside).parent.mkdir(exist_ok=True)
        (folder / beside).write_text(beside)
    return folder / "env.py"


def bundle(*arguments: str | Path) -> Result:
    """One call of `hud-mcp bundle`."""
    return CliRunner().invoke(main, ["bundle", *map(str, arguments)])


def test_a_bundle_has_the_wheel_its_sources_and_what_starts_them(
    tmp_path: Path, wheel: Path
) -> None:
    """Folders of one name do not mix, and what is hidden or built stays out."""
    one, two = author(tmp_path / "a" / "shop", "one"), author(tmp_path / "b" / "shop", "two")
    rows = tmp_path / "rows.jsonl"
    rows.write_text("{}\n")
    out = tmp_path / "out.mcpb"
    given = ("--taskset", rows, "--wheel", wheel, "-o", out, "--extra", "box2d", "--name", "shops")
    done = bundle(one, f"{two}:two", "letter_count", *given)
    assert done.exit_code == 0, done.output
    with zipfile.ZipFile(out) as archive:
        assert set(archive.namelist()) == {
            "manifest.json",
            "pyproject.toml",
            "server.py",
            f"wheels/{wheel.name}",
            "sources/shop/env.py",
            "sources/shop/site/index.html",
            "sources/shop-2/env.py",
            "sources/shop-2/site/index.html",
            "tasksets/rows.jsonl",
        }
        assert archive.read(f"wheels/{wheel.name}") == b"a wheel"
        manifest = json.loads(archive.read("manifest.json"))
        project = tomllib.loads(archive.read("pyproject.toml").decode())
        starter = archive.read("server.py").decode()
    assert manifest["name"] == "shops"
    validate(manifest, schema("mcpb-manifest-0.4"))
    assert manifest["server"]["entry_point"] == "server.py"
    assert project["project"]["dependencies"] == ["hud-mcp[box2d]"]
    assert project["tool"]["uv"]["sources"]["hud-mcp"] == {"path": f"wheels/{wheel.name}"}
    (line,) = (each for each in starter.splitlines() if each.startswith("ARGUMENTS = "))
    assert json.loads(line.removeprefix("ARGUMENTS = ")) == [
        *("serve", "${__dirname}/sources/shop/env.py", "${__dirname}/sources/shop-2/env.py:two"),
        *("letter_count", "--taskset", "${__dirname}/tasksets/rows.jsonl"),
    ]


def test_a_file_that_is_there_is_replaced_by_force_alone(tmp_path: Path, wheel: Path) -> None:
    """And a source that does not load makes none."""
    out = tmp_path / "out.mcpb"
    out.write_text("mine")
    refused = bundle("letter_count", "--wheel", wheel, "-o", out)
    assert refused.exit_code == 1
    assert "exists already" in refused.output
    assert bundle("letter_cuont", "--wheel", wheel, "-o", out, "--force").exit_code == 1
    assert out.read_text() == "mine"
    assert bundle("letter_count", "--wheel", wheel, "-o", out, "--force").exit_code == 0
    assert zipfile.is_zipfile(out)


@each_of(
    ("given", "arguments"),
    [
        (dict.fromkeys(("SOURCE", "STORE", "LIMITS"), "${user_config.x}"), []),
        (
            {"SOURCE": "/e.py", "STORE": "/s.sqlite3", "LIMITS": "sessions=8, step_s=9"},
            ["/e.py", "--store", "/s.sqlite3", "--limit", "sessions=8", "--limit", "step_s=9"],
        ),
    ],
)
def test_the_settings_of_a_bundle_become_options(
    given: dict[str, str], arguments: list[str], tmp_path: Path, wheel: Path
) -> None:
    """A client passes the placeholder itself where a person left a setting empty."""
    out = tmp_path / "out.mcpb"
    assert bundle("letter_count", "--wheel", wheel, "-o", out, "--force").exit_code == 0
    with zipfile.ZipFile(out) as archive:
        archive.extract("server.py", tmp_path)
    (tmp_path / "hud_mcp").mkdir(exist_ok=True)
    (tmp_path / "hud_mcp" / "__init__.py").touch()
    tell = "import sys\n\n\ndef main():\n    print(sys.argv[1:])\n"
    (tmp_path / "hud_mcp" / "__main__.py").write_text(tell)
    done = subprocess.run(  # the bundle's own starter
        [sys.executable, tmp_path / "server.py"],
        env=os.environ | {f"BUNDLE_{key}": value for key, value in given.items()},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == str(["serve", "letter_count", *arguments])


@each_of(
    ("address", "name"),
    [
        ("https://github.com/ann/shops/releases/shops-mcp.mcpb", "io.github.ann"),
        ("https://files.example.com/shops-mcp.mcpb", "com.example.files"),
    ],
)
def test_a_bundle_with_an_address_has_an_entry_for_the_registry(
    address: str, name: str, tmp_path: Path, wheel: Path
) -> None:
    """It is as the registry's schema says, and names the bundle by its bytes."""
    out = tmp_path / "shops.mcpb"
    given = ("--wheel", wheel, "-o", out, "--name", "shops", "--set", f"address={address}")
    done = bundle("letter_count", *given, "--force")
    assert done.exit_code == 0, done.output
    entry = json.loads((tmp_path / "shops.server.json").read_text())
    validate(entry, schema("registry-server-2025-12-11"))
    assert entry["name"] == f"{name}/shops"
    (package,) = entry["packages"]
    assert package["identifier"] == address
    assert package["fileSha256"] == hashlib.sha256(out.read_bytes()).hexdigest()


def test_an_address_that_is_none_is_refused_before_a_bundle_is_written(
    tmp_path: Path, wheel: Path
) -> None:
    """An entry needs https, because a client loads what it names."""
    out = tmp_path / "out.mcpb"
    done = bundle("letter_count", "--wheel", wheel, "-o", out, "--set", "address=http://a/x.mcpb")
    assert done.exit_code == 1
    assert "http://a/x.mcpb" in done.output
    assert list(tmp_path.iterdir()) == [wheel]


def test_the_entry_of_this_package_is_as_the_registry_wants_it() -> None:
    """Its version is the package's, and the README has the line that proves whose it is."""
    entry = json.loads((ROOT / "server.json").read_text())
    validate(entry, schema("registry-server-2025-12-11"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (package,) = entry["packages"]
    assert {entry["version"], package["version"]} == {project["version"]}
    assert package["identifier"] == project["name"]
    assert f"mcp-name: {entry['name']}" in (ROOT / "README.md").read_text()
