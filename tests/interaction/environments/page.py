"""A real browser with one page and a backend that counts."""

# ruff: noqa: ANN201  # as authors write

from typing import Any

from hud_mcp import Browser, BrowserWorld, Environment, SiteRequest


async def backend(request: SiteRequest, state: dict[str, Any]) -> list[Any]:
    """Keep what the page sends, and return all of it."""
    if request.method == "POST":
        state["orders"].append(request.json["what"])
    return state["orders"]


env = Environment("page", world=Browser(site="page_site", backend=backend, state={"orders": []}))


@env.template(description="Order something")
async def order(browser: BrowserWorld, what: str = "tea"):
    """Grade what arrived at the site."""
    answer = yield f"Order {what!r} in the form, then answer with the number of the order."
    right = browser.state["orders"] == [what]
    yield (1.0 if answer == "1" else 0.5) if right else 0.0
