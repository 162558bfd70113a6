"""An action that is refused leaves the page as it was, and its advice works."""

# ruff: noqa: E501  # pages are easier to read unbroken

from typing import Any

import pytest
from acting import Browse, act, refusal

from hud_mcp.values.action import Action, ClickAction, CustomAction, Point, TypeAction

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

WATCHED = """<style>body{margin:0} #f{position:absolute;left:0;top:0;width:200px;height:40px;margin:0}</style>%s
<script>var told = [];
for (const kind of ['focusin', 'input', 'change', 'mousedown', 'click', 'keydown', 'scroll', 'invalid'])
  addEventListener(kind, e => told.push(kind), true);
</script>"""

HELD = "() => [f.value ?? f.textContent, f.checked ?? null, told, document.activeElement.tagName]"

FIELDS: dict[str, tuple[str, list[str], Action | None, str]] = {
    "date": ("<input id=f type=date value=2026-03-09>", ["tomorrow", "12/31/2026", "2026-02-31"], TypeAction(selector="#f", text="2026-01-31"), "2026-01-31"),
    "time": ("<input id=f type=time value=14:30>", ["2:30 PM", "25:00"], TypeAction(selector="#f", text="14:05"), "14:05"),
    "month": ("<input id=f type=month value=2026-05>", ["May 2026", "2026-13"], TypeAction(selector="#f", text="2026-01"), "2026-01"),
    "week": ("<input id=f type=week value=2026-W12>", ["12/2026"], TypeAction(selector="#f", text="2026-W05"), "2026-W05"),
    "moment": ("<input id=f type=datetime-local value=2026-03-09T14:30>", ["2026-03-09 2 PM"], TypeAction(selector="#f", text="2026-01-31T14:05"), "2026-01-31T14:05"),
    "colour": ("<input id=f type=color value=#00ff00>", ["red", "", "#f80", "rgb(1,2,3)"], TypeAction(selector="#f", text="#ff8800"), "#ff8800"),
    "slider": ("<input id=f type=range min=0 max=50 step=5 value=25>", ["fifty", "60", "7", ""], TypeAction(selector="#f", text="45"), "45"),
    "number": ("<input id=f type=number value=7>", ["seven", "1,5", "+5", "7 pieces"], TypeAction(selector="#f", text="2.5"), "2.5"),
    "choice": ("<select id=f><option>Red<option>Blue</select>", ["Blue"], CustomAction(action="select_option", args={"selector": "#f", "values": ["Blue"]}), "Blue"),
    "check": ("<input id=f type=checkbox value=no>", ["yes"], ClickAction(selector="#f"), "no"),
    "button": ("<input id=f type=button value=Go>", ["Stop"], ClickAction(selector="#f"), "Go"),
    "file": ("<input id=f type=file>", ["/tmp/cv.pdf"], None, ""),
    "fixed": ("<input id=f value=kept readonly>", ["words"], None, ""),
    "label": ("<label>Day <input id=f type=date value=2026-03-09></label>", ["tomorrow"], TypeAction(selector="label", text="2026-01-31"), "2026-01-31"),
    "no field": ("<p id=f>words</p><input id=other autofocus>", ["lost"], None, ""),
}  # fmt: skip


@pytest.mark.long
async def test_a_text_that_a_field_refuses_changes_nothing_and_what_is_advised_works(
    browse: Browse,
) -> None:
    """Named by selector and by point: the same value, no event, no focus; then the advice."""
    wrong: list[Any] = []
    for name, (html, texts, advised, value) in FIELDS.items():
        world = await browse(WATCHED % html)
        before = await world.page.evaluate(HELD)
        targets: list[dict[str, Any]] = [{"selector": "label" if name == "label" else "#f"}]
        targets += [] if name == "no field" else [{"point": Point(x=60, y=20)}]
        for text in texts:
            for target in targets:
                said = await refusal(world, TypeAction(text=text, **target))
                after = await world.page.evaluate(HELD)
                wrong += [] if after == before else [(name, text, target, said, before, after)]
        if advised is not None:
            await act(world, advised)
            held = (await world.page.evaluate(HELD))[0]
            wrong += [] if held == value else [(name, advised, held)]
        await world.close()
    assert wrong == []


async def test_a_target_that_cannot_be_reached_leaves_the_page_where_it_was(browse: Browse) -> None:
    """A refused click neither scrolls the page nor a box of it, nor the page around a frame."""
    cover = "<div style='position:fixed;inset:0;background:#eee'>cover</div>"
    boxed = "<div id=box style='height:100px;overflow:auto'><div style='height:900px'></div><button id=b>b</button></div>"
    places = "() => [scrollY, window.box ? box.scrollTop : 0]"
    for html, target in (
        (f"<div style='height:3000px'></div>{boxed}{cover}", "#b"),
        (f"<div style='height:3000px'></div><iframe srcdoc='<button id=b>b</button>'></iframe>{cover}", "iframe >> internal:control=enter-frame >> #b"),
    ):  # fmt: skip
        world = await browse(html)
        assert "Close that first" in await refusal(world, ClickAction(selector=target))
        assert await world.page.evaluate(places) == [0, 0]


async def test_two_options_for_a_field_that_takes_one_are_refused(browse: Browse) -> None:
    """Neither is set, and none is set aside."""
    world = await browse("<select id=s><option>Red<option>Blue<option>Green</select>")
    both = CustomAction(
        action="select_option", args={"selector": "#s", "values": ["Blue", "Green"]}
    )
    assert "takes one option" in await refusal(world, both)
    assert await world.page.input_value("#s") == "Red"
