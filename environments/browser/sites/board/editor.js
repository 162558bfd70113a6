// The dialog that makes and edits a card, with its calendar.
import { ask, day, find, h, monthName, options, say, showErrors } from "/assets/kit.js";

const DAYS = [["Mo", "Monday"], ["Tu", "Tuesday"], ["We", "Wednesday"], ["Th", "Thursday"], ["Fr", "Friday"], ["Sa", "Saturday"], ["Su", "Sunday"]];
let open = { id: null, due: "", month: "", today: "" };

const iso = (year, month, date) => `${year}-${String(month).padStart(2, "0")}-${String(date).padStart(2, "0")}`;

function showDue() {
  find("#due").textContent = open.due ? day(open.due) : "Choose a date";
  find("#due").setAttribute("aria-label", `Due date: ${open.due ? day(open.due) : "none"}`);
  find("#due-clear").hidden = !open.due;
}

function pick(due) {
  open.due = due;
  showCalendar(false);
  showDue();
  find("#due").focus();
}

function turn(months) {
  const [year, month] = open.month.split("-").map(Number);
  const next = new Date(Date.UTC(year, month - 1 + months, 1));
  open.month = iso(next.getUTCFullYear(), next.getUTCMonth() + 1, 1);
  showCalendar(true);
  find(months < 0 ? "#earlier" : "#later").focus();
}

function weeks(year, month) {
  const first = (new Date(Date.UTC(year, month - 1, 1)).getUTCDay() + 6) % 7;
  const length = new Date(Date.UTC(year, month, 0)).getUTCDate();
  const cells = [...Array(first).fill(null), ...Array.from({ length }, (_, i) => i + 1)];
  const rows = [];
  for (let i = 0; i < cells.length; i += 7) rows.push(cells.slice(i, i + 7));
  return rows;
}

function dayButton(year, month, date) {
  const value = iso(year, month, date);
  return h("button", { type: "button", "aria-label": day(value), "aria-pressed": `${value === open.due}`, "aria-current": value === open.today ? "date" : null, onclick: () => pick(value) }, `${date}`);
}

function showCalendar(visible) {
  const box = find("#calendar");
  box.hidden = !visible;
  find("#due").setAttribute("aria-expanded", `${visible}`);
  if (!visible) return;
  const [year, month] = open.month.split("-").map(Number);
  box.replaceChildren(
    h("div", { class: "head" },
      h("button", { type: "button", id: "earlier", "aria-label": "Earlier month", onclick: () => turn(-1) }, "‹"),
      h("strong", { role: "status" }, `${monthName(month - 1)} ${year}`),
      h("button", { type: "button", id: "later", "aria-label": "Later month", onclick: () => turn(1) }, "›")),
    h("table", {}, h("thead", {}, h("tr", {}, DAYS.map(([short, long]) => h("th", { scope: "col", abbr: long }, short)))),
      h("tbody", {}, weeks(year, month).map((week) =>
        h("tr", {}, week.map((date) => h("td", {}, date && dayButton(year, month, date))))))));
}

export function openCard(card, board) {
  const form = find("#edit");
  const due = card?.due ?? "";
  open = { id: card?.id ?? null, due, month: (due || board.today).slice(0, 8) + "01", today: board.today };
  showErrors(form);
  find("#h-card").textContent = card ? "Edit card" : "New card";
  form.elements.title.value = card?.title ?? "";
  options(form.elements.label, [["", "Choose…"], ...board.labels], card?.label ?? "");
  options(form.elements.owner, [["", "Nobody"], ...board.people], card?.owner ?? "");
  showCalendar(false);
  showDue();
  find("#card").showModal();
  form.elements.title.focus();
}

export function setUpEditor(saved) {
  const form = find("#edit");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const given = { ...Object.fromEntries(new FormData(form)), due: open.due };
    const { ok, data } = await ask(open.id ? `/api/board/cards/${open.id}` : "/api/board/cards", given);
    showErrors(form, data.fields);
    if (!ok) return;
    find("#card").close();
    await saved();
    say(open.id ? `${data.title}: saved.` : `${data.title}: added to ${data.column}.`);
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.ctrlKey) form.requestSubmit();
  });
  find("#cancel").addEventListener("click", () => find("#card").close());
  find("#due").addEventListener("click", () => showCalendar(find("#calendar").hidden));
  find("#due-clear").addEventListener("click", () => pick(""));
}
