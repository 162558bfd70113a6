"""What a question is: its words, its files, its one right answer, and what hasty readers answer."""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

__all__ = ["LIST", "MONEY", "NAME", "NUMBER", "TIME", "Case", "cents", "differing", "drawing"]

NUMBER = "Answer with the number alone, without a unit and without thousands separators."
MONEY = "Answer with the number of euros alone, with two decimals and without a currency sign."
NAME = "Answer with the name alone, as the file writes it."
TIME = "Answer with the time alone, as HH:MM on a 24-hour clock."
LIST = "Answer with a comma separated list alone, in alphabetical order."


@dataclass(frozen=True)
class Case:
    """One question with its files.

    Attributes:
        question: What is asked, and in which form the answer is given.
        truth: The answer, as GAIA's scorer compares it.
        careless: What a hasty reader answers; none of it is the truth.
        paint: Makes the files, by name.
    """

    question: str
    truth: str
    careless: tuple[str, ...]
    paint: Callable[[], Mapping[str, bytes]]


def drawing(purpose: str, seed: int) -> random.Random:
    """What draws the content of one task; the same in every process."""
    return random.Random(f"questions-{purpose}/{seed}")  # noqa: S311  # content, and no secret


def differing(truth: str, wrong: Iterable[object]) -> tuple[str, ...]:
    """Wrong answers without repetitions, and without the right one."""
    return tuple(dict.fromkeys(text for each in wrong if (text := str(each)) != truth))


def cents(amount: int) -> str:
    """An amount of cents, in euros with two decimals."""
    return f"{'-' if amount < 0 else ''}{abs(amount) // 100}.{abs(amount) % 100:02d}"
