// Whether a field takes a text, and its kind: `refuses`, `fixed` (read only), `barred` (disabled).
(given, text) => {
  const fields = 'input, textarea, select';
  const own = given.isContentEditable || (given.matches && given.matches(fields));
  const label = !own && given.closest && given.closest('label');
  const field = label && label.control || given;
  const tag = field.tagName, kind = field.isContentEditable ? 'words' : tag === 'TEXTAREA' ? 'text'
    : tag === 'SELECT' ? 'select' : tag === 'INPUT' ? field.type : '';
  const barred = !!field.disabled || !!(field.closest && field.closest('[aria-disabled="true"]'));
  const answer = { kind, barred, fixed: !!field.readOnly, refuses: kind === 'select' };
  if (tag !== 'INPUT') return answer;
  const probe = document.implementation.createHTMLDocument('').createElement('input');
  for (const name of ['type', 'min', 'max', 'step']) {
    if (field.hasAttribute(name)) probe.setAttribute(name, field.getAttribute(name));
  }
  try { probe.value = text.trim(); } catch { /* a file's */ }
  const formatted = ['color', 'date', 'datetime-local', 'month', 'number', 'range', 'time', 'week'];
  const pressed = ['button', 'checkbox', 'file', 'hidden', 'image', 'radio', 'reset', 'submit'];
  const changed = probe.value.toLowerCase() !== text.trim().toLowerCase();
  answer.refuses = pressed.includes(kind) || (formatted.includes(kind) && changed);
  return answer;
}
