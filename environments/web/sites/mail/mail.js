// The frame of the mail client: which view is open, the folders at the side, search, shortcuts.
import { ask, day, failure, find, h, openDialog } from "./parts.js";
import { openComposer } from "./compose.js";
import { showContacts } from "./contacts.js";
import { showDrafts } from "./drafts.js";
import { showFilters } from "./filters.js";
import { listKey, showList } from "./list.js";
import { showSettings } from "./settings.js";
import { showThread, threadKey } from "./thread.js";

const SYSTEM = [["inbox", "Inbox"], ["starred", "Starred"], ["snoozed", "Snoozed"], ["drafts", "Drafts"], ["sent", "Sent"],
  ["archive", "Archive"], ["spam", "Spam"], ["trash", "Trash"]];
const PLACES = [["contacts", "Contacts"], ["filters", "Filters"], ["settings", "Settings"]];
const KEYS = [["c", "Compose a mail"], ["/", "Search"], ["?", "This list"], ["g then i", "Go to the inbox"], ["g then s", "Go to sent mails"],
  ["g then d", "Go to the drafts"], ["g then c", "Go to the contacts"], ["j / k", "Next or previous conversation of a list"],
  ["x", "Select the conversation that has the focus"], ["e", "Archive"], ["!", "Report spam"], ["#", "Move to the trash"],
  ["s", "Star or unstar"], ["u", "Mark as unread"], ["r / a / f", "Reply, reply to all, forward an open conversation"], ["Ctrl Enter", "Send the mail that is written"]];
const OPERATORS = [["from:anna", "The sender's name or address has it"], ["to:anna", "The name or address of somebody who got it has it"],
  ["subject:offer", "The subject has it"], ["has:attachment", "It has an attachment"], ["filename:csv", "An attachment's name has it"],
  ["after:2026-05-01", "It came on that day or later"], ["before:2026-06-01", "It came before that day"],
  ["in:archive", "It is in that folder; in:anywhere takes spam and trash too"], ["label:Team", "It has that label"],
  ["is:unread", "Also is:starred and is:snoozed"], ["\"two words\"", "These words in this order"], ["-word", "Not this; also before an operator"]];

export const app = { me: null, list: "#inbox", turn: 0 };

function parse() {
  const [path, query = ""] = location.hash.slice(1).split("?");
  return { path: decodeURIComponent(path) || "inbox", query: new URLSearchParams(query) };
}

function sideLink(hash, name, count, here) {
  const unread = count?.unread || (hash === "drafts" ? count?.total : 0);
  return h("li", {}, h("a", { href: `#${hash}`, "aria-current": here === hash ? "page" : null, class: count?.unread ? "unread" : "" },
    name, unread ? h("span", { class: "count" }, `${unread}`, h("span", { class: "hidden" }, hash === "drafts" ? " drafts" : " unread")) : null));
}

export async function refreshSide() {
  const { ok, data } = await ask("me");
  if (!ok) return false;
  app.me = data;
  const here = parse().path;
  const own = data.folders.map((name) => [`folder/${name}`, name, data.counts[name]]);
  find("#me").textContent = data.user.name;
  find("#today").textContent = `Today: ${day(data.today, true)}`;
  const section = (title, entries) => [h("h2", {}, title), h("ul", {}, entries.map(([hash, name, count]) => sideLink(hash, name, count, here)))];
  find("#folders").replaceChildren(
    h("ul", {}, SYSTEM.map(([hash, name]) => sideLink(hash, name, data.counts[hash], here))),
    ...section("Folders", own), ...section("Labels", data.labels.map((name) => [`label/${name}`, name])), ...section("More", PLACES));
  return true;
}

const VIEWS = { contacts: showContacts, filters: showFilters, settings: showSettings, drafts: showDrafts };

async function route() {
  const turn = ++app.turn;
  const main = find("#main");
  const { path, query } = parse();
  if (path === "main") return;
  const [kind, key] = path.split("/");
  if (!["thread", "search"].includes(kind)) find("#q").value = "";
  main.replaceChildren(h("p", { class: "soft", role: "status" }, "Loading…"));
  main.setAttribute("aria-busy", "true");
  const known = await refreshSide();
  if (turn !== app.turn) return;
  main.removeAttribute("aria-busy");
  if (!known) return main.replaceChildren(failure("The mailbox cannot be loaded.", route));
  if (kind === "thread") await showThread(main, key);
  else if (VIEWS[kind]) await VIEWS[kind](main, query);
  else {
    app.list = location.hash || "#inbox";
    if (kind === "search") find("#q").value = query.get("q") ?? "";
    const folder = SYSTEM.find(([hash]) => hash === kind);
    const title = kind === "search" ? "Search results" : kind === "label" ? `Label ${key}` : kind === "folder" ? key : folder?.[1];
    if (!title || (kind === "folder" && !app.me.folders.includes(key))) {
      return main.replaceChildren(h("h1", {}, "Not here"), h("p", {}, "There is no such place in this mailbox. "), h("a", { href: "#inbox" }, "Go to the inbox"));
    }
    await showList(main, { title, kind, folder: kind === "folder" ? key : kind, label: kind === "label" ? key : "", q: kind === "search" ? query.get("q") ?? "" : null, page: query.get("page") ?? "1" });
  }
  if (turn !== app.turn) return;
  document.title = `${find("h1", main)?.textContent ?? "Mail"} – Heron Post`;
  if (!document.activeElement || document.activeElement === document.body || !document.activeElement.isConnected) main.focus({ preventScroll: innerWidth > 760 || turn === 1 });
}

export const reload = route;
export function go(hash) {
  if (location.hash === hash) return route();
  location.hash = hash;
  return null;
}

function table(rows) {
  return h("dl", { class: "keys" }, rows.map(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)]));
}
function showHelp(title, rows) {
  const dialog = openDialog(title, [table(rows), h("div", { class: "actions" }, h("button", { type: "button", onclick: () => dialog.close() }, "Close"))]);
}

let gone = false;
const GO = { i: "#inbox", s: "#sent", d: "#drafts", c: "#contacts" };

document.addEventListener("keydown", (event) => {
  if (find("dialog[open]") || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.target.closest("input:not([type=checkbox]), select, textarea, [role=menu]")) return;
  const key = event.key;
  const was = gone;
  gone = key === "g";
  if (was && GO[key]) go(GO[key]);
  else if (gone) return;
  else if (key === "c") openComposer();
  else if (key === "/") find("#q").focus();
  else if (key === "?") showHelp("Keyboard shortcuts", KEYS);
  else if (!threadKey(key) && !listKey(key)) return;
  event.preventDefault();
});

find("#search").addEventListener("submit", (event) => {
  event.preventDefault();
  const words = find("#q").value.trim();
  go(words ? `#search?q=${encodeURIComponent(words)}` : "#inbox");
});
find("#skip").addEventListener("click", (event) => { event.preventDefault(); find("#main").focus(); });
find("#compose").addEventListener("click", () => openComposer());
find("#help").addEventListener("click", () => showHelp("Keyboard shortcuts", KEYS));
find("#search-help").addEventListener("click", () => showHelp("What the search understands", OPERATORS));
window.addEventListener("hashchange", route);
route();
