"""What the README shows of contexts is run here, as it stands there."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from hud_mcp import CustomAction, GymnasiumWorld, Opening
from hud_mcp.loading.source import load_environments

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(
    r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE
)


def test_the_contextual_example_runs(tmp_path: Path) -> None:
    """A whole program, in a process of its own."""
    (tmp_path / "program.py").write_text(next(b for b in BLOCKS if "ContextSampler" in b))
    done = subprocess.run(
        [sys.executable, "-W", "error", "program.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\d+ \(4,\) \[0\.\d+\]\n", done.stdout)


def test_the_example_of_training_runs(tmp_path: Path) -> None:
    """A whole program, with a server of its own; it ends, and prints a grade."""
    (tmp_path / "program.py").write_text(next(b for b in BLOCKS if "task_env" in b))
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert 0 < float(done.stdout) <= 1


@pytest.mark.anyio
async def test_the_environment_of_the_readme_is_graded_by_its_episode(tmp_path: Path) -> None:
    """Its template gets the world, and rewards the share of the steps that were taken."""
    path = tmp_path / "gym_env.py"
    path.write_text(next(b for b in BLOCKS if b.startswith("# gym_env.py")))
    (env,) = load_environments([str(path)])
    with anyio.fail_after(30):
        world: Any = await env.world.open(
            Opening(context=env.split_context({"gravity": 20}), seed=1)
        )
        assert isinstance(world, GymnasiumWorld)
        run = env.templates["balance"].run({"steps": 10}, world)
        assert "for 10 steps" in str(await anext(run))
        actions = {"actions": [0, 1, 0, 1, 0]}
        await world.act(CustomAction(action="step", args=actions))
        grade = await run.asend("done")
        assert getattr(grade, "reward", grade) == 0.5
        await run.aclose()
        await world.close()
