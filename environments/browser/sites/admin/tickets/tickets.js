import { ask, askInDialog, find, h, options, pager, say } from "/assets/kit.js";
import { frame, list } from "../frame.js";

const COLUMNS = [["id", "Number"], ["subject", "Subject"], ["customer", "Customer"], ["topic", "Topic"],
  ["priority", "Priority"], ["status", "Status"], ["assignee", "Assignee"], ["created", "Created"]];
const TONES = { Urgent: "bad", High: "warn", Solved: "good", Waiting: "warn" };
const chosen = new Set();
let shown = [];

const badge = (text) => h("span", { class: `badge ${TONES[text] ?? ""}` }, text);

function mark(ids, on) {
  for (const id of ids) {
    if (on) chosen.add(id);
    else chosen.delete(id);
  }
  refresh();
}

function refresh() {
  find("#bulk").hidden = chosen.size === 0;
  find("#chosen").textContent = `${chosen.size} selected`;
  for (const box of document.querySelectorAll("tbody input")) {
    box.checked = chosen.has(box.value);
    box.closest("tr").classList.toggle("chosen", box.checked);
  }
  const all = find("#all");
  const on = shown.filter((row) => chosen.has(row.id)).length;
  all.checked = shown.length > 0 && on === shown.length;
  all.indeterminate = on > 0 && on < shown.length;
}

function row(ticket) {
  const box = h("input", { type: "checkbox", value: ticket.id, "aria-label": `Select ${ticket.id}`, onchange: (e) => mark([ticket.id], e.target.checked) });
  const link = h("a", { href: `/admin/tickets/edit/?id=${ticket.id}` }, ticket.id);
  return h("tr", {}, h("td", {}, box), h("td", {}, link), h("td", { class: "wrap" }, ticket.subject),
    h("td", {}, ticket.customer), h("td", {}, ticket.topic), h("td", {}, badge(ticket.priority)),
    h("td", {}, badge(ticket.status)), h("td", {}, ticket.assignee || "–"), h("td", {}, ticket.created));
}

function onrows(data, headings) {
  shown = data.rows;
  const every = h("input", { type: "checkbox", id: "all", "aria-label": "Select all on this page", onchange: (e) => mark(shown.map((ticket) => ticket.id), e.target.checked) });
  find("thead").replaceChildren(h("tr", {}, h("th", { scope: "col" }, every), headings));
  find("tbody").replaceChildren(...(data.rows.length ? data.rows.map(row)
    : [h("tr", {}, h("td", { colspan: "9", class: "empty" }, "No ticket matches."))]));
  find("#count").textContent = data.total === 1 ? "1 ticket" : `${data.total} tickets`;
  refresh();
}

function foot(data, go) {
  find("#pager").replaceChildren(pager("Pages of tickets", data.page, data.pages, go));
}

async function apply() {
  const [field, value] = find("#action").value.split(":");
  if (!field) return say("Choose what to do with the selected tickets.", true);
  const ids = [...chosen];
  const what = find("#action").selectedOptions[0].textContent.toLowerCase().replace(value.toLowerCase(), value);
  const noun = ids.length === 1 ? "ticket" : "tickets";
  const sure = await askInDialog({ title: `Change ${ids.length} ${noun}?`, text: `This will ${what}: ${ids.join(", ")}.`, confirm: "Yes, change them" });
  if (!sure) return null;
  const { ok, data } = await ask("/api/admin/tickets/bulk", { ids, field, value });
  if (!ok) return say(data.error, true);
  chosen.clear();
  find("#action").value = "";
  await tickets.load();
  return say(`${data.changed} ${noun} changed.`);
}

const choices = await frame();
options(find("#status"), [["", "Any"], ...choices.status]);
options(find("#topic"), [["", "Any"], ...choices.topic]);
const people = choices.assignee.filter(Boolean);
options(find("#assignee"), [["", "Anybody"], ["nobody", "Nobody yet"], ...people]);
options(find("#action"), [["", "Choose…"],
  ...people.map((name) => [`assignee:${name}`, `Assign to ${name}`]),
  ...choices.priority.map((name) => [`priority:${name}`, `Set priority to ${name}`]),
  ...choices.status.map((name) => [`status:${name}`, `Set status to ${name}`])]);
const tickets = list({ path: "/api/admin/tickets", columns: COLUMNS, table: find("#table"), foot, label: "tickets", onrows });
const filters = ["status", "topic", "assignee"];
for (const name of [...filters, "q"]) find(`#${name}`).value = tickets.read().get(name) ?? "";
for (const name of filters) {
  find(`#${name}`).addEventListener("change", (e) => { chosen.clear(); tickets.change({ [name]: e.target.value }); });
}
find("#tools").addEventListener("submit", (event) => {
  event.preventDefault();
  chosen.clear();
  tickets.change({ q: find("#q").value.trim() });
});
find("#reset").addEventListener("click", () => {
  for (const name of [...filters, "q"]) find(`#${name}`).value = "";
  chosen.clear();
  tickets.change({ status: "", topic: "", assignee: "", q: "", sort: "", order: "" });
});
find("#none").addEventListener("click", () => { chosen.clear(); refresh(); });
find("#apply").addEventListener("click", apply);
tickets.load();
