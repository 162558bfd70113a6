"""A template in a process of its own grades in verifiers, as one in the server's process does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from room import command

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]

REWRITES = (
    "setsid sh -c 'while :; do for f in check.py total.py; do [ -e $f ] && "
    'echo "import os; os._exit(0)" > $f; done; done\' >/dev/null 2>&1 </dev/null &'
)


async def test_a_daemon_rewrites_no_check_of_the_template(
    open_room: Callable[..., Any], tmp_path: Path
) -> None:
    """What the template writes after the answer is what runs; its verifier has only what it names.

    The daemon changed total.py before the answer, which then imports as what exits with 0: the
    exit code is the agent's to choose, so the harmless one below leaves that file alone.
    """
    (tmp_path / "files" / "hidden").mkdir(parents=True)
    (tmp_path / "files" / "hidden" / "expected").write_text("3")
    with anyio.fail_after(120):
        async with open_room("verified") as room:
            for lines, reward in (
                ((REWRITES.replace(" total.py", ""),), 0.0),
                ((REWRITES.replace(" total.py", ""), "sed -i 's/ - 1//' total.py"), 1.0),
            ):
                session = await room.start("fix")
                for line in lines:
                    await command(session, line)
                receipt = await session.respond("")
                assert receipt is not None
                assert receipt.reward == reward
                assert receipt.info["seen"] == ["3", "['gone']", "False", "3", "b'def'"]
