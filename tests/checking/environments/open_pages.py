"""Tasks on a site whose pages tell the answer where no person looks; and sound twins."""

from typing import Any

from hud_mcp import Browser, BrowserWorld, Environment, SiteRequest, SiteResponse, exact_match

CODE = "heron-4471"

PAGES = {
    "1": f"<!-- the code is {CODE} --><p data-code='{CODE}'>Look at the code.</p>\n"
    f"<input type=hidden name=code value={CODE}>",
    "2": f"<script>const shop = {{'codes': ['{CODE}']}};\nfetch('/api/answer.json');\n"
    "fetch('/api/state').then(r => r.json())</script>",
    "3": "<p>The code is behind <a href='/api/page/4'>this door</a>.</p>\n"
    f"<script>const codes = ['{CODE}'];</script>",
    "4": f"<p>The code is {CODE}.</p>",
    "5": "<a href='/api/take?thing=lamp'>Take the lamp</a>",
    "6": "<form method=post action='/api/take?thing=lamp'><button>Take the lamp</button></form>",
}
"""Of these, 1 and 2 tell the code, and 5 takes the lamp for whoever opens an address."""


async def answer(request: SiteRequest, state: dict[str, Any]) -> Any:
    """Show a page by its number, take a thing, and tell the state."""
    if request.path.startswith("/api/page/"):
        page = PAGES[request.path.rpartition("/")[2]]
        return SiteResponse(text=f"<!doctype html><title>Shop</title><h1>Shop</h1>\n{page}")
    if request.path == "/api/take":
        if request.method == "POST" or state["page"] == 5:
            state["taken"] = request.query["thing"]
        return SiteResponse(text=f"<p>Taken: {state['taken']}</p>")
    if request.path == "/api/answer.json":
        return {"answer": CODE}
    return {"taken": state["taken"], "shelf": [{"id": 7, "tag": CODE}]}


env = Environment(
    "open_pages", world=Browser(backend=answer, state={"taken": "", "page": 0}, start=None)
)


@env.template()
async def told(browser: BrowserWorld, page: int):
    """The code is to be found out."""
    await browser.goto(f"/api/page/{page}")
    given = yield "What is the code of this shop? Answer with it alone."
    yield exact_match(given, CODE)


@env.template()
async def taken(browser: BrowserWorld, page: int):
    """The lamp is to be taken, by its button."""
    browser.state["page"] = page
    await browser.goto(f"/api/page/{page}")
    yield "Take the lamp."
    yield float(browser.state["taken"] == "lamp")


@told.oracle
async def _(agent, page):
    if page == 3:
        await agent.custom("goto", url="/api/page/4")
    return CODE


@taken.oracle
async def _(agent, page):
    await agent.click(selector="a, button")
