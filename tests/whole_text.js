// The words that a person sees in a document, and the elements that they can act on, as the
// document's own boxes and styles tell it. Closed roots are those that a page keeps as `__root`.
//
// Returns [text, the line that it is a part of, whether the order of it matters] for each text; the
// elements stay in `window.__acts`.
() => {
  const texts = [], acts = [], range = document.createRange();
  let line = [''];
  const end = () => { line = ['']; };
  const say = (text, { alone = true, ordered = true } = {}) => {
    if (alone) end();
    line[0] += text;
    texts.push([text, line, ordered]);
    if (alone) end();
  };
  const outer = node => node.assignedSlot || node.parentNode || node.host;
  const isVisible = node => node.checkVisibility({ visibilityProperty: true });
  const isFaint = node => {
    for (let each = node; each; each = outer(each)) {
      if (each.nodeType === 1 && getComputedStyle(each).opacity === '0') return true;
    }
    return false;
  };
  const isDrawn = node => isVisible(node) && !isFaint(node);
  const hasBox = rects => [...rects].some(each => each.width > 1 && each.height > 1);
  const boxOf = node => {
    range.selectNodeContents(node);
    return range.getClientRects();
  };
  const written = (node, which) => {
    const style = getComputedStyle(node, which), found = style.content.match(/^"((?:[^"\\]|\\.)*)"$/);
    const hidden = style.display === 'none' || style.visibility === 'hidden';
    if (found && !hidden && isDrawn(node)) say(found[1], { alone: style.display !== 'inline' });
  };
  const BUTTONS = ['button', 'submit', 'reset'], FIELDS = ['INPUT', 'BUTTON', 'SELECT', 'TEXTAREA'];
  const UNTOLD = ['hidden', 'checkbox', 'radio', 'password', 'range', 'color', 'file', 'image'];
  const ROLES = ['button', 'link', 'checkbox', 'radio', 'switch', 'tab', 'menuitem', 'menuitemcheckbox',
    'menuitemradio', 'textbox', 'searchbox', 'slider', 'spinbutton', 'combobox', 'option', 'treeitem'];
  const UNREAD = ['SCRIPT', 'STYLE', 'NOSCRIPT', 'TEMPLATE', 'HEAD', 'IFRAME'];
  const isActed = node => {
    const { tagName, parentElement } = node;
    if (FIELDS.includes(tagName)) return node.type !== 'hidden';
    if (['A', 'AREA'].includes(tagName)) return node.hasAttribute('href') || node.hasAttribute('onclick');
    if (tagName === 'SUMMARY') return parentElement.tagName === 'DETAILS';
    if (tagName === 'LABEL') return false;
    if (ROLES.includes(node.getAttribute('role'))) return true;
    if (node.isContentEditable && !(parentElement && parentElement.isContentEditable)) return true;
    return node.hasAttribute('onclick') || node.getAttribute('draggable') === 'true';
  };
  const isReached = node => {
    if (node.tagName === 'AREA') return true;
    if (getComputedStyle(node).pointerEvents === 'none') return false;
    const boxes = [node, ...(node.labels || []), ...node.children];
    return boxes.some(each => hasBox(each.getClientRects()) && (each === node ? isDrawn : isVisible)(each));
  };
  const visit = node => {
    if (node.nodeType === 3) {
      const parent = node.parentElement || node.getRootNode().host;
      const isFolded = parent.tagName === 'DETAILS' && !parent.open;
      if (isFolded || !isDrawn(parent) || ![...boxOf(node)].some(each => each.width && each.height)) return;
      say(node.nodeValue, { alone: false, ordered: !parent.closest('label') });
    }
    if (node.nodeType !== 1 || UNREAD.includes(node.tagName)) return;
    if (isActed(node) && isReached(node)) acts.push(node);
    const drawn = isDrawn(node), shown = drawn && hasBox(node.getClientRects());
    if (node.tagName === 'SELECT') {
      const isOpen = node.multiple || node.size > 1;
      for (const each of drawn ? node.options : []) if (isOpen || each.selected) say(each.label);
    } else if (node.tagName === 'INPUT') {
      const hint = BUTTONS.includes(node.type) ? '' : node.placeholder;
      if (shown && !UNTOLD.includes(node.type)) say(node.value || hint || '');
    } else if (node.tagName === 'TEXTAREA') {
      if (shown) say(node.value || node.placeholder || '');
    } else {
      const { display } = getComputedStyle(node);
      const ends = node.tagName === 'BR' || !['inline', 'contents'].includes(display);
      if (ends) end();
      written(node, '::before');
      const given = node.tagName === 'SLOT' ? node.assignedNodes() : [];
      const root = node.shadowRoot || node.__root || node;
      for (const each of given.length ? given : root.childNodes) visit(each);
      written(node, '::after');
      if (ends) end();
    }
  };
  visit(document.body);
  window.__acts = acts;
  window.__refs = [];
  return texts.map(([text, all, ordered]) => [text, all[0], ordered]);
}
