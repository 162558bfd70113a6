"""Sounds of sine waves as WAV, and how an agent hears them with Python alone."""

import array
import io
import json
import math
import sys
import wave
from collections.abc import Iterable, Sequence
from typing import Any

from hud_mcp import Agent

__all__ = ["RATE", "hear", "silence", "tone", "write_wav"]

RATE = 8000
_LOUDEST = 20_000
_RAMP_S = 0.005


def tone(frequencies: Sequence[float], seconds: float, *, fades: float = 0.0) -> list[float]:
    """Samples of several frequencies at once, without clicks at the ends.

    Args:
        frequencies: In hertz; each is as loud as the others.
        seconds: How long it sounds.
        fades: How fast it fades, as a bell does; 0 for not at all.
    """
    count, ramp = round(seconds * RATE), _RAMP_S * RATE
    volume = _LOUDEST / len(frequencies)
    samples: list[float] = []
    for i in range(count):
        edge = min(1.0, i / ramp, (count - i) / ramp)
        loud = volume * edge * math.exp(-fades * i / RATE)
        samples.append(loud * sum(math.sin(math.tau * f * i / RATE) for f in frequencies))
    return samples


def silence(seconds: float) -> list[float]:
    """Samples of nothing."""
    return [0.0] * round(seconds * RATE)


def write_wav(parts: Iterable[list[float]]) -> bytes:
    """A file of one channel and 16 bits, with a quarter of a second of silence around it."""
    whole = [silence(0.25), *parts, silence(0.25)]
    samples = array.array("h", (round(each) for part in whole for each in part))
    if sys.byteorder == "big":
        samples.byteswap()
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples.tobytes())
    return out.getvalue()


_HEAR = """
import array, json, math, sys, wave
path, candidates = sys.argv[1], json.loads(sys.argv[2])
with wave.open(path) as file:
    rate, data = file.getframerate(), array.array("h", file.readframes(file.getnframes()))
step = rate // 100
loud = [max(map(abs, data[i:i + step])) > 1000 for i in range(0, len(data), step)] + [False]
found, begin = [], None
for i, each in enumerate(loud):
    if each and begin is None:
        begin = i
    if not each and begin is not None:
        found.append((begin, i))
        begin = None
def power(part, f):
    angle = math.tau * f / rate
    a = sum(x * math.cos(angle * i) for i, x in enumerate(part))
    b = sum(x * math.sin(angle * i) for i, x in enumerate(part))
    return a * a + b * b
heard = []
for begin, end in found:
    part = data[begin * step:end * step][:1200]
    by_power = sorted(candidates, key=lambda f: -power(part, f))
    heard.append([begin * 10, (end - begin) * 10, by_power[:2]])
print(json.dumps(heard))
"""


async def hear(agent: Agent, path: str, candidates: Sequence[float]) -> list[tuple[int, int, Any]]:
    """Hear a sound in the sandbox: when each tone begins, how long it is, what is loudest in it.

    Args:
        agent: Whose tools are used.
        path: The file.
        candidates: Frequencies that may be in it, in hertz.
    """
    await agent.tool("write_file", path="hear.py", content=_HEAR)
    command = f"python3 hear.py {path} '{json.dumps(list(candidates))}'"
    heard = await agent.tool("run_command", command=command)
    return [tuple(each) for each in json.loads(heard)]
