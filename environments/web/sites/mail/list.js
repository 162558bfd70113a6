// A list of conversations: a folder, a label, or what a search found.
import { ask, button, day, failure, find, h, say } from "./parts.js";
import { act, actionBar, markRead } from "./actions.js";
import { app, go, refreshSide } from "./mail.js";

let view = null;
let rows = [];
let chosen = new Map();

const chosenIds = () => [...chosen.keys()];
const path = (page) => {
  const query = new URLSearchParams(view.q === null ? { folder: view.folder, label: view.label, page } : { q: view.q, page });
  return `threads?${query}`;
};
const pageHash = (page) => (view.q === null ? `#${view.kind === "folder" || view.kind === "label" ? `${view.kind}/${view.label || view.folder}` : view.kind}?page=${page}`
  : `#search?q=${encodeURIComponent(view.q)}&page=${page}`);

export async function showList(main, asked) {
  view = asked;
  chosen = new Map();
  await render(main);
}

async function again() {
  chosen = new Map();
  await refreshSide();
  await render(find("#main"));
  if (document.activeElement === document.body) find("#main").focus();
}

const when = (iso) => (iso.slice(0, 10) === app.me.today ? iso.slice(11, 16) : day(iso).replace(` ${app.me.today.slice(0, 4)}`, ""));

function row(thread) {
  const sender = thread.senders.join(", ");
  const pick = h("input", { type: "checkbox", class: "pick", checked: chosen.has(thread.id), "aria-label": `Select ${thread.subject}, ${sender}, ${day(thread.date)}`,
    onchange: (event) => { choose(thread, event.target.checked); } });
  const star = h("button", { type: "button", class: "star", "aria-pressed": `${thread.starred}`, "aria-label": `Star ${thread.subject}`,
    onclick: () => act([thread.id], "star", thread.starred ? "off" : "on", thread.starred ? "unstarred" : "starred", again) }, thread.starred ? "★" : "☆");
  return h("li", { class: thread.unread ? "row unread" : "row", id: thread.id }, pick, star,
    h("a", { href: `#thread/${thread.id}` },
      h("span", { class: "from" }, thread.unread && h("span", { class: "hidden" }, "Unread: "), sender, thread.count > 1 && h("span", { class: "soft" }, ` (${thread.count})`)),
      h("span", { class: "what" }, thread.labels.map((name) => h("span", { class: "label" }, name)), h("span", { class: "subject" }, thread.subject), h("span", { class: "soft" }, ` – ${thread.snippet}`)),
      h("span", { class: "when" }, thread.files && h("span", { class: "clip" }, "file"),
        thread.snoozed ? `until ${when(`${thread.snoozed}T00:00`).replace("00:00", "today")}` : when(thread.date))));
}

function choose(thread, on) {
  if (on) chosen.set(thread.id, thread);
  else chosen.delete(thread.id);
  tell();
}

function tell() {
  const told = find("#chosen");
  told.textContent = chosen.size ? `${chosen.size} selected` : "";
  const all = find("#all");
  const on = rows.filter((thread) => chosen.has(thread.id)).length;
  all.checked = rows.length > 0 && on === rows.length;
  all.indeterminate = on > 0 && on < rows.length;
  find("#every").hidden = !(all.checked && chosen.size < view.total);
}

function pickPage(on) {
  for (const thread of rows) on ? chosen.set(thread.id, thread) : chosen.delete(thread.id);
  if (!on) chosen.clear();
  for (const box of document.querySelectorAll(".pick")) box.checked = on;
  tell();
}

async function pickEvery() {
  for (let page = 1; page <= view.pages; page += 1) {
    const { ok, data } = await ask(path(page));
    if (!ok) return say(data.error, { bad: true });
    for (const thread of data.rows) chosen.set(thread.id, thread);
  }
  tell();
}

function pager(page, pages) {
  if (pages < 2) return null;
  return h("nav", { class: "pages", "aria-label": "Pages" },
    button("Newer", () => go(pageHash(page - 1)), { disabled: page <= 1 }), h("span", {}, `Page ${page} of ${pages}`),
    button("Older", () => go(pageHash(page + 1)), { disabled: page >= pages }));
}

const givenLabels = () => {
  const lists = [...chosen.values()].map((thread) => thread.labels);
  return lists.length ? lists[0].filter((name) => lists.every((labels) => labels.includes(name))) : [];
};

async function render(main) {
  const mine = view;
  const { ok, data } = await ask(path(view.page));
  if (mine !== view) return;
  if (!ok) return main.replaceChildren(h("h1", {}, view.title), failure(data.error, () => render(main)));
  rows = data.rows;
  Object.assign(view, { total: data.total, pages: data.pages, page: data.page });
  const first = (data.page - 1) * data.size + 1;
  const all = h("input", { type: "checkbox", id: "all", "aria-label": "Select all on this page", onchange: (event) => pickPage(event.target.checked) });
  const title = view.q === null ? view.title : `Search results for ${view.q}`;
  main.replaceChildren(
    h("div", { class: "head" }, h("h1", {}, title), h("p", { class: "soft" }, data.total ? `${first}–${first + rows.length - 1} of ${data.total}` : "")),
    h("div", { class: "bar", role: "group", "aria-label": "Actions" }, all, actionBar({ ids: chosenIds, folder: view.folder, given: givenLabels, then: again, left: again }),
      h("span", { id: "chosen", role: "status" })),
    h("p", { id: "every", hidden: true, class: "notice" }, `All on this page are selected. `, button(`Select all ${data.total} conversations`, pickEvery)),
    rows.length ? h("ul", { class: "rows", "aria-label": title }, rows.map(row))
      : h("p", { class: "empty" }, view.q === null ? "There is nothing here." : "Nothing was found. Use fewer words, or look at the search help."),
    pager(data.page, data.pages) ?? "");
}

const focused = () => document.activeElement?.closest?.(".row");

export function listKey(key) {
  const list = find(".rows");
  if (!list) return false;
  const items = [...list.children];
  const at = items.indexOf(focused());
  if (key === "j" || key === "k") find("a", items[Math.min(Math.max(at + (key === "j" ? 1 : -1), 0), items.length - 1)]).focus();
  else if (key === "x" && at >= 0) find(".pick", items[at]).click();
  else return forChosen(key, at >= 0 ? items[at].id : null);
  return true;
}

function forChosen(key, here) {
  const ids = chosen.size ? chosenIds() : here ? [here] : [];
  const run = { e: ["move", "archive", "archived"], "!": ["move", "spam", "reported as spam"], "#": ["move", "trash", "moved to the trash"] }[key];
  if (run) act(ids, ...run, again);
  else if (key === "u") markRead(ids, true, again);
  else if (key === "s") {
    const on = rows.find((thread) => thread.id === ids[0])?.starred;
    act(ids, "star", on ? "off" : "on", on ? "unstarred" : "starred", again);
  } else return false;
  return true;
}

