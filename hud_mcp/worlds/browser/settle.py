"""Knowing when a page has settled: by watching it, never by a fixed wait.

A script in every document counts what is about to change the page (short timers, DOM
changes, scrolling, transitions, a navigation that has begun); the browser's events tell
of requests in flight. This module owns that script and the rules of when to go on.
"""

import secrets
from typing import TYPE_CHECKING, Literal

import anyio

if TYPE_CHECKING:
    from hud_mcp.worlds.browser.tab import Tab

__all__ = ["SETTLE_BOUND_S", "TRACKER", "TRACKER_SCRIPT", "Outcome", "settle"]

SETTLE_BOUND_S = 2.0
"""How long a page that keeps asking for things is waited for."""

NAVIGATION_BOUND_S = 10.0
"""How long a new document may take to arrive and be read."""

LOAD_BOUND_S = 3.0
"""How long the pictures and frames of a document that is there may take."""

EVALUATE_BOUND_S = 4.0
"""How long a page may take to say that it is quiet, before it counts as hung."""

Outcome = Literal["quiet", "busy", "leaving", "gone", "hung"]

TRACKER = f"__settled_{secrets.token_hex(6)}"
"""The property of `window` under which a document's tracker is; no page can know it."""

# A timer counts when it is due within 500 ms and no more than 8 timers led to it, so that a
# page that polls or animates with timers settles. Source of the depth: the HTML standard's
# nesting level, which the timers of a chain carry in the same way.
_SCRIPT = """
(() => {
  const KEY = '%(key)s', SHORT_MS = 500, DEPTH = 8, STILL_MS = 40, RESTLESS_MS = 100;
  if (Object.prototype.hasOwnProperty.call(window, KEY)) return;
  const clock = performance.now.bind(performance);
  const later = window.setTimeout.bind(window), frame = window.requestAnimationFrame.bind(window);
  const getAnimations = Document.prototype.getAnimations;
  const state = { changed: -1e9, leaving: 0, restless: false, depth: 0, timers: new Map(),
                  later, frame, clock, born: performance.timeOrigin + Math.random() };
  const touch = () => { state.changed = clock(); };
  const act = () => { state.restless = clock() - state.changed < 50; };
  const define = (name, value) => Object.defineProperty(window, name,
    { value, writable: true, configurable: true, enumerable: true });

  const leave = (depth, left) => left ? Promise.resolve().then(() => leave(depth, left - 1))
                                      : void (state.depth = depth);
  define('setTimeout', new Proxy(window.setTimeout, { apply(target, self, args) {
    const [run, delay] = args, due = Number(delay) || 0;
    if (typeof run !== 'function' || due > SHORT_MS) return Reflect.apply(target, self, args);
    const depth = state.depth + 1;
    let id = 0;
    const counted = function (...rest) {
      state.timers.delete(id);
      state.depth = depth;
      try { return Reflect.apply(run, this, rest); }
      finally { leave(0, 6); }
    };
    id = Reflect.apply(target, self, [counted, ...args.slice(1)]);
    if (depth <= DEPTH) state.timers.set(id, depth);
    return id;
  }}));
  for (const name of ['clearTimeout', 'clearInterval']) {
    define(name, new Proxy(window[name], { apply(target, self, args) {
      state.timers.delete(args[0]);
      return Reflect.apply(target, self, args);
    }}));
  }

  const observer = new MutationObserver(touch);
  const watch = node => observer.observe(node,
    { subtree: true, childList: true, attributes: true, characterData: true });
  watch(document);
  Element.prototype.attachShadow = new Proxy(Element.prototype.attachShadow, {
    apply(target, self, args) {
      const root = Reflect.apply(target, self, args);
      watch(root);
      return root;
    }});
  const passive = { capture: true, passive: true };
  addEventListener('scroll', touch, passive);
  for (const kind of ['pointerdown', 'keydown', 'wheel', 'pointermove']) {
    addEventListener(kind, act, passive);
  }
  if (window.navigation) {
    navigation.addEventListener('navigate', event => {
      if (!event.destination.sameDocument && event.downloadRequest === null) state.leaving = clock();
    });
    navigation.addEventListener('navigateerror', () => { state.leaving = 0; });
  }

  const moving = () => getAnimations.call(document).some(animation => {
    if (animation.playState !== 'running' || !animation.effect) return false;
    const left = animation.effect.getComputedTiming().endTime - (animation.currentTime || 0);
    return left > 0 && left <= 600;
  });
  const children = () => {
    const found = [];
    for (let i = 0; i < window.length; i++) {
      try { if (window[i][KEY]) found.push(window[i][KEY]); } catch { /* of another origin */ }
    }
    return found;
  };
  state.waiting = () => state.timers.size > 0 || moving() || children().some(c => c.waiting());
  state.stillFor = () => Math.min(clock() - state.changed, ...children().map(c => c.stillFor()));
  state.isLeaving = () => state.leaving > 0;
  state.next = () => new Promise(done => { frame(() => done()); later(done, 60); });
  state.quiet = async bound => {
    const start = clock();
    await state.next();
    for (;;) {
      const age = clock() - start;
      if (state.isLeaving()) return 'leaving';
      if (age > bound) return 'busy';
      const restless = age > (state.restless ? RESTLESS_MS : 4 * RESTLESS_MS);
      if (!state.waiting() && (state.stillFor() > STILL_MS || restless)) return 'quiet';
      await state.next();
    }
  };
  Object.defineProperty(window, KEY, { value: state, enumerable: false });
})();
"""

TRACKER_SCRIPT = _SCRIPT % {"key": TRACKER}
"""Runs in every document before the page's own scripts."""


async def settle(tab: "Tab", mark: int) -> None:
    """Return when a tab has settled, or when a bound says that it will not.

    Args:
        tab: The page that was acted on.
        mark: What `tab.mark()` gave before the action; only requests after it count.
    """
    started = anyio.current_time()
    end = started + SETTLE_BOUND_S
    while not tab.closed:
        outcome = await _ask(tab, max(0.1, end - anyio.current_time()))
        if outcome in ("leaving", "gone"):
            await _arrive(tab, mark, leaving=outcome == "leaving")
            mark = tab.mark()
            end = anyio.current_time() + SETTLE_BOUND_S
            if anyio.current_time() - started > 2 * NAVIGATION_BOUND_S:
                return
            continue
        pending = tab.pending_since(mark)
        if outcome == "hung" or (outcome == "busy" and not pending):
            return
        if not pending and not tab.expects_popup:
            return
        if not await tab.wait_until(lambda: not tab.pending_since(mark), end):
            tab.ignore(tab.pending_since(mark))
            return


async def _ask(tab: "Tab", bound_s: float) -> Outcome:
    """Ask the document whether it is quiet; it answers when it is, or at the bound."""
    from playwright.async_api import Error  # noqa: PLC0415  # loads on use

    with anyio.move_on_after(bound_s + EVALUATE_BOUND_S):
        try:
            return await tab.page.evaluate(
                f"bound => window['{TRACKER}'] ? window['{TRACKER}'].quiet(bound) : 'quiet'",
                bound_s * 1000,
            )
        except Error:
            return "gone"  # its document was replaced while it answered, or the tab closed
    return "hung"


async def _arrive(tab: "Tab", mark: int, *, leaving: bool) -> None:
    """Wait until the document that is on its way is there, or turns out not to come."""
    from playwright.async_api import Error  # noqa: PLC0415  # loads on use

    end = anyio.current_time() + NAVIGATION_BOUND_S
    if leaving:
        await tab.wait_until(lambda: tab.arrived_since(mark) or tab.closed, end)
    if tab.closed:
        return
    try:
        await tab.page.wait_for_load_state("domcontentloaded", timeout=NAVIGATION_BOUND_S * 1000)
        await tab.page.wait_for_load_state("load", timeout=LOAD_BOUND_S * 1000)
    except Error:
        return  # slow, or replaced again, or closed: the next look at it tells
