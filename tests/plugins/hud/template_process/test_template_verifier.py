"""A template in a process of its own grades in verifiers, as one in the server's process does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from room import command

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]

REWRITES = (
    "setsid sh -c 'while :; do [ -e check.py ] && "
    'echo "import os; os._exit(0)" > check.py; done\' >/dev/null 2>&1 </dev/null &'
)


@pytest.mark.long
async def test_a_daemon_rewrites_no_check_of_the_template(
    open_room: Callable[..., Any], tmp_path: Path
) -> None:
    """What the template writes after the answer is what runs; its verifier has what it names."""
    (tmp_path / "files" / "hidden").mkdir(parents=True)
    (tmp_path / "files" / "hidden" / "expected").write_text("3")
    with anyio.fail_after(120):
        async with open_room("verified") as room:
            for lines, reward in (
                ((REWRITES,), 0.0),
                ((REWRITES, "sed -i 's/ - 1//' total.py"), 1.0),
            ):
                session = await room.start("fix")
                for line in lines:
                    await command(session, line)
                receipt = await session.respond("")
                assert receipt is not None
                assert receipt.reward == reward
                assert receipt.info["seen"] == ["3", "['gone']", "False", "3", "b'def'"]
