"""`connect` hands a task to a program's own loop: here, in a server of its own, over HTTP."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from waiting import PATIENCE_S

import hud_mcp
from hud_mcp import Task, load_job
from hud_mcp.errors import InvalidTask, SessionEnded, SourceNotFound

pytestmark = pytest.mark.anyio

ENV = """
from hud_mcp import Environment

env = Environment("reversed-here")


@env.template()
async def backwards(word: str = "lamp"):
    answer = yield f"Write {word!r} backwards."
    yield 1.0 if answer == word[::-1] else 0.0


tasks = [backwards(word="lamp").model_copy(update={"id": "lamp"})]
"""
OPERATOR = "operator-secret-0123456789"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with an environment and a task, in the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "runs.sqlite3"))
    (tmp_path / "words.py").write_text(ENV)
    return tmp_path / "words.py"


@pytest.fixture
def served(file: Path) -> Iterator[str]:
    """The address of a server of that file, with the operator's token in it."""
    token = file.with_name("operator.token")
    token.write_text(OPERATOR)
    command = [sys.executable, "-m", "hud_mcp", "serve", str(file), "--http", "127.0.0.1:0"]
    server = subprocess.Popen(
        [*command, "--operator-token-file", str(token)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=dict(os.environ),
    )  # fmt: skip
    assert server.stdout is not None
    line = server.stdout.readline()
    while line and not line.startswith("HUD_MCP_URL="):
        line = server.stdout.readline()
    yield line.strip().removeprefix("HUD_MCP_URL=http://").join([f"http://{OPERATOR}@", ""])
    server.terminate()
    server.communicate(timeout=PATIENCE_S)


async def test_a_task_is_worked_on_by_a_loop_of_one_s_own(file: Path) -> None:
    """By the id of a row that the file declares; the answer is graded, and ends it."""
    async with hud_mcp.connect(file, task="lamp") as task:
        assert task.prompt == "Write 'lamp' backwards."
        observation, *_ = await task.step({"type": "wait", "time": 1})
        assert observation is not None
        assert await task.answer("pmal") == 1.0
        with pytest.raises(SessionEnded):
            await task.step()
    assert (task.reward, task.outcome) == (1.0, "graded")


@pytest.mark.long
@pytest.mark.parametrize("place", ["here", "stdio", "http"])
async def test_it_is_the_same_wherever_it_runs(file: Path, served: str, place: str) -> None:
    """In this process, in a server of its own, and on one that runs."""
    source = {"here": str(file), "stdio": f"stdio:{file}", "http": served}[place]
    row = {"env": "reversed-here", "template": "backwards", "args": {"word": "drawer"}}
    with anyio.fail_after(120):
        async with hud_mcp.connect(source, task=row) as task:
            assert task.prompt == "Write 'drawer' backwards."
            assert await task.answer("drawer") == 0.0
    assert task.outcome == "graded"


async def test_a_prompt_is_graded_by_its_own_calls_and_a_gym_by_nothing(file: Path) -> None:
    """An answer where nothing says how it is graded has no reward; what is left is cancelled."""
    asked = Task.model_validate(
        {"prompt": "Name a prime.", "gym": "qa", "evaluate": ("response_includes", "7")}
    )
    async with hud_mcp.connect("qa", task=asked) as task:
        assert await task.answer("11 or 7") == 1.0
    async with hud_mcp.connect("qa") as task:
        assert await task.answer("7") is None
    async with hud_mcp.connect("qa", task=asked) as task:
        await task.step()
    assert (task.reward, task.outcome) == (None, "cancelled")
    assert file.name


async def test_what_is_not_there_is_told_before_anything_runs(file: Path) -> None:
    """A task, a source, a row, and an id that only the server could know."""
    for source, task, error, told in (
        (file, "lapm", InvalidTask, "declares no task 'lapm'. Did you mean 'lamp'"),
        ("nowhere", None, SourceNotFound, "There is no gym 'nowhere'"),
        (file, Task(id="other", env="other", template="backwards"), InvalidTask, "other"),
        (file, {"env": 3}, InvalidTask, "The row is not a task"),
        ("http://127.0.0.1:9/mcp", "lamp", InvalidTask, "give the task itself"),
    ):
        with pytest.raises(error, match=told):
            async with hud_mcp.connect(source, task=task):
                pass  # pragma: no cover


async def test_a_job_reads_as_a_data_frame(file: Path) -> None:
    """Of either library that is installed; where neither is, the error says what to do."""
    job = await hud_mcp.create_job("frames")
    async with hud_mcp.connect(file, task="lamp", job=job) as task:
        await task.answer("pmal")
    found = await load_job(job.id)
    installed = [name for name in ("pandas", "polars") if _is_installed(name)]
    if not installed:
        with pytest.raises(hud_mcp.errors.NotInstalled, match="pip install pandas"):
            await found.dataframe()
    for name in installed:
        frame = await found.dataframe(name)  # type: ignore[arg-type]
        assert list(frame["reward"]) == [1.0]
        assert list(frame["task_id"]) == ["lamp"]
    with pytest.raises(hud_mcp.errors.HudMcpError, match="give 'pandas' or 'polars'"):
        await found.dataframe("numpy")  # type: ignore[arg-type]


def _is_installed(name: str) -> bool:
    import importlib.util  # noqa: PLC0415  # here alone

    return importlib.util.find_spec(name) is not None
