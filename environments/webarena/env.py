"""Tasks of the WebArena benchmark, on sites that its user hosts."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

import anyio
import anyio.to_thread
from webarena_rules import address_fits, cleaned, content_fits, is_included, post_address

from hud_mcp import (
    Answer,
    Browser,
    BrowserWorld,
    Environment,
    Grade,
    LLMJudgeGrader,
    SubScore,
    dataset_file,
)

LATE_S = 3.0
"""What a page shows later than this does not count, as for the benchmark's own grader."""
LOOK_S = 0.2
BOUND_MS = 5000

SAME = "The response means the same as this reference answer: {}"
UNABLE = (
    "The response says that the task cannot be done, and its reason is this one or comes to the "
    "same: {}"
)
MEMBER = """
[...document.querySelectorAll("td[data-label='Account']")]
  .filter(cell => cell.querySelector("span.gl-avatar-labeled-sublabel")?.innerText === %s)
  .map(cell => cell.closest("tr").querySelector("td.col-max-role span").innerText)[0] ?? ""
"""

env = Environment(
    "webarena",
    version="0.1.0",
    world=Browser(start=None, tasks_open_hosts=True, viewport=(1280, 720)),
)


@env.function(use="setup")
async def webarena_login(browser: BrowserWorld, sha256: str) -> None:
    """Set the cookies of a login that was imported with the set, by the digest of its file."""
    kept = dataset_file(sha256)
    state = json.loads(await anyio.to_thread.run_sync(kept.read_bytes))
    await browser.set_cookies(state["cookies"])


@env.function(use="evaluate", weak="An answer that lists much has what is looked for.")
async def webarena_answer(
    answer: Answer[str], references: dict[str, Any], intent: str, note: str
) -> Grade:
    """1.0 where the answer is, has, or means what is referred to."""
    given = cleaned(answer.raw)
    parts: list[SubScore] = []
    if "exact_match" in references:
        same = given == cleaned(references["exact_match"])
        parts.append(SubScore(name="exact_match", value=float(same)))
    if wanted := references.get("must_include"):
        has = all(is_included(each, given, alone=len(wanted) == 1) for each in wanted)
        parts.append(SubScore(name="must_include", value=float(has)))
    if (meant := references.get("fuzzy_match")) is not None:
        parts.append(await judged(given, meant, intent, note))
    whole = float(all(part.value == 1.0 for part in parts))
    return Grade(reward=whole, subscores=tuple(parts))


async def judged(given: str, meant: str | list[str], intent: str, note: str) -> SubScore:
    """Whether an answer means what is referred to, as a model reads it."""
    if not given:
        return SubScore(name="fuzzy_match", value=0.0)
    if meant == "N/A":
        if cleaned(given) == "n/a":
            return SubScore(name="fuzzy_match", value=1.0)
        criteria = [UNABLE.format(note)]
    else:
        criteria = [SAME.format(each) for each in meant]
    found = await LLMJudgeGrader.grade(answer=given, criteria=criteria, question=intent)
    return found.model_copy(update={"name": "fuzzy_match", "value": float(found.value == 1.0)})


@env.function(use="evaluate", weak="An agent can open the address without the deed.")
async def webarena_address(browser: BrowserWorld, references: list[str]) -> float:
    """1.0 where the page's address has one of these, with their arguments."""
    return float(address_fits(browser.url, references))


@env.function(use="evaluate", weak="A page may show words that an agent had it show.")
async def webarena_pages(browser: BrowserWorld, targets: list[dict[str, Any]]) -> float:
    """1.0 where each page has what is wanted; all but the last one are opened anew."""
    before = "last"
    for target in targets:
        address = target["url"] if target["url"] != "last" else before
        before = address
        if address == "post":
            address = post_address(browser.url)
        async with looked_at(browser, address) as page:
            if not await shows(page, target):
                return 0.0
    return 1.0


@asynccontextmanager
async def looked_at(browser: BrowserWorld, address: str) -> AsyncGenerator[Any]:
    """The agent's own page, or a page of the grader's with the agent's login."""
    if address == "last":
        await browser.text()  # which tells whose doing it is if the page does not answer
        yield browser.page
        return
    anything = range(400, 600)
    async with browser.verifier(address, with_cookies=True, allow_status=anything) as page:
        yield page


async def shows(page: Any, target: dict[str, Any]) -> bool:
    """Whether a page has what is wanted, at once or a little later."""
    script = target["read"] or "document.documentElement.outerHTML"
    if "member" in target:
        script = MEMBER % json.dumps(f"@{target['member']}")
    session = await page.context.new_cdp_session(page)
    try:
        for each in target["prepare"]:
            await value_of(session, each)
        end_s = monotonic() + LATE_S
        while not content_fits(await value_of(session, script), target):
            if monotonic() > end_s:
                return False
            await anyio.sleep(LOOK_S)
        return True
    finally:
        await session.detach()


async def value_of(session: Any, script: str) -> str:
    """What a script returns as a text, beside the page's own scripts; empty where it fails."""
    tree = await session.send("Page.getFrameTree")
    frame = {"frameId": tree["frameTree"]["frame"]["id"], "worldName": "grader"}
    world = await session.send("Page.createIsolatedWorld", frame)
    reply = await session.send(
        "Runtime.evaluate",
        {
            "expression": f"(() => {script.strip()})()",
            "contextId": world["executionContextId"],
            "returnByValue": True,
            "timeout": BOUND_MS,
        },
    )
    if "exceptionDetails" in reply:
        return ""
    return str(reply["result"].get("value"))
