// The element with the focus, in frames and shadow roots too; null for the page itself.
key => {
  const rootOf = node => window[key] ? window[key].rootOf(node) : node.shadowRoot;
  let node = document.activeElement;
  for (;;) {
    let inner = null;
    try { inner = rootOf(node)?.activeElement || node.contentDocument?.activeElement; } catch {}
    if (!inner || inner === node) break;
    node = inner;
  }
  return node && !['BODY', 'HTML', 'IFRAME'].includes(node.tagName) ? node : null;
}
