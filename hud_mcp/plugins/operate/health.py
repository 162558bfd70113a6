"""The health of a container: `python -m hud_mcp.plugins.operate.health` ends with 0 if it is well.

The first process of the container has the server's arguments. A server on stdio is well as long as
it runs, so it is asked nothing.
"""

import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

_ANSWER_S = 4.0
_FIRST = Path("/proc/1/cmdline")


def port_of(arguments: Sequence[str]) -> int | None:
    """The port of a server over HTTP, by its command line; None on stdio."""
    for option, value in zip(arguments, [*arguments[1:], ""], strict=True):
        name, equals, joined = option.partition("=")
        if name == "--http":
            return int((joined if equals else value).rpartition(":")[2])
    return None


def answers(port: int) -> bool:
    """Whether a server answers on this machine; a refusal is an answer."""
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=_ANSWER_S).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


if __name__ == "__main__":
    port = port_of(_FIRST.read_text().split("\0"))
    sys.exit(0 if port is None or answers(port) else 1)
