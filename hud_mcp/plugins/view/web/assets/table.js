// A table whose columns sort and whose rows can be filtered. Where there are many, rows outside
// of the screen are in the document but cost no layout (content-visibility in the style sheet).

import { $, el } from './dom.js';
import { plural } from './words.js';

const MANY_ROWS = 150, PIECE = 250;

/** The ids of the heads: column-reward, job-column-mean. */
const prefix = ids => ids.columns.slice(0, -1);

/** What has no value, such as the reward of a failure, stays last in either order. */
function compareBy(value, descending) {
  return (first, second) => {
    const a = value(first), b = value(second);
    if (a === b) return first.number - second.number;
    if (a === null) return 1;
    if (b === null) return -1;
    return (a < b ? -1 : 1) * (descending ? -1 : 1);
  };
}

/**
 * Rows are objects with a `number`, which breaks ties, and a `node`, which is made here when
 * the row is first shown.
 *
 * columns: [{ key, label, value(row), cell(row) -> [nodes], head? }]
 * ids: of the elements that are there already: columns, rows, shown, sort?
 */
export class Table {
  constructor({ columns, ids, noun, sort, descending = false, rowClass = () => null }) {
    this.columns = columns;
    this.noun = noun;
    this.ids = ids;
    this.sort = sort;
    this.descending = descending;
    this.rowClass = rowClass;
    this.rows = [];
    this.filter = () => true;
    this.pages = null; // rows that the server pages, where there are very many
    this.groups = null;
    this.isFiltered = () => false;
    this.open = new Set();
    this.folded = new Set();
    this.toggled = () => {};
    $(ids.columns).replaceChildren(...columns.map(column => this.head(column)));
    if (ids.sort) {
      $(ids.sort).replaceChildren(...columns.map(column =>
        el('option', { value: column.key }, column.label)));
      $(ids.sort).addEventListener('change', () => this.sortBy($(ids.sort).value));
    }
  }

  head(column) {
    return el('th', { scope: 'col', role: 'columnheader', class: column.key, id: `${prefix(this.ids)}-${column.key}` },
      el('button', { type: 'button', click: () => this.sortBy(column.key) }, column.label));
  }

  sortBy(key) {
    this.descending = this.sort === key && !this.descending;
    this.sort = key;
    this.draw();
  }

  show(rows) {
    this.rows = rows;
    this.draw();
  }

  line(kind, cellOf) {
    return el('tr', { role: 'row', class: kind }, ...this.columns.map(column =>
      el(column.isHead ? 'th' : 'td', {
        class: column.key,
        scope: column.isHead ? 'row' : null,
        role: column.isHead ? 'rowheader' : 'cell',
      }, ...cellOf(column))));
  }

  nodeOf(row) {
    row.node ??= this.line(this.rowClass(row), column => column.cell(row));
    return row.node;
  }

  // ---- Groups

  /**
   * Puts rows into groups, or into none.
   *
   * groups: [{ name, title, values?, holds(row), cells({ isFiltered, count, isOpen }) -> { key: [nodes] } }]
   * open: the names of those that are open.
   */
  groupBy(groups, open = []) {
    this.groups = groups;
    this.open = new Set(open);
    this.folded.clear();
  }

  /** A filter opens what it finds, until that is folded. */
  isOpen({ name }) {
    return this.isFiltered() ? !this.folded.has(name) : this.open.has(name);
  }

  toggle(group, wanted = !this.isOpen(group)) {
    const names = this.isFiltered() ? this.folded : this.open;
    if (wanted === this.isFiltered()) names.delete(group.name);
    else names.add(group.name);
  }

  press(group) {
    this.toggle(group);
    const drawn = this.draw();
    this.toggled();
    if (drawn) drawn.then(() => this.focusGroup(group.name));
    else this.focusGroup(group.name);
  }

  focusGroup(name) {
    const button = $(this.idOf(name));
    button?.focus();
    button?.scrollIntoView({ block: 'nearest' });
  }

  idOf(name) {
    return `${this.ids.rows}-group-${this.groups.findIndex(group => group.name === name)}`;
  }

  /** The groups as the rows are sorted, where a group has a value of that column. */
  inOrder() {
    const isSortable = this.groups?.some(group => (group.values?.[this.sort] ?? null) !== null);
    if (!isSortable) return this.groups;
    return this.groups.map((group, number) => ({ group, number }))
      .sort(compareBy(({ group }) => group.values?.[this.sort] ?? null, this.descending))
      .map(({ group }) => group);
  }

  /** A group's head, and its rows where it is open; nothing of one that a filter leaves empty. */
  linesOf(group, shown) {
    const isFiltered = this.isFiltered();
    const inside = shown.filter(group.holds);
    if (isFiltered && !inside.length) return [];
    const head = this.headOf(group, { isFiltered, count: inside.length });
    const copies = row => this.line(this.rowClass(row), column => column.cell(row));
    return [() => head, ...(this.isOpen(group) ? inside.map(row => () => copies(row)) : [])];
  }

  headOf(group, told) {
    const cells = group.cells({ ...told, isOpen: this.isOpen(group) });
    const button = el('button', {
      type: 'button', id: this.idOf(group.name), 'aria-expanded': String(this.isOpen(group)), click: () => this.press(group),
    }, group.title);
    return this.line('group', column => [column.isHead ? button : '', ...(cells[column.key] ?? [])]);
  }

  /** Draws the rows; where the server pages them, it says when they are there. */
  draw() {
    if (this.pages) return this.pages.draw();
    const shown = this.rows.filter(this.filter);
    const { value } = this.columns.find(column => column.key === this.sort);
    shown.sort(compareBy(value, this.descending));
    this.fill(this.inOrder()?.flatMap(group => this.linesOf(group, shown)) ?? shown.map(row => () => this.nodeOf(row)));
    this.drawHeads(shown.length, this.rows.length);
    return undefined;
  }

  /** How many rows are shown, and by which column they are sorted. */
  drawHeads(shown, total) {
    $(this.ids.shown).textContent = shown === total
      ? plural(shown, this.noun)
      : `${shown.toLocaleString('en')} of ${plural(total, this.noun)} shown`;
    for (const { key } of this.columns) {
      const order = key === this.sort ? (this.descending ? 'descending' : 'ascending') : 'none';
      $(`${prefix(this.ids)}-${key}`).setAttribute('aria-sort', order);
    }
    if (this.ids.sort) $(this.ids.sort).value = this.sort;
  }

  /** Puts the first rows in place at once, and the others piece by piece, so that nothing stalls. */
  fill(lines) {
    const body = $(this.ids.rows);
    body.classList.toggle('many', lines.length > MANY_ROWS);
    clearTimeout(this.filling);
    body.replaceChildren(...lines.slice(0, PIECE).map(make => make()));
    const add = start => {
      body.append(...lines.slice(start, start + PIECE).map(make => make()));
      if (start + PIECE < lines.length) this.filling = setTimeout(add, 0, start + PIECE);
    };
    if (lines.length > PIECE) this.filling = setTimeout(add, 0, PIECE);
  }

  /** Moves the focus among the rows' links: the next, the one before, the first, the last. */
  move(key) {
    const rows = [...$(this.ids.rows).children];
    const at = rows.findIndex(row => row.contains(document.activeElement));
    if (this.pages?.leaves(key, at, rows.length)) return;
    const to = { next: at + 1, previous: at - 1, first: 0, last: rows.length - 1 }[key];
    this.focusAt(Math.max(0, Math.min(rows.length - 1, to)));
  }

  /** Brings the focus to a row by its place; -1 is the last. */
  focusAt(place) {
    const row = [...$(this.ids.rows).children].at(place);
    row?.querySelector('a, button')?.focus();
    row?.scrollIntoView({ block: 'nearest' });
  }

  /** Opens or folds the group whose head has the focus; says whether there was anything to do. */
  turn(wanted) {
    const group = this.groups?.find(({ name }) => this.idOf(name) === document.activeElement?.id);
    if (!group || this.isOpen(group) === wanted) return false;
    this.press(group);
    return true;
  }

  /** Answers the keys of a table; says whether it did. */
  pressed(event) {
    const inside = $(this.ids.rows).contains(document.activeElement);
    if (event.key === 'ArrowRight' || event.key === 'ArrowLeft') return this.turn(event.key === 'ArrowRight');
    const key = { j: 'next', k: 'previous' }[event.key] ??
      (inside ? { ArrowDown: 'next', ArrowUp: 'previous', Home: 'first', End: 'last' }[event.key] : undefined);
    if (key === undefined) return false;
    this.move(key);
    return true;
  }
}
