"""Ciphers whose keys are in other files: a book's lines, or a word in Morse code."""

import random
from typing import Literal

from questions_case import Case, differing, drawing
from questions_sound import hear, silence, tone, write_wav

from hud_mcp import Agent

__all__ = ["Ask", "draw", "solve"]

Ask = Literal["book", "morse"]

_MORSE = {
    "A": ".-", "B": "-...", "C": "-.-.", "D": "-..", "E": ".", "F": "..-.", "G": "--.",
    "H": "....", "I": "..", "J": ".---", "K": "-.-", "L": ".-..", "M": "--", "N": "-.",
    "O": "---", "P": ".--.", "Q": "--.-", "R": ".-.", "S": "...", "T": "-", "U": "..-",
    "V": "...-", "W": ".--", "X": "-..-", "Y": "-.--", "Z": "--..",
}  # fmt: skip
_HZ, _DOT_S = 640.0, 0.07
_KEYS = ("ANCHOR", "BEACON", "HARBOUR", "LANTERN", "PELICAN", "SAFFRON", "TIMBER", "WALNUT")
_PLACES = ("old mill", "east pier", "boat shed", "bakery", "chapel", "lighthouse", "ropewalk")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday")
_HOURS = ("dawn", "noon", "dusk", "midnight")
_WORDS = (
    "harbour", "lantern", "quiet", "river", "copper", "stone", "winter", "garden", "paper",
    "window", "silver", "apple", "bridge", "candle", "ferry", "morning", "needle", "orchard",
    "pepper", "ribbon", "saddle", "timber", "velvet", "willow", "yellow", "basket", "cellar",
    "feather", "island", "kettle", "ladder", "marble",
)  # fmt: skip


def draw(seed: int, ask: Ask) -> Case:
    """Draw a question on a cipher."""
    rng = drawing(f"cipher-{ask}", seed)
    return _book(rng) if ask == "book" else _morse(rng)


def _book(rng: random.Random) -> Case:
    lines = [[rng.choice(_WORDS) for _ in range(rng.randint(5, 8))] for _ in range(14)]
    blank = 5  # the empty line between two verses
    words: list[str] = []
    while len(set(words)) < 3:  # noqa: PLR2004  # three words, and none of them twice
        places = [(rng.randrange(14), rng.randrange(5)) for _ in range(3)]
        words = [lines[row][column] for row, column in places]
    numbers = " ".join(f"{row + 1}-{column + 1}" for row, column in places)
    # Who counts the empty line, or begins at 0, comes to other words.
    printed = [*lines[:blank], [], *lines[blank:]]
    with_blank = [_word(printed, row, column) for row, column in places]
    from_zero = [_word(lines, row + 1, column + 1) for row, column in places]
    swapped = [_word(lines, column, row) for row, column in places]
    text = "\n".join(" ".join(line) for line in printed) + "\n"
    note = (
        f"{numbers}\n\nThe key is the poem. Each pair is a line and a word in it, both counted "
        "from 1. Empty lines are not counted.\n"
    )
    truth, *wrong = (", ".join(each) for each in (words, with_blank, from_zero, swapped))
    question = (
        "note.txt is a message in a book cipher, and poem.txt is the book. What does the message "
        "say? Answer with its words alone, as a comma separated list in the message's order."
    )
    files = {"note.txt": note.encode(), "poem.txt": text.encode()}
    return Case(question, truth, differing(truth, wrong), lambda: files)


def _word(lines: list[list[str]], row: int, column: int) -> str:
    line = lines[row % len(lines)] or lines[row - 1]
    return line[column % len(line)]


def _morse(rng: random.Random) -> Case:
    key = rng.choice(_KEYS)
    place, day, hour = rng.choice(_PLACES), rng.choice(_DAYS), rng.choice(_HOURS)
    other = rng.choice([each for each in _PLACES if each != place])
    plain = f"NOT AT THE {other} BUT AT THE {place} ON {day} AT {hour}".upper()
    text = (
        f"{_shifted(plain, key, 1)}\n\nA Vigenere cipher: A in the key leaves a letter as it is, B "
        "moves it\nby one, and so on. Spaces stay, and use up no letter of the key. The key is in "
        "key.wav.\n"
    )
    question = (
        "letter.txt is a message in a cipher, whose key is the word in Morse code in key.wav. "
        "Where do they meet, and when? Answer with place, day and time of day alone, as a comma "
        "separated list such as 'town hall, sunday, noon'."
    )
    truth = f"{place}, {day}, {hour}"
    wrong = (f"{other}, {day}, {hour}", f"{place}, {day}", place, f"{day}, {hour}, {place}")

    def paint() -> dict[str, bytes]:
        return {"letter.txt": text.encode(), "key.wav": write_wav(_signals(key))}

    return Case(question, truth, differing(truth, wrong), paint)


def _shifted(text: str, key: str, sign: int) -> str:
    out, at = "", 0
    for letter in text:
        if letter.isalpha():
            by = sign * (ord(key[at % len(key)]) - 65)
            letter = chr((ord(letter) - 65 + by) % 26 + 65)  # noqa: PLW2901  # the same letter, moved
            at += 1
        out += letter
    return out


def _signals(word: str) -> list[list[float]]:
    parts: list[list[float]] = []
    for letter in word:
        for sign in _MORSE[letter]:
            parts += [tone((_HZ,), _DOT_S * (1 if sign == "." else 3)), silence(_DOT_S)]
        parts.append(silence(2 * _DOT_S))
    return parts


async def solve(agent: Agent, ask: Ask) -> str:
    """Find the key, and read the message with it."""
    if ask == "book":
        note = await agent.tool("read_file", path="note.txt")
        poem = await agent.tool("read_file", path="poem.txt")
        lines = [line.split() for line in poem.splitlines() if line.strip()]
        pairs = [pair.split("-") for pair in note.splitlines()[0].split()]
        return ", ".join(lines[int(row) - 1][int(column) - 1] for row, column in pairs)
    letter = await agent.tool("read_file", path="letter.txt")
    key = _read_morse(await hear(agent, "key.wav", (_HZ,)))
    plain = _shifted(letter.splitlines()[0], key, -1)
    place, _, rest = plain.partition(" BUT AT THE ")[2].partition(" ON ")
    return ", ".join([place, *rest.split(" AT ")]).lower()


def _read_morse(heard: list[tuple[int, int, object]]) -> str:
    """Letters from when tones begin and how long they are."""
    short = min(length for _, length, _ in heard)
    letters, ended = [""], heard[0][0]
    for begin, length, _ in heard:
        if begin - ended > 2 * short:
            letters.append("")
        letters[-1] += "." if length < 2 * short else "-"
        ended = begin + length
    by_signs = {signs: letter for letter, signs in _MORSE.items()}
    return "".join(by_signs[signs] for signs in letters)
