"""A HUD author's file: a repair task with a workspace, graded by its tests. One import differs."""

# ruff: noqa: ANN201, D103  # as HUD's authors write

import os
from pathlib import Path

from hud_mcp import Environment
from hud_mcp.graders import BashGrader, combine

ROOT = Path(os.environ["REPAIR_ROOT"])
env = Environment("repairs")
env.workspace(ROOT)

BROKEN = "def total(prices):\n    return sum(prices) - 1\n"
TESTS = "from total import total\nassert total([1, 2]) == 3\nassert total([]) == 0\n"


@env.template(id="fix", description="Repair a function")
async def fix(name: str = "total"):
    (ROOT / f"{name}.py").write_text(BROKEN)
    yield f"The function in {ROOT}/{name}.py is wrong. Repair it."
    (ROOT / "check.py").write_text(TESTS)
    yield await combine(
        BashGrader.grade(weight=0.75, command=f"python3 {ROOT}/check.py", cwd=str(ROOT)),
        BashGrader.grade(weight=0.25, name="kept", command="test -s total.py", cwd=ROOT),
    )
