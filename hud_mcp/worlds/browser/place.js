// Scrolls an element into view and finds a place where a click would reach it.
//
// Returns { x, y, scrolled } in CSS pixels of the page, or { problem } once `bound` ms have passed:
// gone, invisible, disabled, covered (with `by`), outside. { foreign: true } where the element is
// in a frame of another origin, whose place a script cannot know; `dx` and `dy` are then where in
// its box. { moving: true } where it did not stand still in that time: it is where it just was.
//
// `kind` is what will be sent there, 'press' or 'hover': until the tracker is told to disarm, an
// event that another element would get is kept from the page. Empty: nothing is watched.
async (element, [key, bound, kind]) => {
  const tracker = window[key];
  const now = () => performance.now();
  const start = now();
  const next = () => tracker ? tracker.next() : new Promise(done => requestAnimationFrame(done));

  const name = node => {
    if (!node || !node.tagName) return 'nothing';
    const words = (node.getAttribute('aria-label') || node.innerText || '').trim();
    const text = words.slice(0, 40).replace(/\s+/g, ' ');
    const id = node.id ? '#' + node.id : '';
    return `<${node.tagName.toLowerCase()}${id}>` + (text ? ` "${text}"` : '');
  };
  // An area of an image's map has the boxes of its shape. Which places in them are its own, hit
  // tests say; those of a polygon are looked for in its triangles too.
  const imageOf = node => {
    const map = node.tagName === 'AREA' && node.closest('map');
    return map && [...node.ownerDocument.images].find(image => image.useMap === `#${map.name}`);
  };
  const shapes = (area, image) => {
    const whole = image.getBoundingClientRect(), style = getComputedStyle(image);
    const left = whole.left + image.clientLeft + parseFloat(style.paddingLeft || '0');
    const top = whole.top + image.clientTop + parseFloat(style.paddingTop || '0');
    const told = (area.coords.match(/-?[\d.]+/g) || []).map(Number), [x, y, far, low] = told;
    if (area.shape === 'default') return [whole];
    if (/^circ/i.test(area.shape)) return [new DOMRect(left + x - far, top + y - far, 2 * far, 2 * far)];
    if (!/^poly/i.test(area.shape)) return [new DOMRect(left + x, top + y, far - x, low - y)];
    const mean = (i, from) => (told[i + from] + told[i + from + 2] + told[i + from + 4]) / 3;
    const triangles = [...Array(Math.max(0, told.length / 2 - 2)).keys()].map(i => 2 * i).slice(0, 100);
    return triangles.map(i => new DOMRect(left + mean(i, 0) - 1, top + mean(i, 1) - 1, 2, 2));
  };
  const boxes = node => {
    const image = imageOf(node), rects = image ? shapes(node, image) : [...node.getClientRects()];
    return rects.filter(box => box.width > 0.5 && box.height > 0.5);
  };
  const rootOf = tracker ? tracker.rootOf : node => node.shadowRoot;
  const deepest = (root, x, y) => {
    let hit = root.elementFromPoint(x, y);
    for (let root; hit && (root = rootOf(hit)); ) {
      const inner = root.elementFromPoint(x, y);
      if (!inner || inner === hit) break;
      hit = inner;
    }
    return hit;
  };
  const within = (node, ancestor) => {
    for (let n = node; n; n = n.assignedSlot || n.parentNode || n.host) {
      if (n === ancestor) return true;
    }
    return false;
  };
  const labels = (hit, control) => {
    const label = hit && hit.closest && hit.closest('label');
    return !!label && (label.control === control || within(control, label));
  };
  // What is inside of a button or a link presses it, wherever in it the press lands.
  const control = element.closest('button, a[href], [role="button"], [role="link"]') || element;
  const reaches = (hit, node) => within(hit, node) || within(hit, control) || labels(hit, node);
  const shares = [
    [.5, .5], [.25, .5], [.75, .5], [.5, .25], [.5, .75],
    [.15, .2], [.85, .2], [.15, .8], [.85, .8],
  ];
  const spots = box => shares.map(([fx, fy]) => [box.left + box.width * fx, box.top + box.height * fy]);

  const holderOf = document => {
    try { return document.defaultView && document.defaultView.frameElement; } catch { return null; }
  };

  // From the element's frame out to the page, as long as each frame is not covered itself.
  const outward = (x, y) => {
    let win = element.ownerDocument.defaultView;
    while (win !== win.top) {
      let holder = null;
      try { holder = win.frameElement; } catch { /* of another origin */ }
      if (!holder) return { foreign: true };
      const box = holder.getBoundingClientRect(), style = getComputedStyle(holder);
      x += box.left + holder.clientLeft + parseFloat(style.paddingLeft || '0');
      y += box.top + holder.clientTop + parseFloat(style.paddingTop || '0');
      const hit = deepest(holder.ownerDocument, x, y);
      if (hit !== holder) return { cover: hit };
      win = win.parent;
    }
    return { x, y };
  };

  // A checkbox that a site hides in favour of its label is clicked at the label.
  const stand = () => {
    if (boxes(element).length) return element;
    const label = element.labels && [...element.labels].find(l => boxes(l).length);
    return label || [...element.children].find(c => boxes(c).length) || element;
  };
  // Where all that may be scrolled stood: a target that cannot be reached leaves it there.
  const places = [];
  for (let node = element; node; node = node.parentNode || node.host || holderOf(node)) {
    if (node.nodeType === 1) places.push([node, node.scrollLeft, node.scrollTop]);
  }
  const putBack = () => places.forEach(([node, left, top]) => {
    if (node.scrollLeft !== left || node.scrollTop !== top) {
      node.scrollTo({ left, top, behavior: 'instant' });
    }
  });
  let scrolled = false;
  const attempt = () => {
    if (!element.isConnected) return { problem: 'gone' };
    const node = stand();
    const view = element.ownerDocument.defaultView;
    if (!boxes(node).length || view.getComputedStyle(node).visibility !== 'visible') {
      return { problem: 'invisible' };
    }
    if (element.matches(':disabled') || element.closest('[aria-disabled="true"]')) {
      return { problem: 'disabled' };
    }
    const drawn = imageOf(node) || node;
    const before = drawn.getBoundingClientRect();
    drawn.scrollIntoViewIfNeeded(true);
    const after = drawn.getBoundingClientRect();
    scrolled = scrolled || before.x !== after.x || before.y !== after.y;
    let cover = null;
    for (const box of boxes(node)) {
      for (const [x, y] of spots(box)) {
        if (x < 0 || y < 0 || x >= view.innerWidth || y >= view.innerHeight) continue;
        const hit = deepest(element.ownerDocument, x, y);
        if (!reaches(hit, element) && !reaches(hit, node)) { cover = cover || hit; continue; }
        const out = outward(x, y);
        if (out.foreign) {
          const whole = element.getBoundingClientRect();
          return { foreign: true, at: [x, y], dx: x - whole.x, dy: y - whole.y };
        }
        if (out.cover) { cover = cover || out.cover; continue; }
        return { x: out.x, y: out.y, scrolled, at: [x, y] };
      }
    }
    return cover ? { problem: 'covered', by: name(cover) } : { problem: 'outside' };
  };

  const PRESSES = [
    'pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click', 'auxclick', 'dblclick',
    'contextmenu',
  ];
  const other = (x, y) => {
    const hit = deepest(element.ownerDocument, x, y);
    return reaches(hit, element) || reaches(hit, stand()) ? '' : name(hit);
  };
  const judge = (event, win) => {
    if (win === element.ownerDocument.defaultView) return other(event.clientX, event.clientY);
    // It came to another document: that of a frame inside of the target, or of anything else.
    try {
      for (let inner = win; inner !== inner.parent; inner = inner.parent) {
        const holder = inner.frameElement;
        if (holder && holder.ownerDocument === element.ownerDocument) {
          return within(holder, element) ? '' : name(holder);
        }
      }
    } catch { /* of another origin */ }
    return name(deepest(win.document, event.clientX, event.clientY));
  };
  const arm = found => {
    if (!kind || !tracker) return;
    const [x, y] = found.at;
    const unseen = () => {  // a frame of another origin may have got it
      if (!element.isConnected) return '';
      return found.foreign ? 'what lies over its frame' : other(x, y);
    };
    if (kind === 'press') tracker.arm(['pointerdown', 'mousedown'], PRESSES, judge, unseen);
    else tracker.arm(['pointermove', 'mousemove'], [], judge, null);
  };

  const moves = () => (tracker && tracker.stillFor() < 30) || document.getAnimations().length > 0;
  for (;;) {
    let found = attempt();
    if (found.x !== undefined && moves()) {
      await next();
      const again = attempt();
      const same = again.x === found.x && again.y === found.y;
      found = same || again.problem ? again : { ...again, moving: true };
    }
    const rests = !found.problem && !found.moving;
    const over = rests || found.problem === 'gone' || now() - start > bound;
    if (over && found.problem) putBack();
    if (over && !found.problem) arm(found);
    if (over) return { ...found, name: name(element) };
    await next();
  }
}
