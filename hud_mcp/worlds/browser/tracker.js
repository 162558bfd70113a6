// Counts what is about to change a document. Runs before the page's own scripts.
//
// A timer or a frame's callback counts when it is due within SHORT_MS and no more than DEPTH
// of them led to it, so that a page that polls or animates with them settles. The depth is
// the HTML standard's nesting level of timers; microtasks of a callback inherit it, so that
// a loop of `await sleep(50)` has it too.
(() => {
  const KEY = '__KEY__', SHORT_MS = 500, DEPTH = 8, RESTLESS_MS = 100, LATE_FRAMES = 3;
  if (Object.prototype.hasOwnProperty.call(window, KEY)) return;
  const clock = performance.now.bind(performance);
  const later = window.setTimeout.bind(window);
  const frame = window.requestAnimationFrame.bind(window);
  const getAnimations = Document.prototype.getAnimations;
  const state = {
    changed: -1e9, acted: -1e9, restless: false, leaving: false, depth: 0,
    timers: new Set(), frames: new Set(), calls: new Map(), ignored: new Set(),
    observed: false, parsed: false, scrolls: new Map(), scrollDue: -1e9, scrolledAt: -1e9, roams: false,
    target: null, shadows: new Set(), moved: new Set(), written: new Set(),
    born: performance.timeOrigin + Math.random(),
  };
  // The first document of a site in a frame or a tab may take over the window of the empty one
  // before it. This script does not run anew then, and nothing of what it had listen is left: so
  // whoever asks here begins with `attend`.
  const lasting = [];
  const listen = () => lasting.forEach(each => each());
  state.last = each => { lasting.push(each); each(); };
  let attended = document;
  state.attend = () => {
    if (attended === document) return;
    attended = document;
    Object.assign(state, { changed: -1e9, restless: false, leaving: false, parsed: false });
    for (const pending of [state.timers, state.frames, state.calls, state.scrolls]) pending.clear();
    listen();
  };
  const touch = () => { state.changed = clock(); };
  const act = () => {
    const now = clock();
    if (now - state.acted > 200) {
      state.restless = now - state.changed < 50;
      state.roams = now - state.scrolledAt < 50;
    }
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

  // What a person changed in the document without the page's doing, for keep.js.
  const passive = { capture: true, passive: true };
  const remember = (set, node) => {
    for (const ref of set) {
      const known = ref.deref();
      if (known === node) return;
      if (!known || !known.isConnected) set.delete(ref);
    }
    set.add(new WeakRef(node));
  };
  const onScroll = event => {
    touch();
    state.scrolls.set(event.target, state.scrolledAt = clock());
    remember(state.moved, event.target);
  };
  const onScrollEnd = event => { state.scrolls.delete(event.target); };
  const present = set => {
    for (const ref of set) if (!ref.deref()) set.delete(ref);
    return [...set].map(ref => ref.deref()).filter(node => node && node.isConnected);
  };
  state.roots = () => present(state.shadows);
  state.scrolled = () => present(state.moved);
  state.edited = () => present(state.written);

  // What live regions have said since the last look. Where one is gone or empty by the next look, its
  // last message is told there. A message of something under way, which ends in dots, is over then.
  const LIVE = '[role=status], [role=alert], [aria-live=polite], [aria-live=assertive], output';
  const MOST_RECORDS = 200, MOST_MESSAGES = 10, MOST_CHARS = 200;
  let messages = [];
  const said = region => region.isConnected && region.checkVisibility({ visibilityProperty: true })
    ? region.textContent.slice(0, 2 * MOST_CHARS).trim().replace(/\s+/g, ' ').slice(0, MOST_CHARS) : '';
  const hearMessage = region => {
    const text = said(region);
    if (!text) return;
    messages = [...messages.filter(each => each.region !== region), { region, text }].slice(-MOST_MESSAGES);
  };
  const hearMessages = records => {
    touch();
    if (document.readyState === 'loading') return;
    for (const { target, addedNodes } of records.slice(0, MOST_RECORDS)) {
      const outer = target.nodeType === 1 ? target : target.parentElement;
      const region = outer && outer.closest(LIVE);
      if (region) hearMessage(region);
      else for (const node of addedNodes) {
        if (node.nodeType !== 1) continue;
        if (node.matches(LIVE)) hearMessage(node);
        else node.querySelectorAll(LIVE).forEach(hearMessage);
      }
    }
  };
  state.messages = () => {
    const gone = messages.filter(each => !said(each.region) && !/(\u2026|\.\.\.)$/.test(each.text));
    messages = [];
    return [...gone.map(each => each.text), ...children().flatMap(child => child.messages())];
  };

  const observer = new MutationObserver(hearMessages);
  const watch = node => observer.observe(node, {
    subtree: true, childList: true, attributes: true, characterData: true,
  });
  state.last(() => watch(document));
  // A closed root is attached as an open one, so that its content is read and acted on as the rest.
  // The page's own scripts go on seeing a closed one. A root that can be copied stays as it is: a
  // copy is attached by no script.
  const ownRoot = Object.getOwnPropertyDescriptor(Element.prototype, 'shadowRoot').get;
  const ownRootNode = Node.prototype.getRootNode, ownPath = Event.prototype.composedPath;
  const ownHost = Object.getOwnPropertyDescriptor(ShadowRoot.prototype, 'host').get;
  const ask = (get, node) => {
    try { return Reflect.apply(get, node, []); } catch { return null; }  // a window has none
  };
  state.rootOf = node => ask(ownRoot, node);
  state.pathOf = event => Reflect.apply(ownPath, event, []);
  state.closed = new WeakSet();
  try { if (parent[KEY]) state.closed = parent[KEY].closed; } catch { /* of another origin */ }
  const { closed } = state;
  replace(Element.prototype, 'attachShadow', (target, self, args) => {
    const [asked] = args;
    const hides = !!asked && asked.mode === 'closed' && !asked.clonable && !asked.serializable;
    const opened = hides && new Proxy(asked, { get: (of, name) => name === 'mode' ? 'open' : of[name] });
    const root = Reflect.apply(target, self, hides ? [opened] : args);
    if (hides) closed.add(root);
    watch(root);
    if (hides || root.mode === 'open') state.shadows.add(new WeakRef(root));
    root.addEventListener('scroll', onScroll, passive);  // these do not leave the root
    root.addEventListener('scrollend', onScrollEnd, passive);
    return root;
  });
  const replaceGetter = (type, name, change) => {
    const own = Object.getOwnPropertyDescriptor(type.prototype, name);
    const get = new Proxy(own.get, {
      apply: (target, self, args) => change(Reflect.apply(target, self, args), self),
    });
    Object.defineProperty(type.prototype, name, { ...own, get });
  };
  replaceGetter(Element, 'shadowRoot', root => root && closed.has(root) ? null : root);
  replaceGetter(ShadowRoot, 'mode', (mode, self) => closed.has(self) ? 'closed' : mode);
  for (const type of [Element, Text]) {
    replaceGetter(type, 'assignedSlot', slot => slot && closed.has(ask(ownRootNode, slot)) ? null : slot);
  }
  // The closed roots around a node, which hide it from all that is outside.
  const hiding = node => {
    const found = [];
    for (let root; (root = node && ask(ownRootNode, node)); node = ask(ownHost, root)) {
      if (closed.has(root)) found.push(root);
    }
    return found;
  };
  replace(Event.prototype, 'composedPath', (target, self, args) => {
    const path = Reflect.apply(target, self, args), inside = hiding(self.currentTarget);
    return path.filter(node => hiding(node).every(root => inside.includes(root)));
  });
  // What the parser did is not news; what scripts do from here on is. Until this event, scripts
  // that are deferred, as modules are, have not run.
  const onParsed = () => {
    state.changed = -1e9;
    state.parsed = true;
  };
  state.last(() => document.addEventListener('DOMContentLoaded', onParsed, true));

  // A request counts until its answer was read, and a task longer: what asks for the next one
  // runs between the two. The browser tells of requests too, but later than the page knows.
  let callCount = 0;
  const begin = name => { state.calls.set(++callCount, name); return callCount; };
  const end = call => later(() => state.calls.delete(call), 0);
  const until = (promise, name) => {
    const call = begin(name);
    promise.then(() => end(call), () => end(call));
    return promise;
  };
  state.until = promise => until(promise, 'clipboard');
  const naming = (method, url) => {
    try { return `${method} ${new URL(url, document.baseURI).href.split('?')[0]}`; }
    catch { return `${method} ?`; }
  };
  replace(window, 'fetch', (target, self, args) => {
    const [what, options] = args;
    const isRequest = what instanceof Request;
    const method = String((options && options.method) || (isRequest ? what.method : 'GET'));
    const name = naming(method.toUpperCase(), isRequest ? what.url : String(what));
    return until(Reflect.apply(target, self, args), name);
  });
  for (const read of ['json', 'text', 'arrayBuffer', 'blob', 'formData']) {
    replace(Response.prototype, read, (target, self, args) =>
      until(Reflect.apply(target, self, args), naming('GET', self.url || 'about:blank')));
  }
  const opened = new WeakMap();
  replace(XMLHttpRequest.prototype, 'open', (target, self, args) => {
    opened.set(self, naming(String(args[0]).toUpperCase(), String(args[1])));
    return Reflect.apply(target, self, args);
  });
  replace(XMLHttpRequest.prototype, 'send', (target, self, args) => {
    const call = begin(opened.get(self) || 'GET ?');
    self.addEventListener('loadend', () => end(call), { once: true });
    try { return Reflect.apply(target, self, args); } catch (error) { end(call); throw error; }
  });
  for (const name of ['IntersectionObserver', 'ResizeObserver']) {
    Object.defineProperty(window, name, {
      ...Object.getOwnPropertyDescriptor(window, name),
      value: new Proxy(window[name], { construct(target, args, made) {
        state.observed = true;
        return Reflect.construct(target, args, made);
      }}),
    });
  }
  const onInput = event => {
    let node = state.pathOf(event)[0];
    if (node.nodeType !== 1) node = node.parentElement;
    while (node && node.isContentEditable && node.parentElement?.isContentEditable) {
      node = node.parentElement;
    }
    if (node && node.isContentEditable) remember(state.written, node);
  };
  state.last(() => {
    addEventListener('scroll', onScroll, passive);
    addEventListener('scrollend', onScrollEnd, passive);
    addEventListener('input', onInput, passive);
    for (const kind of ['pointermove', 'pointerdown', 'keydown', 'wheel']) {
      addEventListener(kind, act, passive);
    }
  });

  // A scroll that glides begins some frames after what asked for it, and tells of its end. What a
  // script moves step by step tells of an end after each step, and of the next one a frame later.
  const STEP_MS = 50, GLIDE_MS = 400;
  const due = () => { state.scrollDue = clock(); };
  const announce = (target, self, args) => {
    due();
    return Reflect.apply(target, self, args);
  };
  for (const holder of [window, Element.prototype]) {
    for (const name of ['scroll', 'scrollTo', 'scrollBy', 'scrollIntoView']) {
      if (holder[name]) replace(holder, name, announce);
    }
  }
  for (const name of ['scrollTop', 'scrollLeft']) {
    const own = Object.getOwnPropertyDescriptor(Element.prototype, name);
    const set = new Proxy(own.set, { apply: announce });
    Object.defineProperty(Element.prototype, name, { ...own, set });
  }
  const scrolls = node => node.scrollHeight > node.clientHeight + 1
    || node.scrollWidth > node.clientWidth + 1;
  const IN_FIELDS = ['Home', 'End', ' ', 'ArrowDown', 'ArrowUp', 'ArrowLeft', 'ArrowRight'];
  const onScrollKey = event => {
    const target = state.pathOf(event)[0];
    const inField = target.isContentEditable || ['INPUT', 'SELECT'].includes(target.tagName);
    if (!['PageDown', 'PageUp'].includes(event.key)) {
      if (inField || !IN_FIELDS.includes(event.key)) return;
    }
    for (let node = target; node; node = node.parentNode || node.host) {
      if (node.nodeType === 1 && scrolls(node)) return void due();
    }
  };
  state.last(() => addEventListener('keydown', onScrollKey, passive));
  state.glides = patience => {  // not where it scrolled by itself before the action: that has no end
    const glides = [...state.scrolls.values()].some(at => clock() - at < GLIDE_MS * patience);
    const steps = clock() - state.scrolledAt < STEP_MS * patience;
    return (!state.roams && (glides || steps)) || children().some(c => c.glides(patience));
  };
  state.lastScroll = () => Math.max(
    state.roams ? -1e9 : state.scrolledAt, ...children().map(c => c.lastScroll()));
  state.glideDue = () => Math.max(state.scrollDue, ...children().map(c => c.glideDue()));
  const isSmooth = () => {  // the root's style holds, also in quirks mode, where the body scrolls
    const { scrollingElement: box, documentElement: root } = document;
    return !!box && scrolls(box) && getComputedStyle(root).scrollBehavior === 'smooth';
  };

  // What an action is about to send to one element is judged as it comes. Where another element
  // would get it, the page never learns of it, and the action aims again.
  const INPUT = [
    'pointermove', 'mousemove', 'pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click',
    'auxclick', 'dblclick', 'contextmenu', 'keydown', 'keypress', 'keyup', 'beforeinput',
  ];
  const GUARD_MS = 20000;
  const wallClock = () => performance.timeOrigin + clock();
  const guardInput = event => {
    const guard = state.guard;
    if (!guard || !event.isTrusted || wallClock() > guard.until) return;
    if (guard.said === null && guard.starts.includes(event.type)) {
      guard.said = guard.judge(event, window) || '';
    }
    if (guard.said && guard.blocks.includes(event.type)) {
      event.preventDefault();
      event.stopImmediatePropagation();
    }
  };
  // What a selector of ours has found, in the world of Playwright's scripts, is shown to this one.
  state.last(() => addEventListener(`${KEY}target`, event => {
    event.stopImmediatePropagation();
    state.target = state.pathOf(event)[0];
  }, true));
  // Whether an element listens to clicks itself, and whether any of its name does: seen.js asks by
  // an event, from the world of Playwright's scripts, and it is prevented for yes.
  const CLICKS = ['click', 'mousedown', 'mouseup', 'pointerdown', 'pointerup', 'dblclick'];
  const heard = new WeakSet(), names = new Set();
  const answer = event => {
    event.stopImmediatePropagation();
    if (event.type !== `${KEY}heard` || heard.has(state.pathOf(event)[0])) event.preventDefault();
  };
  const hear = node => {
    const asked = `${KEY}heard${node.localName}`;
    heard.add(node);
    if (names.has(asked)) return;
    names.add(asked);
    addEventListener(asked, answer, true);
  };
  state.last(() => {
    for (const asked of [`${KEY}heard`, ...names]) addEventListener(asked, answer, true);
  });
  replace(EventTarget.prototype, 'addEventListener', (target, self, args) => {
    if (CLICKS.includes(args[0]) && self instanceof Element) hear(self);
    return Reflect.apply(target, self, args);
  });
  for (const type of [HTMLElement, SVGElement]) {
    for (const kind of CLICKS) {
      const own = Object.getOwnPropertyDescriptor(type.prototype, `on${kind}`);
      const set = new Proxy(own.set, { apply(target, self, args) {
        if (args[0]) hear(self);
        return Reflect.apply(target, self, args);
      }});
      Object.defineProperty(type.prototype, `on${kind}`, { ...own, set });
    }
  }
  state.take = () => {
    const { target } = state;
    state.target = null;
    return target;
  };
  state.last(() => INPUT.forEach(kind => addEventListener(kind, guardInput, true)));
  for (const name of ['open', 'write', 'writeln']) {  // the first of them ends all listeners
    replace(Document.prototype, name, (target, self, args) => {
      const result = Reflect.apply(target, self, args);
      if (self === document) listen();
      return result;
    });
  }
  const outermost = () => {
    let outer = state;
    try {
      for (let win = window; win !== win.parent && win.parent[KEY]; win = win.parent) {
        outer = win.parent[KEY];
      }
    } catch { /* of another origin */ }
    return outer;
  };
  state.guard = null;
  state.setGuard = guard => {
    state.attend();
    state.guard = guard;
    children().forEach(child => child.setGuard(guard));
  };
  // `judge(event, window)` names what would get the event in place of its target, or is empty.
  state.arm = (starts, blocks, judge, unseen) => outermost().setGuard(
    { starts, blocks, judge, unseen, said: null, until: wallClock() + GUARD_MS });
  // What got in the way; empty where nothing did, null where no guard stood.
  state.disarm = () => {
    const guard = state.guard;
    outermost().setGuard(null);
    return guard && (guard.said === null && guard.unseen ? guard.unseen() : guard.said || '');
  };
  if (window.navigation) {
    navigation.addEventListener('navigate', event => {
      if (event.destination.sameDocument) due();
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
    found.forEach(child => child.attend());
    return found;
  };
  const reading = () => document.readyState === 'loading'
    || (document.readyState !== 'complete' && !state.parsed);
  state.reading = reading;
  const asking = ignored => [...state.calls.values()].some(
    name => !state.ignored.has(name) && !ignored.includes(name));
  state.waiting = ignored => reading() || state.timers.size > 0 || state.frames.size > 0
    || moving() || asking(ignored) || children().some(c => c.waiting(ignored));
  state.giveUp = () => {
    for (const name of state.calls.values()) state.ignored.add(name);
    children().forEach(c => c.giveUp());
  };
  state.stillFor = () => Math.min(clock() - state.changed, ...children().map(c => c.stillFor()));
  state.watched = () => state.observed || children().some(c => c.watched());
  state.restlessNow = () => state.restless || children().some(c => c.restlessNow());
  const soon = () => new Promise(done => later(done, 0));  // after what handlers have posted
  state.soon = soon;
  // Whether a frame was drawn; a machine that is busy draws none for a while.
  state.next = () => new Promise(done => {
    frame(() => done(true));
    later(() => done(false), 60);
  });
  state.quiet = async (bound, stays, late, ignored, patience) => {
    const start = clock();
    state.attend();
    if (stays) state.leaving = false;
    await soon();
    // Observers of size and place are told of a change in the frame that shows it, so one has
    // to pass without news; a wheel's turn takes some to arrive.
    const fresh = state.stillFor() < 100;
    if (fresh) await soon();
    let frames = late || isSmooth() ? LATE_FRAMES : fresh && state.watched() ? 1 : 0;
    let since = start - 100;  // what a handler asked for a moment ago
    let scrolled = start - 100, drawn = 2;  // frames since then: a script scrolls once in each
    for (;;) {
      const age = clock() - start;
      if (state.lastScroll() > scrolled) {
        scrolled = state.lastScroll();
        drawn = 0;
      }
      if (state.glideDue() > since) {
        frames = LATE_FRAMES;
        since = clock();
      }
      if (state.leaving) return 'leaving';
      if (age > bound) { state.giveUp(); return 'busy'; }
      const enough = age > (state.restlessNow() ? RESTLESS_MS : 4 * RESTLESS_MS) * patience;
      const rests = drawn >= 2 && !state.glides(patience) && !state.waiting(ignored);
      if (rests && (enough || frames <= 0)) return 'quiet';
      const before = clock();
      const wasDrawn = await state.next();
      await soon();
      frames = state.stillFor() < clock() - before ? 1 : frames - wasDrawn;
      drawn += wasDrawn;
    }
  };
  Object.defineProperty(window, KEY, { value: state, enumerable: false });
})();
