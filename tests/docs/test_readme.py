"""What the README shows is run here, as it stands there."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hud_mcp.loading.source import shipped_environments
from hud_mcp.tool import CORE_TOOLS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
PAGE = "<!doctype html><title>Shop</title><h1>Shop</h1><p>The {} costs {} EUR.</p>"


def blocks(language: str) -> list[str]:
    """The README's code blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)


def run(*command: str, cwd: Path, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a command of this checkout's, with a record of its own."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "HUD_MCP_STORE": str(cwd / "store.sqlite3"),
        "PATH": f"{cwd}{os.pathsep}{os.environ['PATH']}",
    }
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=timeout_s,
        check=False,
    )  # fmt: skip


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The README's environment in a folder, with the site that it speaks of."""
    block = next(b for b in blocks("python") if b.startswith("# env.py"))
    (tmp_path / "env.py").write_text(block)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text(PAGE.format("lamp", "42.50"))
    row = {"id": "lamp", "env": "shop", "template": "price", "args": {}, "validation": {}}
    (tmp_path / "shop.jsonl").write_text(json.dumps(row) + "\n")
    return tmp_path


@pytest.mark.browser
def test_the_environment_of_the_readme_is_solved_by_its_oracle(shop: Path) -> None:
    """README: "Declare an environment" gives a task that `hud-mcp eval` runs and grades 1."""
    done = run(
        sys.executable, "-m", "hud_mcp", "eval", "shop.jsonl", "--agent", "oracle",
        "--report", "report.html", cwd=shop,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert "over 1 graded of 1 run" in done.stdout
    assert (shop / "report.html").is_file()


def test_the_frameworks_example_prints_the_prompt_and_the_reward(tmp_path: Path) -> None:
    """README: "A framework" is a whole program that starts a task and is graded."""
    block = next(b for b in blocks("python") if "stdio_client" in b)
    command = tmp_path / "hud-mcp"
    command.write_text(
        f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m hud_mcp "$@" --store '
        f"{tmp_path}/store.sqlite3\n"
    )
    command.chmod(0o755)
    (tmp_path / "program.py").write_text(block)

    done = run(sys.executable, "program.py", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "How many times does the letter 'r' occur in 'strawberry'?",
        "1.0",
    ]


def test_the_jobs_example_prints_figures_and_trajectories(tmp_path: Path) -> None:
    """README: "Jobs and trajectories" is a whole program that reads a job by a short id."""
    block = next(b for b in blocks("python") if "load_job" in b)
    (tmp_path / "program.py").write_text(block)
    (tmp_path / "record.py").write_text(
        "import asyncio\nfrom hud_mcp import Job, Store, Task, Trajectory\n"
        "from hud_mcp.record.trajectory import utc_now\n"
        "async def main():\n"
        "    store, task = Store(), Task(id='lamp', env='e', template='t')\n"
        "    await store.add_job(Job(id='job-3f21', name='a'), [task])\n"
        "    begun = Trajectory(\n"
        "        id='traj-1', job_id='job-3f21', environment='e', task=task, started_at=utc_now()\n"
        "    )\n"
        "    await store.add_session(begun, secret_digest='d', principal=None)\n"
        "    await store.close()\n"
        "asyncio.run(main())\n"
    )
    recorded = run(sys.executable, "record.py", cwd=tmp_path)
    assert recorded.returncode == 0, recorded.stderr

    done = run(sys.executable, "program.py", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("mean reward  none: nothing is graded of 1 run")
    assert "traj-1 None None\ntraj-1  unfinished\n" in done.stdout


@pytest.mark.sandbox
@pytest.mark.usefixtures("machine")
def test_the_program_over_ssh_repairs_a_workspace(tmp_path: Path) -> None:
    """README: "HUD clients" is a whole program that works in a task's folder over ssh."""
    for name, start in (("env.py", "# repair.py"), ("checks/call.py", "# checks/call.py")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(next(b for b in blocks("python") if b.startswith(start)))
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "total.py").write_text("def total(prices):\n    return sum(prices) - 1\n")
    (tmp_path / "files" / "test_total.py").write_text(
        "import unittest\nfrom total import total\n\n\nclass Totals(unittest.TestCase):\n"
        "    def test_it(self):\n        self.assertEqual(total([1, 2]), 3)\n"
    )
    block = next(b for b in blocks("python") if b.startswith("# over_ssh.py"))
    serve = [sys.executable, "-m", "hud_mcp", "channel", "serve", "env.py"]
    server = subprocess.Popen(
        [*serve, "--store", str(tmp_path / "store.sqlite3")], cwd=tmp_path, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        port = server.stdout.readline().strip().removeprefix("HUD_SERVE_PORT=")
        (tmp_path / "program.py").write_text(block.replace("8765", port))

        done = run(sys.executable, "program.py", cwd=tmp_path)

        assert done.returncode == 0, done.stderr
        prompt = "The tests in /workspace fail. Repair total.py."
        assert done.stdout.splitlines() == [prompt, "0", "1.0"]
    finally:
        server.terminate()
        server.wait(30)
        server.stdout.close()


def test_the_live_example_prints_the_prompt_and_the_measurement(tmp_path: Path) -> None:
    """README: "Tasks as rows, and a live environment" is a whole program."""
    block = next(b for b in blocks("python") if b.startswith("# live.py"))
    (tmp_path / "live.py").write_text(block)

    done = run(sys.executable, "live.py", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["What is the powerhouse of the cell?", "1.0"]


def test_every_page_that_the_readme_names_is_there() -> None:
    """README: links to files of this project lead somewhere."""
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_contexts_example_writes_a_taskset(tmp_path: Path) -> None:
    """README: "Contexts" is a whole program that spreads the shop's tasks over two splits."""
    block = next(b for b in blocks("python") if b.startswith("# spread_contexts.py"))
    (tmp_path / "program.py").write_text(block)
    (tmp_path / "quickstart.jsonl").write_bytes(
        (ROOT / "taskset_data" / "quickstart.jsonl").read_bytes()
    )
    phone = {"name": "phone", "split": "test", "context": {"viewport_width": 390}}
    (tmp_path / "phones.jsonl").write_text(json.dumps(phone))

    done = run(sys.executable, "program.py", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    rows = [json.loads(li) for li in (tmp_path / "shop-contexts.jsonl").read_text().splitlines()]
    assert {row["metadata"]["split"] for row in rows} == {"train", "test"}
    assert rows[0]["id"] == "shop-price-lamp@sample-0"


def test_the_claude_desktop_block_is_json_that_names_a_shipped_environment() -> None:
    """README: the configuration block is valid, and serves what `hud-mcp serve` knows."""
    (block,) = blocks("json")
    server = json.loads(block)["mcpServers"]["hud-mcp"]

    assert server["args"][0] == "serve"
    assert set(server["args"][1:]) <= set(shipped_environments())


@pytest.mark.parametrize(
    "line", sorted({li for b in blocks("console") for li in b.splitlines() if "hud-mcp" in li})
)
def test_every_command_of_the_readme_exists_with_its_options(line: str, tmp_path: Path) -> None:
    """README: each `hud-mcp` line names a command, and options that its help lists."""
    words = line.partition("#")[0].split()
    if "docker" in words:
        words = words[words.index("hud-mcp") :]
    words = words[words.index("hud-mcp") + 1 :]
    if not words or words[0] == ".":
        return  # the image's name alone

    named = words[: 2 if words[0] in ("channel", "task") else 1]  # these two are groups
    shown = run(sys.executable, "-m", "hud_mcp", *named, "--help", cwd=tmp_path)

    assert shown.returncode == 0, shown.stderr
    for option in (w for w in words if w.startswith("--")):
        assert option in shown.stdout


def test_the_tools_table_names_every_core_tool() -> None:
    """README: "The tools" lists what every server has, no more and no less."""
    section = README.partition("## The tools")[2].partition("\n## ")[0]
    named = set(re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE))

    assert named == CORE_TOOLS
