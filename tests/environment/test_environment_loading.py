"""`load_environment`: the one environment that a file, a folder or a module means."""

import sys
from pathlib import Path

import pytest

from hud_mcp.environment import (
    DataFileArg,
    DataFileRef,
    Environment,
    FileRef,
    FilesArg,
    GradingArg,
    PromptArg,
    load_environment,
)
from hud_mcp.errors import InvalidEnvironment, SourceNotFound

TWO = """
from hud_mcp import Environment

first = Environment("my shop")
second = Environment("org/board")
"""

FACTORY = """
from hud_mcp.environment import Environment

env = Environment("plain")
other = 7

def build(size: int = 1) -> Environment:
    return Environment(f"built-{size}")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file, which is also where modules are found."""
    (tmp_path / "two.py").write_text(TWO)
    (tmp_path / "hud_factories.py").write_text(FACTORY)
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "env.py").write_text('from hud_mcp import Environment\nenv = Environment("inner")\n')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_is_named_with_and_without_its_suffix(folder: Path) -> None:
    """A folder by its env.py; of several, one by its name or by its variable."""
    assert load_environment("./inner").name == "inner"
    assert load_environment(folder / "inner" / "env.py").name == "inner"
    assert load_environment("inner/env").name == "inner"
    for name in ("org/board", "second"):
        assert load_environment(folder / "two.py", name=name).name == "org/board"
    assert load_environment(f"{folder / 'two.py'}:org/board").name == "org/board"
    with pytest.raises(InvalidEnvironment, match="several environments; give a `name`: my shop, "):
        load_environment("two.py")
    with pytest.raises(
        SourceNotFound, match=r"no environment 'org/bord'. Did you mean 'org/board'"
    ):
        load_environment("two.py", name="org/bord")
    with pytest.raises(SourceNotFound, match=r"There is no environment at 'nowhere.py'"):
        load_environment("nowhere.py")
    with pytest.raises(InvalidEnvironment, match="goes with a function of a module"):
        load_environment("two.py", name="first", args={"size": 2})


@pytest.mark.usefixtures("folder")
def test_a_module_is_named_with_a_variable_or_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """The function is called with what is given; what makes no environment is an error."""
    monkeypatch.chdir("inner")
    assert load_environment("hud_factories").name == "plain"
    assert load_environment("hud_factories", name="build").name == "built-1"
    made = load_environment("hud_factories", name="build", args={"size": 3})
    assert isinstance(made, Environment)
    assert made.name == "built-3"
    with pytest.raises(InvalidEnvironment, match="build takes other arguments"):
        load_environment("hud_factories", name="build", args={"sise": 3})
    for name in ("other", "missing"):
        with pytest.raises(InvalidEnvironment, match=f"no environment '{name}'"):
            load_environment("hud_factories", name=name)
    del sys.modules["hud_factories"]


def test_the_hints_of_hud_s_argument_types_are_in_the_schema() -> None:
    """A template receives plain values and files by their ids; right answers are withheld."""
    env = Environment("hints")

    @env.template()
    async def ask(  # noqa: ANN202
        words: PromptArg,
        file: DataFileArg[DataFileRef],
        files: FilesArg[FileRef] = [],  # noqa: B006  # as authors write it
        right: GradingArg[str] = ["Paris"],  # noqa: B006  # the same
    ):
        answer = yield f"{words} {file.file_id} {len(files)}"
        yield float(answer in right)

    schema = ask.arguments.schema
    hints = {name: field["x-hud-hint"] for name, field in schema["properties"].items()}
    assert hints == {
        "words": "prompt", "file": "data-file", "files": "data-files", "right": "grading",
    }  # fmt: skip
    assert schema["required"] == ["words", "file"]
    assert "$ref" not in str(schema)
    assert "Paris" not in str(env.manifest())
    task = ask(words="See", file={"file_id": "f-1"})
    parsed = ask.arguments.parse(task.args)
    assert parsed["file"] == DataFileRef(file_id="f-1")
    assert parsed["right"] == ["Paris"]
