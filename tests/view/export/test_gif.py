"""A trajectory as a moving picture: what was seen, where it was clicked, how it ended."""

import io
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from recording import Recorded, shot

from hud_mcp.plugins.view.export import export_gif
from hud_mcp.plugins.view.export.scenes import choose, scenes_of
from hud_mcp.values.grade import Outcome
from hud_mcp.values.observation import Screenshot

pytestmark = pytest.mark.anyio

RED, BLUE = (225, 29, 72), (37, 99, 235)
"""Of a performed click, and of a move."""


def frames(path: Path) -> tuple[list[Any], list[int]]:
    """The frames of a file as arrays of RGB, and how long each is shown, ms."""
    shown: list[Any] = []
    held: list[int] = []
    with Image.open(path) as film:
        assert film.info["loop"] == 0
        for number in range(film.n_frames):
            film.seek(number)
            held.append(film.info["duration"])
            shown.append(np.asarray(film.convert("RGB")).astype(int))
    return shown, held


def places_of(frame: Any, color: Sequence[int], *, above: int) -> Any:
    """Where a frame has a colour, about, above a line: rows of y and x."""
    return np.argwhere((np.abs(frame[:above] - np.array(color)) < 40).all(axis=2))


def middle_of(frame: Any, color: Sequence[int], *, above: int) -> tuple[float, float]:
    """The middle, as x and y, of what a frame has of a colour."""
    places = places_of(frame, color, above=above)
    assert len(places)
    low, high = places.min(axis=0), places.max(axis=0)
    return float(low[1] + high[1]) / 2, float(low[0] + high[0]) / 2


async def film(record: Recorded, tmp_path: Path, **options: Any) -> tuple[list[Any], list[int]]:
    """Export the first trajectory and read it back."""
    out = tmp_path / "film.gif"
    await export_gif(record.store, "traj-0", out, **options)
    return frames(out)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("scale", "of_picture"), [(1.0, 1.0), (2.0, 2.0), (1.0, 2.0), (2.0, 1.0), (1.5, 0.5)]
)
async def test_a_click_is_drawn_where_it_was_on_the_picture_before(
    record: Recorded, tmp_path: Path, scale: float, of_picture: float
) -> None:
    """Its place is in pixels of what the agent was shown; the picture may be of another scale."""
    picture = shot("white", size=(800, 500), scale=of_picture)
    css = (240.0, 120.0)
    point = {"x": css[0] / scale, "y": css[1] / scale}
    await record.add(
        steps=[
            {"see": picture},
            {"actions": [{"type": "click", "point": point}], "scale": scale, "see": shot("gray")},
        ]
    )
    shown, _ = await film(record, tmp_path)
    expected = (css[0] / of_picture, css[1] / of_picture)
    assert middle_of(shown[1], RED, above=500) == pytest.approx(expected, abs=2)
    assert len(places_of(shown[2], RED, above=500)) == 0  # it is gone with the next picture


async def test_pictures_and_marks_shrink_together(record: Recorded, tmp_path: Path) -> None:
    """A wide picture becomes narrower, and the ring stays on its place."""
    click = {"type": "click", "point": {"x": 1200, "y": 200}}
    await record.add(steps=[{"see": shot(size=(1600, 1000))}, {"actions": [click]}])
    shown, _ = await film(record, tmp_path, width_px=400)
    assert shown[0].shape[1] == 400
    assert middle_of(shown[1], RED, above=250) == pytest.approx((300, 50), abs=2)


async def test_the_picture_itself_keeps_its_colours(record: Recorded, tmp_path: Path) -> None:
    """The palette is made from the film."""
    colors = [(12, 180, 77), (240, 200, 20), (130, 20, 160)]
    steps = [{"see": shot("#%02x%02x%02x" % c)} for c in colors]  # noqa: UP031  # hexadecimal
    await record.add(steps=[*steps, {"actions": [{"type": "press", "keys": ["a"]}]}])
    shown, _ = await film(record, tmp_path)
    assert [tuple(f[100, 100]) for f in shown[1:4]] == pytest.approx(
        [pytest.approx(c, abs=6) for c in colors]
    )


async def test_every_kind_of_action_is_drawn(record: Recorded, tmp_path: Path) -> None:
    """Several at once, a refused one, and what has no place; a tool's call is words alone."""
    actions: list[dict[str, Any]] = [
        {"type": "click", "point": {"x": 100, "y": 60}, "pattern": [100]},
        {"type": "move", "point": {"x": 300, "y": 60}},
        {"type": "drag", "path": [{"x": 100, "y": 200}, {"x": 300, "y": 300}]},
        {"type": "scroll", "point": {"x": 500, "y": 200}, "scroll": {"x": 0, "y": 300}},
        {"type": "scroll", "scroll": {"x": 0, "y": 0}},
        {"type": "type", "text": "lamp", "point": {"x": 500, "y": 60}, "enter_after": True},
        {"type": "press", "keys": ["ctrl", "a"]},
        {"type": "click", "ref": "e12"},
    ]
    await record.add(
        steps=[
            {"see": shot(), "observation_text": '- button "Buy" [ref=e12]'},
            {"actions": actions, "performed": 5, "error": "actions[5]: type failed: no focus"},
            {"actions": [{"tool": "add_note", "args": {}}], "kind": "tool"},
        ]
    )
    whole = await record.store.load_trajectory("traj-0")
    scenes = scenes_of(whole)
    assert [scene.badge for scene in scenes] == ["task", "2/3", "3/3", "reward 1"]
    kinds = [(mark.kind, mark.number, mark.performed) for mark in scenes[1].marks]
    assert kinds == [
        ("click", 1, True),
        ("move", 2, True),
        ("drag", 3, True),
        ("scroll", 4, True),
        ("scroll", 5, True),
        ("type", 6, False),
    ]
    assert "type “lamp” at 500, 60, then press Enter" in scenes[1].words
    assert "click the button “Buy”" in scenes[1].words
    shown, _ = await film(record, tmp_path)
    assert len(places_of(shown[1], BLUE, above=400)) > 20
    assert len(places_of(shown[1], RED, above=400)) > 100


async def test_what_a_ref_named_is_drawn_where_it_was(record: Recorded) -> None:
    """In CSS pixels, whatever the scale of the agent's places; without it, words alone."""
    click = {"type": "click", "ref": "e12"}
    await record.add(
        steps=[
            {"see": shot()},
            {
                "actions": [click, click],
                "performed": 2,
                "scale": 3.0,
                "places": [None, {"x": 50, "y": 70}],
            },
        ]
    )
    marks = scenes_of(await record.store.load_trajectory("traj-0"))[1].marks
    assert [(mark.kind, mark.number, mark.points) for mark in marks] == [("click", 2, ((50, 70),))]


async def test_a_frame_is_shown_long_enough_to_be_read(record: Recorded, tmp_path: Path) -> None:
    """Longer for more words, and longest at the end."""
    long = {"type": "type", "text": "a rather long text that somebody has to read"}
    steps = [{"see": shot()}, {"actions": [{"type": "press", "keys": ["a"]}]}, {"actions": [long]}]
    await record.add(steps=steps)
    _, held = await film(record, tmp_path)
    assert 900 <= held[1] < held[2] < held[3]
    assert max(held) < 5000


@pytest.mark.sampled(1)
@pytest.mark.parametrize("outcome", [*Outcome, None])
async def test_without_pictures_there_are_words(
    record: Recorded, tmp_path: Path, outcome: Outcome | None
) -> None:
    """A world of text, however it ended; also text of any characters, and of no end."""
    text = "mixed: é 漢字 \u202e rtl \x1b[31m red \x00 " + "x" * 5000 + "\n" * 500
    answer = {"actions": [{"type": "response", "text": text}], "kind": "response"}
    await record.add("text/../\u202e", [{"observation_text": text}, answer], outcome=outcome)
    shown, _ = await film(record, tmp_path)
    assert len(shown) == 3
    assert shown[0].shape[0] < 1100


async def test_a_missing_picture_leaves_its_frames(record: Recorded, tmp_path: Path) -> None:
    """They say that it is missing."""
    gone = shot("red")
    click = {"type": "click", "point": {"x": 100, "y": 60}}
    await record.add(steps=[{"see": gone}, {"actions": [click], "see": shot("blue")}])
    record.file_of(gone).unlink()
    out = tmp_path / "film.gif"
    summary = await export_gif(record.store, "traj-0", out)
    shown, _ = frames(out)
    assert len(shown) == 3
    assert len(places_of(shown[1], RED, above=400)) == 0
    assert summary.missing_pictures == 1


async def test_a_long_trajectory_has_a_bounded_number_of_frames(record: Recorded) -> None:
    """The first and the last are among them, and the others are spread evenly."""
    press = {"actions": [{"type": "press", "keys": ["a"]}]}
    await record.add(steps=[press] * 300)
    scenes = scenes_of(await record.store.load_trajectory("traj-0"))
    chosen = choose(scenes, 20)
    assert len(chosen) == 20
    assert (chosen[0], chosen[-1]) == (scenes[0], scenes[-1])
    numbers = [int(scene.badge.partition("/")[0]) for scene in chosen[1:-1]]
    gaps = {b - a for a, b in pairwise(numbers)}
    assert gaps <= {15, 16}


@pytest.mark.long
async def test_a_file_that_is_too_large_is_made_smaller(record: Recorded, tmp_path: Path) -> None:
    """By its width first, then by its number of frames."""
    random = np.random.default_rng(0)
    steps: list[dict[str, Any]] = []
    for _ in range(5):
        out = io.BytesIO()
        noise = random.integers(0, 256, (200, 480, 3), dtype=np.uint8)
        Image.fromarray(noise).save(out, "PNG", compress_level=1)
        picture = Screenshot.from_bytes(out.getvalue())
        steps.append({"actions": [{"type": "press", "keys": ["a"]}], "see": picture})
    await record.add(steps=steps)
    large, _ = await film(record, tmp_path)
    bound = (tmp_path / "film.gif").stat().st_size // 2
    small, _ = await film(record, tmp_path, max_bytes=bound, force=True)
    assert (tmp_path / "film.gif").stat().st_size <= bound
    assert len(small) == len(large)
    assert small[0].shape[1] < large[0].shape[1]
    few, _ = await film(record, tmp_path, max_bytes=90_000, force=True)
    assert (tmp_path / "film.gif").stat().st_size <= 90_000
    assert len(few) < len(large)


async def test_a_job_becomes_a_folder_of_films(record: Recorded, tmp_path: Path) -> None:
    """Each named by its task and its id."""
    await record.add("find lamp/../x", [{"see": shot()}])
    await record.add("find lamp/../x", [{"see": shot()}], outcome=None)
    await export_gif(record.store, "job-1", tmp_path / "out")
    names = sorted(p.name for p in (tmp_path / "out").iterdir())
    films = ["find-lamp-..-x.traj-0.gif", "find-lamp-..-x.traj-1.gif"]
    assert names == sorted([*films, "export.json"])
