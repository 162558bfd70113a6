// Writes down what an action hits: the element at a point, or the one with the focus where there
// is no point, with what selectors may say of it.
//
// Runs in a world of its own, where a page's overrides are not seen; properties are read by their
// prototypes' getters, since the fields of a form hide its own. Returns JSON: nested elements
// [tag, namespace, attributes, children, mark, text] from the root down, of which every one on the
// way has its siblings beside it; null where there is no element. An empty namespace is HTML's.
(x, y, limit) => {
  const SIBLINGS = [1000, 100, 20, 0];
  const MOST_CHARS = 400, MOST_LEVELS = 80, MOST_ATTRIBUTES = 40;
  const HTML = 'http://www.w3.org/1999/xhtml';
  const getter = (proto, name) => {
    const { get } = Object.getOwnPropertyDescriptor(proto, name);
    return node => get.call(node);
  };
  const parentNode = getter(Node.prototype, 'parentNode');
  const children = getter(Element.prototype, 'children');
  const attributes = getter(Element.prototype, 'attributes');
  const localName = getter(Element.prototype, 'localName');
  const namespace = getter(Element.prototype, 'namespaceURI');
  const shadow = getter(Element.prototype, 'shadowRoot');
  const rooted = getter(DocumentFragment.prototype, 'children');
  const innerText = getter(HTMLElement.prototype, 'innerText');
  const textContent = getter(Node.prototype, 'textContent');
  const matches = (node, selector) => Element.prototype.matches.call(node, selector);
  const clip = text => String(text).slice(0, MOST_CHARS);

  const inside = node => {
    if (!(node instanceof HTMLIFrameElement || node instanceof HTMLFrameElement)) return null;
    try { return node.contentDocument; } catch { return null; }
  };
  const atPoint = () => {
    let root = document, left = x, top = y, hit = null;
    for (let level = 0; level < MOST_LEVELS; level++) {
      const found = root.elementFromPoint(left, top);
      if (!found || found === hit) return hit;
      hit = found;
      const inner = inside(hit);
      if (inner) {
        const box = Element.prototype.getBoundingClientRect.call(hit);
        const style = getComputedStyle(hit);
        left -= box.left + hit.clientLeft + parseFloat(style.paddingLeft || '0');
        top -= box.top + hit.clientTop + parseFloat(style.paddingTop || '0');
        root = inner;
      } else if (shadow(hit)) {
        root = shadow(hit);
      } else {
        return hit;
      }
    }
    return hit;
  };
  const focused = () => {
    let root = document, hit = null;
    for (let level = 0; level < MOST_LEVELS; level++) {
      const found = root.activeElement;
      if (!found) return hit;
      hit = found;
      root = inside(hit) || shadow(hit);
      if (!root) return hit;
    }
    return hit;
  };
  const above = node => {
    const parent = parentNode(node);
    if (parent instanceof ShadowRoot) return parent.host;
    return parent instanceof Element ? parent : null;
  };

  let hit = x === null ? focused() : atPoint();
  if (!hit) return null;
  const USED = 'a[href], button, input, select, textarea, option, summary, label, [contenteditable],'
    + ' [onclick], [role=button], [role=link], [role=tab], [role=menuitem], [role=option],'
    + ' [role=checkbox], [role=radio], [role=switch]';
  let used = hit;
  for (let n = hit, level = 0; n && level < MOST_LEVELS; n = above(n), level++) {
    if (matches(n, USED)) { used = n; break; }
  }
  if (used instanceof HTMLLabelElement && used.control) hit = used.control;  // it acts on that

  const describe = (node, whole) => {
    const kept = {};
    for (const { name, value } of [...attributes(node)].slice(0, MOST_ATTRIBUTES)) {
      if (whole || name === 'id' || name === 'class') kept[name] = clip(value);
    }
    const space = namespace(node);
    return [localName(node), space === HTML ? '' : space, kept, [], false, ''];
  };
  const holds = (outer, node) => {
    for (let n = node, level = 0; n && level < MOST_LEVELS; n = above(n), level++) {
      if (n === outer) return true;
    }
    return false;
  };
  const isWithin = hit !== used && holds(used, hit);
  const text = clip(hit instanceof HTMLElement ? innerText(hit) : textContent(hit) || '');
  const write = most => {
    let made = describe(hit, true), marks = isWithin;
    made[4] = true;
    made[5] = text;
    for (let n = hit, level = 0; level < MOST_LEVELS; level++) {
      const parent = above(n);
      if (!parent) break;
      const outer = describe(parent, true);
      if (marks) outer[4] = true;
      if (parent === used) marks = false;
      const holder = parentNode(n);
      const all = [...(holder instanceof ShadowRoot ? rooted(holder) : children(parent))];
      const beside = all.length > most ? [n] : all;
      outer[3] = beside.map(each => each === n ? made : describe(each, false));
      made = outer;
      n = parent;
    }
    return JSON.stringify(made);
  };
  // Where there is too much beside it, it is told without: its place is lost, and not itself.
  for (const most of SIBLINGS) {
    const written = write(most);
    if (written.length <= limit) return written;
  }
  return null;
}
