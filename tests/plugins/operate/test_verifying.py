"""Damage is found and named with what to do about it, and nothing is changed by looking."""

import hashlib
import os
from pathlib import Path

import anyio.to_thread
import pytest
from kept_years import NOW, age_pictures, fill
from records import execute

from hud_mcp.errors import SourceNotFound
from hud_mcp.plugins.operate.upkeep.upkeep import Upkeep
from hud_mcp.store import Store

pytestmark = pytest.mark.anyio


def content_of(folder: Path) -> dict[str, str]:
    """Each file of a folder by its content, but for SQLite's own log."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


async def test_a_sound_store_is_sound(store: Store) -> None:
    """Also while sessions go on, and after it was pruned."""
    await fill(store)
    assert await Upkeep(store).verify() == []
    await Upkeep(store).prune(NOW)
    assert await Upkeep(store).verify() == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("damage", "kind", "named"),
    [
        (
            "DELETE FROM steps WHERE session_id = 'traj-old-a' AND step = 0",
            "missing rows",
            "traj-old-a has 1 steps, numbered 1 to 1",
        ),
        (
            "UPDATE sessions SET receipt = '{}' WHERE id = 'traj-old-a'",
            "damaged row",
            "the receipt of traj-old-a",
        ),
        (
            "UPDATE sessions SET receipt = NULL WHERE id = 'traj-old-a'",
            "damaged row",
            "traj-old-a: it has ended, and has no receipt",
        ),
        (
            "UPDATE steps SET step = 7 WHERE session_id = 'traj-open'",
            "damaged row",
            "it says that it is step 0",
        ),
        ("DROP TABLE turns", "missing table", "turns"),
        ("UPDATE versions SET version = 3", "version", "3, and this program has"),
    ],
)
async def test_damage_of_the_tables_is_named(
    store: Store, url: str, damage: str, kind: str, named: str
) -> None:
    """Each with what to do about it; the store is left as it is."""
    await fill(store)
    await store.close()
    execute(url, damage)
    found = await Upkeep(Store(url)).verify()
    assert [each for each in found if each.kind == kind and named in each.what], found
    assert all(each.remedy for each in found)


async def test_rows_without_a_parent_are_named(store: Store, url: str) -> None:
    """As a hand leaves them that deletes without the database's checks."""
    await fill(store)
    await store.close()
    if not url.startswith("sqlite"):
        execute(url, "ALTER TABLE steps DROP CONSTRAINT steps_session_id_fkey")
    execute(url, "DELETE FROM sessions WHERE id = 'traj-open'")
    found = await Upkeep(Store(url)).verify()
    said = "1 rows of steps belong to session_id 'traj-open', which is gone"
    assert ("without parent", said) in [(each.kind, each.what) for each in found]


async def test_damaged_missing_and_unused_pictures_are_told_apart(store: Store) -> None:
    """By their names, and of the sessions that refer to them."""
    await fill(store)
    files = sorted(path for path in store.screenshots.rglob("*.png"))
    files[0].write_bytes(b"x")
    files[1].unlink()
    for name in ("0" * 64, "f" * 64):
        unused = store.screenshots / name[:2] / f"{name}.png"
        unused.parent.mkdir(exist_ok=True)
        unused.write_bytes(b"y")
    hostile = files[2].with_name("\x1b[2J\n' OR 1=1.png")
    hostile.write_bytes(b"z")
    age_pictures(store.screenshots)
    told = {each.kind: each for each in await Upkeep(store).verify()}
    assert set(told) == {"damaged picture", "missing picture", "unused pictures"}
    assert files[0].name in told["damaged picture"].what
    assert files[1].name in told["missing picture"].what
    assert "2 pictures of 2 bytes" in told["unused pictures"].what
    assert hostile.exists()


async def test_a_file_that_was_cut_off_is_told_as_damaged(
    tmp_path: Path,
) -> None:
    """However little is left of it; nothing is written into it, or beside it."""
    place = tmp_path / "store.sqlite3"
    store = Store(place)
    await fill(store)
    await store.close()
    for keep in (0.9, 0.5, 0.1):
        os.truncate(place, int(place.stat().st_size * keep))
        before = await anyio.to_thread.run_sync(content_of, tmp_path)
        found = await Upkeep(Store(place)).verify()
        assert {each.kind for each in found} & {"damaged file", "unreadable"}, keep
        assert await anyio.to_thread.run_sync(content_of, tmp_path) == before


async def test_what_is_not_there_is_not_made(tmp_path: Path) -> None:
    """The error names the place."""
    with pytest.raises(SourceNotFound, match="There is no store at"):
        await Upkeep(Store(tmp_path / "none.sqlite3")).verify()
    assert not (tmp_path / "none.sqlite3").exists()
