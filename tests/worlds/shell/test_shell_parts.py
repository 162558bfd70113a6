"""Folders of a shell's folder are seen elsewhere too, for files that have to lie there."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from tables import each_of

from hud_mcp import Opening, Shell, ShellWorld
from hud_mcp.errors import InvalidEnvironment

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox]


@asynccontextmanager
async def shell(folder: Path) -> AsyncIterator[ShellWorld]:
    """A shell with two such folders."""
    spec = Shell(parts=("/testbed", "/home/user"), env={"HOME": "/home/user"})
    with anyio.fail_after(120):
        world = await spec.open(Opening(folder=folder, context={}, seed=1))
        try:
            yield world
        finally:
            await world.close()


async def test_a_part_is_one_folder_under_two_names(tmp_path: Path) -> None:
    """It is there from the beginning, and nobody can remove it."""
    async with shell(tmp_path) as world:
        done = await world.run("echo a > /testbed/x; rm -rf /testbed; echo b > ~/y; ls /testbed")
        assert done.output.splitlines()[-1:] != ["x"]
        assert await world.read("home/user/y") == "b\n"
        assert (await world.run("rm -r /workspace/testbed; test -d /testbed")).exit_code == 0


async def test_parts_are_in_snapshots_and_in_what_grades(tmp_path: Path) -> None:
    """A verifier sees copies at the same places, and a restored shell the files of before."""
    async with shell(tmp_path) as world:
        await world.run("echo a > /testbed/x; echo b > ~/y")
        kept = await world.snapshot()
        await world.run("rm -r /testbed/x ~/y; mkdir /testbed/d; echo c > /testbed/d/z")
        await world.restore(kept)
        assert (await world.run("cd /testbed && ls; cat ~/y")).output == "x\nb\n"
        async with world.verifier(copy=".") as clean:
            done = await clean.run("cat /testbed/x ~/y; echo more > /testbed/more")
            assert done.stdout == "a\nb\n"
        assert (await world.run("ls /testbed")).output == "x\n"


@each_of("part", ["/usr/x", "/workspace/a", "testbed", "/a/../b", "/", "/tmp"])
async def test_a_part_is_a_place_that_nothing_else_is_at(part: str) -> None:
    """What the system has there is not hidden."""
    with pytest.raises(InvalidEnvironment, match="nothing of the system is at"):
        Shell(parts=[part])
