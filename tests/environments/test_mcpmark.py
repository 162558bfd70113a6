"""MCPMark's rows are read from the user's own copy, run over its files, and graded by programs."""

import json
import os
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from peers import Peer, stdio_peer
from tables import each_of

from hud_mcp import dataset_file, load_taskset
from hud_mcp.errors import InvalidTask, SourceNotFound
from hud_mcp.loading.provenance import why_not_runnable
from hud_mcp.loading.public import Choice, import_set

pytestmark = pytest.mark.anyio

FILES_SERVER = Path(__file__).parents[1] / "servers" / "files_server.py"
DESCRIPTION = "Write `count.txt` with the number of pages.\n"
VERIFY = '''\
#!/usr/bin/env python3
"""Whether the pages were counted. ✓"""
import csv
import os
import re
import sys
from pathlib import Path


def main():
    folder = Path(os.environ["FILESYSTEM_TEST_DIR"])
    pages = [each for each in folder.glob("*.html")]
    text = (folder / "count.txt").read_text()
    print(f"| ❌ expected {len(pages)}")
    is_right = re.fullmatch(r"\\s*2\\s*", text) and (folder / "a.html").read_text() == "ä"
    sys.exit(0 if is_right and len(pages) == 2 else 1)


if __name__ == "__main__":
    main()
'''
META: dict[str, Any] = {
    "task_id": "count", "task_name": "Count", "category_id": "papers", "difficulty": "L1",
    "tags": ["data extraction"], "mcp": ["filesystem"],
    "meta_data": {"stateType": "text", "stateUrl": "https://files.test/papers.zip"},
}  # fmt: skip


def add_task(
    tasks: Path,
    place: str = "filesystem/easy/papers/count",
    *,
    verify: str = VERIFY,
    **meta: Any,
) -> Path:
    """Write a task as the benchmark has it; None leaves a field of its meta.json out."""
    folder = tasks / place
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "description.md").write_text(DESCRIPTION)
    (folder / "verify.py").write_text(verify)
    (folder / "meta.json").write_text(json.dumps(META | meta))
    return folder


@pytest.fixture(autouse=True)
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's copy of the repository with files of one category, and a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HUD_MCP_DATASETS", str(tmp_path / "sets"))
    monkeypatch.chdir(tmp_path)
    copy = tmp_path / "sets" / "mcpmark"
    papers = copy / "test_environments" / "papers"
    papers.mkdir(parents=True)
    (papers / "a.html").write_text("ä")
    (papers / "b.html").write_text("b")
    os.utime(papers / "b.html", (1_000_000_000, 1_000_000_000))
    (papers / "deep er").mkdir()
    (papers / "deep er" / "näme.txt").write_text("deep")
    (papers / "out").symlink_to("/etc/hostname")
    return copy / "tasks"


async def reason(task: str = "mcpmark-filesystem-easy-papers-count") -> str | None:
    """The reason why a task does not run here."""
    return why_not_runnable((await load_taskset("MCPMark"))[task])


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Peer]:
    """The rows over a server for files."""
    rows = "".join(json.dumps(task.row) + "\n" for task in import_set("MCPMark").tasks)
    (folder / "rows.jsonl").write_text(rows)
    source = f"mcp:in=mcp-filesystem /usr/bin/python3 {FILES_SERVER}"
    cache = {"XDG_CACHE_HOME": str(folder / "cache")}
    words = (source, "--taskset", str(folder / "rows.jsonl"))
    async with stdio_peer(folder, words, env=cache) as peer:
        yield peer


async def started(peer: Peer) -> str:
    """A session of the one row."""
    begun = await peer.ok("start_task", task="mcpmark-filesystem-easy-papers-count")
    assert DESCRIPTION.strip() in begun.text
    return begun.structured["session"]


async def test_rows_of_every_service_say_what_they_are_of(tasks: Path) -> None:
    """A part is a service, a suite or a category; what cannot run here names what it needs."""
    add_task(tasks)
    add_task(tasks, "filesystem/standard/desktop/sort", category_id="desktop")
    for service in ("notion", "github", "postgres", "playwright"):
        add_task(tasks, f"{service}/standard/some/task", category_id="some", mcp=[service])
    rows = await load_taskset("MCPMark")
    assert rows.splits == {"easy": 1, "standard": 5}
    assert (await load_taskset("MCPMark-easy")).ids == ("mcpmark-filesystem-easy-papers-count",)
    assert len(await load_taskset("MCPMark-filesystem")) == 2
    assert await reason() is None
    assert "SOURCE_NOTION_API_KEY" in (await reason("mcpmark-notion-standard-some-task") or "")
    assert "GITHUB_TOKENS" in (await reason("mcpmark-github-standard-some-task") or "")
    assert "POSTGRES_HOST" in (await reason("mcpmark-postgres-standard-some-task") or "")
    assert "browser" in (await reason("mcpmark-playwright-standard-some-task") or "")
    told = await reason("mcpmark-filesystem-standard-desktop-sort") or ""
    assert "https://files.test/papers.zip" in told
    assert "test_environments/desktop" in told


async def test_the_files_may_lie_elsewhere(tasks: Path, tmp_path: Path) -> None:
    """`--host test_environments=DIR` names their folder."""
    add_task(tasks, category_id="moved")
    assert await reason() is not None
    (tmp_path / "other" / "moved").mkdir(parents=True)
    chosen = import_set("MCPMark", Choice(hosts={"test_environments": str(tmp_path / "other")}))
    assert chosen.counted.runnable == 1


async def test_odd_files_of_the_user_s_are_packed_once_or_name_the_reason(tasks: Path) -> None:
    """A pipe is left out, a link is not followed, and a folder that is a link is its content."""
    add_task(tasks)
    papers = tasks.parent / "test_environments" / "papers"
    os.mkfifo(papers / "pipe")
    (before,) = import_set("MCPMark").tasks
    with tarfile.open(dataset_file(str(before.setup[0].args[0]))) as archive:
        names = {each.name: each for each in archive}
    assert "./pipe" not in names
    assert names["./out"].linkname == "/etc/hostname"
    assert {(each.uid, each.uname) for each in names.values()} == {(0, "")}
    papers.rename(tasks.parent / "elsewhere")
    papers.symlink_to(tasks.parent / "elsewhere")
    assert import_set("MCPMark").tasks[0].setup == before.setup
    with (papers / "huge").open("wb") as file:
        file.truncate(1 << 40)
    assert "over 400 MiB" in (await reason() or "")


@pytest.mark.sandbox
@pytest.mark.usefixtures("machine")
async def test_a_row_runs_over_its_files_and_its_program_grades(
    tasks: Path, tmp_path: Path
) -> None:
    """The agent gets a copy of the files with their times, and never the program."""
    add_task(tasks)
    async with served(tmp_path) as peer:
        session = await started(peer)
        listed = await peer.ok("names", session=session, path=".")
        assert listed.text.split("\n") == ["a.html", "b.html", "deep er", "out"]
        assert (await peer.ok("read", session=session, path="deep er/näme.txt")).text == "deep"
        for secret in (tasks, tmp_path / "cache"):
            await peer.error("names", session=session, path=str(secret))
        await peer.ok("write", session=session, path="count.txt", text="2\n")
        graded = await peer.ok("response", session=session, answer="done")
        assert graded.structured["reward"] == 1.0
        assert "expected" not in json.dumps(graded.structured)
    kept = tasks.parent / "test_environments" / "papers"
    assert not (kept / "count.txt").exists()


ATTACKS: dict[str, list[tuple[str, dict[str, str]]]] = {
    "nothing": [],
    "a wrong count": [("write", {"path": "count.txt", "text": "3"})],
    "modules of Python's names": [
        ("write", {"path": f"{name}.py", "text": "import os; os._exit(0)"})
        for name in ("re", "csv", "sitecustomize", "verify", "encodings/__init__")
    ],
    "a link to a file that says so": [("link", {"path": "count.txt", "target": "/etc/issue"})],
    "a link to itself": [("link", {"path": "count.txt", "target": "count.txt"})],
    "a pipe": [("pipe", {"path": "count.txt"})],
    "a huge file": [("grow", {"path": "count.txt", "size": str(100 << 20)})],
    "a folder": [("write", {"path": "count.txt/2", "text": "2"})],
    "an input that fits": [
        ("write", {"path": "count.txt", "text": "2"}),
        ("link", {"path": "a.html", "target": "/proc/self/environ"}),
    ],
}  # fmt: skip
"""The calls of an agent that wants the reward without the work."""


@pytest.mark.long
@pytest.mark.sandbox
@pytest.mark.usefixtures("machine")
async def test_whatever_an_agent_leaves_is_its_own_result(tasks: Path, tmp_path: Path) -> None:
    """A reward of 0: neither a full one, nor a grade that failed."""
    add_task(tasks)
    rewards: dict[str, float] = {}
    async with served(tmp_path) as peer:
        for attack, calls in ATTACKS.items():
            session = await started(peer)
            for tool, arguments in calls:
                await peer.ok(tool, session=session, **arguments)
            graded = await peer.ok("response", session=session, answer="done")
            rewards[attack] = graded.structured["reward"]
    assert rewards == dict.fromkeys(ATTACKS, 0.0)


@pytest.mark.long
@pytest.mark.sandbox
@pytest.mark.usefixtures("machine")
async def test_a_program_that_cannot_run_here_is_no_result_of_the_agents(
    tasks: Path, tmp_path: Path
) -> None:
    """The machine's Python may lack what another one has; the grading has failed then."""
    add_task(tasks, verify="import os\nfrom os import nothing_of_that_name\n")
    async with served(tmp_path) as peer:
        session = await started(peer)
        told = await peer.error("response", session=session, answer="done")
        assert "nothing_of_that_name" not in told


REFUSED = {
    "a module that is not Python's": ("import pandas\n", "pandas"),
    "a module of the benchmark's": ("from tasks.utils import notion_utils\n", "tasks.utils"),
    "a module beside it": ("from . import other\n", "other"),
    "files beside it": ("from pathlib import Path\nPath(__file__)\n", "beside"),
}
"""A program, and a word of the reason why its row does not run here."""


@each_of("program", REFUSED)
async def test_a_program_that_needs_more_than_python_does_not_run(
    program: str, tasks: Path
) -> None:
    """Its row says what it needs before anything begins."""
    text, word = REFUSED[program]
    add_task(tasks, verify=text)
    assert word in (await reason() or "")


async def test_odd_names_of_tasks_are_names(tasks: Path) -> None:
    """Spaces, quotation marks and letters beyond ASCII; other bytes are refused by their place."""
    add_task(tasks, "filesystem/easy/papers/a 'name' \"of\" ✓ $(x)")
    (task,) = await load_taskset("MCPMark")
    assert task.id == "mcpmark-filesystem-easy-papers-a_'name'_\"of\"_✓_$(x)"
    add_task(tasks, os.fsdecode(b"filesystem/easy/papers/\xff"))
    with pytest.raises(InvalidTask, match="udcff"):
        await load_taskset("MCPMark")


BROKEN: dict[str, tuple[str, str | bytes, str]] = {
    "meta that is no JSON": ("meta.json", "{\n", r"meta\.json: .*line 2"),
    "meta that is a list": ("meta.json", "[]", r"meta\.json: meta_data"),
    "a category that is no text": ("meta.json", '{"category_id": 1}', r"meta\.json: category_id"),
    "a program that is none": ("verify.py", "import os\ndef (:\n", r"verify\.py:2: "),
    "a description of other bytes": ("description.md", b"\xff", r"description\.md: "),
}
"""A file of a task, its content, and the place that the error names."""


@each_of("broken", BROKEN)
async def test_a_broken_file_is_named_with_its_place(broken: str, tasks: Path) -> None:
    """The file, and the line or the field in it."""
    name, content, place = BROKEN[broken]
    path = add_task(tasks) / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises((InvalidTask, SourceNotFound), match=place):
        await load_taskset("MCPMark")


@each_of("category", ("../..", "/etc", ".", ""))
async def test_a_category_is_a_folder_of_the_files(category: str, tasks: Path) -> None:
    """A row cannot name another folder of the machine for the agent."""
    add_task(tasks, category_id=category)
    assert "test_environments" in (await reason() or "")


async def test_a_copy_is_needed_and_links_out_of_it_are_refused(
    tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A description that is a link would tell a file of the user's to the agent's model."""
    folder = add_task(tasks)
    (tmp_path / "secret").write_text("secret")
    (folder / "description.md").unlink()
    (folder / "description.md").symlink_to(tmp_path / "secret")
    with pytest.raises(SourceNotFound, match="link"):
        await load_taskset("MCPMark")
    await anyio.Path(tasks).rename(tmp_path / "gone")
    with pytest.raises(SourceNotFound, match=r"SERVICE/SUITE/CATEGORY/TASK/description\.md"):
        await load_taskset("MCPMark")
    monkeypatch.delenv("HUD_MCP_DATASETS")
    with pytest.raises(SourceNotFound, match=r"--from"):
        await load_taskset("MCPMark")
