"""Melodies and bells: the interval of two notes, and the time that a tower strikes."""

import random
from typing import Literal

from questions_case import NUMBER, TIME, Case, differing, drawing
from questions_sound import hear, silence, tone, write_wav

from hud_mcp import Agent

__all__ = ["Ask", "draw", "solve"]

Ask = Literal["interval", "bells"]

LOWEST, HIGHEST = 57, 84
"""Notes by their MIDI numbers: from A3 to C6."""
QUARTER_HZ, HOUR_HZ = 880.0, 440.0
_TOWER = """The bell tower of the old town hall

At every full quarter of an hour the high bell strikes the quarters: once at a quarter past,
twice at half past, three times at a quarter to, four times at the full hour.
After the quarters, every time, the low bell strikes the hours, from 1 to 12: the hour that was
struck last or, at the full hour, the new one. So 2:45 is three high strokes and two low ones.

The clock of the tower is {late} minutes slow. The recording was made in the {half}.
"""


def hertz(note: int) -> float:
    """The frequency of a note, with A4 at 440 Hz."""
    return 440 * 2 ** ((note - 69) / 12)


def _notes(rng: random.Random) -> list[int]:
    """A walk over the white keys, without a leap that is hard to sing."""
    white = [note for note in range(LOWEST, HIGHEST + 1) if note % 12 in (0, 2, 4, 5, 7, 9, 11)]
    at = rng.randrange(4, len(white) - 4)
    notes = [white[at]]
    while len(notes) < 9:  # noqa: PLR2004  # some seconds of music
        at = min(max(at + rng.choice((-3, -2, -1, 1, 2, 3, 4)), 0), len(white) - 1)
        if white[at] != notes[-1]:
            notes.append(white[at])
    return notes


def draw(seed: int, ask: Ask) -> Case:
    """Draw a question on a sound."""
    rng = drawing(f"melody-{ask}", seed)
    return _interval(rng) if ask == "interval" else _bells(rng)


def _interval(rng: random.Random) -> Case:
    notes = _notes(rng)
    lengths = [rng.choice((0.28, 0.28, 0.56)) for _ in notes]
    question = (
        "melody.wav is a melody of single notes in equal temperament. How many semitones are "
        f"between its lowest and its highest note? {NUMBER}"
    )
    truth = max(notes) - min(notes)
    ends = abs(notes[0] - notes[-1])
    steps = len(
        {note for note in range(min(notes), max(notes) + 1) if note % 12 in {0, 2, 4, 5, 7, 9, 11}}
    )
    wrong = differing(str(truth), (steps, truth + 1, ends))

    def paint() -> dict[str, bytes]:
        parts: list[list[float]] = []
        for note, length in zip(notes, lengths, strict=True):
            parts += [tone((hertz(note),), length, fades=1.5), silence(0.04)]
        return {"melody.wav": write_wav(parts)}

    return Case(question, str(truth), wrong, paint)


def _bells(rng: random.Random) -> Case:
    late, half = rng.choice((4, 6, 7, 8, 11)), rng.choice(("morning", "afternoon or evening"))
    hour, quarter = rng.randint(5 if half == "morning" else 1, 11), rng.randint(1, 4)
    struck = hour % 12 * 60 + quarter % 4 * 15 + (0 if half == "morning" else 720)
    truth = _clock(struck + late)
    question = (
        "tower.wav is a recording of a bell tower, and tower.txt says how it strikes. What was the "
        f"right time when the last stroke sounded? Take strokes for one moment. {TIME}"
    )
    swapped = quarter % 12 * 60 + hour % 4 * 15 + (0 if half == "morning" else 720)
    wrong = (
        _clock(struck),
        _clock(struck - late),
        _clock(swapped + late),
        _clock(struck + 720 + late),
    )

    def paint() -> dict[str, bytes]:
        parts: list[list[float]] = []
        for _ in range(quarter):
            parts += [tone((QUARTER_HZ, QUARTER_HZ * 2.76), 0.62, fades=6), silence(0.12)]
        parts.append(silence(0.4))
        for _ in range(hour):
            parts += [tone((HOUR_HZ, HOUR_HZ * 2.76), 0.8, fades=5), silence(0.12)]
        return {
            "tower.wav": write_wav(parts),
            "tower.txt": _TOWER.format(late=late, half=half).encode(),
        }

    return Case(question, truth, differing(truth, wrong), paint)


def _clock(minutes: int) -> str:
    return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}"


async def solve(agent: Agent, ask: Ask) -> str:
    """Hear which notes there are, or how many strokes of each bell."""
    if ask == "interval":
        candidates = {round(hertz(note), 3): note for note in range(LOWEST, HIGHEST + 1)}
        heard = await hear(agent, "melody.wav", list(candidates))
        notes = [candidates[found[0]] for _, _, found in heard]
        return str(max(notes) - min(notes))
    text = await agent.tool("read_file", path="tower.txt")
    heard = await hear(agent, "tower.wav", (HOUR_HZ, QUARTER_HZ))
    bells = [found[0] for _, _, found in heard]
    quarter, hour = bells.count(QUARTER_HZ), bells.count(HOUR_HZ)
    late = int(text.partition("tower is ")[2].split()[0])
    noon = 0 if "in the morning" in text else 720
    return _clock(hour % 12 * 60 + quarter % 4 * 15 + noon + late)
