// Days as this site writes and reads them, whatever the browser's language and clock.
import { find, h, openDialog } from "./kit.js";

const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September",
  "October", "November", "December"];
const PER_DAY = 86_400_000;

const parts = (iso) => iso.split("-").map(Number);
const stamp = (iso) => { const [y, m, d] = parts(iso); return Date.UTC(y, m - 1, d); };
const fromStamp = (ms) => new Date(ms).toISOString().slice(0, 10);

export const addDays = (iso, n) => fromStamp(stamp(iso) + n * PER_DAY);
export const nightsBetween = (from, to) => Math.round((stamp(to) - stamp(from)) / PER_DAY);
export const weekday = (iso) => (new Date(stamp(iso)).getUTCDay() + 6) % 7;
export const monthTitle = (month) => { const [y, m] = parts(month); return `${MONTHS[m - 1]} ${y}`; };

// A day in words; what is no day stays as it is.
export function day(iso) {
  if (!readDay(iso)) return iso;
  const [y, m, d] = parts(iso);
  return `${DAYS[weekday(iso)]} ${d} ${MONTHS[m - 1].slice(0, 3)} ${y}`;
}

export const shortDay = (iso) => (readDay(iso) ? day(iso).slice(4) : iso);

export function addMonths(month, n) {
  const [y, m] = parts(month);
  const at = y * 12 + m - 1 + n;
  return `${Math.floor(at / 12)}-${String(at % 12 + 1).padStart(2, "0")}`;
}

// "Fri 4 Jun 2027", "4 June 2027", "4.6.2027", "4/6/2027" and "2027-06-04" are the same day.
export function readDay(text) {
  const words = text.trim().toLowerCase().replace(/^[a-z]+[,.]?\s+(?=\d)/, "");
  let found = /^(\d{4})-(\d{1,2})-(\d{1,2})$/.exec(words);
  let [y, m, d] = found ? found.slice(1).map(Number) : [];
  if (!found && (found = /^(\d{1,2})[./](\d{1,2})[./](\d{4})$/.exec(words))) [d, m, y] = found.slice(1).map(Number);
  if (!found && (found = /^(\d{1,2})\.?\s+([a-z]{3,})\.?,?\s+(\d{4})$/.exec(words))) {
    m = MONTHS.findIndex((name) => name.toLowerCase().startsWith(found[2])) + 1;
    [d, y] = [Number(found[1]), Number(found[3])];
  }
  if (!found || m < 1 || m > 12) return null;
  const iso = fromStamp(Date.UTC(y, m - 1, d));
  return parts(iso)[2] === d ? iso : null;
}

// The table of a month; `cell` fills each day.
export function monthTable(month, cell) {
  const first = `${month}-01`;
  const count = nightsBetween(first, `${addMonths(month, 1)}-01`);
  const cells = [...Array(weekday(first)).fill(null), ...Array.from({ length: count }, (_, i) => addDays(first, i))];
  const rows = [];
  for (let at = 0; at < cells.length; at += 7) rows.push(cells.slice(at, at + 7));
  return h("table", { class: "month" },
    h("caption", {}, monthTitle(month)),
    h("thead", {}, h("tr", {}, DAYS.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, Array.from({ length: 7 }, (_, i) =>
      row[i] ? cell(row[i]) : h("td", {}))))));
}

// Lets two text fields be filled from a calendar: first the check-in day, then the check-out day.
export function pickDays({ today, last, from, to, done }) {
  let start = null;
  let month = (readDay(from.value) ?? today).slice(0, 7);
  const shown = h("div", { class: "picker" });
  const status = h("p", { role: "status" });
  const dialog = openDialog("Choose your days", status, shown,
    h("div", { class: "actions" }, h("button", { type: "button", onclick: () => dialog.close() }, "Close")));
  const pick = (iso) => {
    if (!start || iso <= start) {
      start = iso;
      draw(iso);
      return;
    }
    from.value = shortDay(start);
    to.value = shortDay(iso);
    dialog.close();
    done?.();
  };
  const draw = (focus) => {
    status.textContent = start ? `Check-in ${day(start)}. Choose the check-out day.` : "Choose the check-in day.";
    const table = monthTable(month, (iso) => h("td", {}, h("button", {
      type: "button", "aria-label": day(iso), "aria-pressed": `${iso === start}`,
      disabled: iso < today || iso > last, onclick: () => pick(iso),
    }, `${parts(iso)[2]}`)));
    const step = (text, n) => h("button", { type: "button", onclick: () => { month = addMonths(month, n); draw(); find(`[data-step="${n}"]`, shown).focus(); }, "data-step": `${n}` }, text);
    shown.replaceChildren(h("div", { class: "row" }, step("Previous month", -1), step("Next month", 1)), table);
    if (focus) find(`[aria-label="${day(focus)}"]`, shown).focus();
  };
  draw();
}

// The two fields of a stay as the query holds them; null, with words at the fields, where wrong.
export function readStay(form) {
  const errors = {};
  const value = (name) => {
    const text = form.elements[name].value;
    const iso = readDay(text);
    if (!iso) errors[name] = text.trim() ? "Write the day as in 12 Jun 2027." : "Write a day, such as 12 Jun 2027.";
    return iso;
  };
  const [from, to] = [value("from"), value("to")];
  if (from && to && to <= from) errors.to = "Check-out must be after check-in.";
  return { from, to, errors };
}
