"""Drawing of MuJoCo's environments, with a display, without one, and where nothing draws.

Each runs in a process of its own: MuJoCo reads MUJOCO_GL once.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE_S

PROGRAM = """
import anyio, os
from hud_mcp import Gymnasium, Opening
from hud_mcp.values.action import CustomAction
from hud_mcp.values.observation import Look

async def main():
    spec = Gymnasium("HalfCheetah-v5")
    world = await spec.open(Opening(seed=1))
    seen = await world.observe(Look(image="png"))
    step = CustomAction(type="custom", action="step", args={"action": [0.0] * 6})
    effect = await world.act(step)
    await world.close()
    print(spec.has_screen, seen.image is not None, effect.reward is not None)
    print("MUJOCO_GL", os.environ.get("MUJOCO_GL"))
    print(seen.text)

anyio.run(main)
"""


def play(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Look and take a step, in a folder, with these variables."""
    unset = ("MUJOCO_GL", "PYOPENGL_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY")
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    root = Path(__file__).resolve().parents[3]
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=folder, capture_output=True, text=True,
        timeout=2 * PATIENCE_S, check=False,
        env={**kept, "PYTHONPATH": str(root), "XDG_CACHE_HOME": str(folder / "cache"), **variables},
    )  # fmt: skip


@pytest.mark.long
def test_a_robot_is_drawn_without_a_display(tmp_path: Path) -> None:
    """What draws is found and kept; the text names joints, and MuJoCo leaves no log behind."""
    for _ in range(2):
        done = play(tmp_path)
        assert done.stdout.startswith("True True True\n"), done.stdout + done.stderr
        assert [each.name for each in tmp_path.iterdir()] == ["cache"]
    assert list((tmp_path / "cache").rglob("opengl.json"))
    assert "bthigh=" in done.stdout
    assert "motor of bthigh from -1 to 1" in done.stdout


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ("off", "MUJOCO_GL=off turns drawing off."),
        ("glfw", "MUJOCO_GL=glfw draws nothing here"),
        ("nothing", "MUJOCO_GL=nothing draws nothing here"),
    ],
)
def test_a_robot_is_served_without_a_screen_where_nothing_draws(
    tmp_path: Path, chosen: str, said: str
) -> None:
    """The user's choice stays, steps are taken, and the text says why there are no pictures."""
    done = play(tmp_path, MUJOCO_GL=chosen)
    assert done.stdout.startswith("False False True\n"), done.stdout + done.stderr
    assert f"MUJOCO_GL {chosen}\n" in done.stdout
    assert f"There are no pictures: {said}" in done.stdout
