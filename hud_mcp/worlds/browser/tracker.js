// Counts what is about to change a document. Runs before the page's own scripts.
//
// A timer or a frame's callback counts when it is due within SHORT_MS and no more than DEPTH
// of them led to it, so that a page that polls or animates with them settles. The depth is
// the HTML standard's nesting level of timers; microtasks of a callback inherit it, so that
// a loop of `await sleep(50)` has it too.
(() => {
  const KEY = '__KEY__', SHORT_MS = 500, DEPTH = 8, RESTLESS_MS = 100;
  if (Object.prototype.hasOwnProperty.call(window, KEY)) return;
  const clock = performance.now.bind(performance);
  const later = window.setTimeout.bind(window);
  const frame = window.requestAnimationFrame.bind(window);
  const getAnimations = Document.prototype.getAnimations;
  const state = {
    changed: -1e9, acted: -1e9, restless: false, leaving: false, depth: 0,
    timers: new Set(), frames: new Set(), observed: false,
    born: performance.timeOrigin + Math.random(),
  };
  const touch = () => { state.changed = clock(); };
  const act = () => {
    const now = clock();
    if (now - state.acted > 200) state.restless = now - state.changed < 50;
    state.acted = now;
  };
  const replace = (holder, name, apply) => {
    const descriptor = Object.getOwnPropertyDescriptor(holder, name);
    Object.defineProperty(holder, name, { ...descriptor, value: new Proxy(holder[name], { apply }) });
  };

  const leave = left => left
    ? Promise.resolve().then(() => leave(left - 1))
    : void (state.depth = 0);
  const count = (name, pending, isShort) => replace(window, name, (target, self, args) => {
    const run = args[0];
    if (typeof run !== 'function' || !isShort(args)) return Reflect.apply(target, self, args);
    const depth = state.depth + 1;
    let id = 0;
    const counted = function (...rest) {
      pending.delete(id);
      state.depth = depth;
      try { return Reflect.apply(run, this, rest); } finally { leave(6); }
    };
    id = Reflect.apply(target, self, [counted, ...args.slice(1)]);
    if (depth <= DEPTH) pending.add(id);
    return id;
  });
  const discount = (name, pending) => replace(window, name, (target, self, args) => {
    pending.delete(args[0]);
    return Reflect.apply(target, self, args);
  });
  count('setTimeout', state.timers, args => (Number(args[1]) || 0) <= SHORT_MS);
  count('requestAnimationFrame', state.frames, () => true);
  discount('clearTimeout', state.timers);
  discount('clearInterval', state.timers);
  discount('cancelAnimationFrame', state.frames);

  const observer = new MutationObserver(touch);
  const watch = node => observer.observe(node, {
    subtree: true, childList: true, attributes: true, characterData: true,
  });
  watch(document);
  replace(Element.prototype, 'attachShadow', (target, self, args) => {
    const root = Reflect.apply(target, self, args);
    watch(root);
    return root;
  });
  // What the parser did is not news; what scripts do from here on is.
  document.addEventListener('DOMContentLoaded', () => { state.changed = -1e9; }, true);
  for (const name of ['IntersectionObserver', 'ResizeObserver']) {
    Object.defineProperty(window, name, {
      ...Object.getOwnPropertyDescriptor(window, name),
      value: new Proxy(window[name], { construct(target, args, made) {
        state.observed = true;
        return Reflect.construct(target, args, made);
      }}),
    });
  }
  const passive = { capture: true, passive: true };
  addEventListener('scroll', touch, passive);
  for (const kind of ['pointermove', 'pointerdown', 'keydown', 'wheel']) {
    addEventListener(kind, act, passive);
  }
  if (window.navigation) {
    navigation.addEventListener('navigate', event => {
      const loads = /^(https?|about|blob|data):/.test(event.destination.url);
      if (loads && !event.destination.sameDocument && event.downloadRequest === null) {
        state.leaving = true;
      }
    });
    navigation.addEventListener('navigateerror', () => { state.leaving = false; });
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
  state.waiting = () => document.readyState === 'loading' || state.timers.size > 0 || state.frames.size > 0 || moving()
    || children().some(c => c.waiting());
  state.stillFor = () => Math.min(clock() - state.changed, ...children().map(c => c.stillFor()));
  state.watched = () => state.observed || children().some(c => c.watched());
  state.restlessNow = () => state.restless || children().some(c => c.restlessNow());
  const soon = () => new Promise(done => later(done, 0));  // after what handlers have posted
  state.next = () => new Promise(done => { frame(() => done()); later(done, 60); });
  state.quiet = async (bound, stays, late) => {
    const start = clock();
    if (stays) state.leaving = false;
    await soon();
    // Observers of size and place are told of a change in the frame that shows it, so one has
    // to pass without news; a wheel's turn takes some to arrive.
    const fresh = state.stillFor() < 100;
    if (fresh) await soon();
    let frames = late ? 3 : fresh && state.watched() ? 1 : 0;
    for (;;) {
      const age = clock() - start;
      if (state.leaving) return 'leaving';
      if (age > bound) return 'busy';
      const enough = age > (state.restlessNow() ? RESTLESS_MS : 4 * RESTLESS_MS);
      if (!state.waiting() && (enough || frames <= 0)) return 'quiet';
      const before = clock();
      await state.next();
      await soon();
      frames = state.stillFor() < clock() - before ? 1 : frames - 1;
    }
  };
  Object.defineProperty(window, KEY, { value: state, enumerable: false });
})();
