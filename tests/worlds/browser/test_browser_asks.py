"""A page that asks for what cannot be given here: the next text says so."""

# ruff: noqa: E501  # pages are easier to read unbroken

import anyio
import pytest
from acting import Browse, act, refusal

from hud_mcp.values.action import ClickAction, TypeAction
from hud_mcp.values.observation import Look

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

PAGE = """<title>Apply</title><input type=file id=f><button id=b onclick='f.click()'>Choose</button>
<a id=m href='mailto:a@b.c'>Mail</a><a id=t href='tel:123'>Call</a><a id=n target=_blank href='sms:123'>Text</a>
<button id=p onclick='window.print()'>Print</button><button id=o onclick='showOpenFilePicker().catch(() => {})'>Open</button>
<button id=z onclick="location = 'zoommtg://join'">Join</button><iframe srcdoc="<a href='mailto:d@e.f'>Mail</a>"></iframe>"""

ASKS = {
    "#f": "file",
    "#b": "file",
    "#p": "asks to print",
    "#o": "asks for a file",
    "#m": "mailto:a@b.c",
    "#t": "tel:123",
    "#n": "sms:123",
    "#z": "zoommtg://join",
    "iframe >> internal:control=enter-frame >> a": "mailto:d@e.f",
}


async def test_what_a_page_asks_for_and_does_not_get_is_told(browse: Browse) -> None:
    """A file, by itself or by a button, and other programs; at once, and the page stays."""
    world = await browse(PAGE)
    wrong: list[str] = []
    for selector, asked in ASKS.items():
        began = anyio.current_time()
        await act(world, ClickAction(selector=selector))
        text = (await world.observe(Look())).text or ""
        notes = "\n".join(line for line in text.splitlines() if line.startswith("Note"))
        if asked not in notes or "Page: Apply" not in text or anyio.current_time() - began > 1.8:
            wrong.append(f"{selector}: {anyio.current_time() - began:.1f} s: {text[:300]}")
    assert wrong == []
    assert "go on without one" in await refusal(world, TypeAction(selector="#f", text="cv.pdf"))
