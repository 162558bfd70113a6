"""The program `hud-mcp`, which is `python -m hud_mcp`, too."""

import signal
from importlib import import_module

__all__ = ["main"]


def main() -> None:
    """Run the command; Ctrl-C before it, and after it, says nothing of Python's."""
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_usual:  # who ignores it, such as a shell's background, is left to it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    command = import_module("hud_mcp.cli").main
    if is_usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        command()
    finally:
        if is_usual:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    main()
