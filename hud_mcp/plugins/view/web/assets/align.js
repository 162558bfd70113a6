// Which steps of two runs belong together, by what was done in them.

const MOST_PAIRS = 1_000_000;

/** What is done, and on what or with what: a click's words without the click. */
function partsOf(words) {
  const [verb] = words.split(' ', 1);
  return { words, verb, target: words.slice(verb.length).trim() };
}

/** How well two steps go together: the same, on the same target, the same kind, or neither. */
function likeness(one, other) {
  if (one.words === other.words) return 8;
  if (one.target && one.target === other.target) return 5;
  return one.verb === other.verb ? 2 : -1;
}

/** Pairs of places in two lists of words, in order; null stands where one run has no such step. */
export function alignSteps(first, second) {
  const wide = second.length + 1;
  if (first.length * second.length > MOST_PAIRS) {
    return Array.from({ length: Math.max(first.length, second.length) }, (_, at) =>
      [at < first.length ? at : null, at < second.length ? at : null]);
  }
  const [ours, theirs] = [first, second].map(list => list.map(partsOf));
  const best = new Int32Array((first.length + 1) * wide);
  for (let i = first.length - 1; i >= 0; i--) {
    for (let j = second.length - 1; j >= 0; j--) {
      best[i * wide + j] = Math.max(likeness(ours[i], theirs[j]) + best[(i + 1) * wide + j + 1], best[(i + 1) * wide + j], best[i * wide + j + 1]);
    }
  }
  const pairs = [];
  let i = 0, j = 0;
  while (i < first.length && j < second.length) {
    const here = best[i * wide + j];
    if (here === likeness(ours[i], theirs[j]) + best[(i + 1) * wide + j + 1]) pairs.push([i++, j++]);
    else if (here === best[(i + 1) * wide + j]) pairs.push([i++, null]);
    else pairs.push([null, j++]);
  }
  while (i < first.length) pairs.push([i++, null]);
  while (j < second.length) pairs.push([null, j++]);
  return pairs;
}
