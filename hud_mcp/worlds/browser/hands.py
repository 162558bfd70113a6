"""The mouse and keyboard of one session, with the effect of each input action on a page."""

import asyncio
import re
import string
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import anyio

from hud_mcp.errors import ActionFailed, did_you_mean
from hud_mcp.values.action import Action, ClickAction, DragAction, Point, TypeAction, WaitAction
from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.devtools import send
from hud_mcp.worlds.browser.driver import TRACKER
from hud_mcp.worlds.browser.tab import Tab
from hud_mcp.worlds.browser.target import Place, disarm, takes_keys

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle

__all__ = ["Hands", "gestures", "is_in_layout", "own_pauses_s", "playwright_keys", "split_chords"]


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
"""Playwright's names of keys, by lower-case name."""

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
"""The named keys of Playwright's USKeyboardLayout. Playwright refuses others."""


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
        held: The keys that are down already, by Playwright's names.

    Raises:
        ActionFailed: A key is unknown. The text has the closest name.
    """
    down = list(held)
    for name in split_chords(names):
        key = _playwright_key(name)
        shift = any(other.startswith("Shift") for other in down)
        down.append(_SHIFTED.get(key, key) if shift else key)
    return down[len(held) :]


def split_chords(names: Sequence[str]) -> list[str]:
    """Split chords into single keys: `ctrl+a` is two keys, and so is `ctrl++`."""
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


DOUBLE_CLICK_MS = 500
"""The longest pause in a double click, as on a desktop. Later clicks count one by one."""

PASTE_CHARS = 200
"""The longest text that is typed. Longer ones go in at once: a key event takes 4 ms."""

MAX_FOCUSES = 3
"""The most attempts to give a field the focus that another element takes from it."""

RELEASE_BOUND_S = 2.0
FILL_BOUND_MS = 2000

_NOT_A_FIELD = "Element is not an <input>"
_STATE = re.compile(r"element is (not enabled|not visible|not editable)")

_HAS_FOCUS = """e => {
  const active = e.getRootNode().activeElement;
  return !!active && (active === e || e.contains(active));
}"""

_AFTER_HANDLERS = "(_, key) => window[key] && window[key].soon()"
"""A script that returns once the tasks are done that the handlers of an event posted."""

_GUARD_KEYS = Path(__file__).with_name("keys.js").read_text()

_FUNCTION_KEY_CODES = {f"F{n}": 111 + n for n in range(13, 25)}

MouseButton = Literal["left", "right", "middle"]


class Hands:
    """The pointer's place and the keys that are held, which outlive single pages."""

    def __init__(self) -> None:
        self.pointer = Point(x=0, y=0)
        self.held: list[str] = []

    async def resume(self, tab: Tab, pointer: Point, held: Sequence[str]) -> None:
        """Set the pointer and the held keys to their state in another process."""
        for key in held:
            await _down(tab, key)
            self.held.append(key)
        if pointer != self.pointer:
            await self.move(tab, pointer.x, pointer.y)

    async def move(self, tab: Tab, x: float, y: float) -> None:
        """Move the pointer."""
        await tab.page.mouse.move(x, y)
        self.pointer = Point(x=x, y=y)

    async def point_at(self, tab: Tab, place: Place) -> None:
        """Move the pointer to a place."""
        await self.move(tab, place.x, place.y)

    async def click(
        self, tab: Tab, place: Place, button: str = "left", pauses: Sequence[int] = ()
    ) -> None:
        """Click at a place, once and once more after each pause, in ms.

        The move and the press go out at once, so that little can happen between them.
        """
        mouse, named = tab.page.mouse, cast("MouseButton", button)
        self.pointer = Point(x=place.x, y=place.y)
        await mouse.click(place.x, place.y, button=named)
        count = 1
        for pause_ms in pauses:
            await anyio.sleep(pause_ms / 1000)
            count = count + 1 if pause_ms <= DOUBLE_CLICK_MS else 1
            await asyncio.gather(
                mouse.down(button=named, click_count=count),
                mouse.up(button=named, click_count=count),
            )

    async def drag(self, tab: Tab, action: DragAction) -> None:
        """Press at the first point of a path, move along it, and release at the last."""
        first, *rest = action.path
        pauses = action.pattern or (0,)
        mouse = tab.page.mouse
        async with self.holding(tab, action.hold_keys or ()):
            await self.move(tab, first.x, first.y)
            await mouse.down()
            try:
                steps = 10 if len(rest) == 1 else 2  # a drop target wants to see it come
                for point, pause in zip(rest, chain(pauses, repeat(pauses[-1])), strict=False):
                    if pause:
                        await anyio.sleep(pause / 1000)
                    await mouse.move(point.x, point.y, steps=steps)
                    self.pointer = point
            finally:
                with anyio.move_on_after(RELEASE_BOUND_S * tab.patience(), shield=True):
                    await mouse.up()

    async def scroll(self, tab: Tab, distance: Point, hold_keys: Sequence[str]) -> None:
        """Turn the wheel at the pointer's place."""
        async with self.holding(tab, hold_keys):
            await tab.page.mouse.wheel(distance.x, distance.y)

    async def type(self, tab: Tab, action: TypeAction, element: "ElementHandle | None") -> None:
        """Type into an element in place of its content, or into the focused one.

        A line of up to `PASTE_CHARS` characters comes by key events, as a person types. A longer
        text is put in at once. So is a text of several lines in an element: Enter would send
        it half-written. Dates, times and colours are put in, because their fields have keys of
        their own.
        """
        text = action.text
        if element is None:
            await self._type_text(tab, text)
        elif _is_short_line(text) and await _type_into(tab, element, text):
            pass
        elif not await _fill(tab, element, text):
            await self._type_text(tab, text)
        if action.enter_after:
            await tab.page.keyboard.press("Enter")

    async def press(self, tab: Tab, names: Sequence[str]) -> None:
        """Press a chord: all keys down in order, up in reverse."""
        async with self.holding(tab, names):
            pass

    async def key_down(self, tab: Tab, names: Sequence[str]) -> None:
        """Hold keys until `key_up` releases them."""
        for key in playwright_keys(names, self.held):
            await _down(tab, key)
            if key not in self.held:
                self.held.append(key)

    async def key_up(self, tab: Tab, names: Sequence[str]) -> None:
        """Release keys. A key that is not held counts as released."""
        for name in split_chords(names):
            forms = {*playwright_keys([name]), *playwright_keys([name], held=["Shift"])}
            for key in [k for k in self.held if k in forms] or playwright_keys([name]):
                await _up(tab, key)
                if key in self.held:
                    self.held.remove(key)

    async def let_go(self, tab: Tab) -> None:
        """Release every held key."""
        while self.held:
            await _up(tab, self.held.pop())

    @asynccontextmanager
    async def holding(self, tab: Tab, names: Sequence[str]) -> AsyncGenerator[None]:
        """Hold keys for the length of a block, and release them however it ends."""
        keys = playwright_keys(names, self.held)
        down: list[str] = []
        try:
            for key in keys:
                down.append(key)
                await _down(tab, key)
            yield
        finally:
            with anyio.move_on_after(RELEASE_BOUND_S * tab.patience(), shield=True):
                for key in reversed(down):
                    if key not in self.held:
                        await _up(tab, key)

    async def _type_text(self, tab: Tab, text: str) -> None:
        keyboard = tab.page.keyboard
        if len(text) <= PASTE_CHARS:
            await keyboard.type(text)
            return
        for i, line in enumerate(text.split("\n")):
            if i:
                await keyboard.press("Enter")
            await keyboard.insert_text(line)


def gestures(pattern: Sequence[int]) -> list[tuple[float, tuple[int, ...]]]:
    """Group the clicks of a pattern: the pause before each group, and those within, in ms.

    A click more than `DOUBLE_CLICK_MS` after the last one begins another group.
    """
    found: list[tuple[float, tuple[int, ...]]] = [(0, ())]
    for pause_ms in pattern:
        if pause_ms > DOUBLE_CLICK_MS:
            found.append((pause_ms, ()))
        else:
            before, within = found[-1]
            found[-1] = before, (*within, pause_ms)
    return found


def own_pauses_s(action: Action) -> float:
    """Return an action's own pauses in seconds, without the time that the page takes."""
    if isinstance(action, WaitAction):
        return action.time / 1000
    if isinstance(action, ClickAction):
        return sum(action.pattern or ()) / 1000
    if isinstance(action, DragAction):
        pauses = action.pattern or (0,)
        return (sum(pauses) + pauses[-1] * len(action.path)) / 1000 + 0.05 * len(action.path)
    if isinstance(action, TypeAction):
        return 0.05 * min(len(action.text), 1000)
    return 0.0


def _is_short_line(text: str) -> bool:
    return 0 < len(text) <= PASTE_CHARS and "\n" not in text and "\r" not in text


async def _type_into(tab: Tab, element: "ElementHandle", text: str) -> bool:
    """Type in place of a field's content; return False if keys would not write the text.

    Raises:
        ActionFailed: The page takes the focus away each time. Nothing was typed.
    """
    if not await takes_keys(element, text):
        return False
    frame = await element.owner_frame()
    other: str | None = None
    for _attempt in range(MAX_FOCUSES):
        try:
            await element.evaluate(_GUARD_KEYS, TRACKER)
            try:
                await element.select_text(timeout=FILL_BOUND_MS * tab.patience())
            except libraries.PlaywrightError:
                return False  # filling it says what is wrong with it
            await element.evaluate(_AFTER_HANDLERS, TRACKER)  # one may give the focus away
            await tab.page.keyboard.type(text)
        finally:
            other = await disarm(tab, frame)
        if not other:
            return True
    raise ActionFailed(
        f"The page moves the focus to {other} whenever the field gets it. Nothing was typed."
    )


async def _fill(tab: Tab, element: "ElementHandle", text: str) -> bool:
    """Replace a field's content; return False if it has the focus but cannot be filled."""
    try:
        await element.fill(text, timeout=FILL_BOUND_MS * tab.patience())
    except libraries.PlaywrightError as exc:
        if state := _STATE.search(exc.message):
            raise ActionFailed(f"The field is {state[1]}: it takes no text now.") from exc
        if _NOT_A_FIELD not in exc.message:
            raise
        await element.focus()
        if not await element.evaluate(_HAS_FOCUS):
            raise ActionFailed(
                "The element is no field, and cannot have the focus: it takes no text. Use the "
                "ref of a field, or click what opens one."
            ) from exc
        return False
    return True


async def _down(tab: Tab, key: str) -> None:
    if is_in_layout(key):
        await tab.page.keyboard.down(key)
    else:
        await _send_raw(tab, "rawKeyDown", key)


async def _up(tab: Tab, key: str) -> None:
    if is_in_layout(key):
        await tab.page.keyboard.up(key)
    else:
        await _send_raw(tab, "keyUp", key)


async def _send_raw(tab: Tab, kind: str, key: str) -> None:
    """Send a key that Playwright's US keyboard lacks; a letter such as é comes as text."""
    if len(key) == 1:
        if kind == "rawKeyDown":
            await tab.page.keyboard.insert_text(key)
        return
    code = _FUNCTION_KEY_CODES.get(key, 0)
    event = {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}
    await send(await tab.cdp(), "Input.dispatchKeyEvent", event)
