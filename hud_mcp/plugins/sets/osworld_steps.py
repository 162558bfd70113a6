"""The steps of OSWorld's rows: which of them a shell takes, and which it does without."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

__all__ = ["command_of", "folder_told", "is_taken", "several", "why_not", "words"]

_TERMINAL = re.compile(
    r"^\s*(?:export DBUS_SESSION_BUS_ADDRESS=\S+\s+)?gnome-terminal(?: --maximize)?"
    r"(?: --working-directory=(\S+))?\s*$"
)
"""A terminal that is opened in a folder."""
_KEY = re.compile(r"pyautogui\.(\w+)\(([^()]*)\)")
_POINTED = ("click(960, 540)", "hotkey('ctrl', 'alt', 't')", "press('enter')")
"""A click into the empty desktop, and a terminal that opens: a shell needs neither."""
_TYPED = re.compile(r"write\('(?:cd ([\w./~-]+)|clear)'\)")
_SCREEN = re.compile(r"pyautogui|xdotool|wmctrl|xdg-open|DISPLAY=|gnome-terminal")
_DESKTOP = re.compile(r"gsettings|gnome|dbus|timedatectl|pactl|pulseaudio|gio trash|systemctl")
_ROOT = re.compile(r"\b(useradd|adduser|usermod|passwd|chpasswd|apt|apt-get|snap|dpkg|su)\b")
_SUDO = re.compile(r"echo\s+['\"]?password['\"]?\s*\|\s*sudo\s+-S\s+")


def why_not(steps: Sequence[Mapping[str, Any]], looked_at: Iterable[str]) -> str | None:
    """Why a row with these steps does not run in a shell; None where it does.

    Args:
        steps: Those before the agent begins, and those before its results are looked at.
        looked_at: The commands by which results are looked at.
    """
    for step in steps:
        if step["type"] != "download" and not is_taken(step) and not _is_done_without(step):
            return "it needs root" if _ROOT.search(_command(step)) else "it needs a desktop"
    text = " ".join([*(_command(step) for step in steps if is_taken(step)), *looked_at])
    if _DESKTOP.search(text):
        return "it needs a desktop (GNOME's settings)"
    if _ROOT.search(text) or "which spotify" in text:
        return "it needs root"
    return None


def is_taken(step: Mapping[str, Any]) -> bool:
    """Whether a step is a command that needs no screen and no other user."""
    if step["type"] not in ("execute", "command"):
        return False
    text = _command(step)
    return not _SCREEN.search(text) and not _ROOT.search(text)


def _is_done_without(step: Mapping[str, Any]) -> bool:
    """Whether a shell has what a step is for: time that passes, or a terminal in front."""
    if step["type"] == "sleep":
        return True
    if step["type"] == "activate_window":
        return "Terminal" in str(step.get("parameters"))
    text = _command(step)
    if _TERMINAL.match(text):
        return True
    keys = [f"{name}({given})" for name, given in _KEY.findall(text)]
    return bool(keys) and all(key in _POINTED or _TYPED.fullmatch(key) for key in keys)


def folder_told(steps: Iterable[Mapping[str, Any]]) -> str:
    """A sentence on the folder in which a terminal would have been; none where it is the home."""
    found = None
    for step in steps:
        text = _command(step)
        if (opened := _TERMINAL.match(text)) is not None and opened[1]:
            found = opened[1]
        for key in _KEY.findall(text):
            typed = _TYPED.fullmatch(f"{key[0]}({key[1]})")
            found = typed[1] if typed is not None and typed[1] else found
    if found is None:
        return ""
    whole = found if found.startswith(("/", "~")) else f"/home/user/{found}"
    return f" Work in {whole}, which is the current directory."


def command_of(step: Mapping[str, Any]) -> list[str]:
    """A step as the words of a command; `sudo` with the machine's password is left out.

    One word is a line for the shell.
    """
    parameters = cast("Mapping[str, Any]", step["parameters"])
    command = parameters["command"]
    if isinstance(command, str):
        return [_SUDO.sub("", command)]
    every = [str(word) for word in cast("list[Any]", command)]
    return [" ".join(every)] if parameters.get("shell") else every


def several(given: Any) -> list[Any]:
    """One value, or several, as a list; None is none."""
    if given is None:
        return []
    return cast("list[Any]", given) if isinstance(given, list) else [given]


def words(command: Any) -> str:
    """The words of a command in one text."""
    return " ".join(map(str, several(command)))


def _command(step: Mapping[str, Any]) -> str:
    return words(cast("Mapping[str, Any]", step.get("parameters") or {}).get("command"))
