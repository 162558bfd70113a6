"""The program `hud-mcp`, which counts the functions of the package between two signals.

    python traced.py FOLDER serve gym:CartPole-v1

SIGUSR1 begins a count and makes the file `begun`; SIGUSR2 ends it and writes `trace.json`. The
process's id is in the file `pid`.
"""

import json
import os
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

__all__: list[str] = []

FOLDER = Path(sys.argv[1])
entered: Counter[CodeType] = Counter()
counting = False


def note(frame: FrameType, event: str, _arg: Any) -> None:
    """Count a call of a function of the package; a coroutine counts each time it goes on."""
    if counting and event == "call" and "/hud_mcp/" in frame.f_code.co_filename:
        entered[frame.f_code] += 1


def begin(*_: object) -> None:
    """Count from here."""
    global counting  # noqa: PLW0603  # a signal's handler has no other place
    entered.clear()
    counting = True
    (FOLDER / "begun").touch()


def end(*_: object) -> None:
    """Write what was counted."""
    global counting  # noqa: PLW0603  # as above
    counting = False
    found = [
        {
            "module": code.co_filename.rpartition("/hud_mcp/")[2],
            "function": code.co_qualname,
            "entries": count,
            "lines": last_line(code) - code.co_firstlineno + 1,
        }
        for code, count in entered.items()
    ]
    (FOLDER / "writing").write_text(json.dumps(found))
    (FOLDER / "writing").rename(FOLDER / "trace.json")


def last_line(code: CodeType) -> int:
    """The last line of a function's body."""
    return max(line for _, _, line in code.co_lines() if line)


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, begin)
    signal.signal(signal.SIGUSR2, end)
    threading.setprofile(note)
    sys.setprofile(note)
    (FOLDER / "pid").write_text(str(os.getpid()))
    sys.argv = ["hud-mcp", *sys.argv[2:]]
    from hud_mcp.__main__ import main

    main()
