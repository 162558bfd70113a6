"""The names of keys: pyautogui's, which agents send, to Playwright's, which Chromium takes.

The list is the one of the HUD SDK's `CLAKey`. Keys that no web page can receive (volume,
media, sleep) are known and sent as they are named by the UI Events specification.
"""

import string
from collections.abc import Sequence

from hud_mcp.errors import ActionFailed, did_you_mean

__all__ = ["is_in_layout", "playwright_keys", "split_chords"]

_NAMED = {
    "backspace": "Backspace", "tab": "Tab", "enter": "Enter", "return": "Enter", "\n": "Enter",
    "\r": "Enter", "\t": "Tab", "esc": "Escape", "escape": "Escape", "space": "Space",
    " ": "Space", "shift": "Shift", "shiftleft": "ShiftLeft", "shiftright": "ShiftRight",
    "ctrl": "Control", "ctrlleft": "ControlLeft", "ctrlright": "ControlRight", "alt": "Alt",
    "altleft": "AltLeft", "altright": "AltRight", "option": "Alt", "optionleft": "AltLeft",
    "optionright": "AltRight", "win": "Meta", "winleft": "MetaLeft", "winright": "MetaRight",
    "command": "Meta", "cmd": "Meta", "super": "Meta", "meta": "Meta", "control": "Control",
    "pageup": "PageUp", "pgup": "PageUp", "pagedown": "PageDown", "pgdn": "PageDown",
    "end": "End", "home": "Home", "left": "ArrowLeft", "up": "ArrowUp", "right": "ArrowRight",
    "down": "ArrowDown", "insert": "Insert", "delete": "Delete", "del": "Delete",
    "pause": "Pause", "capslock": "CapsLock", "numlock": "NumLock", "scrolllock": "ScrollLock",
    "print": "PrintScreen", "printscreen": "PrintScreen", "prtsc": "PrintScreen",
    "prtscr": "PrintScreen", "prntscrn": "PrintScreen", "apps": "ContextMenu",
    "help": "Help", "select": "Select", "execute": "Execute", "clear": "Clear",
    "multiply": "NumpadMultiply", "add": "NumpadAdd", "subtract": "NumpadSubtract",
    "decimal": "NumpadDecimal", "divide": "NumpadDivide", "separator": "NumpadComma",
    "modechange": "ModeChange", "convert": "Convert", "nonconvert": "NonConvert",
    "kana": "KanaMode", "kanji": "KanjiMode", "hanja": "HanjaMode", "junja": "JunjaMode",
    "hangul": "HangulMode", "hanguel": "HangulMode", "yen": "IntlYen", "fn": "Fn",
    "sleep": "Sleep", "zoom": "ZoomToggle", "final": "FinalMode", "accept": "Accept",
    "browserback": "BrowserBack", "browserforward": "BrowserForward",
    "browserrefresh": "BrowserRefresh", "browserstop": "BrowserStop",
    "browsersearch": "BrowserSearch", "browserfavorites": "BrowserFavorites",
    "browserhome": "BrowserHome", "launchapp1": "LaunchApp1", "launchapp2": "LaunchApp2",
    "launchmail": "LaunchMail", "launchmediaselect": "MediaSelect",
    "playpause": "MediaPlayPause", "stop": "MediaStop", "prevtrack": "MediaTrackPrevious",
    "nexttrack": "MediaTrackNext", "volumemute": "AudioVolumeMute",
    "volumeup": "AudioVolumeUp", "volumedown": "AudioVolumeDown",
    **{f"f{n}": f"F{n}" for n in range(1, 25)},
    **{f"num{n}": f"Numpad{n}" for n in range(10)},
    **{f"arrow{way}": f"Arrow{way.title()}" for way in ("left", "up", "right", "down")},
}  # fmt: skip
"""Lower-case name to Playwright's."""

_KEYS = _NAMED | {name.lower(): name for name in _NAMED.values()}
_PRINTABLE = frozenset(string.printable) - frozenset(string.whitespace)

_LAYOUT_SINGLES = frozenset({
    "Escape", "Backspace", "Tab", "CapsLock", "Enter", "Shift", "ShiftLeft", "ShiftRight",
    "Control", "ControlLeft", "ControlRight", "Meta", "MetaLeft", "MetaRight", "Alt", "AltLeft",
    "AltRight", "AltGraph", "Space", "ContextMenu", "PrintScreen", "ScrollLock", "Pause",
    "PageUp", "PageDown", "Insert", "Delete", "Home", "End", "ArrowLeft", "ArrowUp",
    "ArrowRight", "ArrowDown", "AudioVolumeMute", "AudioVolumeDown", "AudioVolumeUp",
    "MediaTrackNext", "MediaTrackPrevious", "MediaPlayPause", "NumLock", "NumpadDivide",
    "NumpadMultiply", "NumpadSubtract", "NumpadAdd", "NumpadDecimal",
    *(f"F{n}" for n in range(1, 13)), *(f"Numpad{n}" for n in range(10)),
})  # fmt: skip
"""Playwright's USKeyboardLayout, as far as keys of a name go; others it refuses."""


def is_in_layout(key: str) -> bool:
    """Whether Playwright's keyboard has a key of the name that `playwright_keys` gave."""
    return key in _LAYOUT_SINGLES or key in _PRINTABLE


_SHIFTED = dict(
    zip("`1234567890-=[]\\;',./", '~!@#$%^&*()_+{}|:"<>?', strict=True),
    **{letter: letter.upper() for letter in string.ascii_lowercase},
)


def playwright_keys(names: Sequence[str], held: Sequence[str] = ()) -> list[str]:
    """Return Playwright's names of keys that go down one after the other.

    With Shift down, a letter is its capital and 1 is !, as on a keyboard.

    Args:
        names: Keys or chords such as `ctrl+a`; pyautogui's names or Playwright's, in any
            case, or one character each.
        held: What is down already, by Playwright's names.

    Raises:
        ActionFailed: There is no such key; the text has the closest name.
    """
    down = list(held)
    for name in split_chords(names):
        key = _playwright_key(name)
        shift = any(other.startswith("Shift") for other in down)
        down.append(_SHIFTED.get(key, key) if shift else key)
    return down[len(held) :]


def split_chords(names: Sequence[str]) -> list[str]:
    """Return single keys for what may be chords: `ctrl+a` is two keys, and so is `ctrl++`."""
    keys: list[str] = []
    for name in names:
        rest = name.removesuffix("++")
        if rest and rest != "+":
            keys += [part.strip() or part for part in rest.split("+")]
        if rest != name or name == "+":
            keys.append("+")
    return keys


def _playwright_key(name: str) -> str:
    if name in _PRINTABLE:
        return name
    known = _KEYS.get(name.lower())
    if known:
        return known
    if len(name) == 1 and name.isprintable():
        return name
    hint = did_you_mean(name.lower(), _KEYS)
    raise ActionFailed(
        f"There is no key {name!r}.{hint} Keys are named as in 'enter', 'ctrl', 'pagedown', "
        "'left', 'f5' or by their one character."
    )
