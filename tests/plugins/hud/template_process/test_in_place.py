"""Workspaces on a machine without namespaces: one session at a time, in the root itself."""

import gzip
import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from room import command

from hud_mcp.environment import Environment
from hud_mcp.environment.template import Template
from hud_mcp.errors import EnvironmentFailed, SnapshotFailed
from hud_mcp.plugins.hud.workspace import spec as workspace
from hud_mcp.plugins.hud.workspace.in_place import InPlace
from hud_mcp.sandbox import Sandbox, SandboxOptions
from hud_mcp.sandbox.bubblewrap import find_bubblewrap
from hud_mcp.world import Opening

pytestmark = pytest.mark.anyio

Open = Callable[..., Any]
BOUND_S = 90
MIB = 2**20


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose PATH has no bwrap."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    find_bubblewrap.cache_clear()
    workspace._why_no_bubblewrap.cache_clear()
    yield
    find_bubblewrap.cache_clear()
    workspace._why_no_bubblewrap.cache_clear()


@pytest.mark.long
@pytest.mark.usefixtures("bare")
async def test_sessions_work_in_the_root_one_after_the_other(
    open_room: Open, tmp_path: Path
) -> None:
    """Eight at once wait for each other; each finds the root's first state, and leaves it."""
    root = tmp_path / "work"
    root.mkdir()
    (root / "seed.txt").write_text("first\n")
    (root / "seed.txt").chmod(0o640)
    (root / "link").symlink_to("seed.txt")
    rewards: dict[str, Any] = {}
    inside = 0
    with anyio.fail_after(BOUND_S):
        async with open_room() as room:

            async def work(word: str) -> None:
                nonlocal inside
                session = await room.start("write", word=word)
                inside += 1
                assert inside == 1
                assert "first" in await command(session, "cat seed.txt; ls")
                await command(session, f"echo {word} > out.txt; rm seed.txt; mkdir -p a/b; umask 0")
                assert (root / "out.txt").read_text() == f"{word}\n"
                inside -= 1
                receipt = await session.respond("")
                assert receipt is not None
                rewards[word] = (receipt.reward, receipt.info["names"])
                assert "not isolated" in ((await room.record(session)).logs or "")

            async with anyio.create_task_group() as group:
                for number in range(8):
                    group.start_soon(work, f"word{number}")
    assert set(rewards) == {f"word{number}" for number in range(8)}
    for reward, names in rewards.values():
        assert reward == 1.0
        assert names == ["a", "link", "out.txt", "sub"]
    assert sorted(path.name for path in root.iterdir()) == ["link", "seed.txt"]
    assert (root / "seed.txt").read_text() == "first\n"
    assert (root / "seed.txt").stat().st_mode & 0o777 == 0o640
    assert (root / "link").readlink() == Path("seed.txt")


@pytest.mark.usefixtures("bare")
async def test_a_root_that_a_dead_server_has_left_is_put_back_first(tmp_path: Path) -> None:
    """The next session finds the first state, and not what was there when the server died."""
    root = tmp_path / "work"
    root.mkdir()
    (root / "seed.txt").write_text("first\n")
    died = await InPlace.take(root, most_bytes=1 << 20)
    (root / "seed.txt").write_text("half done\n")
    os.close(died._lock)  # as the end of its process does
    with anyio.fail_after(BOUND_S):
        again = await InPlace.take(root, most_bytes=1 << 20)
        assert (root / "seed.txt").read_text() == "first\n"
        (left,) = (tmp_path / "state").rglob("left.tar.gz")
        with tarfile.open(left) as archive:
            found = archive.extractfile("seed.txt")
            assert found is not None
            assert found.read() == b"half done\n", "an author may have meant it"
        await again.put_back()
        await again.put_back()
    assert (root / "seed.txt").read_text() == "first\n"


def in_its_folder(env: Environment) -> Template:
    """A template that takes no world: it runs where the folder has its own name."""

    @env.template()
    async def plain() -> Any:
        yield "?"
        yield 1.0

    return plain


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    "options", [{"require_isolation": True}, {"isolation": "bwrap"}, {"shell_uid": 1000}]
)
async def test_who_asks_for_isolation_is_refused_without_it(
    options: dict[str, Any], tmp_path: Path
) -> None:
    """Nothing is opened, and the text says what to install."""
    env = Environment("strict")
    world = env.workspace(tmp_path / "work", **options)
    with pytest.raises(EnvironmentFailed, match="Install bubblewrap"):
        await world.open(Opening(template=in_its_folder(env)))


@pytest.mark.usefixtures("bare")
async def test_a_template_that_takes_a_shell_is_never_run_unisolated(tmp_path: Path) -> None:
    """As today: such a session does not start."""
    world = Environment("copied").workspace(tmp_path / "work")
    with pytest.raises(EnvironmentFailed, match="Install bubblewrap"):
        await world.open(Opening())


@pytest.mark.usefixtures("bare")
async def test_what_is_allowed_cannot_be_held_without_a_sandbox(tmp_path: Path) -> None:
    """An allow-list that nobody enforces is refused."""
    env = Environment("open")
    world = env.workspace(tmp_path / "work", allowed_hosts={"example.com"})
    with pytest.raises(EnvironmentFailed, match="Leave out `allow` and `readonly`"):
        await world.open(Opening(template=in_its_folder(env)))


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    "trouble",
    [
        "mv $HOME $HOME.aside; ln -s {victim} $HOME",
        "rm -rf $HOME; ln -s {victim} $HOME",
        "rm -rf $HOME; echo file > $HOME",
        "rm -rf $HOME",
        "chmod 0 $HOME/closed $HOME",
        "rm -rf $HOME; mkdir $HOME; ln -s {victim} $HOME/link; echo new > $HOME/seed.txt",
    ],
)
async def test_a_root_that_its_agent_has_replaced_is_put_back_and_nothing_else_is_touched(
    tmp_path: Path, trouble: str
) -> None:
    """No link in its place is followed, while it is worked in and when it is emptied."""
    root, victim = tmp_path / "work", tmp_path / "victim"
    (root / "closed").mkdir(parents=True)
    (root / "seed.txt").write_text("first\n")
    victim.mkdir()
    (victim / "kept").write_text("kept\n")
    victim.chmod(0o711)
    with anyio.fail_after(BOUND_S):
        folder = await InPlace.take(root, most_bytes=1 << 20)
        sandbox = await Sandbox.open(SandboxOptions(isolation="none", in_place=root))
        try:
            assert (await sandbox.run(trouble.format(victim=victim))).code == 0
            with suppress(OSError):
                await sandbox.files.write("seed.txt", b"mine")
            with suppress(SnapshotFailed):
                assert b"kept" not in gzip.decompress(
                    (await sandbox.folder.pack(most_bytes=MIB)).data
                )
            assert (await sandbox.run("echo lives", cwd=None)).text == "lives\n"
        finally:
            await sandbox.close()
            await folder.put_back()
    assert (root / "seed.txt").read_text() == "first\n"
    assert sorted(path.name for path in root.iterdir()) == ["closed", "seed.txt"]
    assert not root.is_symlink()
    assert [path.name for path in victim.iterdir()] == ["kept"]
    assert (victim / "kept").read_text() == "kept\n"
    assert victim.stat().st_mode & 0o777 == 0o711
