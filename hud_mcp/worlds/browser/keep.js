// Writes down what a document holds that loading it again does not bring back.
//
// Returns { status, born, local, session, page, databases }, or { over: [what, characters] } where
// something is longer than `limit`. `local`, `session` and `page` are JSON for refill.js alone; the
// first two are null where the page's own document has the same storage, or there is none.
async ([key, limit]) => {
  const tracker = window[key];
  const top = window === window.top;
  const navigation = performance.getEntriesByType('navigation')[0];
  const kept = {
    status: (navigation && navigation.responseStatus) || 0,
    born: tracker ? tracker.born : performance.timeOrigin,
    local: null, session: null, page: '', databases: 0,
  };

  const apart = () => {
    if (top) return true;
    try { return !window.top.document; } catch { return true; }
  };
  const pairs = name => {
    let size = 0;
    const found = [];
    const area = window[name];
    for (let i = 0; i < area.length; i++) {
      const item = area.key(i), value = area.getItem(item);
      size += item.length + value.length;
      if (size <= limit) found.push([item, value]);
    }
    if (size > limit) kept.over = [name, size];
    return JSON.stringify(found);
  };
  if (apart()) {
    try {
      kept.local = pairs('localStorage');
      kept.session = pairs('sessionStorage');
    } catch { /* an origin without storage, as a sandboxed frame has */ }
  }
  if (top && kept.session) {
    try {
      kept.databases = (await indexedDB.databases()).length;
      const { usage } = kept.databases ? await navigator.storage.estimate() : { usage: 0 };
      // Its files hold several versions of what was written; the exact size is known later.
      if (usage > 8 * limit) kept.over = ['IndexedDB', usage];
    } catch { /* the same */ }
  }

  const orders = new Map();
  const place = (node, parent) => {
    if (!orders.has(parent)) orders.set(parent, new Map([...parent.children].map((n, i) => [n, i])));
    return orders.get(parent).get(node);
  };
  const path = node => {
    const steps = [];
    for (let n = node; n.parentNode && n.parentNode !== document; ) {
      const parent = n.parentNode;
      steps.unshift(place(n, parent));
      n = parent;
      if (parent instanceof ShadowRoot) { steps.unshift('s'); n = parent.host; }
    }
    return steps;
  };
  const describe = node => ({
    path: path(node), tag: node.tagName, id: node.id, name: node.getAttribute('name'), type: node.type,
  });
  const roots = [document, ...(tracker ? tracker.roots() : [])];
  const all = selector => roots.flatMap(root => [...root.querySelectorAll(selector)]);
  const page = {
    checks: all('input[type=checkbox], input[type=radio]')
      .filter(node => node.checked !== node.defaultChecked)
      .map(node => ({ ...describe(node), checked: node.checked })),
    choices: all('select')
      .filter(node => [...node.options].some(o => o.selected !== o.defaultSelected))
      .map(node => ({ ...describe(node), values: [...node.selectedOptions].map(o => o.value) })),
    texts: all('input:not([type=checkbox], [type=radio], [type=file], [type=hidden]), textarea')
      .filter(node => node.value !== node.defaultValue)
      .map(node => ({ ...describe(node), value: node.value })),
    words: tracker ? tracker.edited()
      .map(node => ({ ...describe(node), html: node.innerHTML })) : [],
    scrolled: (tracker ? tracker.scrolled() : [])
      .map(node => node === document ? document.scrollingElement : node)
      .filter(node => node)
      .map(node => ({ ...describe(node), x: node.scrollLeft, y: node.scrollTop })),
    focus: null,
  };
  let focus = document.hasFocus() ? document.activeElement : null;
  const rootOf = node => tracker ? tracker.rootOf(node) : node.shadowRoot;
  for (let root; focus && (root = rootOf(focus)) && root.activeElement; ) focus = root.activeElement;
  if (focus && !['BODY', 'HTML', 'IFRAME', 'FRAME'].includes(focus.tagName)) {
    let caret = null;
    try { caret = [focus.selectionStart, focus.selectionEnd, focus.selectionDirection]; } catch { /* none */ }
    page.focus = { ...describe(focus), caret };
  }
  kept.page = JSON.stringify(page);
  if (kept.page.length > limit) kept.over = ['what is typed into its fields', kept.page.length];
  return kept.over ? { over: kept.over } : kept;
}
