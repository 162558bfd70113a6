"""Whatever a page is built of, its text has each word, and a ref for each thing to act on."""

# ruff: noqa: E501  # pages are easier to read unbroken

import re
from random import Random

import pytest
from acting import Browse
from whole_text import faults_of

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

PICTURE = "data:image/svg+xml,<svg xmlns=&quot;http://www.w3.org/2000/svg&quot; width=&quot;100&quot; height=&quot;50&quot;/>"
STYLE = """<style>.before::before{content:'css1 '}.after::after{content:' css2'}.block::after{content:'css3';display:block}
.faint{position:absolute;opacity:0;width:1px;height:1px}.tiny{position:absolute;width:1px;height:1px;overflow:hidden;clip:rect(0 0 0 0)}
.hand{cursor:pointer}.box{display:inline-block;width:24px;height:24px;background:#888}</style>"""

INLINE = (
    "w", "w <b>w</b> w", "<i>w</i><u>w</u>", "H<sub>w</sub>O<sup>w</sup>", "<mark>w</mark>", "<code>w</code>",
    "<del>w</del><ins>w</ins>", "<q>w</q>", "w<br>w", "<small>w</small>", "<span dir=rtl>שw</span>", "<time>w</time>",
    "<a href=/w>w</a>", "<a href=/w><b>w</b> w</a>", "<a onclick=1>w</a>", "<a>w</a>", "<span onclick=1>w</span>",
    "<span class=hand>w</span>", "<button>w</button>", "<button disabled>w</button>", "<button aria-label=w>w</button>",
    "<button><span aria-hidden=true>✕</span> w</button>", "<span class=before>w</span>", "<b class=after>w</b>",
    "<span class=tiny>w</span>", "<abbr title=w>w</abbr>", "<span style='visibility:hidden'>w <b style='visibility:visible'>w</b></span>",
    "<img alt=w width=9 height=9 src=x>", "<span onclick=1 class=box title=w></span>", "<span contenteditable>w</span>",
    "<label class=hand>w <input type=checkbox></label>", "<label><input type=radio> w <span aria-hidden=true>w</span></label>",
    "<label><input type=checkbox class=faint checked><i class=box></i> w</label>", "<label><input type=checkbox hidden> w</label>",
    "<label>w <input value=w> w</label>", "<label>w <input type=number placeholder=w></label>", "<output>w</output>",
    "<label class=box><input type=checkbox style='display:none' aria-label=w></label>",
)  # fmt: skip
"""Parts of a sentence; each `w` becomes a word of its own."""

BLOCKS = (
    "<p>{0} {1}</p>", "<div>{0}<p>w</p>w</div>", "<h2>{0}</h2>", "<h3>w <a href=/w>w</a></h3>", "<pre>w\n  w</pre>",
    "<ul><li>{0}<li>w {1}<ul><li>w</ul></ul>", "<ol start=3><li>{0}<li>{1}</ol>", "<dl><dt>w<dd>{0}<dt>w<dd><p>{1}</p><p>w</p></dl>",
    "<table><caption>w</caption><tr><th>w<th>w<tr><td>{0}<td>{1}</table>", "<table><tr><td>{0}<table><tr><td>w<td>w</table><td>w</table>",
    "<table role=presentation><tr><td>{0}<td>{1}</table>", "<table><tr onclick=1><td>w<td>{0}</table>",
    "<fieldset><legend>w</legend>{0} {1}</fieldset>", "<fieldset disabled><legend>w</legend><input value=w></fieldset>",
    "<select><option>no<option selected>w<option disabled>no</select>", "<select multiple><option>w<option selected>w</select>",
    "<form><input placeholder=w><textarea>w\nw</textarea><textarea placeholder=w></textarea><input type=submit value=w><input type=search placeholder=w></form>",
    "<dialog open><h2>w</h2>{0}</dialog>", "<div role=dialog aria-label=w>{0} w</div>", "<details><summary>w</summary>no</details>",
    "<details open><summary>w <b>w</b></summary>{0}</details>", "<iframe srcdoc='<p>w <button>w</button></p>'></iframe>",
    "<div contenteditable>{0}<p>w</p></div>", "<div contenteditable role=textbox aria-label=w>w<br>w</div>", "<div contenteditable></div>",
    "<div role=textbox aria-readonly=true>w</div>", "<div onclick=1>w <button>w</button></div>", "<div onclick=1><p>w</p><p>{0}</p></div>",
    "<div class=hand><h3>w</h3><p>{0}</p></div>", "<div onclick=1 class=box></div>", "<svg onclick=1 width=9 height=9><path d='M0 0h9v9z'/></svg>",
    "<img usemap=#m{n} width=100 height=50 src='{picture}'><map name=m{n}><area coords=0,0,50,50 href=/w alt=w><area coords=50,0,100,50 onclick=1 alt=w></map>",
    "<div data-shadow=open>w</div>", "<div data-shadow=closed>w</div>", "<p aria-hidden=true>w {0}</p>", "<div style='display:contents'>w<p>{0}</p></div>",
    "<ul style='display:contents'><li style='display:contents'>w</ul>", "<p style='opacity:0'>no</p>", "<p dir=rtl>שw {0}</p>", "<p class=block>w</p>",
    "<div role=status>w</div>", "<div role=alert><b>w</b> w</div>", "<nav aria-label=w><a href=/w>w</a> <a href=/w>w</a></nav>",
    "<section aria-label=w><h2>w</h2>{0}</section>", "<article>{0}<footer>w</footer></article>", "<figure><img alt=w src=x width=9 height=9><figcaption>w {0}</figcaption></figure>",
    "<div role=tablist><div role=tab aria-selected=true>w</div><div role=tab>w</div></div>", "<div role=menu><div role=menuitem>w</div></div>",
    "<div role=tree><div role=treeitem aria-expanded=true>w<div role=group><div role=treeitem>w</div></div></div></div>",
    "<div role=grid><div role=row><div role=gridcell onclick=1>w</div><div role=gridcell>{0}</div></div></div>",
    "<div role=radiogroup aria-label=w><div role=radio aria-checked=false>w</div></div>", "<div role=switch aria-checked=true tabindex=0>w</div>",
    "<ul><li draggable=true>w<li draggable=true>w <a href=/w>w</a></ul>", "<div style='height:30px;overflow:auto'><p>w<p>{0}<p>w</div>",
    "<a href=/w><h3>w</h3><p>w</p></a>", "<blockquote>w<p>{0}</p></blockquote>", "<label for=f{n}>w</label><input id=f{n} value=w>",
    "<div><label for=g{n}>w</label> w <input id=g{n} type=checkbox></div>", "<address>w<br>w<br>w</address>", "w {0} w",
)  # fmt: skip
"""Blocks of a page, with places for parts of sentences."""

SHADOW = """<script>for (const host of document.querySelectorAll('[data-shadow]')) {
  host.__root = host.attachShadow({mode: host.dataset.shadow});
  host.__root.innerHTML = '<p>' + host.dataset.words + ' <slot></slot></p><button>' + host.dataset.words + 'b</button>';
}</script>"""


def page_of(seed: int) -> str:
    """A page of blocks in blocks, in which no word stands twice."""
    random = Random(seed)
    count = 0

    def block(depth: int) -> str:
        nonlocal count
        count += 1
        parts = [
            block(depth - 1) if depth and random.random() < 0.2 else random.choice(INLINE)
            for _ in range(2)
        ]
        return random.choice(BLOCKS).format(*parts, n=count, picture=PICTURE)

    html = "\n".join(block(2) for _ in range(14)).replace("data-shadow", "data-words=w data-shadow")
    numbers = iter(range(100_000))
    words = re.sub(
        r"(?<![\w/-])w(?![\w-])|(?<=/)w\b|(?<=ש)w\b", lambda _: f"k{next(numbers)}o", html
    )
    return f"<!doctype html><title>Page</title>{STYLE}{words}{SHADOW}"


@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=[] if n < 1 else pytest.mark.long) for n in range(40)]
)
async def test_a_page_is_told_whole(seed: int, browse: Browse) -> None:
    """Each word in its order, each element to act on by a ref of its own, whatever is in what."""
    html = page_of(seed)
    world = await browse(html)
    assert await faults_of(world) == [], html
