// A page's history, and what differs between two of its revisions.
import { address, confirming, find, h, linkTo, moment, notice, read, send, tell, userLink } from "./kit.js";
import { tabs } from "./reading.js";

const size = (change) => h("span", { class: change < 0 ? "less" : "more" }, change > 0 ? `+${change}` : `${change}`.replace("-", "−"));

export async function showHistory(query) {
  const asked = { title: query.get("title") };
  const [page, past] = await Promise.all([read("page", { ...asked, redirect: "no" }), read("history", asked)]);
  if (!past.ok) return { title: "History", nodes: [h("h1", {}, "History"), notice(past.error ?? page.error, true)] };
  const rows = past.data.revisions;
  const place = h("div", {});
  const radio = (name, row, checked) => h("input", { type: "radio", name, value: row.id, checked, "aria-label": `${name === "from" ? "Older" : "Newer"}: ${row.id}` });
  const item = (row, place_) => h("li", {},
    h("span", { class: "pair" }, radio("from", row, place_ === Math.min(1, rows.length - 1)), radio("to", row, place_ === 0)),
    h("span", { class: "what" }, linkTo(asked.title, `Revision ${row.id}`, { revision: row.id }), ` ${moment(row.time)}, `, userLink(row.user), " ",
      row.minor && h("abbr", { title: "a minor edit" }, "m"), " ", size(row.change), h("span", { class: "soft" }, " bytes "),
      row.summary && h("i", {}, `(${row.summary})`)),
    h("span", { class: "row" },
      place_ < rows.length - 1 && linkTo(asked.title, `Changes of ${row.id}`, { view: "compare", from: rows[place_ + 1].id, to: row.id }),
      place_ < rows.length - 1 && linkTo(asked.title, `Undo ${row.id}`, { view: "edit", undo: row.id }),
      place_ > 0 && h("button", { type: "button", class: "quiet", onclick: () => restore(row) }, `Restore ${row.id}`)));
  const restore = async (row) => {
    const sure = await confirming({ title: `Restore revision ${row.id}?`, confirm: "Restore",
      text: `Every edit after ${moment(row.time)} will be gone from the text. It stays in the history.` });
    if (!sure) return;
    const { ok, error } = await send("restore", { title: past.data.title, revision: row.id });
    if (ok) location.assign(address(past.data.title, { note: "restored", redirect: "no" }));
    else tell(place, error);
  };
  const form = h("form", { action: "/wiki/", method: "get" },
    h("input", { type: "hidden", name: "title", value: past.data.title }), h("input", { type: "hidden", name: "view", value: "compare" }),
    h("p", { class: "soft" }, "Pick an older and a newer revision, then compare them."),
    h("button", { type: "submit", class: "primary" }, "Compare revisions"),
    h("ol", { class: "history", reversed: true }, rows.map(item)));
  return { title: `History: ${past.data.title}`, nodes: [tabs(page.data, "history"), h("h1", {}, `History: ${past.data.title}`), place, form] };
}

const line = (kind, parts) => {
  if (parts === null) return h("div", { class: "side none" });
  const tag = kind === "old" ? "del" : "ins";
  const marked = parts.map((part, place) => (place % 2 && part ? h(tag, {}, part) : part));
  return h("div", { class: `side ${kind}` }, h("span", { class: "sign" }, kind === "old" ? "−" : "+",
    h("span", { class: "hidden" }, kind === "old" ? " Before: " : " After: ")), h("span", {}, marked));
};

export function changesOf(rows, older, newer) {
  if (!rows.length) return h("p", {}, `There is no difference between the ${older} and the ${newer}.`);
  return h("div", { class: "changes" }, rows.map((row) => {
    if (row.kind === "place") return h("div", { class: "place soft" }, `Line ${row.new}`);
    if (row.kind === "same") return h("div", { class: "same" }, row.old || " ");
    return h("div", { class: "both" }, line("old", row.old), line("new", row.new));
  }));
}

const headOf = (title, row, words) => h("div", {}, h("h2", {}, words), h("p", {}, linkTo(title, `Revision ${row.id}`, { revision: row.id }),
  ` of ${moment(row.time)}, by `, userLink(row.user)), row.summary && h("p", {}, h("i", {}, row.summary)));

export async function showComparison(query) {
  const asked = Object.fromEntries(["title", "from", "to"].map((name) => [name, query.get(name) ?? ""]));
  const [page, both] = await Promise.all([read("page", { title: asked.title, redirect: "no" }), read("compare", asked)]);
  if (!both.ok) return { title: "Compare", nodes: [h("h1", {}, "Compare"), notice(both.error, true)] };
  const { old, new: fresh, title, rows } = both.data;
  return { title: `Changes: ${title}`, nodes: [tabs(page.data, "history"), h("h1", {}, `Changes: ${title}`),
    h("div", { class: "heads" }, headOf(title, old, "Older"), headOf(title, fresh, "Newer")),
    changesOf(rows, "older revision", "newer one"),
    h("p", { class: "row" }, linkTo(title, "Back to the history", { view: "history" }),
      linkTo(title, `Undo ${fresh.id}`, { view: "edit", undo: fresh.id }))] };
}
