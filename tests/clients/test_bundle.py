"""`hud-mcp bundle` makes one file with the wheel and what is served."""

import json
import tomllib
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hud_mcp.cli import main

ENVIRONMENT = "from hud_mcp import Environment\nenv = Environment({name!r})\n"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A file that goes in as it is."""
    path = tmp_path / "hud_mcp-0.1.0-py3-none-any.whl"
    path.write_bytes(b"a wheel")
    return path


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
