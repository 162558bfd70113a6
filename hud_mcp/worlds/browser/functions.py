"""The functions that `setup` and `evaluate` of a browser's tasks may name, as in the HUD SDK.

Elements and words are read from outside of the page's own scripts. So a page that overrides
`document.querySelector` deceives nobody. The shown words are still the page's own.
"""

from typing import Any

from pydantic import AliasChoices, ConfigDict, Field

from hud_mcp.environment.function import Function, History
from hud_mcp.errors import ActionFailed
from hud_mcp.graders.answers import Pattern, search
from hud_mcp.graders.reading import one_line
from hud_mcp.values.action import ClickAction, TypeAction, Value, is_answer
from hud_mcp.worlds.browser.world import BrowserWorld

__all__ = ["BROWSER_FUNCTIONS"]

Texts = str | list[str]

_WAIT_S = 10.0
_WORDS = "An agent can make a page show its own words, such as a search term."
_PAGE = "Any page that the agent can open may have such an element."
_ADDRESS = "An agent can open an address that holds the words."
_COOKIES = "A page that the agent opens sets its cookies, and an agent over DevTools any."
_ACTS = "It tells what the agent did, on whatever page, and not what came of it."


class Length(Value):
    """How many actions there may be."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    min: int | None = Field(
        default=None, ge=0, validation_alias=AliasChoices("min", "min_length", "minimum")
    )
    max: int | None = Field(
        default=None, ge=0, validation_alias=AliasChoices("max", "max_length", "maximum")
    )


class Typed(Value):
    """A selector and what was typed there, in one argument."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    selector: str
    value: str


# Before the agent starts.


async def goto(
    browser: BrowserWorld, url: str, allow_status: int | list[int] | None = None
) -> None:
    """Open an address; `http://` is added where it has no scheme, and a path is the site's.

    One that answers with an error such as 404 fails the setup, unless `allow_status` names that.
    """
    allowed = [allow_status] if isinstance(allow_status, int) else allow_status or []
    await browser.goto(browser.written_address(url), allow_status=allowed)


async def load_html(browser: BrowserWorld, html: str) -> None:
    """Show a document that the task brings along."""
    await browser.load_html(html)


async def set_cookies(
    browser: BrowserWorld, cookies: list[dict[str, Any]] | dict[str, str]
) -> None:
    """Set cookies: names and values for the page that is shown, or a list with their fields."""
    await browser.set_cookies(cookies)


async def wait_for_element(browser: BrowserWorld, selector: str, seconds: float = _WAIT_S) -> None:
    """Wait until an element can be seen."""
    await browser.wait_for(selector, seconds)


async def click(browser: BrowserWorld, selector: str) -> None:
    """Click an element."""
    await browser.prepare(ClickAction(selector=selector))


async def type_text(
    browser: BrowserWorld,
    selector: str,
    text: str,
    enter_after: bool = False,  # noqa: FBT001, FBT002  # arguments have no names here
) -> None:
    """Type into an element, in place of what it holds."""
    await browser.prepare(TypeAction(selector=selector, text=text, enter_after=enter_after))


async def maximize(browser: BrowserWorld) -> None:
    """Nothing more: a page has the whole window here, in the size that the context says."""


# After its answer.


async def page_contains(browser: BrowserWorld, texts: Texts, *more: Texts) -> float:
    """1.0 where the page and its frames show every text; case and spacing do not count."""
    shown = one_line(await browser.words(), ignore_case=True)
    wanted = [one_line(text, ignore_case=True) for text in _flat(texts, *more)]
    return float(all(text in shown for text in wanted))


async def element_exists(browser: BrowserWorld, selector: str, *more: str) -> float:
    """1.0 where each selector matches something on the page, seen or not."""
    for each in (selector, *more):
        if not await browser.texts_of(each):
            return 0.0
    return 1.0


async def element_text(browser: BrowserWorld, selector: str, text: str) -> float:
    """1.0 where an element's whole text is this; case counts, spacing does not."""
    wanted = one_line(text, ignore_case=False)
    texts = await browser.texts_of(selector)
    return float(any(one_line(each, ignore_case=False) == wanted for each in texts))


async def text_matches(browser: BrowserWorld, selector: str, pattern: Pattern) -> float:
    """1.0 where the regular expression is found in an element's text."""
    for text in dict.fromkeys(await browser.texts_of(selector)):  # each costs a process
        if await search(pattern, text):
            return 1.0
    return 0.0


async def url_contains(browser: BrowserWorld, texts: Texts, *more: Texts) -> float:
    """1.0 where the address of the page holds every text."""
    return float(all(text in browser.url for text in _flat(texts, *more)))


async def url_match(browser: BrowserWorld, url: str) -> float:
    """1.0 where the page's address is exactly this one, or this path of the site."""
    wanted = browser.written_address(url)
    return float(browser.url in (wanted, f"{wanted}/" if wanted.count("/") == 2 else wanted))  # noqa: PLR2004  # a browser adds the path to a bare host


async def cookie_exists(browser: BrowserWorld, names: Texts, *more: Texts) -> float:
    """1.0 where there is a cookie of each name."""
    known = {cookie["name"] for cookie in await browser.cookies()}
    return float(known.issuperset(_flat(names, *more)))


async def cookie_match(browser: BrowserWorld, pairs: Texts, *more: Texts) -> float:
    """1.0 where cookies have these values: a name, its value, the next name, its value."""
    given = [
        text for each in (pairs, *more) for text in ([each] if isinstance(each, str) else each)
    ]
    if not given or len(given) % 2:
        raise ActionFailed(f"cookie_match takes names with values, got {len(given)} texts.")
    known = {(cookie["name"], cookie["value"]) for cookie in await browser.cookies()}
    return float(known.issuperset(zip(given[::2], given[1::2], strict=True)))


async def selector_history(
    browser: BrowserWorld, done: History, selector: str, index: int | None = None
) -> float:
    """1.0 where an action of the agent hit such an element, or the action of this place did.

    Counted are the actions that hit an element: 0 is the first, -1 the last.
    """
    hits = [target for target in done.targets if target is not None]
    if index is not None:
        hits = hits[index : index + 1 or None]
    return float(any(await browser.matching(selector, hits)))


async def verify_type_action(
    browser: BrowserWorld, done: History, selector: str | Typed, value: str | None = None
) -> float:
    """1.0 where the agent typed exactly this text into such an element."""
    if isinstance(selector, Typed):
        selector, value = selector.selector, selector.value
    if value is None:
        raise ActionFailed("verify_type_action takes a selector and the text that is typed.")
    hits = [
        target
        for action, target in zip(done, done.targets, strict=True)
        if action.get("type") == "type" and action.get("text") == value and target is not None
    ]
    return float(any(await browser.matching(selector, hits)))


async def history_length(done: History, length: int | Length) -> float:
    """1.0 where the agent performed this number of actions; a dict has `min`, `max` or both."""
    count = sum(not is_answer(action) for action in done)
    if isinstance(length, int):
        return float(count == length)
    at_least = length.min is None or count >= length.min
    return float(at_least and (length.max is None or count <= length.max))


async def raw_last_action_is(done: History, action: dict[str, Any]) -> float:
    """1.0 where the agent's last action, answers aside, has all of these fields."""
    acted = [each for each in done if not is_answer(each)]
    wanted = {name: value for name, value in action.items() if name not in ("x", "y")}
    if at := {name: action[name] for name in ("x", "y") if name in action}:
        wanted["point"] = at  # the flat form that agents may use
    return float(bool(acted) and _holds(acted[-1], wanted))


def _holds(whole: Any, part: Any) -> bool:
    """Whether a value has another one's fields, at every depth."""
    if isinstance(part, dict):
        fields: dict[str, Any] = part  # pyright: ignore[reportUnknownVariableType]  # JSON
        return isinstance(whole, dict) and all(_holds(whole.get(k), v) for k, v in fields.items())  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]  # JSON
    return bool(whole == part)


def _flat(*given: Texts) -> list[str]:
    """Return the texts, and those in lists, in one list.

    Raises:
        ActionFailed: No text is given, or an empty one: every page would pass.
    """
    texts = [text for each in given for text in ([each] if isinstance(each, str) else each)]
    if not texts or not all(texts):
        raise ActionFailed("There is no text to look for, or an empty one. Name one.")
    return texts


BROWSER_FUNCTIONS = (
    Function(goto, use="setup"),
    Function(load_html, use="setup"),
    Function(load_html, name="load_html_content", use="setup"),
    Function(set_cookies, use="setup"),
    Function(wait_for_element, use="setup"),
    Function(click, use="setup"),
    Function(type_text, name="type", use="setup"),
    Function(maximize, name="browser.maximize", use="setup"),
    Function(page_contains, use="evaluate", weak=_WORDS),
    Function(page_contains, name="contains_text", use="evaluate", weak=_WORDS),
    Function(element_exists, use="evaluate", weak=_PAGE),
    Function(element_text, use="evaluate", weak=_WORDS),
    Function(text_matches, use="evaluate", weak=_WORDS),
    Function(url_contains, use="evaluate", weak=_ADDRESS),
    Function(url_match, use="evaluate", weak="An agent can open the address without the deed."),
    Function(cookie_exists, use="evaluate", weak=_COOKIES),
    Function(cookie_exists, name="cookies_exist", use="evaluate", weak=_COOKIES),
    Function(cookie_match, use="evaluate", weak=_COOKIES),
    Function(selector_history, use="evaluate", weak=_ACTS),
    Function(verify_type_action, use="evaluate", weak=_ACTS),
    Function(history_length, use="evaluate", weak="An agent can do as many actions as it likes."),
    Function(raw_last_action_is, use="evaluate", weak=_ACTS),
)
"""The functions of every environment whose world is a browser."""
