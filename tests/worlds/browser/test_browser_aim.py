"""A click that names its target is got by it, whatever scripts move meanwhile."""

# ruff: noqa: E501  # pages are easier to read unbroken

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp.errors import ActionFailed
from hud_mcp.values.action import Action, ClickAction, MoveAction, Point, PressAction, TypeAction
from hud_mcp.values.observation import Look
from hud_mcp.values.refs import find_ref
from hud_mcp.worlds.browser import BrowserWorld

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

Browse = Callable[..., Awaitable[BrowserWorld]]

# It moves in the very moment in which the pointer comes, between the look and the press, so that
# the press would be another element's. How often is in `moves`.
DODGES = """<style>body{margin:0} #b,#under{position:absolute;left:20px;width:100px;height:30px;margin:0}</style>
<div id=under style='top:20px' onpointerdown='hits.push("under")' onclick='hits.push("under")'>below</div>
<button id=b style='top:20px'>Aim</button>
<script>
  var hits = [], moves = %d, top_ = 20;
  b.onclick = e => hits.push('b ' + e.detail);
  b.addEventListener('pointermove', () => { if (moves-- > 0) b.style.top = (top_ += 60) + 'px'; });
  for (const kind of ['mousedown', 'mouseup', 'click']) {
    document.addEventListener(kind, e => e.target === b || hits.push(kind + ' ' + e.target.id), true);
  }
</script>"""


async def hits(world: BrowserWorld) -> Sequence[Any]:
    """What the page noticed of presses."""
    return await world.page.evaluate("() => hits")


async def act(world: BrowserWorld, action: Action) -> None:
    """Perform an action within a bound."""
    with anyio.fail_after(PATIENCE_S):
        await world.act(action)


async def refusal(world: BrowserWorld, action: Action) -> str:
    """Perform an action that must be refused, and return why."""
    with anyio.fail_after(PATIENCE_S), pytest.raises(ActionFailed) as caught:
        await world.act(action)
    return str(caught.value)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("by", ["ref", "selector"])
async def test_a_click_follows_a_target_that_moves_as_it_is_pressed(
    browse: Browse, by: str
) -> None:
    """Its target gets one click, and nothing else a press, though it moved away twice."""
    world = await browse(DODGES % 2)
    text = (await world.observe(Look())).text or ""
    ref = find_ref(text, 'button "Aim"')
    await act(world, ClickAction(ref=ref) if by == "ref" else ClickAction(selector="#b"))
    assert await hits(world) == ["b 1"]


@pytest.mark.long
async def test_a_click_on_a_target_that_always_moves_is_refused_with_what_is_there(
    browse: Browse,
) -> None:
    """The error names what would have got it, and the page has noticed no press at all."""
    world = await browse(DODGES % 100_000)
    await world.page.add_style_tag(content="html{height:100000px} #under{height:90000px!important}")
    said = await refusal(world, ClickAction(selector="#b"))
    assert '"Aim") does not stay under the pointer' in said
    assert '<div#under> "below" covers it each time' in said
    assert "Nothing was pressed. Press tab until it has the focus, then enter." in said
    assert await hits(world) == []
    await act(world, PressAction(keys=("tab",)))
    await act(world, PressAction(keys=("enter",)))
    assert (await hits(world))[0] == "b 0", "as advised, by keys"


@pytest.mark.long
async def test_a_target_that_moves_for_ever_is_clicked_in_motion(browse: Browse) -> None:
    """By an animation or by a script, slow or fast: it gets the one click, and nothing else one."""
    style = "<style>@keyframes m{{to{{left:900px}}}} #b{{position:absolute;left:0;top:50px;width:60px;{0}}}</style>"
    target = "<div id=under style='height:300px' onclick='hits.push(9)'></div><button id=b onclick='hits.push(1)'>Go</button><script>var hits = [];{}</script>"
    script = "let i = 0; (function f() { b.style.left = (i += 7) % 900 + 'px'; requestAnimationFrame(f) })()"
    for css, own in (
        ("animation:m 3s linear infinite alternate", ""),
        ("animation:m .4s linear infinite alternate", ""),
        ("", script),
    ):
        world = await browse(
            style.format(css) + target.format(own), context={"reduced_motion": "no-preference"}
        )
        await act(world, ClickAction(selector="#b"))
        assert await hits(world) == [1], (css, own)
        await world.close()


@pytest.mark.long
async def test_a_point_is_pressed_as_it_is(browse: Browse) -> None:
    """A click on x, y has no target: what is there gets it, and a guard of before is gone."""
    world = await browse(DODGES % 100_000)
    await refusal(world, ClickAction(selector="#b"))
    await world.page.evaluate("() => scrollTo(0, 0)")
    await act(world, ClickAction(point=Point(x=70, y=35)))
    assert "click under" in await hits(world)


@pytest.mark.long
async def test_both_presses_of_a_double_click_and_single_ones_far_apart(browse: Browse) -> None:
    """A double click is one gesture; clicks far apart each find their target anew."""
    world = await browse(DODGES % 1)
    await act(world, ClickAction(selector="#b", pattern=(50,)))
    assert await hits(world) == ["b 1", "b 2"]
    await world.page.evaluate(
        "() => { hits.length = 0; b.onclick = () => { hits.push('b'); b.style.top = '300px'; } }"
    )
    await act(world, ClickAction(selector="#b", pattern=(510,)))
    assert await hits(world) == ["b", "b"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("kept", "early"),
    [
        (True, ""),
        (False, ""),
        (False, "f.contentWindow.document;"),  # its window is that of the empty document before
    ],
    ids=["in a frame", "under a frame", "under a frame that was empty"],
)
async def test_a_press_that_a_frame_would_get_is_kept_from_it(
    browse: Browse,
    kept: bool,  # noqa: FBT001  # a parameter of a test
    early: str,
) -> None:
    """A target in a frame that moves away, and one that a frame comes over, are both followed."""
    inner = "<body style='margin:0'><button id=b style='height:50px' onclick='parent.hits.push(`b`)'>In</button><script>document.addEventListener('mousedown', e => e.target.id === 'b' || parent.hits.push(`frame`))</script>"
    script = """var hits = [], moves = 1, f = document.querySelector('iframe'); %s
      document.addEventListener('mousedown', e => e.target.id === 'out' || hits.push('page ' + e.target.id));
      const move = () => { if (moves-- > 0) f.style.left = '%s'; };
      %s"""
    moving = (
        ("200px", "f.onload = () => f.contentDocument.onpointermove = move")
        if kept
        else ("0", "out.onpointermove = move")
    )
    left = "0" if kept else "200px"
    world = await browse(
        {
            "index.html": f"<body style='margin:0'><button id=out style='position:absolute;top:10px;left:0;height:30px;width:{40 if kept else 180}px' onclick='hits.push(`out`)'>Out</button>"
            f"<iframe src=/inner.html style='position:absolute;top:{100 if kept else 0}px;left:{left};border:0;width:100px;height:100px'></iframe><script>{script % (early, *moving)}</script>",
            "inner.html": inner,
        }
    )
    if kept:
        text = (await world.observe(Look())).text or ""
        ref = find_ref(text, 'button "In"')
        await act(world, ClickAction(ref=ref))
        assert await hits(world) == ["b"]
    else:
        await act(world, ClickAction(selector="#out"))
        assert await hits(world) == ["out"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("action", [MoveAction(selector="#b"), ClickAction(selector="#b")])
async def test_a_script_that_moves_the_target_after_the_look_changes_nothing(
    browse: Browse, action: Action
) -> None:
    """A target that a timer moves before the pointer comes has the pointer upon it at the end."""
    world = await browse(DODGES % 0)
    await world.page.evaluate(
        """() => {
          addEventListener('pointermove', event => { window.over = event.target.id });
          let times = 1;  // the look asks for this as its last thing, and a timer follows it
          const at = document.elementFromPoint.bind(document);
          document.elementFromPoint = (x, y) => {
            if (times-- > 0) setTimeout(() => { b.style.top = (top_ += 60) + 'px' });
            return at(x, y);
          };
        }"""
    )
    await act(world, action)
    assert await world.page.evaluate("() => over") == "b"
    assert await hits(world) == (["b 1"] if isinstance(action, ClickAction) else [])


async def test_keys_go_to_the_field_that_was_named(browse: Browse) -> None:
    """A page that takes the focus away once is typed to again; one that always does, refused."""
    page = "<input id=a><input id=z><script>var times = %d; a.onselect = a.onfocus = () => { if (times-- > 0) setTimeout(() => z.focus()) }</script>"
    world = await browse(page % 1)
    await act(world, TypeAction(selector="#a", text="tea"))
    assert await world.page.evaluate("() => [a.value, z.value]") == ["tea", ""]
    world = await browse(page.replace("setTimeout(() => z.focus())", "z.focus()") % 100)
    said = await refusal(world, TypeAction(selector="#a", text="tea"))
    assert "<input#z>" in said
    assert await world.page.evaluate("() => [a.value, z.value]") == ["", ""]


@pytest.mark.long
async def test_a_field_that_passes_the_focus_on_is_typed_into(browse: Browse) -> None:
    """Boxes of a code, where each gives the focus to the next one, get a character each."""
    box = "<input maxlength=1 oninput='this.nextElementSibling?.focus()'>"
    world = await browse(box * 4)
    await act(world, TypeAction(selector="input >> nth=0", text="2468"))
    assert (
        await world.page.evaluate(
            "() => [...document.querySelectorAll('input')].map(i => i.value).join('')"
        )
        == "2468"
    )


@pytest.mark.long
async def test_a_document_that_was_written_anew_is_guarded_too(browse: Browse) -> None:
    """`document.open` ends every listener of a page, and not the guard."""
    world = await browse("<p>old</p>")
    await world.page.evaluate(
        "html => { document.open(); document.write(html); document.close(); }", DODGES % 1
    )
    await act(world, ClickAction(selector="#b"))
    assert await hits(world) == ["b 1"]


@pytest.mark.long
async def test_what_is_inside_of_a_button_presses_it(browse: Browse) -> None:
    """A picture in a button that something else of the button covers is pressed through that."""
    world = await browse(
        "<button onclick='window.hit = 1' style='position:relative;width:90px;height:40px'><img id=i alt=x style='width:80px;height:30px'>"
        "<span style='position:absolute;inset:0'></span></button>"
    )
    await act(world, ClickAction(selector="#i"))
    assert await world.page.evaluate("() => window.hit") == 1
