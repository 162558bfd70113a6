"""The names of keys: pyautogui's, which agents send, to X11's key symbols, which RFB takes.

Source of the numbers: X11's keysymdef.h; a character beyond Latin-1 is its code point with
0x01000000 added.
"""

from collections.abc import Sequence

from hud_mcp.errors import ActionFailed, did_you_mean
from hud_mcp.worlds.browser.hands import split_chords

__all__ = ["keysym_of_character", "keysyms"]

_NAMED = {
    "backspace": 0xFF08, "tab": 0xFF09, "\t": 0xFF09, "clear": 0xFF0B, "enter": 0xFF0D,
    "return": 0xFF0D, "\n": 0xFF0D, "\r": 0xFF0D, "pause": 0xFF13, "scrolllock": 0xFF14,
    "esc": 0xFF1B, "escape": 0xFF1B, "home": 0xFF50, "left": 0xFF51, "up": 0xFF52,
    "right": 0xFF53, "down": 0xFF54, "arrowleft": 0xFF51, "arrowup": 0xFF52,
    "arrowright": 0xFF53, "arrowdown": 0xFF54, "pageup": 0xFF55, "pgup": 0xFF55,
    "pagedown": 0xFF56, "pgdn": 0xFF56, "end": 0xFF57, "select": 0xFF60, "print": 0xFF61,
    "printscreen": 0xFF61, "prtsc": 0xFF61, "execute": 0xFF62, "insert": 0xFF63,
    "apps": 0xFF67, "help": 0xFF6A, "modechange": 0xFF7E, "numlock": 0xFF7F,
    "multiply": 0xFFAA, "add": 0xFFAB, "separator": 0xFFAC, "subtract": 0xFFAD,
    "decimal": 0xFFAE, "divide": 0xFFAF, "shift": 0xFFE1, "shiftleft": 0xFFE1,
    "shiftright": 0xFFE2, "ctrl": 0xFFE3, "control": 0xFFE3, "ctrlleft": 0xFFE3,
    "ctrlright": 0xFFE4, "capslock": 0xFFE5, "alt": 0xFFE9, "altleft": 0xFFE9,
    "option": 0xFFE9, "optionleft": 0xFFE9, "altright": 0xFFEA, "optionright": 0xFFEA,
    "win": 0xFFEB, "winleft": 0xFFEB, "command": 0xFFEB, "cmd": 0xFFEB, "super": 0xFFEB,
    "meta": 0xFFEB, "winright": 0xFFEC, "delete": 0xFFFF, "del": 0xFFFF, "space": 0x20,
    "volumedown": 0x1008FF11, "volumemute": 0x1008FF12, "volumeup": 0x1008FF13,
    "playpause": 0x1008FF14, "stop": 0x1008FF15, "prevtrack": 0x1008FF16,
    "nexttrack": 0x1008FF17,
    **{f"f{n}": 0xFFBD + n for n in range(1, 25)},
    **{f"num{n}": 0xFFB0 + n for n in range(10)},
}  # fmt: skip

_LATIN_1 = 0x100
_UNICODE = 0x01000000


def keysyms(names: Sequence[str]) -> list[int]:
    """Return the key symbols of keys or chords such as `ctrl+a`, in the order of going down.

    Raises:
        ActionFailed: There is no such key here; the text has the closest name.
    """
    return [_keysym(name) for name in split_chords(names)]


def keysym_of_character(sign: str) -> int:
    """The key symbol that types a character."""
    if sign in ("\n", "\r", "\t"):
        return _NAMED[sign]
    code = ord(sign)
    return code if code < _LATIN_1 else _UNICODE + code


def _keysym(name: str) -> int:
    known = _NAMED.get(name.lower())
    if known is not None:
        return known
    if len(name) == 1 and name.isprintable():
        return keysym_of_character(name)
    raise ActionFailed(
        f"There is no key {name!r} here.{did_you_mean(name.lower(), _NAMED)} Keys are named as in "
        "'enter', 'ctrl', 'pagedown', 'left', 'f5' or by their one character."
    )
