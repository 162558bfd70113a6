"""Whether a page's text is whole: each word, each element to act on, each ref once, in order."""

import re
from itertools import pairwise
from pathlib import Path

from hud_mcp.values.observation import Look
from hud_mcp.values.refs import refs_in
from hud_mcp.worlds.browser import BrowserWorld

__all__ = ["faults_of"]

COLLECT = Path(__file__).with_name("whole_text.js").read_text()
UNNAMED = Path(__file__).with_name("whole_text_unnamed.js").read_text()
WORD = re.compile(r"\w+|[^\w\s\x00-\x7f]")


def words_of(text: str) -> list[str]:
    """The words of a text, and its signs that are no punctuation."""
    return WORD.findall(re.sub("[\xad\u200b]", "", text).lower())


async def faults_of(world: BrowserWorld, *, ordered: bool = True) -> list[str]:
    """What is wrong with the text of the page in view, which is read without its limit."""
    said = (await world.observe(Look(max_text_chars=1_000_000))).text or ""
    lines = re.sub(r"\\[nt]", " ", said.partition("\n\n")[2])
    told, refs = words_of(lines), refs_in(said)
    all_told = {*told, *words_of(said)}  # a page may write a backslash before an n
    faults = [f"{ref} stands {refs.count(ref)} times" for ref in set(refs) if refs.count(ref) > 1]
    for frame in world.page.frames:
        seen: list[tuple[str, str, bool]] = await frame.evaluate(COLLECT)
        for text, line, _ in seen:
            glued = re.sub(r"\s", "", line).lower()  # words of several elements may be one word
            faults += [
                f"{word!r} is not told"
                for word in words_of(text)
                if word not in all_told
                and not any(word in each and each in glued for each in all_told)
            ]
        shown = [word for text, _, matters in seen if matters for word in words_of(text)]
        # Shorter ones stand in addresses too.
        longer = [word for word in shown if len(word) > 2]
        once = [word for word in longer if longer.count(word) == told.count(word) == 1]
        if ordered:
            faults += [
                f"{after!r} is told before {first!r}"
                for first, after in pairwise(once)
                if told.index(first) > told.index(after)
            ]
    tab = world._tabs.current  # it knows the refs that are not Playwright's
    for ref in refs:
        known = tab.links.get(ref) or f"aria-ref={tab.refs.find(ref) if tab.refs else ref}"
        found = await world.page.query_selector_all(known)
        if len(found) != 1:
            faults.append(f"{ref} names {len(found)} elements")
            continue
        await found[0].evaluate("node => node.ownerDocument.defaultView.__refs.push(node)")
    for frame in world.page.frames:
        faults += [f"no ref for {html}" for html in await frame.evaluate(UNNAMED)]
    return faults
