"""A site in a browser of each session's own, and what is asked about it."""

from hud_mcp import Agent, Answer, Browser, BrowserWorld, Environment, numeric_match

PRICES = {"lamp": 42.5, "chair": 120.0, "shelf": 89.9}

env = Environment("starter", version="0.1.0", world=Browser(site="site/"))


@env.template(id="price", description="Find a price", returns=float)
async def find_price(browser: BrowserWorld, product: str = "lamp"):
    """Ask what something costs; the page says it."""
    await browser.goto("/")
    answer: Answer[float] = yield f"What does the {product} cost, in EUR?"
    yield numeric_match(answer.content, PRICES[product])


@find_price.oracle
async def _(agent: Agent, product: str):
    text = await agent.look()
    return next(line.split()[-2] for line in text.splitlines() if f"The {product} costs" in line)
