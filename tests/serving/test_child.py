"""A server of this program as a child process, and what it is given of this process."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp.base.process import TOKENS, OwnServer
from hud_mcp.errors import EnvironmentFailed

pytestmark = pytest.mark.anyio

PROGRAM = """
import os, sys
sys.stderr.write("the log has this\\n")
print("first line")
names = sorted(name for name in os.environ if name.endswith("TOKEN"))
print(f"HERE={names} {sys.stdin.readline().strip()}", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnServer]:
    """A program that tells what it was given, where this process has every token."""
    for name in TOKENS:
        monkeypatch.setenv(name, "secret")
    (tmp_path / "telling.py").write_text(PROGRAM)
    with (tmp_path / "log").open("w") as log:
        yield OwnServer([], log, {"PYTHONPATH": str(tmp_path)}, module="telling")


async def test_a_child_has_no_token_in_its_environment_and_hears_its_own(server: OwnServer) -> None:
    """Its token comes by its standard input, and it ends with the block."""
    with anyio.fail_after(PATIENCE_S):
        async with server.running(token="its own") as process:
            said = await server.read_announced(process, "HERE=", within_s=PATIENCE_S)
            assert said == "[] its own"
        assert process.returncode is not None


async def test_a_child_that_announces_nothing_is_named_with_the_end_of_its_log(
    server: OwnServer,
) -> None:
    """It has ended, and the error says what it said."""
    with anyio.fail_after(PATIENCE_S):
        async with server.running(token="") as process:
            assert process.stdin is not None
            await process.stdin.aclose()
            with pytest.raises(EnvironmentFailed, match="did not start") as caught:
                await server.read_announced(process, "NEVER=", within_s=PATIENCE_S)
    assert "the log has this" in str(caught.value)


def test_a_program_that_waits_starts_the_same_child(server: OwnServer) -> None:
    """Without an event loop, too, it has no token."""
    process = server.popen(stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    said, _ = process.communicate(b"\n", timeout=PATIENCE_S)
    assert b"HERE=[] \n" in said
    assert server.command[0] == sys.executable
