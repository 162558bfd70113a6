// The board: cards in columns, to be dragged, edited, filtered, or moved with the keyboard.
import { ask, day, find, h, say } from "/assets/kit.js";
import { openCard, setUpEditor } from "./editor.js";
import { makeDraggable } from "./drag.js";

let board = { cards: [], columns: [], labels: [], people: [], today: "" };

async function change(path, body, done) {
  const { ok, data } = await ask(`/api/board/${path}`, body);
  if (!ok) return say(data.error, true);
  await load();
  if (done) say(done);
  return data;
}

const move = (card, column, place) =>
  change(`cards/${card.id}/move`, { column, place }, `${card.title}: moved to ${column}.`);

function menu(card) {
  const item = (text, act) => h("li", { role: "none" }, h("button", { type: "button", role: "menuitem", onclick: act }, text));
  const targets = board.columns.filter((name) => name !== card.column);
  return h("ul", { class: "menu", role: "menu", "aria-label": `Menu of ${card.title}` },
    item("Edit", () => { closeMenus(); edit(card); }),
    item("Duplicate", () => change(`cards/${card.id}/copy`, {}, `${card.title}: duplicated.`)),
    h("li", { role: "none" }, h("button", { type: "button", role: "menuitem", "aria-haspopup": "menu" }, "Move to"),
      h("ul", { class: "menu", role: "menu", "aria-label": "Move to" }, targets.map((name) => item(name, () => move(card, name))))),
    item("Archive", () => change(`cards/${card.id}/archive`, {}, `${card.title}: archived.`)));
}

function closeMenus() {
  for (const open of document.querySelectorAll(".card > .menu")) open.remove();
  for (const button of document.querySelectorAll("[aria-expanded=true].dots")) button.setAttribute("aria-expanded", "false");
}

function toggleMenu(event, card) {
  const button = event.currentTarget;
  const wasOpen = button.getAttribute("aria-expanded") === "true";
  closeMenus();
  if (wasOpen) return;
  button.setAttribute("aria-expanded", "true");
  button.after(menu(card));
}

function show(card) {
  const late = card.due && card.due < board.today && card.column !== "Done";
  const node = h("li", { class: `card label-${card.label}`, id: card.id, tabindex: "0", "aria-label": card.title },
    h("span", { class: "title" }, card.title),
    h("div", { class: "meta" }, h("span", { class: "badge" }, card.label),
      card.due && h("span", { class: late ? "late" : "soft" }, day(card.due)),
      card.owner && h("span", { class: "who", role: "img", "aria-label": `Owner: ${card.owner}` }, card.owner[0])),
    h("button", { type: "button", class: "dots", "aria-haspopup": "menu", "aria-expanded": "false", "aria-label": `Menu of ${card.title}`, onclick: (e) => toggleMenu(e, card) }, "⋯"));
  node.addEventListener("dblclick", (e) => { if (!e.target.closest("button")) edit(card); });
  makeDraggable(node, (column, place) => move(card, column, place));
  return node;
}

function column(name) {
  const words = find("#filter").value.trim().toLowerCase();
  const cards = board.cards.filter((c) => c.column === name && c.title.toLowerCase().includes(words));
  return h("section", { class: "column", "data-name": name, "aria-label": name },
    h("h2", {}, name, h("span", { class: "badge" }, `${cards.length}`)), h("ol", {}, cards.map(show)));
}

function render() {
  const focused = document.activeElement?.closest?.(".card")?.id;
  find("#board").replaceChildren(...board.columns.map(column));
  if (focused) document.getElementById(focused)?.focus();
}

async function load() {
  board = (await ask("/api/board/cards")).data;
  render();
}

const edit = (card) => openCard(card, board);

function neighbour(node, key) {
  const columns = [...document.querySelectorAll(".column")];
  const at = columns.indexOf(node.closest(".column"));
  const cards = [...node.parentElement.children];
  const place = cards.indexOf(node);
  if (key === "ArrowUp") return cards[place - 1];
  if (key === "ArrowDown") return cards[place + 1];
  const step = key === "ArrowLeft" ? -1 : 1;
  for (let i = at + step; columns[i]; i += step) {
    const others = columns[i].querySelectorAll(".card");
    if (others.length) return others[Math.min(place, others.length - 1)];
  }
  return null;
}

function cardKey(event, node) {
  const card = board.cards.find((c) => c.id === node.id);
  const at = board.columns.indexOf(card.column);
  if (event.key.startsWith("Arrow")) neighbour(node, event.key)?.focus();
  else if (event.key === "[" && at > 0) move(card, board.columns[at - 1]);
  else if (event.key === "]" && at < board.columns.length - 1) move(card, board.columns[at + 1]);
  else if (event.key === "e" || event.key === "Enter") edit(card);
  else return false;
  return true;
}

function globalKey(event) {
  if (event.key === "n") openCard(null, board);
  else if (event.key === "/") find("#filter").focus();
  else if (event.key === "?") find("#shortcuts").showModal();
  else return false;
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") closeMenus();
  const typing = event.target.closest("input, select, textarea, button, dialog");
  if (typing || event.ctrlKey || event.altKey || event.metaKey) return;
  const node = event.target.closest(".card");
  if ((node && cardKey(event, node)) || globalKey(event)) event.preventDefault();
});
document.addEventListener("click", (event) => { if (!event.target.closest(".menu, .dots")) closeMenus(); });
find("#filter").addEventListener("input", render);
find("#new").addEventListener("click", () => openCard(null, board));
find("#help").addEventListener("click", () => find("#shortcuts").showModal());
find("#help-close").addEventListener("click", () => find("#shortcuts").close());
setUpEditor(load);
load();
