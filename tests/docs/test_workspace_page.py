"""The page on workspaces: what it shows is run as it stands there."""

import re
from pathlib import Path

import anyio
import pytest
from waiting import PATIENCE_S

import hud_mcp.graders
from hud_mcp.loading.source import load_environments
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.store import Store
from hud_mcp.values.action import CustomAction
from hud_mcp.values.observation import Look

PAGE = Path(__file__).resolve().parents[2] / "docs" / "workspace.md"
pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]


@pytest.mark.skipif(
    not hasattr(hud_mcp.graders, "BashGrader"), reason="BashGrader comes with another change"
)
async def test_the_file_of_the_page_is_graded_by_what_the_agent_did(tmp_path: Path) -> None:
    """With another root, and a repair as an agent makes it."""
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    source = tmp_path / "env.py"
    source.write_text(block.replace("/tmp/repairs", str(tmp_path / "repairs")))
    (environment,) = load_environments([str(source)])
    sessions = Sessions([environment], store=Store(tmp_path / "store.sqlite3"))
    try:
        with anyio.fail_after(PATIENCE_S):
            for line, reward in (("sed -i 's/ - 1//' total.py", 1.0), ("true", 0.0)):
                session = await sessions.start(
                    environment.templates["fix"](), caller=Caller(None, "page")
                )
                action = CustomAction(action="run", args={"command": line})
                await session.step((action,), Look())
                receipt = await session.respond("")
                assert receipt is not None
                assert receipt.reward == reward
    finally:
        await sessions.close()
