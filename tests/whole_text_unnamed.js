// The elements to act on that no ref names: neither them, nor the one thing in or around them.
() => {
  const within = (node, other) => {
    for (let each = node; each; each = each.assignedSlot || each.parentNode || each.host) {
      if (each === other) return true;
    }
    return false;
  };
  const acts = window.__acts, refs = window.__refs;
  const labels = (act, ref) => [...(act.labels || [])].some(
    label => within(ref, label) || within(label, ref));
  const names = (act, ref) => ref === act || labels(act, ref)
    || (within(ref, act) && !acts.includes(ref))
    || (within(act, ref) && !acts.some(other => other !== act && other !== ref && within(other, ref)));
  return acts.filter(act => !refs.some(ref => names(act, ref))).map(act => act.outerHTML.slice(0, 200));
}
