"""Counts, in a file of the place that it runs in; and runs what the agent types."""

import json
import os
import subprocess
import sys
from pathlib import Path

STATE = Path(os.environ.get("COUNTER", "count.json"))


def read():
    """The state."""
    return json.loads(STATE.read_text()) if STATE.exists() else {"count": 0, "said": ""}


def begin(at, by=1):
    """Begin at a number."""
    print("it begins")
    STATE.write_text(json.dumps({"count": at * by, "said": ""}))


def step(actions):
    """Count each action; what is typed is run as a command."""
    state = read()
    for action in actions:
        state["count"] += 1
        if action["type"] == "type":
            done = subprocess.run(
                ["/bin/sh", "-c", action["text"]], capture_output=True, text=True, check=False
            )
            state["said"] = done.stdout + done.stderr
    STATE.write_text(json.dumps(state))
    return {
        "observation": {"text": json.dumps(state), "screenshot": None},
        "info": {"n": len(actions)},
    }


async def counted(to):
    """1.0 where it counted to a number."""
    return 1.0 if read()["count"] == to else 0.0


def patient(seconds=1.5):
    """0.0, after a while."""
    import time

    time.sleep(seconds)
    return 0.0


def writable():
    """Whether the controller's own file can be changed from where it runs."""
    try:
        with open(__file__, "a"):
            return True
    except OSError:
        return False


def leave():
    """End the process."""
    sys.exit(3)


def vanish():
    """End it without a word."""
    os._exit(4)
