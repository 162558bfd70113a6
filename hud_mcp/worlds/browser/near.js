// A selector engine for Playwright that has the look which uses it read a page near its view only.
//
// Playwright's tree asks every element for its name and style: 60,000 of them take longer than a
// look may. `near=body` matches the body, and until the current task ends has the walk over the
// document's nodes skip what is more than a view's size out of view. It runs in the world of
// Playwright's own scripts, and the page notices nothing. `near=before` and `near=after` match
// what was skipped, to the left of and above the view, and to the right of and below it.
(() => {
  const POINTS = 24;
  const own = name => Object.getOwnPropertyDescriptor(Node.prototype, name);
  const first = own('firstChild'), next = own('nextSibling');
  const skipped = { before: new Set(), after: new Set() };

  // What is in view is read wherever its ancestors are: a menu that stays in place may be part
  // of a header that has long been scrolled away.
  const inView = view => {
    const found = new Set();
    const keep = node => {
      for (; node && !found.has(node); node = node.parentNode || node.host) found.add(node);
    };
    const head = table => [...(table.tHead || table.rows[0] || table).querySelectorAll('*')];
    keep(view.document.activeElement);
    for (let i = 0; i < POINTS; i++) {
      for (let j = 0; j < POINTS; j++) {
        const x = (i + 0.5) * view.innerWidth / POINTS, y = (j + 0.5) * view.innerHeight / POINTS;
        keep(view.document.elementFromPoint(x, y));
      }
    }
    // The rows of a table in view are read with its headings.
    for (const node of [...found].filter(each => each.tagName === 'TABLE')) head(node).slice(0, 500).forEach(keep);
    return found;
  };
  const judge = view => {
    const seen = inView(view), known = new Map();
    const width = view.innerWidth, height = view.innerHeight;
    const where = node => {
      if (node.nodeType !== Node.ELEMENT_NODE || seen.has(node)) return '';
      const box = node.getBoundingClientRect();
      if (!box.width && !box.height) return '';
      if (box.bottom < -height || box.right < -width) return 'before';
      return box.top > 2 * height || box.left > 2 * width ? 'after' : '';
    };
    return node => {
      if (!known.has(node)) known.set(node, where(node));
      return known.get(node);
    };
  };
  const narrow = view => {
    const far = judge(view);
    window['__KEY__far'] = far;  // for seen.js
    skipped.before.clear();
    skipped.after.clear();
    const pass = node => {
      for (let side; node && (side = far(node)); node = next.get.call(node)) skipped[side].add(node);
      return node;
    };
    const define = (name, { get, ...rest }) => Object.defineProperty(
      Node.prototype, name, { ...rest, get() { return pass(get.call(this)); } });
    define('firstChild', first);
    define('nextSibling', next);
    Promise.resolve().then(() => {
      window['__KEY__far'] = null;
      Object.defineProperty(Node.prototype, 'firstChild', first);
      Object.defineProperty(Node.prototype, 'nextSibling', next);
    });
  };
  const queryAll = (root, selector) => {
    if (selector in skipped) return [...skipped[selector]];
    const document = root.ownerDocument || root;
    const [body] = window['__KEY__begin']();  // of seen.js
    if (body) narrow(document.defaultView);
    return body ? [body] : [];
  };
  return { query: (root, selector) => queryAll(root, selector)[0], queryAll };
})()
