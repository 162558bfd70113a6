// Making elements. What was recorded is untrusted: it reaches a page as text nodes and as
// the values of attributes named here, never as markup, a style or an address.

export const $ = id => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') node.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? '' : value);
    }
  }
  node.append(...children.filter(child => child !== null));
  return node;
}

export const el = (name, attributes = {}, ...children) =>
  fill(document.createElement(name), attributes, children);

export const svg = (name, attributes = {}, ...children) =>
  fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);

export function say(node, text) {
  node.textContent = text ?? '';
  node.hidden = !text;
}

export function facts(node, items) {
  node.replaceChildren(...items.filter(Boolean).map(item => el('span', {}, item)));
}

/** Whether a key that was pressed belongs to what has the focus. */
export function isTyping(event) {
  const { target } = event;
  return target instanceof HTMLElement && target.matches('input:not([type=range]), select, textarea');
}
