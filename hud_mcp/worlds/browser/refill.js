// Gives a document back what keep.js wrote down, one part for each call.
//
// 'storage' returns whether anything differed; 'fields' how many fields were not found; 'focus'
// the text that the focused field has to be given by keyboard, or null; 'place' nothing.
([key, text, part]) => {
  const kept = JSON.parse(text);

  const equalise = (area, pairs) => {
    const wanted = new Map(JSON.parse(pairs));
    let differs = false;
    for (const name of Object.keys(area)) {
      if (!wanted.has(name)) { area.removeItem(name); differs = true; }
    }
    for (const [name, value] of wanted) {
      if (area.getItem(name) !== value) { area.setItem(name, value); differs = true; }
    }
    return differs;
  };
  if (part === 'storage') {
    const local = equalise(localStorage, kept.local);
    return equalise(sessionStorage, kept.session) || local;
  }

  const fits = (node, wanted) => node && node.tagName === wanted.tag && node.type === wanted.type
    && node.getAttribute('name') === wanted.name && node.id === wanted.id;
  const walk = steps => {
    let node = document.documentElement;
    for (const step of steps) {
      if (!node) return null;
      if (step === 's') node = window[key] ? window[key].rootOf(node) : node.shadowRoot;
      else node = node.children[step];
    }
    return node;
  };
  const only = nodes => nodes.length === 1 ? nodes[0] : null;
  // Where the page is built another way this time, an id or a name still says which one it was.
  const find = wanted => {
    const there = walk(wanted.path);
    if (fits(there, wanted)) return there;
    const tag = CSS.escape(wanted.tag);
    const by = (attribute, value) => value
      ? only([...document.querySelectorAll(`${tag}[${attribute}="${CSS.escape(value)}"]`)]) : null;
    const named = by('id', wanted.id) || by('name', wanted.name);
    return fits(named, wanted) ? named : null;
  };
  // Frameworks watch the property of the element itself; what they call is the prototype's.
  const set = (node, property, value) => {
    let holder = Object.getPrototypeOf(node), descriptor;
    while (holder && !(descriptor = Object.getOwnPropertyDescriptor(holder, property))) {
      holder = Object.getPrototypeOf(holder);
    }
    descriptor.set.call(node, value);
  };
  const tell = (node, ...kinds) => {
    for (const kind of kinds) {
      const event = kind === 'input' ? new InputEvent(kind, { bubbles: true, composed: true, inputType: 'insertText' })
        : new Event(kind, { bubbles: true });
      node.dispatchEvent(event);
    }
  };
  const same = (a, b) => a && b && JSON.stringify(a.path) === JSON.stringify(b.path);

  if (part === 'fields') {
    let missed = 0;
    const each = (list, give) => {
      for (const wanted of list) {
        const node = find(wanted);
        if (node) give(node, wanted); else missed++;
      }
    };
    each(kept.checks, (node, { checked }) => {
      if (node.checked === checked || (node.type === 'radio' && !checked)) return;
      node.click();
      if (node.checked !== checked) { set(node, 'checked', checked); tell(node, 'input', 'change'); }
    });
    each(kept.choices, (node, { values }) => {
      const options = [...node.options];
      if (options.every(o => o.selected === values.includes(o.value))) return;
      if (!values.every(value => options.some(o => o.value === value))) { missed++; return; }
      for (const option of options) set(option, 'selected', values.includes(option.value));
      tell(node, 'input', 'change');
    });
    each(kept.texts, (node, wanted) => {
      if (node.value === wanted.value || same(wanted, kept.focus)) return;
      set(node, 'value', wanted.value);
      tell(node, 'input', 'change');
    });
    each(kept.words, (node, { html }) => {
      if (node.innerHTML === html) return;
      try { node.innerHTML = html; } catch { missed++; return; }
      tell(node, 'input');
    });
    return missed;
  }
  if (part === 'focus') {
    const node = kept.focus && find(kept.focus);
    if (!node) {
      if (document.activeElement && document.activeElement.blur && window === window.top) {
        document.activeElement.blur();
      }
      return null;
    }
    node.focus({ preventScroll: true });
    const typed = kept.texts.find(wanted => same(wanted, kept.focus));
    return typed && node.value !== typed.value ? typed.value : null;
  }
  const focused = kept.focus && find(kept.focus);
  if (focused && kept.focus.caret && kept.focus.caret[0] !== null) {
    try { focused.setSelectionRange(...kept.focus.caret); } catch { /* it has no caret now */ }
  }
  if (focused && !kept.focus.caret?.length && focused.isContentEditable) {
    getSelection().selectAllChildren(focused);
    getSelection().collapseToEnd();
  }
  for (const wanted of kept.scrolled) {
    const node = find(wanted);
    if (node) node.scrollTo({ left: wanted.x, top: wanted.y, behavior: 'instant' });
  }
  return null;
}
