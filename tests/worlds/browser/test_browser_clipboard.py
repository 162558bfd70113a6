"""What one session copies, it pastes itself, and no other session of the same browser does."""

# ruff: noqa: E501  # pages are easier to read unbroken

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp.values.action import (
    Action,
    ClickAction,
    CustomAction,
    DragAction,
    Point,
    PressAction,
)
from hud_mcp.values.observation import Look
from hud_mcp.worlds.browser import BrowserWorld

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

Browse = Callable[..., Awaitable[BrowserWorld]]

PAGE = """<style>body{margin:0}</style><p id=p draggable=true>primary</p><input id=i value=secret><textarea id=t></textarea><div id=e contenteditable>rich <b>text</b></div>
<button id=c onclick="i.select();document.execCommand('copy')">copy</button>
<script>var got = []; addEventListener('paste', e => got.push(e.clipboardData.getData('text/plain')));
addEventListener('drop', e => got.push(e.dataTransfer.getData('text/plain')));</script>"""


async def act(world: BrowserWorld, *actions: Action) -> None:
    """Perform actions, each within a bound."""
    for action in actions:
        with anyio.fail_after(PATIENCE_S):
            await world.act(action)


async def keys(world: BrowserWorld, selector: str, *chords: str) -> None:
    """Click somewhere, and press chords there."""
    await act(world, ClickAction(selector=selector))
    for chord in chords:
        await act(world, PressAction(keys=tuple(chord.split("+"))))


async def value(world: BrowserWorld, selector: str) -> str:
    """What a field holds."""
    return await world.page.input_value(selector)


async def test_copying_cutting_and_pasting_work_within_a_session(browse: Browse) -> None:
    """With keys, a script's `execCommand`, between fields, tabs and documents, rich text too."""
    world = await browse({"index.html": PAGE, "other.html": PAGE})
    await keys(world, "#i", "ctrl+a", "ctrl+c")
    await keys(world, "#t", "ctrl+v", "ctrl+v")
    assert await value(world, "#t") == "secretsecret"
    await keys(world, "#t", "ctrl+a", "ctrl+x")
    assert await value(world, "#t") == ""
    await act(world, CustomAction(action="goto", args={"url": "/other.html"}))
    await keys(world, "#i", "ctrl+a", "ctrl+v")
    assert await value(world, "#i") == "secretsecret"
    assert await world.page.evaluate("() => got") == ["secretsecret"]
    await keys(world, "#i", "ctrl+z")
    await act(world, ClickAction(selector="#c"))
    tab = await world.page.context.new_page()
    await tab.goto(f"{world.site_url}/other.html")
    assert world.page == tab
    await keys(world, "#t", "ctrl+v")
    assert await value(world, "#t") == "secret"
    await keys(world, "#e", "ctrl+a", "ctrl+c")
    await keys(world, "#t", "ctrl+a", "ctrl+v")
    assert await value(world, "#t") == "rich text"


@pytest.mark.long
async def test_handlers_of_a_page_have_their_say(browse: Browse) -> None:
    """A page that copies words of its own, and one that takes what is pasted itself."""
    world = await browse(PAGE)
    await world.page.evaluate(
        """() => {
          addEventListener('copy', e => { e.clipboardData.setData('text/plain', 'mine'); e.preventDefault(); });
          t.addEventListener('paste', e => { t.value = '[' + e.clipboardData.getData('text/plain') + ']'; e.preventDefault(); });
        }"""
    )
    await keys(world, "#i", "ctrl+a", "ctrl+c")
    await keys(world, "#t", "ctrl+v")
    assert await value(world, "#t") == "[mine]"


@pytest.mark.long
async def test_a_password_is_not_copied(browse: Browse) -> None:
    """As in any browser."""
    world = await browse("<input id=i type=password value=secret><input id=t>")
    await keys(world, "#i", "ctrl+a", "ctrl+c")
    await keys(world, "#t", "ctrl+v")
    assert await value(world, "#t") == ""


async def copy_everyhow(world: BrowserWorld) -> None:
    """Copy in each way there is: keys, a script, a selection, `navigator.clipboard`."""
    await world.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await keys(world, "#i", "ctrl+a", "ctrl+c")
    await act(world, ClickAction(selector="#c"))
    await world.page.evaluate("() => navigator.clipboard.writeText('secret')")
    await act(world, ClickAction(selector="#p", pattern=(50, 50)))


async def test_what_ann_copies_bob_cannot_paste(browse: Browse) -> None:
    """Not with keys, the middle button, scripts, by dragging, nor over DevTools."""
    ann = await browse(PAGE)
    bob = await browse(PAGE.replace("secret", "").replace("primary", "bobs"))
    await copy_everyhow(ann)
    await bob.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await keys(bob, "#t", "ctrl+v", "shift+insert")
    await act(bob, ClickAction(selector="#t", button="middle"))
    assert await bob.page.evaluate("() => navigator.clipboard.readText()") == ""
    assert await bob.page.evaluate("() => navigator.clipboard.read().then(all => all.length)") == 0
    await bob.page.evaluate("() => { t.focus(); document.execCommand('paste') }")
    cdp = await bob.page.context.new_cdp_session(bob.page)
    event = {"type": "keyDown", "key": "v", "code": "KeyV", "commands": ["paste"]}
    await cdp.send("Input.dispatchKeyEvent", event)
    await act(bob, DragAction(path=(Point(x=5, y=25), Point(x=5, y=45))))
    seen = await bob.page.evaluate("() => [i.value, t.value, e.innerText, ...got].join('|')")
    assert "secret" not in seen
    assert "primary" not in seen
    await keys(ann, "#t", "ctrl+v")
    assert await value(ann, "#t") == "secret"


@pytest.mark.long
async def test_a_document_that_was_written_anew_has_its_sessions_clipboard(browse: Browse) -> None:
    """`document.open` ends every listener of a page; what is copied there stays the session's."""
    ann, bob = await browse(PAGE), await browse("<input id=t>")
    write = "html => { document.open(); document.write(html); document.close(); }"
    await ann.page.evaluate(write, PAGE)
    await keys(ann, "#i", "ctrl+a", "ctrl+c")
    await bob.page.evaluate(write, "<input id=t>")
    await keys(bob, "#t", "ctrl+v")
    assert await value(bob, "#t") == ""
    await keys(ann, "#t", "ctrl+v")
    assert await value(ann, "#t") == "secret"


@pytest.mark.long
async def test_a_frame_and_a_session_that_comes_back_have_it_too(browse: Browse) -> None:
    """What was copied in a frame is pasted outside of it, and after a snapshot's return."""
    pages = {
        "index.html": "<input id=t><iframe src=/inner.html></iframe>",
        "inner.html": "<input id=i value=secret>",
    }
    world, second = await browse(pages), await browse(pages)
    frame: Any = world.page.frames[1]
    await frame.focus("#i")
    for chord in (("ctrl", "a"), ("ctrl", "c")):
        await act(world, PressAction(keys=chord))
    await keys(world, "#t", "ctrl+v")
    assert await value(world, "#t") == "secret"
    await second.restore(await world.snapshot())
    await keys(second, "#t", "end", "ctrl+v")
    assert await value(second, "#t") == "secretsecret"


BUTTONS = """<input id=i><p id=o></p><script>
const say = promise => promise.then(t => o.textContent = t ?? 'written', e => o.textContent = e.name);
const put = blob => navigator.clipboard.write([new ClipboardItem({ 'text/plain': blob })]);
</script><button onclick="say(navigator.clipboard.writeText('SAVE-20'))">Copy</button>
<button onclick="say(put(new Blob(['SAVE-20'], { type: 'text/plain' })))">Copy rich</button>
<button onclick="say(navigator.clipboard.readText())">Paste</button>"""


@pytest.mark.long
async def test_a_button_copies_for_this_session_alone(browse: Browse) -> None:
    """As in Chrome without a question, by either call; ctrl+v pastes it here and nowhere else."""
    ann, bob = await browse(BUTTONS), await browse(BUTTONS)
    for button in ("Copy", "Copy rich"):
        await act(ann, ClickAction(selector=f"button:text-is('{button}')"))
        assert await ann.page.inner_text("#o") == "written"
        for world, pasted in ((bob, ""), (ann, "SAVE-20")):
            await keys(world, "#i", "ctrl+a", "ctrl+v")
            assert await value(world, "#i") == pasted
    query = "name => navigator.permissions.query({ name }).then(status => status.state)"
    states = [await ann.page.evaluate(query, f"clipboard-{what}") for what in ("write", "read")]
    assert states == ["granted", "prompt"], "as Chrome says it to pages"


@pytest.mark.long
async def test_a_page_that_reads_it_asks_the_person(browse: Browse) -> None:
    """The question is a dialog, answered by the rule and told; without a click there is none."""
    world = await browse(BUTTONS + "<script>say(navigator.clipboard.readText())</script>")
    assert await world.page.inner_text("#o") == "NotAllowedError", "nothing was clicked"
    for accept, says in ((True, "SAVE-20"), (False, "NotAllowedError")):
        await act(world, CustomAction(action="answer_dialogs", args={"accept": accept}))
        await act(world, ClickAction(selector="button:text-is('Copy')"))
        await act(world, ClickAction(selector="button:text-is('Paste')"))
        assert await world.page.inner_text("#o") == says
        assert "asks to see what was copied" in ((await world.observe(Look())).text or "")
    names = "() => Object.getOwnPropertyNames(window).filter(name => name.startsWith('__clip'))"
    assert await world.page.evaluate(names) == []
