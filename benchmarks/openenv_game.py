"""The two games of the benchmark of OpenEnv's wire: a question, and a cart with a pole."""

import math
import random

__all__ = ["WORDS", "Pole", "grade", "question"]

WORDS = ("strawberry", "raspberry", "mirror", "carrot", "river", "parrot", "terror", "ferry")
_PUSH, _GRAVITY, _TICK_S = 10.0, 9.8, 0.02
_POLE_KG, _BOTH_KG, _HALF_M = 0.1, 1.1, 0.5


def question(word: str) -> str:
    """What is asked of a word."""
    return f"How many times does the letter 'r' occur in {word!r}?"


def grade(word: str, answer: str) -> float:
    """1.0 where the answer is right."""
    return float(answer == str(word.count("r")))


class Pole:
    """The usual equations of a cart with a pole, in plain Python; it goes on however it leans."""

    def __init__(self, seed: int = 0) -> None:
        draw = random.Random(seed)
        self.values = [draw.uniform(-0.05, 0.05) for _ in range(4)]

    def push(self, action: int) -> float:
        """Push to the right at 1, else to the left; the reward."""
        place, speed, angle, turn = self.values
        force = _PUSH if action == 1 else -_PUSH
        sine, cosine = math.sin(angle), math.cos(angle)
        shared = (force + _POLE_KG * _HALF_M * turn * turn * sine) / _BOTH_KG
        bent = (_GRAVITY * sine - cosine * shared) / (
            _HALF_M * (4 / 3 - _POLE_KG * cosine * cosine / _BOTH_KG)
        )
        driven = shared - _POLE_KG * _HALF_M * bent * cosine / _BOTH_KG
        self.values = [
            place + _TICK_S * speed,
            speed + _TICK_S * driven,
            math.remainder(angle + _TICK_S * turn, math.tau),
            turn + _TICK_S * bent,
        ]
        return float(abs(angle) < math.tau / 30)

    def text(self) -> str:
        """Where cart and pole are."""
        return " ".join(f"{value:.4f}" for value in self.values)
