// The innermost element at a place, in frames and shadow roots too.
([x, y, key]) => {
  let root = document, left = x, top = y, hit = null;
  for (;;) {
    const found = root.elementFromPoint(left, top);
    if (!found || found === hit) return hit;
    hit = found;
    let inner = null;
    try { inner = hit.contentDocument; } catch { /* of another origin */ }
    if (inner) {
      const box = hit.getBoundingClientRect();
      left -= box.left + hit.clientLeft;
      top -= box.top + hit.clientTop;
    }
    root = inner || (window[key] ? window[key].rootOf(hit) : hit.shadowRoot);
    if (!root) return hit;
  }
}
