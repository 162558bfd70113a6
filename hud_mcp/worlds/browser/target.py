"""Where an action goes: a point, a ref of the last text, or a selector, made a place.

Playwright's own click waits for two frames, scrolls, hit-tests and retries through its
driver, 49 ms each time. Here one script in the page does the same checks, and the mouse
does the rest.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from hud_mcp.action import Point
from hud_mcp.errors import ActionFailed
from hud_mcp.worlds.browser.settle import TRACKER

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Page

__all__ = ["Place", "check_point", "find_element", "place_of"]

REACH_BOUND_S = 2.5
"""How long an element may stay covered, disabled or moving before that is the answer."""

_PLACE = """
async (element, [key, bound]) => {
  const tracker = window[key], now = () => performance.now(), start = now();
  const next = () => tracker ? tracker.next() : new Promise(done => requestAnimationFrame(done));
  const name = node => {
    if (!node || !node.tagName) return 'nothing';
    const text = (node.getAttribute('aria-label') || node.innerText || '').trim();
    const id = node.id ? '#' + node.id : '';
    return '<' + node.tagName.toLowerCase() + id + '>' +
      (text ? ' "' + text.slice(0, 40).replace(/\\s+/g, ' ') + '"' : '');
  };
  const boxes = node => [...node.getClientRects()].filter(b => b.width > 0.5 && b.height > 0.5);
  const deepest = (root, x, y) => {
    let hit = root.elementFromPoint(x, y);
    while (hit && hit.shadowRoot) {
      const inner = hit.shadowRoot.elementFromPoint(x, y);
      if (!inner || inner === hit) break;
      hit = inner;
    }
    return hit;
  };
  const within = (node, ancestor) => {
    for (let n = node; n; n = n.assignedSlot || n.parentNode || n.host) if (n === ancestor) return true;
    return false;
  };
  const labelled = (hit, control) => {
    const label = hit && hit.closest && hit.closest('label');
    return !!label && (label.control === control || within(control, label));
  };
  const receives = (hit, node) => within(hit, node) || labelled(hit, node) ||
    (node.tagName === 'OPTION' && within(hit, node.closest('select')));
  const spots = box => {
    const all = [];
    for (const [fx, fy] of [[.5,.5],[.25,.5],[.75,.5],[.5,.25],[.5,.75],[.15,.2],[.85,.2],[.15,.8],[.85,.8]]) {
      all.push([box.left + box.width * fx, box.top + box.height * fy]);
    }
    return all;
  };
  const outward = (x, y) => {            // from the element's frame to the page, checking each frame
    let win = element.ownerDocument.defaultView;
    for (;;) {
      if (win === win.top) return { x, y };
      let holder = null;
      try { holder = win.frameElement; } catch { /* of another origin */ }
      if (!holder) return { foreign: true };
      const box = holder.getBoundingClientRect(), style = getComputedStyle(holder);
      x += box.left + holder.clientLeft + parseFloat(style.paddingLeft || '0');
      y += box.top + holder.clientTop + parseFloat(style.paddingTop || '0');
      const hit = deepest(holder.getRootNode(), x, y);
      if (hit !== holder) return { cover: hit };
      win = win.parent;
    }
  };
  const attempt = () => {
    if (!element.isConnected) return { problem: 'gone' };
    let node = element;
    if (!boxes(node).length && element.labels) node = [...element.labels].find(l => boxes(l).length) || node;
    if (!boxes(node).length) node = [...element.children].find(c => boxes(c).length) || node;
    const style = getComputedStyle(node);
    if (!boxes(node).length || style.visibility !== 'visible') return { problem: 'invisible' };
    if (element.matches(':disabled') || element.closest('[aria-disabled="true"]')) return { problem: 'disabled' };
    node.scrollIntoViewIfNeeded ? node.scrollIntoViewIfNeeded(true) : node.scrollIntoView({ block: 'center' });
    const doc = element.ownerDocument, win = doc.defaultView;
    let cover = null;
    for (const box of boxes(node)) for (const [x, y] of spots(box)) {
      if (x < 0 || y < 0 || x >= win.innerWidth || y >= win.innerHeight) continue;
      const hit = deepest(node.getRootNode(), x, y) || deepest(doc, x, y);
      if (!receives(hit, element) && !receives(hit, node)) { cover = cover || hit; continue; }
      const out = outward(x, y);
      if (out.foreign) return { foreign: true };
      if (out.cover) { cover = cover || out.cover; continue; }
      return { x: out.x, y: out.y, left: box.left, top: box.top };
    }
    return cover ? { problem: 'covered', by: name(cover) } : { problem: 'outside' };
  };
  const moves = () => (tracker && tracker.stillFor() < 50) || document.getAnimations().length > 0;
  for (;;) {
    let found = attempt();
    if (!found.problem && !found.foreign && moves()) {
      await next();
      const again = attempt();
      if (again.left !== found.left || again.top !== found.top) again.problem ??= 'moving';
      found = again;
    }
    if (!found.problem || found.problem === 'gone' || now() - start > bound) return { ...found, name: name(element) };
    await next();
  }
}
"""

_PROBLEMS = {
    "gone": "is no longer on the page. Look again.",
    "invisible": "is not visible. Open or scroll to what holds it first.",
    "disabled": "is disabled. Do what the page asks for first.",
    "outside": "cannot be scrolled into view.",
    "moving": "does not stand still. Wait, and try again.",
}


@dataclass(frozen=True)
class Place:
    """A place on the page, in CSS pixels of the viewport, and the element there, if known."""

    x: float
    y: float
    element: "ElementHandle | None" = None


def check_point(page: "Page", point: Point) -> Place:
    """Return a point as a place.

    Raises:
        ActionFailed: It is outside the viewport.
    """
    size = page.viewport_size or {"width": 0, "height": 0}
    if not (0 <= point.x < size["width"] and 0 <= point.y < size["height"]):
        raise ActionFailed(
            f"({point.x:g}, {point.y:g}) is outside the page, which is {size['width']}x"
            f"{size['height']} pixels. Scroll, and take a new screenshot."
        )
    return Place(point.x, point.y)


async def find_element(page: "Page", ref: str | None, selector: str | None) -> "ElementHandle":
    """Return the one element that a ref or a selector names.

    Raises:
        ActionFailed: There is none, or there are several.
    """
    from playwright.async_api import Error  # noqa: PLC0415  # loads on use

    named = f"aria-ref={_bare(ref)}" if ref is not None else selector or ""
    try:
        found = await page.query_selector_all(named)
    except Error as exc:
        if ref is not None:
            found: list[ElementHandle] = []
        else:
            reason = exc.message.partition(": ")[2] or exc.message
            raise ActionFailed(f"{selector!r} is not a selector: {reason}") from exc
    if len(found) == 1:
        return found[0]
    if ref is not None:
        raise ActionFailed(
            f"There is no {ref!r} on the page as you last saw it. Look again, and use a ref "
            "of the new text."
        )
    if not found:
        raise ActionFailed(
            f"{selector!r} matches nothing on the page. Look again, or use a ref of the text."
        )
    raise ActionFailed(
        f"{selector!r} matches {len(found)} elements, and one is needed. Add `>> nth=0` for "
        "the first, or use a ref of the text."
    )


async def place_of(element: "ElementHandle", called: str) -> Place:
    """Scroll an element into view and return where it can be clicked.

    Args:
        element: What `find_element` gave.
        called: What the agent called it, for the error.

    Raises:
        ActionFailed: It is covered, disabled, invisible or moving, for `REACH_BOUND_S`.
    """
    found: dict[str, Any] | None = None
    with anyio.move_on_after(REACH_BOUND_S + 1.5):
        found = await element.evaluate(_PLACE, [TRACKER, REACH_BOUND_S * 1000])
    if found is None:
        raise ActionFailed(f"The page did not answer where {called} is. Wait, and try again.")
    if found.get("foreign"):
        return await _place_abroad(element, called)
    problem = found.get("problem")
    if problem is None:
        return Place(found["x"], found["y"], element)
    text = _PROBLEMS.get(problem) or f"is covered by {found.get('by')}. Close that first."
    raise ActionFailed(f"{called} ({found['name']}) {text}")


async def _place_abroad(element: "ElementHandle", called: str) -> Place:
    """The middle of an element in a frame of another site, which its own script cannot see."""
    box = await element.bounding_box()
    if box is None:
        raise ActionFailed(f"{called} is not visible.")
    return Place(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, element)


def _bare(ref: str) -> str:
    """A ref without what models write around it: `[ref=e12]`, `ref=e12`, `@e12`."""
    return ref.strip().strip("[]@ ").removeprefix("ref=").strip()
