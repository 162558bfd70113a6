// What differs between two texts, line by line.

const MOST_COMPARED = 4_000_000;
const AROUND = 2;

/** The lines without their refs: a page that is drawn again has others. */
const withoutRefs = text => text.replace(/(\\?) ?\[(?:f\d+)?e\d+(?:\]| ([^\]]*\]))/g, (ref, own, states) => (own ? ref : states ? ` [${states}` : '')).split('\n');

/** The lines of both in order: [sign, line], where the sign is ' ', '+' or '-'. Null where there are too many. */
export function lineDiff(before, after) {
  const a = withoutRefs(before), b = withoutRefs(after);
  let start = 0, end = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const was = a.slice(start, a.length - end), now = b.slice(start, b.length - end);
  if (was.length * now.length > MOST_COMPARED) return null;
  const same = line => [' ', line];
  return [...a.slice(0, start).map(same), ...middle(was, now), ...a.slice(a.length - end).map(same)];
}

/** The longest common subsequence of two lists of lines. */
function middle(was, now) {
  const width = now.length + 1, lengths = new Uint32Array((was.length + 1) * width);
  for (let i = was.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      lengths[i * width + j] = was[i] === now[j]
        ? lengths[(i + 1) * width + j + 1] + 1
        : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  const found = [];
  let i = 0, j = 0;
  while (i < was.length || j < now.length) {
    if (i < was.length && j < now.length && was[i] === now[j]) found.push([' ', was[i++], j++]);
    else if (j >= now.length || (i < was.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) found.push(['-', was[i++]]);
    else found.push(['+', now[j++]]);
  }
  return found;
}

/** The changed lines with those around them; a number stands for as many lines that are left out. */
export function foldSame(lines) {
  const near = lines.map(([sign]) => sign !== ' ');
  const keep = near.map((_, at) => near.slice(Math.max(0, at - AROUND), at + AROUND + 1).some(Boolean));
  const found = [];
  for (const [at, line] of lines.entries()) {
    if (keep[at]) found.push(line);
    else if (typeof found.at(-1) === 'number') found[found.length - 1]++;
    else found.push(1);
  }
  return found;
}

export const countSigns = lines => ({
  more: lines.filter(([sign]) => sign === '+').length,
  less: lines.filter(([sign]) => sign === '-').length,
});
