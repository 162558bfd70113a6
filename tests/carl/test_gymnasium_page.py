"""What docs/gymnasium.md shows of a template of one's own is graded as it says."""

import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp import CustomAction, GymnasiumWorld, Opening
from hud_mcp.loading.source import load_environments

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(
    r"^```python\n(.*?)^```$",
    (ROOT / "docs" / "gymnasium.md").read_text(),
    re.DOTALL | re.MULTILINE,
)


@pytest.mark.anyio
async def test_the_environment_of_the_page_is_graded_by_its_episode(tmp_path: Path) -> None:
    """Its template gets the world, and rewards the share of the steps that were taken."""
    path = tmp_path / "gym_env.py"
    path.write_text(next(b for b in BLOCKS if b.startswith("# gym_env.py")))
    (env,) = load_environments([str(path)])
    with anyio.fail_after(PATIENCE_S):
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
