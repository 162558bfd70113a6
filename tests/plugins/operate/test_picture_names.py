"""The pictures that steps refer to are named in order, whatever else a step says."""

from contextlib import closing

import pytest
from records import begin, execute, picture, step
from sqlalchemy import create_engine

from hud_mcp.plugins.operate.upkeep.pictures import picture_names
from hud_mcp.record.values import ScreenshotRecord
from hud_mcp.store import Store

pytestmark = pytest.mark.anyio


def named(url: str) -> list[tuple[str, str]]:
    """Each picture with the session that is told of it."""
    engine = create_engine(url)
    try:
        with (
            engine.connect() as connection,
            closing(picture_names(connection)) as found,
        ):
            return list(found)
    finally:
        engine.dispose()


def file_name(shot: ScreenshotRecord) -> str:
    """What its file is called, in whichever folder."""
    return f"{shot.sha256}.{shot.extension}"


async def test_each_picture_is_named_once_and_in_order(store: Store, url: str) -> None:
    """With its first session, of any scale, beside text that PostgreSQL cannot hold."""
    shots = [ScreenshotRecord.of(picture(colour)) for colour in ("navy", "red", "green")]
    twice = shots[0].model_copy(update={"scale": 1.0})
    strange = 'a\0b \ud800 é \U0001f600 "screenshot": {}'
    said = [(twice, "x"), (shots[0], "x"), (shots[1], strange), (None, strange), (shots[2], None)]
    for number, (shot, text) in enumerate(said):
        await begin(store, f"traj-{number}")
        seen = step(0, screenshot=shot, observation_text=text)
        await store.add_step(f"traj-{number}", seen)
    first = {0: "traj-0", 1: "traj-2", 2: "traj-4"}
    assert named(url) == sorted((file_name(shots[i]), name) for i, name in first.items())


@pytest.mark.parametrize(
    "row",
    [
        '{"screenshot": "text"}',
        '{"screenshot": [1]}',
        '{"screenshot": null}',
        '{"screenshot": {"sha256": "ab"}}',
        '{"screenshot": {"extension": "png"}}',
        '{"actions": [{"screenshot": {"sha256": "ab", "extension": "png"}}]}',
        '["screenshot"]',
    ],
)
async def test_a_step_that_names_no_picture_hides_no_other(
    store: Store, url: str, row: str
) -> None:
    """A hand may have written anything there."""
    shot = ScreenshotRecord.of(picture())
    for name in ("traj-0", "traj-1"):
        await begin(store, name)
        await store.add_step(name, step(0, screenshot=shot))
    execute(url, f"UPDATE steps SET row = '{row}' WHERE session_id = 'traj-0'")
    assert named(url) == [(file_name(shot), "traj-1")]


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_step_that_is_no_json_hides_no_other(store: Store, url: str) -> None:
    """SQLite keeps any text in the place of JSON."""
    shot = ScreenshotRecord.of(picture())
    for name in ("traj-0", "traj-1"):
        await begin(store, name)
        await store.add_step(name, step(0, screenshot=shot))
    execute(url, "UPDATE steps SET row = '{\"screenshot\": oops' WHERE session_id = 'traj-0'")
    assert named(url) == [(file_name(shot), "traj-1")]
