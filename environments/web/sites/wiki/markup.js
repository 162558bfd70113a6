// From the wiki's markup to elements. Text is only ever added as text.
import { address, h } from "./kit.js";

const INLINE = /'''(.+?)'''|''(.+?)''|\[\[([^[\]|]+)(?:\|([^[\]]*))?\]\]|<ref>(.*?)<\/ref>/;

const tidy = (title) => {
  const words = title.replaceAll("_", " ").trim().replace(/\s+/g, " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
};

function inline(text, page) {
  const nodes = [];
  let rest = text;
  for (let match = INLINE.exec(rest); match; match = INLINE.exec(rest)) {
    nodes.push(rest.slice(0, match.index), element(match, page));
    rest = rest.slice(match.index + match[0].length);
  }
  return [...nodes, rest].filter((node) => node !== "" && node !== null);
}

function element([, bold, italic, target, words, source], page) {
  if (bold !== undefined) return h("b", {}, inline(bold, page));
  if (italic !== undefined) return h("i", {}, inline(italic, page));
  if (source !== undefined) return reference(source, page);
  const title = tidy(target);
  if (title.startsWith("Category:")) return null;
  const missing = page.missing.has(title);
  return h("a", {
    href: address(title, missing ? { view: "edit" } : {}), class: missing ? "missing" : null,
    title: missing ? `${title}: no such page yet` : null,
  }, words || target);
}

function reference(source, page) {
  page.sources.push(source);
  const number = page.sources.length;
  return h("sup", {}, h("a", { href: `#source-${number}`, "aria-label": `Source ${number}` }, `[${number}]`));
}

function infobox(lines, page) {
  const fields = lines.map((line) => /^\|\s*([^=]+?)\s*=\s*(.*)$/.exec(line)).filter(Boolean);
  const name = fields.find(([, field]) => field === "name")?.[2] ?? "";
  return h("table", { class: "infobox" }, h("caption", {}, inline(name, page)),
    h("tbody", {}, fields.filter(([, field]) => field !== "name").map(([, field, value]) =>
      h("tr", {}, h("th", { scope: "row" }, field), h("td", {}, inline(value, page))))));
}

function table(lines, page) {
  const rows = [[]];
  for (const line of lines) {
    if (line.startsWith("|-")) rows.push([]);
    else if (line.startsWith("!")) rows.at(-1).push(...line.slice(1).split("!!").map((cell) => ["th", cell]));
    else if (line.startsWith("|")) rows.at(-1).push(...line.slice(1).split("||").map((cell) => ["td", cell]));
  }
  const made = rows.filter((row) => row.length).map((row) => h("tr", {}, row.map(([tag, cell]) =>
    h(tag, tag === "th" ? { scope: "col" } : {}, inline(cell.trim(), page)))));
  return h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Table" }, h("table", {}, h("tbody", {}, made)));
}

// Takes lines from the front up to the one that ends a block; a block without an end goes on to the last.
function block(lines, last) {
  const end = lines.findIndex((line) => line.trim() === last);
  const inside = lines.splice(0, end < 0 ? lines.length : end + 1);
  return end < 0 ? inside : inside.slice(0, -1);
}

function next(lines, page) {
  const line = lines.shift();
  const heading = /^(={2,4})\s*(.+?)\s*={2,4}\s*$/.exec(line);
  if (heading) {
    const id = heading[2].toLowerCase().replaceAll(" ", "-");
    if (heading[1].length === 2) page.headings.push([id, heading[2]]);
    return h(`h${heading[1].length}`, { id }, inline(heading[2], page));
  }
  if (line.startsWith("{{Infobox")) return infobox(block(lines, "}}"), page);
  if (line.startsWith("{|")) return table(block(lines, "|}"), page);
  if (line.startsWith("* ")) {
    const items = [line];
    while (lines[0]?.startsWith("* ")) items.push(lines.shift());
    return h("ul", {}, items.map((item) => h("li", {}, inline(item.slice(2), page))));
  }
  const nodes = inline(line, page);
  return nodes.length ? h("p", {}, nodes) : null;
}

export function render(text, missing = []) {
  const page = { missing: new Set(missing), sources: [], headings: [] };
  const lines = text.split("\n");
  const nodes = [];
  while (lines.length) nodes.push(next(lines, page));
  const body = h("div", { class: "text" }, nodes);
  if (page.headings.length > 2) {
    const list = page.headings.map(([id, words]) => h("li", {}, h("a", { href: `#${id}` }, words)));
    const contents = h("nav", { class: "contents", "aria-label": "Contents" }, h("ol", {}, list));
    body.insertBefore(contents, body.querySelector("h2"));
  }
  if (page.sources.length) {
    body.append(h("h2", { id: "sources" }, "Sources"), h("ol", { class: "sources" },
      page.sources.map((source, place) => h("li", { id: `source-${place + 1}` }, source))));
  }
  return body;
}
