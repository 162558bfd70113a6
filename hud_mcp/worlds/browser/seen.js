// A selector engine that matches the body, and has Playwright's walk over its document find what a
// person sees, where it would pass it over.
//
// Runs in the world of Playwright's own scripts, in each frame, and the page notices nothing. Until
// the current task ends, the walk gets: passwords as they are on the screen, breaks and blanks where
// they are kept, the text of editors, inline elements that can be clicked, and of a text of more
// than LONG characters the part that is in view. Frames follow for a while after their page, which
// Playwright asks first; what else an author asks of it is as ever.
//
// BREAK, BLANK, EDITOR and UNNAMED are characters of our own; `seen.py` reads them. Between two FACTS,
// at the end of a document, stand the facts that Playwright's tree has no form for, such as
// `e12 required;e15 sorted=ascending`. A page that could write FACTS could rename others' elements.
(() => {
  const KEY = '__KEY__', LONG = 4000, MOST = 7500, FEW = 300, NAME = 900, FOLLOWS_MS = 3000;
  const BREAK = '\u{10fa10}', BLANK = '\u{10fa11}', EDITOR = '\u{10fa12}', UNNAMED = '\u{10fa13}',
    FACTS = '\u{10fa14}__FACTS__\u{10fa14}', MASK = '\u2022';
  if (KEY in window) return { query: () => null, queryAll: () => [] };  // the page's own world
  const own = (type, name) => Object.getOwnPropertyDescriptor(type.prototype, name);
  const nodeValue = own(Node, 'nodeValue'), childNodes = own(Node, 'childNodes');
  const inputValue = own(HTMLInputElement, 'value'), areaValue = own(HTMLTextAreaElement, 'value');
  const getAttribute = Element.prototype.getAttribute;
  const computed = window.getComputedStyle.bind(window);
  const queryAll = Document.prototype.querySelectorAll;
  let walk = null;
  const styleOf = node => {  // what the walk has asked for itself, as a rule
    if (!walk.styles.has(node)) walk.styles.set(node, computed(node));
    return walk.styles.get(node);
  };

  const kept = text => text.replace(/\r\n?|\n/g, BREAK).replace(/[^\S\n]/g, BLANK);
  const progressOf = node => {
    const most = node ? node.scrollHeight - node.clientHeight : 0;
    return most > 1 ? Math.min(1, node.scrollTop / most) : 0;
  };
  const clipOfFrame = () => {
    const clip = { top: 0, bottom: innerHeight, progress: progressOf(document.scrollingElement) };
    try {
      const holder = window.frameElement, outer = holder && holder.ownerDocument;
      if (holder) {  // as far as the frame is in view itself
        const box = holder.getBoundingClientRect();
        clip.top = Math.max(0, -box.top);
        clip.bottom = Math.min(innerHeight, outer.defaultView.innerHeight - box.top);
        if (!clip.progress) clip.progress = progressOf(outer.scrollingElement);
      }
    } catch { /* of another origin */ }
    return clip;
  };
  const clipOf = (node, clips) => {
    if (clips.has(node)) return clips.get(node);
    const outer = node.parentElement || (node.getRootNode() || {}).host;
    const clip = outer ? { ...clipOf(outer, clips) } : clipOfFrame();
    if (outer && node !== document.body && styleOf(node).overflowY !== 'visible') {
      const box = node.getBoundingClientRect();
      clip.top = Math.max(clip.top, box.top);
      clip.bottom = Math.min(clip.bottom, box.bottom);
      if (node.scrollHeight > node.clientHeight + 1) clip.progress = progressOf(node);
    }
    clips.set(node, clip);
    return clip;
  };

  // Of a text that is more than MOST where it is in view, the part moves on as one scrolls.
  const narrowed = (from, to, progress) => {
    const start = from + Math.max(0, Math.round((to - from - MOST) * progress));
    return [start, Math.min(to, start + MOST)];
  };
  const said = (count, where, how) => `… ${count} more characters ${where}; ${how} to see them …`;
  const written = (text, [from, to], start, length, how = 'scroll') => {
    const [first, last] = [Math.max(0, from - start), Math.min(text.length, to - start)];
    const head = from > 0 && first < text.length && from >= start ? said(from, 'before', how) + ' ' : '';
    const ends = to < length && to > start && to <= start + text.length;
    const tail = ends ? ' ' + said(length - to, 'after', how) : '';
    return last > first ? head + text.slice(first, last) + tail : '';
  };

  const blockOf = parent => {
    if (!walk.blockOf.has(parent)) {
      const outer = parent.parentElement;
      const inline = outer && styleOf(parent).display === 'inline';
      walk.blockOf.set(parent, inline ? blockOf(outer) : parent);
    }
    return walk.blockOf.get(parent);
  };
  // The texts of each block, those of blocks in it not counted, and where in all of it they begin.
  const measure = root => {
    const isLong = (root.body || root).textContent.length > NAME;
    walk.roots.set(root, isLong);
    if (!isLong) return;
    const far = window[`${KEY}far`], { TEXT_NODE } = Node;  // of near.js, where it is at work
    const texts = document.createTreeWalker(root.body || root, far
      ? NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT : NodeFilter.SHOW_TEXT, node =>
        node.nodeType === TEXT_NODE ? NodeFilter.FILTER_ACCEPT
          : far(node) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_SKIP);
    while (texts.nextNode()) {
      const node = texts.currentNode, parent = node.parentElement;
      if (parent && ['SCRIPT', 'STYLE', 'TEXTAREA'].includes(parent.tagName)) continue;
      const block = parent ? blockOf(parent) : root;
      if (!walk.blocks.has(block)) walk.blocks.set(block, { length: 0, nodes: [], starts: new Map() });
      const known = walk.blocks.get(block);
      known.nodes.push(node);
      known.starts.set(node, known.length);
      known.length += node.length;
    }
  };
  // What is in view is found by halves: the places of a text on the page are in its order.
  const range = document.createRange();
  const boxAt = ({ nodes, starts, length }, index) => {
    let low = 0, high = nodes.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts.get(nodes[middle]) <= index) low = middle; else high = middle - 1;
    }
    for (let i = index, end = Math.min(length, index + 200); i < end; i++) {
      while (low + 1 < nodes.length && starts.get(nodes[low + 1]) <= i) low++;
      const at = i - starts.get(nodes[low]);
      if (at >= nodes[low].length) continue;
      range.setStart(nodes[low], at);
      range.setEnd(nodes[low], at + 1);
      const box = range.getBoundingClientRect();
      if (box.height > 0) return box;
    }
    return null;
  };
  const firstWhere = (known, passed) => {
    let low = 0, high = known.length;
    while (low < high) {
      const middle = (low + high) >> 1, box = boxAt(known, middle);
      if (box && !passed(box)) low = middle + 1; else high = middle;
    }
    return low;
  };
  const shownOf = (block, known) => {
    const clip = clipOf(block, walk.clips), box = block.getBoundingClientRect();
    if (box.bottom <= clip.top || box.top >= clip.bottom) return [0, FEW];
    const from = firstWhere(known, each => each.bottom > clip.top);
    const to = firstWhere(known, each => each.top >= clip.bottom);
    return to > from ? narrowed(from, to, clip.progress) : [0, FEW];
  };
  const NAMED = 'a, button, summary, label, option, td, th, h1, h2, h3, h4, h5, h6, [role=button],'
    + ' [role=link], [role=cell], [role=gridcell], [role=heading], [role=menuitem], [role=option],'
    + ' [role=row], [role=tab], [role=treeitem], [role=checkbox], [role=radio], [role=switch]';
  // The tree has no name that is longer, and then no text either that is the same.
  const isUnnamed = node => {
    const { textContent } = node;
    return textContent.length > NAME && textContent.trim().replace(/\s+/g, ' ').length > NAME;
  };
  // The tree drops a break, and joins the words on its two sides.
  const followsBreak = node => {
    for (let each = node; each; each = each.parentElement) {
      let before = each.previousSibling;
      while (before && (before.nodeType === 8 || (before.nodeType === 3 && !nodeValue.get.call(before).trim()))) {
        before = before.previousSibling;
      }
      if (before) return before.nodeName === 'BR';
      if (!each.parentElement || styleOf(each.parentElement).display !== 'inline') return false;
    }
    return false;
  };
  const CLICKED = ['tabindex', 'onclick', 'onmousedown', 'onpointerdown', 'onmouseup', 'onpointerup'];
  const KEPT = { preserve: 'all', 'break-spaces': 'all', 'preserve-breaks': 'breaks' };
  const judge = parent => {
    const root = parent.getRootNode();
    if (!walk.roots.has(root)) {
      measure(root);
      walk.breaks.set(root, !!root.querySelector('br'));
    }
    const block = walk.roots.get(root) && blockOf(parent), known = walk.blocks.get(block);
    const keeps = KEPT[styleOf(parent).whiteSpaceCollapse];
    const named = (keeps || (known && known.length > NAME)) && parent.closest(NAMED);
    const isLong = known && known.length > LONG;
    if (isLong) known.shown = known.shown || shownOf(block, known);
    return {
      known: isLong && known, keeps: !named && keeps, unnamed: named && isUnnamed(named),
      breaks: walk.breaks.get(root) && (parent.closest(NAMED) ? ' ' : BREAK),
    };
  };
  const told = node => {
    let text = nodeValue.get.call(node);
    const parent = node.parentElement;
    if (!text || !parent) return text;
    if (!walk.parents.has(parent)) walk.parents.set(parent, judge(parent));
    const { known, keeps, unnamed, breaks } = walk.parents.get(parent);
    const start = known && known.starts.get(node);
    if (start !== undefined && known) text = written(text, known.shown, start, known.length);
    if (breaks && text.trim() && followsBreak(node)) text = breaks + text;
    if (unnamed) return text + UNNAMED;
    if (keeps === 'breaks') return text.replace(/\n/g, BREAK);
    return keeps && /\n|\s\s|\t/.test(text) ? kept(text) : text;
  };
  // How the lines of a textarea are broken is nowhere told, so their places are reckoned from their
  // lengths, with half a view on either side for what that is wrong by.
  const areaInView = (area, text) => {
    if (text.length <= LONG) return text;
    const clip = clipOf(area, walk.clips), box = area.getBoundingClientRect();
    const outside = box.bottom <= clip.top || box.top >= clip.bottom;
    return written(text, outside ? [0, FEW] : linesInView(area, text), 0, text.length);
  };
  const linesInView = (area, text) => {
    const style = styleOf(area), pen = new OffscreenCanvas(1, 1).getContext('2d');
    pen.font = style.font;
    const sample = text.slice(0, 500), width = pen.measureText(sample).width / sample.length || 8;
    const wraps = style.textWrapMode !== 'nowrap';
    const columns = wraps ? Math.max(1, Math.floor(area.clientWidth / width)) : Infinity;
    const lines = text.split('\n'), progress = progressOf(area);
    const rows = lines.map(line => Math.max(1, Math.ceil(line.length / columns)));
    const all = rows.reduce((sum, count) => sum + count, 0);
    const tall = area.clientHeight / area.scrollHeight, above = area.scrollTop / area.scrollHeight;
    const low = progress <= 0 ? 0 : all * (above - tall / 2);
    const high = progress >= 0.999 ? all : all * (above + tall * 1.5);
    let row = 0, at = 0, from = null, to = text.length;
    lines.forEach((line, i) => {
      const reach = end => at + Math.round(line.length * Math.min(1, Math.max(0, (end - row) / rows[i])));
      if (from === null && row + rows[i] > low) from = reach(low);
      if (row < high) to = reach(high);
      row += rows[i];
      at += line.length + 1;
    });
    return narrowed(from ?? 0, to, progress);
  };
  const define = (type, name, before, get) => Object.defineProperty(type.prototype, name, {
    ...before, get() { return walk ? get(this) : before.get.call(this); },
  });
  define(Node, 'nodeValue', nodeValue, node => {
    if (node.nodeType !== Node.TEXT_NODE) return nodeValue.get.call(node);
    if (walk.node !== node) [walk.node, walk.text] = [node, told(node)];  // it asks several times
    return walk.text;
  });
  define(HTMLTextAreaElement, 'value', areaValue, area => {
    const text = areaInView(area, areaValue.get.call(area));
    return /\n|^\s|\s\s|\s$/.test(text) ? kept(text) : text;
  });
  define(HTMLInputElement, 'value', inputValue, input => {
    const text = inputValue.get.call(input);
    if (input.type === 'password') return MASK.repeat(text.length);
    if (text.length > LONG) {
      const progress = input.scrollLeft / Math.max(1, input.scrollWidth - input.clientWidth);
      const shown = narrowed(0, text.length, Math.min(1, progress));
      return written(text, shown, 0, text.length, 'press home, end or arrows in it');
    }
    return text.replace(/^\s+|\s+$/g, kept);
  });

  // An editor's text is left out of the walk for its role. It goes as a search box, and is marked.
  const isEditor = node => {
    const role = getAttribute.call(node, 'role');
    return !!role && role.trim().split(/\s+/)[0] === 'textbox'
      && !['INPUT', 'TEXTAREA'].includes(node.tagName);
  };
  Element.prototype.getAttribute = function (name) {
    if (walk && name === 'role' && isEditor(this)) return 'searchbox';
    if (walk && name === 'aria-hidden' && isApart(this)) return 'true';
    return getAttribute.call(this, name);
  };
  window.getComputedStyle = (node, pseudo) => {
    if (walk && !pseudo) return styleOf(node);
    const style = computed(node, pseudo);
    if (!walk) return style;
    if (pseudo === '::after' && node === document.body) return withFacts(style);
    if (pseudo !== '::before') return style;
    walk.visited.push(node);
    const mark = isEditor(node) ? EDITOR : isBare(node) ? hintOf(node) + UNNAMED : '';
    if (!mark) return style;
    const content = /^["']/.test(style.content) ? style.content : '""';
    return { content: content[0] + mark + content.slice(1), display: 'inline', visibility: 'visible' };
  };

  // The tree leaves out an element that holds nothing, also where one clicks or writes in it.
  const HOLDERS = 'td, th, h1, h2, h3, h4, h5, h6, [role=cell], [role=gridcell], [role=heading], [role=row]';
  const SHOWN = 'img, input, button, select, textarea, iframe, canvas, video, [aria-label], [role]';
  const UNBARE = ['AREA', 'BODY', 'BR', 'BUTTON', 'A', 'IFRAME', 'INPUT', 'OPTION', 'SELECT', 'TEXTAREA'];
  const isBare = node => {
    if (!walk.bare.has(node)) walk.bare.set(node, judgeBare(node));
    return walk.bare.get(node);
  };
  // One that is all of a cell or a heading is left out too: it repeats the name of that. In no name,
  // it repeats none.
  const isApart = node => {
    if (isBare(node)) return node.tagName !== 'IMG';
    const { tagName, attributes } = node;
    if (attributes.length === 0 && tagName !== 'LABEL') return false;  // as most
    if (given(node, 'role') || node.matches(HOLDERS)) return false;
    if (tagName === 'A' ? node.hasAttribute('href') : UNBARE.includes(tagName) || tagName === 'SUMMARY') return false;
    const holder = node.closest(HOLDERS);
    if (!holder || holder.textContent.trim() !== node.textContent.trim() || !isClicked(node)) return false;
    return tagName === 'LABEL' ? !isSeen(node.control || node) : !node.querySelector(`${SHOWN}, a[href]`);
  };
  const judgeBare = node => {
    const { tagName, attributes } = node;
    if (attributes.length === 0 || UNBARE.includes(tagName) || given(node, 'role')) return false;
    if (tagName === 'IMG') return !!node.useMap;
    if (node.textContent.trim() || (tagName !== 'LABEL' && node.firstElementChild && node.querySelector(SHOWN))) return false;
    if (tagName === 'LABEL' && node.control ? isSeen(node.control) : !isHost(node) && !isClicked(node)) return false;
    const { width, height } = node.getBoundingClientRect();
    return width > 0 && height > 0 && isSeen(node);  // the words of a hidden one would be told
  };
  const isSeen = node => node.checkVisibility({ visibilityProperty: true });
  const hintOf = node => {
    const told = [node, node.control].map(each => each && (given(each, 'aria-label') || given(each, 'title')));
    return (told[0] || told[1] || '').slice(0, NAME).replace(/["\\\s]+/g, ' ');
  };

  // Facts of elements, by their refs. The body ends last: by then each of them has its ref.
  const given = (node, name) => getAttribute.call(node, name);
  const isTrue = (node, name) => given(node, name) === 'true';
  const VALUED = ['PROGRESS', 'METER'], RANGED = ['range', 'number'];
  const valueOf = node => given(node, 'aria-valuetext') ?? given(node, 'aria-valuenow')
    ?? (VALUED.includes(node.tagName) && node.hasAttribute('value') ? String(node.value) : null);
  // The tree has no options of a select that is hidden from it.
  const chosenOf = select => select.closest('[aria-hidden=true]')
    && [...select.selectedOptions].map(each => each.label).join(', ');
  const rangeOf = node => {
    const native = RANGED.includes(node.type), name = native ? ['min', 'max'] : ['aria-valuemin', 'aria-valuemax'];
    const [low, high] = name.map(each => given(node, each) ?? '');
    if (node.type === 'range') return `${low || 0}..${high || 100}`;
    return low || high ? `${low}..${high}` : null;
  };
  const currentOf = node => [null, '', 'false'].includes(given(node, 'aria-current')) ? null : given(node, 'aria-current');
  const wrongOf = node => {
    if (node.validity && node.matches(':user-invalid')) return node.validationMessage;
    const told = isTrue(node, 'aria-invalid') && given(node, 'aria-errormessage');
    const message = told && node.getRootNode().getElementById(told);
    return message ? message.textContent.trim() : null;
  };
  const scrolls = node => {
    if (node === document.body || node.tagName === 'TEXTAREA' || node.clientHeight === 0) return false;
    if (node.scrollHeight <= node.clientHeight + 1 && node.scrollWidth <= node.clientWidth + 1) return false;
    const { overflowX, overflowY } = styleOf(node), moves = each => each === 'auto' || each === 'scroll';
    return (moves(overflowY) && node.scrollHeight > node.clientHeight + 1)
      || (moves(overflowX) && node.scrollWidth > node.clientWidth + 1);
  };
  const NATIVE = ['BUTTON', 'INPUT', 'LABEL', 'OPTION', 'SELECT', 'TEXTAREA'];
  const isHost = node => ![null, 'false'].includes(given(node, 'contenteditable'));
  const HINTED = ['number', 'search'];
  // The areas of an image's map: the name and the address of each, and its place among all areas.
  const areasOf = image => {
    const map = [...document.getElementsByTagName('map')].find(each => `#${each.name}` === image.useMap);
    const areas = map ? [...map.querySelectorAll('area')].filter(isArea).slice(0, 50) : [];
    const every = areas.length ? [...queryAll.call(document, 'area')] : [];
    const told = areas.map(area => [
      (given(area, 'aria-label') || given(area, 'alt') || given(area, 'title') || '').trim().slice(0, 80),
      (given(area, 'href') || '').slice(0, 80), every.indexOf(area),
    ]);
    return told.length ? JSON.stringify(told) : null;
  };
  const isArea = area => area.hasAttribute('href') || CLICKED.some(name => area.hasAttribute(name)) || listens(area);
  const factsOf = node => {
    const facts = [], note = (name, value, most = 200) => {
      if (value === true) facts.push(name);
      else if (value !== null && value !== false && value !== undefined && value !== '') {
        facts.push(`${name}=${encodeURIComponent(String(value).slice(0, most).toWellFormed()).replace(/[!'()*~]/g, each => `%${each.charCodeAt(0).toString(16)}`)}`);
      }
    };
    if (node.tagName === 'SUMMARY' && node.parentElement && node.parentElement.tagName === 'DETAILS') {
      facts.push('click', node.parentElement.open ? 'expanded' : 'collapsed');
    } else if (node.tagName === 'LABEL') {
      const { control } = node;
      note('click', !!control && !stands(control));
      note('label', !!control && node.contains(control));
      if (control && ['checkbox', 'radio'].includes(control.type) && !isSeen(control)) {
        note('drawn', control.type);
        note('checked', control.checked);
        note('disabled', control.disabled);
      }
    } else if (!NATIVE.includes(node.tagName)) {
      const marked = node.attributes.length > 0 && CLICKED.slice(1).some(name => node.hasAttribute(name));
      note('click', marked && node !== document.body ? 'own' : marked || listens(node));
      note('scrolls', scrolls(node));
    }
    // The tree leaves out a wrapper of one element: what is edited in it is that element.
    const holder = node.parentElement;
    if (holder && isHost(holder) && holder.childNodes.length === 1) note('editable', node.isContentEditable);
    if (node.tagName === 'SELECT') note('value', chosenOf(node));
    const root = node.getRootNode();
    if (root.host && root.activeElement === node) note('active', document.hasFocus());
    if (node.attributes.length === 0) return facts;
    if (node.useMap && node.tagName === 'IMG') note('areas', areasOf(node), 20000);
    if (node.tagName === 'INPUT' && (HINTED.includes(node.type) || node.list || given(node, 'role'))) {
      note('hint', inputValue.get.call(node) ? '' : given(node, 'placeholder'));
    }
    note('required', node.required === true || isTrue(node, 'aria-required'));
    note('readonly', node.readOnly === true || isTrue(node, 'aria-readonly'));
    note('busy', isTrue(node, 'aria-busy'));
    note('collapsed', given(node, 'aria-expanded') === 'false');
    note('current', currentOf(node));
    const sort = given(node, 'aria-sort');
    note('sorted', ['ascending', 'descending', 'other'].includes(sort) ? sort : null);
    note('draggable', node.draggable && given(node, 'draggable') === 'true');
    note('editable', isHost(node) && node.isContentEditable);
    note('value', valueOf(node));
    note('range', rangeOf(node));
    note('wrong', wrongOf(node));
    return facts;
  };
  const withFacts = style => {
    const told = walk.visited.flatMap(node => {
      const ref = node._ariaRef && node._ariaRef.ref, facts = ref ? factsOf(node) : [];
      return facts.length ? [`${ref} ${facts.join(' ')}`] : [];
    });
    if (!told.length) return style;
    const content = /^["']/.test(style.content) ? style.content : '""', end = content.length - 1;
    const facts = FACTS + told.join(';') + FACTS;
    return { content: content.slice(0, end) + facts + content.slice(end), display: 'inline', visibility: 'visible' };
  };

  // An inline element of mere text is no element of the walk, unless it has more than one node.
  const asks = (node, what) => !node.dispatchEvent(new Event(what, { composed: true, cancelable: true }));
  const listens = node => {
    const { tagName } = node;
    if (!walk.tags.has(tagName)) {
      walk.tags.set(tagName, asks(document.documentElement, `${KEY}heard${tagName.toLowerCase()}`));
    }
    return walk.tags.get(tagName) && asks(node, `${KEY}heard`);
  };
  const stands = control => {
    const box = control.getBoundingClientRect();
    return box.width > 1 && box.height > 1 && styleOf(control).opacity !== '0';
  };
  const isClicked = node => {
    if (node.tagName === 'LABEL' && node.control) return !stands(node.control);
    const parent = node.parentElement;
    if (isHost(node)) return true;
    if (styleOf(node).cursor === 'pointer' && !(parent && styleOf(parent).cursor === 'pointer')) return true;
    const marked = node.attributes.length > 0 && CLICKED.some(name => node.hasAttribute(name));
    return marked || listens(node);
  };
  define(Node, 'childNodes', childNodes, node => {
    const nodes = childNodes.get.call(node);
    if (nodes.length !== 1 || nodes[0].nodeType !== 3 || node.nodeType !== 1) return nodes;
    return isClicked(node) ? [nodes[0], nodes[0]] : nodes;
  });

  const ASKED = `${KEY}asked`;
  const begin = () => {
    const maps = ['roots', 'blocks', 'blockOf', 'clips', 'styles', 'parents', 'tags', 'breaks', 'bare'];
    walk = Object.fromEntries(maps.map(name => [name, new Map()]));
    walk.visited = [];
    Promise.resolve().then(() => { walk = null; });
    return [...queryAll.call(document, 'body, frameset')].slice(0, 1);
  };
  const follows = () => {
    try { return window !== top && Date.now() - top[ASKED] < FOLLOWS_MS; }
    catch { return true; }  // it is of another origin than its page
  };
  Document.prototype.querySelectorAll = function (selector) {
    if (!walk && /^(body|frameset)\b/.test(selector) && follows()) begin();
    return queryAll.call(this, selector);
  };
  const ask = () => {
    window[ASKED] = Date.now();
    return begin();
  };
  window[`${KEY}begin`] = ask;  // for near.js
  return { query: () => ask()[0], queryAll: ask };
})()
