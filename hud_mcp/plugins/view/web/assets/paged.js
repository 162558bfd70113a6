// The rows of a job of very many runs: the server filters, sorts and groups them, and sends a page.

import { $ } from './dom.js';
import { plural } from './words.js';

const PAGE_LINES = 100;

const STEPS = { 'first-page': -Infinity, 'previous-page': -PAGE_LINES, 'next-page': PAGE_LINES, 'last-page': Infinity };

/** The buttons that turn the pages of a table; one table of a document has them. */
export class Pager {
  constructor(table) {
    this.table = table;
    for (const [id, by] of Object.entries(STEPS)) $(id).addEventListener('click', () => this.table.pages?.turn(by));
  }

  show(found) {
    const isNeeded = found !== null && found.lines > PAGE_LINES;
    $('pages').hidden = !isNeeded;
    if (!isNeeded) return;
    const { start, lines } = found, end = Math.min(lines, start + PAGE_LINES);
    const number = value => value.toLocaleString('en');
    $('page-place').textContent = `${number(start + 1)} to ${number(end)} of ${plural(lines, 'row')}`;
    for (const [id, by] of Object.entries(STEPS)) $(id).setAttribute('aria-disabled', by < 0 ? start === 0 : end === lines);
  }
}

/**
 * One job's rows as they are looked at.
 *
 * query() gives the filters and the order; ask(query) asks the server; rowOf(row) makes the table's.
 */
export class PagedRows {
  constructor({ table, pager, query, ask, rowOf, failed }) {
    Object.assign(this, { table, pager, query, ask, rowOf, failed });
    this.start = 0;
    this.key = null;
    this.found = null;
    this.wanted = null;
    this.asking = null;
    this.isOld = false;
  }

  /** What is shown is of before: the next time that the table is drawn, it is asked for again. */
  expire() {
    this.isOld = true;
  }

  /** Shows what is wanted now; what was asked for in the meantime is dropped. */
  draw() {
    const { open, folded, ...rest } = this.query();
    const key = JSON.stringify(rest);
    if (key !== this.key) this.start = 0;
    this.key = key;
    const wanted = { ...rest, open, folded, start: this.start, count: PAGE_LINES };
    const asked = JSON.stringify(wanted);
    if (!this.isOld && asked === this.asked) {
      this.pager.show(this.found);
      return this.asking ?? Promise.resolve();
    }
    Object.assign(this, { isOld: false, asked, wanted });
    this.asking ??= this.fetch().finally(() => { this.asking = null; });
    return this.asking;
  }

  async fetch() {
    try {
      while (this.wanted) {
        const { wanted } = this;
        this.wanted = null;
        const found = await this.ask(wanted);
        if (!this.wanted && this.table.pages === this) this.put(found);
      }
    } catch (error) {
      this.expire();
      this.failed(error);
    }
  }

  put(found) {
    const { table } = this, inside = $(table.ids.rows).contains(document.activeElement);
    const { id } = document.activeElement, href = document.activeElement.getAttribute('href');
    this.found = found;
    this.start = found.start;
    const isFiltered = table.isFiltered();
    table.fill(found.rows.map(line => () => (line.group === undefined
      ? table.line(table.rowClass(this.rowOf(line)), column => column.cell(this.rowOf(line)))
      : table.headOf(table.groups[line.group], { isFiltered, count: line.count, why: line.why }))));
    table.drawHeads(found.shown, found.total);
    this.pager.show(found);
    if (!inside) return;
    if (id) $(id)?.focus({ preventScroll: true });
    else [...$(table.ids.rows).querySelectorAll('a')].find(link => link.getAttribute('href') === href)?.focus({ preventScroll: true });
  }

  /** Goes so many lines on; says when it is there. */
  async turn(by) {
    if (!this.found) return;
    const last = Math.floor(Math.max(0, this.found.lines - 1) / PAGE_LINES) * PAGE_LINES;
    const start = Math.max(0, Math.min(last, this.start + by));
    if (start === this.start) return;
    this.start = start;
    await this.draw();
  }

  /** Whether a move of the focus leaves the page; it is made then. */
  leaves(key, at, count) {
    const isFirst = this.start === 0, isLast = !this.found || this.start + PAGE_LINES >= this.found.lines;
    const [by, to] = {
      next: at === count - 1 && !isLast && [PAGE_LINES, 'first'],
      previous: at === 0 && !isFirst && [-PAGE_LINES, 'last'],
      first: !isFirst && [-Infinity, 'first'],
      last: !isLast && [Infinity, 'last'],
    }[key] || [];
    if (!by) return false;
    this.turn(by).then(() => this.table.focusAt(to === 'first' ? 0 : -1));
    return true;
  }
}
