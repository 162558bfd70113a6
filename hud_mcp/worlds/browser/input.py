"""The effect of each action on the pages of one session, and the elements that it hits."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

import anyio

from hud_mcp.errors import ActionFailed
from hud_mcp.values.action import (
    Action,
    ActionEffect,
    ClickAction,
    CustomAction,
    DragAction,
    KeyDownAction,
    KeyUpAction,
    MoveAction,
    Point,
    PositionFetch,
    PressAction,
    ScreenshotFetch,
    ScrollAction,
    TypeAction,
    WaitAction,
)
from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.commands import Commands
from hud_mcp.worlds.browser.devtools import is_end
from hud_mcp.worlds.browser.hands import Hands, gestures
from hud_mcp.worlds.browser.hits import write_down
from hud_mcp.worlds.browser.tab import Tab
from hud_mcp.worlds.browser.target import (
    Place,
    aimed,
    check_place_takes,
    check_point,
    check_takes,
    find_element,
    focused_element,
    middle_in_view,
)

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle

__all__ = ["Input"]

_HISTORY_BUTTONS = {"back": "back", "forward": "forward"}


class Input:
    """The input of one session, which turns actions into presses, keys and commands.

    Args:
        hands: The pointer and the keys.
        commands: The custom actions.
        names_targets: Whether the elements that actions hit are written down.
    """

    def __init__(self, hands: Hands, commands: Commands, *, names_targets: bool = False) -> None:
        self._hands = hands
        self._commands = commands
        self._names_targets = names_targets
        if names_targets:
            commands.note_target = self._note_focus
        self._reached: Point | None = None
        self._hit: str | None = None

    @property
    def effect(self) -> ActionEffect:
        """The place of the last action, and the element that it hit."""
        return ActionEffect(place=self._reached, target=self._hit)

    async def perform_still(self, action: Action) -> ActionEffect | None:
        """Perform an action that leaves the page alone; return None for any other action."""
        perform = self._STILL.get(action.type)
        return None if perform is None else await perform(self, action)

    async def perform(self, tab: Tab, action: Action) -> None:
        """Perform an action on a page, and set `effect`.

        Raises:
            ActionFailed: The action is refused, or its target cannot be reached.
            Error: Playwright's.
        """
        self._reached = self._hit = None
        perform = self._ON_PAGE.get(action.type)
        if perform is None:
            raise ActionFailed(f"A browser does not take {action.type!r}.")
        await perform(self, tab, action)

    async def _wait(self, action: WaitAction) -> ActionEffect:
        await anyio.sleep(action.time / 1000)
        return ActionEffect()

    async def _screenshot(self, _action: ScreenshotFetch) -> ActionEffect:
        return ActionEffect()

    async def _position(self, _action: PositionFetch) -> ActionEffect:
        at = self._hands.pointer
        return ActionEffect(
            text=f"The pointer is at ({at.x:g}, {at.y:g}).",
            info={"point": {"x": at.x, "y": at.y}},
        )

    async def _custom(self, _tab: Tab, action: CustomAction) -> None:
        await self._commands.run(action)

    async def _drag(self, tab: Tab, action: DragAction) -> None:
        for point in action.path:
            check_point(tab.page, point)
        await self._note_hit(tab, Place(action.path[0].x, action.path[0].y))
        await self._hands.drag(tab, action)

    async def _click(self, tab: Tab, action: ClickAction) -> None:
        if action.button in _HISTORY_BUTTONS:
            await self._commands.run(CustomAction(action=action.button))
            return
        async with self._hands.holding(tab, action.hold_keys or ()):
            for pause_ms, pauses in gestures(action.pattern or ()):
                await anyio.sleep(pause_ms / 1000)

                async def press(place: Place, pauses: tuple[int, ...] = pauses) -> None:
                    await self._note_hit(tab, place)
                    await self._hands.click(tab, place, action.button, pauses)

                await self._send_to(tab, action, press, kind="press")

    async def _type(self, tab: Tab, action: TypeAction) -> None:
        element = None
        if action.ref is not None or action.selector is not None:
            element = await find_element(tab, action.ref, action.selector)
            await check_takes(element, action.text)
            self._reached = await middle_in_view(tab.page, element)
        elif action.point is not None:
            place = check_point(tab.page, action.point)
            await check_place_takes(tab.page, place.x, place.y, action.text)
            await self._hands.click(tab, place)
            element = await focused_element(tab.page.main_frame)
        await self._note_focus(tab, element)
        await self._hands.type(tab, action, element)

    async def _scroll(self, tab: Tab, action: ScrollAction) -> None:
        await self._send_to(tab, action, partial(self._hands.point_at, tab), kind="hover")
        await self._hands.scroll(tab, action.scroll or Point(x=0, y=0), action.hold_keys or ())

    async def _move(self, tab: Tab, action: MoveAction) -> None:
        if not await self._send_to(tab, action, partial(self._hands.point_at, tab), kind="hover"):
            at, by = self._hands.pointer, action.offset or Point(x=0, y=0)
            place = check_point(tab.page, Point(x=at.x + by.x, y=at.y + by.y))
            await self._hands.point_at(tab, place)

    async def _keys(self, tab: Tab, action: PressAction | KeyDownAction | KeyUpAction) -> None:
        await self._note_hit(tab, None)
        if isinstance(action, PressAction):
            await self._hands.press(tab, action.keys)
        elif isinstance(action, KeyDownAction):
            await self._hands.key_down(tab, action.keys)
        else:
            await self._hands.key_up(tab, action.keys)

    async def _send_to(
        self,
        tab: Tab,
        action: ClickAction | ScrollAction | MoveAction,
        send: Callable[[Place], Awaitable[None]],
        *,
        kind: Literal["press", "hover"],
    ) -> bool:
        """Send something to an action's target; return False if the action names none."""
        if action.point is not None:  # it has no target: it is sent as it is
            await send(check_point(tab.page, action.point))
            return True
        if action.ref is None and action.selector is None:
            return False
        place = await aimed(tab, action.ref, action.selector, send, kind=kind)
        self._reached = None if place.scrolled else Point(x=place.x, y=place.y)
        return True

    async def _note_hit(self, tab: Tab, place: Place | None) -> None:
        """Remember the element that an action is about to hit, at a place or by the focus."""
        if self._names_targets:
            self._hit = await write_down(tab, None if place is None else (place.x, place.y))

    async def _note_focus(self, tab: Tab, element: "ElementHandle | None") -> None:
        """Give an element the focus, and remember the element that takes the keys."""
        if not self._names_targets:
            return
        if element is not None:
            try:
                await element.focus()
            except libraries.PlaywrightError as exc:
                if is_end(exc):
                    raise
                return  # typing into it says what is wrong with it
        await self._note_hit(tab, None)

    _STILL: ClassVar[Mapping[str, Callable[..., Awaitable[ActionEffect]]]] = {
        "wait": _wait,
        "screenshot": _screenshot,
        "position": _position,
    }
    _ON_PAGE: ClassVar[Mapping[str, Callable[..., Awaitable[None]]]] = {
        "click": _click,
        "type": _type,
        "scroll": _scroll,
        "move": _move,
        "press": _keys,
        "keydown": _keys,
        "keyup": _keys,
        "drag": _drag,
        "custom": _custom,
    }

    types = frozenset({*_STILL, *_ON_PAGE})
    """The types of actions that a browser performs. It announces these and no other."""
