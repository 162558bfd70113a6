"""A notebook that Jupyter runs shows the player and the table, in its file and as a page."""

import json
import os
import subprocess
from pathlib import Path

import anyio.to_thread
import pytest
from other_python import ROOT, OtherPython
from playwright.async_api import Browser, expect
from recorded import BROWSER

pytestmark = [pytest.mark.anyio, pytest.mark.peers, BROWSER]

JUPYTER = OtherPython(
    name=".venv-jupyter",
    requirements=("nbconvert>=7.16,<8", "ipykernel>=6.29,<8", "-e", str(ROOT)),
    check="import hud_mcp, ipykernel, nbconvert; print(nbconvert.__version__)",
    version="7.",
    what="Jupyter",
    install_s=600,
)
RUN = """
from hud_mcp import Task, Taskset, evaluate
args = {"product": "Heron desk lamp", "variant": "Brass", "quantity": 1}
task = Task(id="lamp", env="browser", template="shop_buy", args=args)
job = await evaluate(Taskset([task], name="one"), "oracle")
"""
INPUTS = [
    RUN,
    "job",
    "trajectory, = await job.load_trajectories()\ntrajectory",
]
MOST_BYTES = 8_000_000


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a virtual environment with this package and Jupyter."""
    return JUPYTER.find(tmp_path_factory)


def executed(python: Path, folder: Path, kind: str) -> Path:
    """Run the notebook with a kernel of its own; return what nbconvert wrote."""
    source = folder / "source.ipynb"
    inputs = [
        {"cell_type": "code", "id": f"in-{number}", "metadata": {}, "outputs": [],
         "execution_count": None, "source": text}
        for number, text in enumerate(INPUTS)
    ]  # fmt: skip
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python", "language": "python"}}
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": inputs}
    source.write_text(json.dumps(book))
    command = [str(python), "-m", "nbconvert", "--execute", "--to", kind, "--output", "made"]
    homes = {f"JUPYTER_{name}_DIR": str(folder / name) for name in ("CONFIG", "RUNTIME")}
    done = subprocess.run(
        [*command, str(source)], cwd=folder, capture_output=True, text=True, check=False,
        env={
            **os.environ, **homes, "HUD_MCP_STORE": str(folder / "store.sqlite3"),
            "IPYTHONDIR": str(folder / "ipython"), "PATH": f"{python.parent}:{os.environ['PATH']}",
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / f"made.{ {'notebook': 'ipynb'}.get(kind, kind) }"


async def test_an_executed_notebook_shows_the_player_and_the_table(
    jupyter: Path, tmp_path: Path, browser: Browser
) -> None:
    """As a page with no network: the table has the run, and keys go through its steps."""
    page_file = await anyio.to_thread.run_sync(executed, jupyter, tmp_path, "html")
    assert page_file.stat().st_size < MOST_BYTES
    context = await browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    page = await context.new_page()
    await page.goto(page_file.as_uri(), wait_until="commit")
    await expect(page.locator(".hud-mcp-job tbody tr")).to_contain_text("lamp")
    await expect(page.locator(".hud-mcp-job tbody tr")).to_contain_text("graded")
    await page.locator("iframe").scroll_into_view_if_needed()
    inside = page.frame_locator("iframe")
    await expect(inside.locator("#task-name")).to_have_text("lamp")
    await inside.locator("#task-name").click()
    await page.keyboard.press("ArrowRight")
    await expect(inside.locator("#position")).to_contain_text("2 / ")
    await expect(inside.locator("#step-title")).to_have_text("Step 2")
    await expect(inside.locator("#picture")).to_be_visible()
    await page.keyboard.press("c")
    await expect(inside.locator("#caption")).to_contain_text("changed")
    await context.close()


async def test_a_notebook_s_file_has_a_text_for_who_shows_no_html(
    jupyter: Path, tmp_path: Path
) -> None:
    """One line of a trajectory; and the job as any value."""
    made = await anyio.to_thread.run_sync(executed, jupyter, tmp_path, "notebook")
    cells = json.loads(made.read_text())["cells"]
    job, trajectory = (each["outputs"][-1]["data"] for each in cells[1:])
    assert "".join(trajectory["text/plain"]).startswith("<Trajectory traj-")
    assert "lamp, graded 1," in "".join(trajectory["text/plain"])
    assert "".join(job["text/plain"]).startswith("Job(id='job-")
    assert "srcdoc" in "".join(trajectory["text/html"])
