"""The dialogs of one session's pages: the rule of their answers, and the notes on them.

Dialogs never block. A page that asks whether to leave it gets the rule's answer while the agent
acts. Between the agent's actions the page is left: no arrangement of an agent holds up a grader
that goes elsewhere.
"""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import anyio

from hud_mcp.base.gathering import gather
from hud_mcp.errors import ActionFailed
from hud_mcp.worlds.browser import libraries

if TYPE_CHECKING:
    from playwright.async_api import Dialog

__all__ = ["DialogRule", "Dialogs"]

T = TypeVar("T")

_STAYS = (
    "The page asked whether to leave it; it was answered Cancel, and stays. To leave it, use the "
    "custom action answer_dialogs with accept true first."
)


@dataclass(frozen=True)
class DialogRule:
    """The rule of answers to dialogs: OK or Cancel, and the text for a prompt."""

    accept: bool = True
    text: str | None = None


class Dialogs:
    """The dialogs of one session's pages.

    Args:
        note: The function that adds a note to the next text.
        on_stay: The function to call when a page stays that was about to be left.

    Attributes:
        rule: The rule of their answers.
    """

    def __init__(self, note: Callable[[str], None], on_stay: Callable[[], None]) -> None:
        self.rule = DialogRule()
        self._note = note
        self._on_stay = on_stay
        self._agent_acts = False
        self._stayed: anyio.Event | None = None

    def answer_by(self, rule: DialogRule) -> None:
        """Set the rule of answers to the dialogs to come."""
        self.rule = rule

    @contextmanager
    def acting(self) -> Generator[None]:
        """Apply the rule to leaving a page too, while the agent acts."""
        self._agent_acts = True
        try:
            yield
        finally:
            self._agent_acts = False

    async def leave(self, move: Callable[[], Awaitable[T]]) -> T:
        """Run something that leaves the page that is shown.

        Raises:
            ActionFailed: The page asked whether to leave it, and the rule says no: it stays.
            Error: Playwright's.
        """
        self._stayed = stayed = anyio.Event()
        done: list[T] = []

        async def run() -> None:
            try:
                done.append(await move())
            except libraries.PlaywrightError:  # a `goto` fails; `reload` and `back` wait for ever
                if not stayed.is_set():
                    raise
            stayed.set()

        async def watch() -> None:
            await stayed.wait()
            if not done:
                raise ActionFailed(_STAYS)

        try:
            await gather([run(), watch()])
        finally:
            self._stayed = None
        return done[0]

    async def answer(self, dialog: "Dialog") -> None:
        """Answer a dialog, and note the answer in the next text."""
        leaving = dialog.type == "beforeunload"
        stays = leaving and self._agent_acts and not self.rule.accept
        accept = not stays if leaving else self.rule.accept
        given = self.rule.text if self.rule.text is not None else dialog.default_value
        refuses = stays and self._stayed is not None
        if self._stayed is not None and stays:
            self._stayed.set()  # before the answer, which has a `goto` fail at once
        try:
            if accept:
                await dialog.accept(given if dialog.type == "prompt" else None)
            else:
                await dialog.dismiss()
        except libraries.PlaywrightError:
            return  # the page is gone, and its dialog with it
        if stays:
            self._on_stay()
        if not refuses:
            self._note(_said(dialog, given, accept=accept))


def _said(dialog: "Dialog", given: str, *, accept: bool) -> str:
    message = " ".join(dialog.message.split())[:300]
    if dialog.type == "beforeunload":
        return "The page asked whether to leave it; it was left." if accept else _STAYS
    if dialog.type == "prompt" and accept:
        return f"The page asked {message!r} (prompt); it was answered {given!r}."
    answer = "OK" if accept else "Cancel"
    return f"The page said {message!r} ({dialog.type}); it was answered {answer}."
