"""The live desktop of one session: it acts, and shows itself."""

from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from itertools import chain, repeat

import anyio
import anyio.to_thread

from hud_mcp.environment.world import World
from hud_mcp.errors import ActionFailed, did_you_mean
from hud_mcp.plugins.hud.bridge.vnc import Vnc
from hud_mcp.values.action import (
    Action,
    ActionEffect,
    ClickAction,
    DragAction,
    KeyDownAction,
    KeyUpAction,
    MoveAction,
    Point,
    PositionFetch,
    PressAction,
    ScreenshotFetch,
    ScrollAction,
    Targeted,
    TypeAction,
    WaitAction,
)
from hud_mcp.values.observation import Look, Observation, encode_picture
from hud_mcp.worlds.browser.hands import split_chords

# pyautogui's names of keys, which agents send, to X11's key symbols, which RFB takes. Source of the
# numbers: keysymdef.h. A character beyond Latin-1 is its code point with 0x01000000 added.
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
    """Return the key symbols of keys or chords such as `ctrl+a`, in the order of pressing."""
    return [_keysym(name) for name in split_chords(names)]


def keysym_of_character(sign: str) -> int:
    """Return the key symbol that types a character."""
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


DESKTOP_ACTIONS = frozenset({
    "click", "move", "drag", "scroll", "type", "press", "keydown", "keyup", "wait", "screenshot",
    "position",
})  # fmt: skip

_BUTTONS = {"left": 1, "middle": 2, "right": 4, "back": 128}
_WHEEL_UP, _WHEEL_DOWN, _WHEEL_LEFT, _WHEEL_RIGHT = 8, 16, 32, 64
_NOTCH_PX = 100
"""RFB knows no pixels of a wheel; browsers scroll about this far at a notch."""
_MOST_NOTCHES = 50
_DRAG_STEPS = 10
_DRAG_PAUSE_S = 0.02
_QUIET_S = 0.15
_SETTLE_BOUND_S = 1.5
"""Seconds to wait for a screen that keeps changing."""


class DesktopWorld(World):
    """One session's desktop, over VNC."""

    def __init__(self, vnc: Vnc) -> None:
        self._vnc = vnc
        self._pressed: list[int] = []

    @property
    def is_open(self) -> bool:
        """Whether it is connected."""
        return self._vnc.is_open

    def screen_size(self) -> tuple[int, int]:
        """Return the width and height of the screen in pixels."""
        return self._vnc.size

    async def act(self, action: Action) -> ActionEffect:
        """Perform one action, and return when the screen has settled.

        If this call is cancelled, it releases the buttons and keys that it held. A refusal raises
        ActionFailed, and the end of the connection ConnectionError.
        """
        if isinstance(action, Targeted) and (action.ref or action.selector):
            raise ActionFailed(
                "A desktop has no refs and no selectors. Use x and y, pixels of its picture."
            )
        if isinstance(action, WaitAction):
            await anyio.sleep(action.time / 1000)
            return ActionEffect()
        if isinstance(action, ScreenshotFetch):
            return ActionEffect()
        if isinstance(action, PositionFetch):
            at = Point(x=self._vnc.x, y=self._vnc.y)
            text = f"The pointer is at ({at.x:g}, {at.y:g})."
            return ActionEffect(text=text, info={"point": {"x": at.x, "y": at.y}})
        await self._perform(action)
        await self._wait_until_idle()
        return ActionEffect(place=action.point if isinstance(action, Targeted) else None)

    async def observe(self, look: Look) -> Observation:
        """Return the screen's size as text, and its picture.

        ConnectionError says that the connection has ended, TimeoutError that the server is silent.
        """
        width, height = self._vnc.size
        text = (
            f"A desktop of {width} x {height} pixels; the pointer is at "
            f"({self._vnc.x}, {self._vnc.y}). What it shows is in its picture."
        )
        if look.image is None:
            return Observation(text=text if look.text else None)
        await self._vnc.refresh()
        picture = self._vnc.picture.copy()
        encode = partial(encode_picture, picture, look.image, quality=look.quality)
        image = await anyio.to_thread.run_sync(encode)
        return Observation(text=text if look.text else None, image=image)

    async def close(self) -> None:
        """Release all keys, and disconnect. It may be called twice."""
        if self._vnc.is_open:
            for keysym in reversed(self._pressed):
                self._vnc.key(keysym, down=False)
        self._pressed.clear()
        self._vnc.close()

    async def _perform(self, action: Action) -> None:
        match action:
            case ClickAction():
                await self._click(action)
            case MoveAction():
                self._move(action)
            case DragAction():
                await self._drag(action)
            case ScrollAction():
                await self._scroll(action)
            case TypeAction():
                await self._type(action)
            case PressAction():
                async with self._holding(action.keys):
                    pass
            case KeyDownAction() | KeyUpAction():
                self._hold(action)
            case _:
                raise ActionFailed(f"A desktop does not take {action.type!r}.")

    def _hold(self, action: KeyDownAction | KeyUpAction) -> None:
        down = isinstance(action, KeyDownAction)
        for keysym in keysyms(action.keys):
            self._vnc.key(keysym, down=down)
            self._pressed = [held for held in self._pressed if held != keysym]
            if down:
                self._pressed.append(keysym)

    async def _click(self, action: ClickAction) -> None:
        mask = _BUTTONS.get(action.button)
        if mask is None:
            raise ActionFailed(
                f"VNC knows no button {action.button!r}; there are {', '.join(_BUTTONS)}."
            )
        if action.point is not None:
            self._go(action.point)
        async with self._holding(action.hold_keys or ()):
            for pause in (0, *(action.pattern or ())):
                await anyio.sleep(pause / 1000)
                with self._button(mask):
                    pass

    def _move(self, action: MoveAction) -> None:
        if action.point is not None:
            self._go(action.point)
        elif action.offset is not None:
            self._go(Point(x=self._vnc.x + action.offset.x, y=self._vnc.y + action.offset.y))

    async def _drag(self, action: DragAction) -> None:
        for point in action.path:
            self._check(point)
        first, *rest = action.path
        pauses = action.pattern or (0,)
        async with self._holding(action.hold_keys or ()):
            self._go(first)
            with self._button(_BUTTONS["left"]):
                for point, pause in zip(rest, chain(pauses, repeat(pauses[-1])), strict=False):
                    await anyio.sleep(pause / 1000)
                    x, y = self._vnc.x, self._vnc.y
                    # The target of a drop expects moves on the way.
                    for step in range(1, _DRAG_STEPS + 1):
                        part = step / _DRAG_STEPS
                        self._vnc.point(x + (point.x - x) * part, y + (point.y - y) * part)
                        await anyio.sleep(_DRAG_PAUSE_S)

    async def _scroll(self, action: ScrollAction) -> None:
        if action.point is not None:
            self._go(action.point)
        by = action.scroll or Point(x=0, y=0)
        async with self._holding(action.hold_keys or ()):
            self._turn(by.y, _WHEEL_DOWN, _WHEEL_UP)
            self._turn(by.x, _WHEEL_RIGHT, _WHEEL_LEFT)

    def _turn(self, distance: float, more: int, less: int) -> None:
        for _ in range(min(_MOST_NOTCHES, round(abs(distance) / _NOTCH_PX) or bool(distance))):
            with self._button(more if distance > 0 else less):
                pass

    async def _type(self, action: TypeAction) -> None:
        if action.point is not None:
            await self._click(ClickAction(point=action.point))
        for sign in action.text.replace("\r\n", "\n"):
            keysym = keysym_of_character(sign)
            self._vnc.key(keysym, down=True)
            self._vnc.key(keysym, down=False)
        if action.enter_after:
            async with self._holding(("enter",)):
                pass

    def _go(self, point: Point) -> None:
        self._check(point)
        self._vnc.point(point.x, point.y)

    def _check(self, point: Point) -> None:
        width, height = self._vnc.size
        if not (0 <= point.x < width and 0 <= point.y < height):
            # No numbers: the agent counts in pixels of its picture, which may be scaled.
            raise ActionFailed(
                "The point is beyond an edge of the screen. x goes from 0 to the picture's width, "
                "y from 0 to its height."
            )

    @contextmanager
    def _button(self, mask: int) -> Generator[None]:
        """Hold a button during the block, and release it however the block ends."""
        vnc = self._vnc
        vnc.point(vnc.x, vnc.y, vnc.buttons | mask)
        try:
            yield
        finally:
            if vnc.is_open:
                vnc.point(vnc.x, vnc.y, vnc.buttons & ~mask)

    @asynccontextmanager
    async def _holding(self, names: Sequence[str]) -> AsyncGenerator[None]:
        """Hold keys during the block, and release them however it ends."""
        down: list[int] = []
        wanted = keysyms(names)
        try:
            for keysym in wanted:
                self._vnc.key(keysym, down=True)
                down.append(keysym)
            yield
        finally:
            if self._vnc.is_open:
                for keysym in reversed(down):
                    self._vnc.key(keysym, down=False)

    async def _wait_until_idle(self) -> None:
        with anyio.move_on_after(_SETTLE_BOUND_S):
            still = False
            while not still:
                still = True
                with anyio.move_on_after(_QUIET_S):
                    await self._vnc.refresh(incremental=True)
                    still = False
