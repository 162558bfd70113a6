// Forms that change a page: the editor, the move, a new topic.
import { address, count, find, h, linkTo, notice, read, send, submitting, tell } from "./kit.js";
import { render } from "./markup.js";
import { changesOf } from "./past.js";
import { tabs } from "./reading.js";

const field = (id, label, control, hint) => h("div", { class: "field" }, h("label", { for: id }, label), control,
  hint && h("p", { class: "soft", id: `${id}-hint` }, hint));
const box = (id, label) => h("label", { class: "choice" }, h("input", { type: "checkbox", id }), label);

async function drafted(query, page) {
  const fresh = { text: page.revision?.text ?? "", summary: "", base: page.newest, said: null };
  const number = query.get("undo");
  if (!number) return fresh;
  const { ok, data, error } = await read("undo", { title: page.title, revision: number });
  if (!ok || data.text === null) return { ...fresh, said: notice(`${error} You can still mend the text by hand.`, true) };
  return { ...fresh, ...data, said: notice(`Edit ${number} is taken out of the text below. Look at the changes, then save.`) };
}

// Finding and replacing within the text, as in any editor; what is said stands beside the buttons.
function replacer(source) {
  const from = h("input", { id: "from", autocomplete: "off" });
  const by = h("input", { id: "by", autocomplete: "off", "aria-describedby": "by-hint" });
  const said = h("span", { role: "status" });
  const replace = () => {
    const parts = from.value ? source.value.split(from.value) : [""];
    source.value = from.value ? parts.join(by.value.replaceAll("\\n", "\n")) : source.value;
    said.textContent = parts.length > 1 ? `${count(parts.length - 1, "place")} replaced. Save the page to keep it.` : "The text does not have this.";
  };
  return h("details", {}, h("summary", {}, "Find and replace"),
    field("from", "Find", from), field("by", "Replace with", by, "Write \\n for a new line."),
    h("div", { class: "row" }, h("button", { type: "button", onclick: replace }, "Replace all"), said));
}

function numbered(source) {
  const list = h("ol", { class: "source" });
  return h("details", { ontoggle: () => list.replaceChildren(...source.value.split("\n").map((line) => h("li", {}, line))) },
    h("summary", {}, "Show the text line by line"), list);
}

export async function showEditor(query) {
  const { ok, data: page, error } = await read("page", { title: query.get("title"), redirect: "no" });
  if (!ok) return { title: "Edit", nodes: [h("h1", {}, "Edit"), notice(error, true)] };
  const draft = await drafted(query, page);
  const place = h("div", {}, draft.said);
  const shown = h("section", { class: "shown", "aria-label": "Preview", hidden: true });
  const source = h("textarea", { id: "text", rows: "20", spellcheck: "false" });
  source.value = draft.text;
  const summary = h("input", { id: "summary", maxlength: "200", autocomplete: "off" });
  summary.value = draft.summary;
  const look = (kind) => async () => {
    const reply = await send("preview", { title: page.title, text: source.value });
    if (!reply.ok) return tell(place, reply.error);
    shown.hidden = false;
    shown.replaceChildren(h("h2", {}, kind === "preview" ? "Preview" : "Your changes"),
      kind === "preview" ? render(source.value, reply.data.missing) : changesOf(reply.data.rows, "newest revision", "your text"));
    shown.scrollIntoView({ block: "nearest" });
  };
  const save = (event) => {
    event.preventDefault();
    submitting(form, "Saving…", async () => {
      const reply = await send("save", { title: page.title, base: draft.base, text: source.value, summary: summary.value,
        minor: find("#minor").checked, watch: find("#watch").checked });
      if (reply.ok) location.assign(address(reply.data.title, { note: "saved", redirect: "no" }));
      else tell(place, reply.error);
    });
  };
  const form = h("form", { class: "editor", onsubmit: save },
    field("text", "Text of the page", source), replacer(source), numbered(source), field("summary", "Edit summary", summary),
    h("div", { class: "row" }, box("minor", "This is a minor edit"), box("watch", "Watch this page")),
    h("div", { class: "row" }, h("button", { type: "submit", class: "primary" }, "Save page"),
      h("button", { type: "button", onclick: look("preview") }, "Preview"),
      h("button", { type: "button", onclick: look("changes") }, "Show changes"),
      linkTo(page.title, "Cancel", { redirect: "no" })));
  const title = `${page.exists ? "Edit" : "Create"}: ${page.title}`;
  return { title, nodes: [tabs(page, "edit"), h("h1", {}, title), place, form, shown] };
}

export async function showMove(query) {
  const { ok, data: page, error } = await read("page", { title: query.get("title"), redirect: "no" });
  if (!ok || !page.exists) return { title: "Move", nodes: [h("h1", {}, "Move"), notice(error ?? "There is no such page.", true)] };
  const place = h("div", {});
  const to = h("input", { id: "to", maxlength: "120", autocomplete: "off", required: true, "aria-describedby": "to-hint" });
  to.value = page.title;
  const reason = h("input", { id: "reason", maxlength: "160", autocomplete: "off" });
  const form = h("form", { onsubmit: (event) => {
    event.preventDefault();
    submitting(form, "Moving…", async () => {
      const reply = await send("move", { title: page.title, to: to.value, reason: reason.value });
      if (reply.ok) location.assign(address(reply.data.title, { note: "moved" }));
      else tell(place, reply.error);
    });
  } },
  field("to", "New title", to, "The history and the talk page move along. The old title becomes a redirect."),
  field("reason", "Reason", reason),
  h("div", { class: "row" }, h("button", { type: "submit", class: "primary" }, "Move page"), linkTo(page.title, "Cancel", { redirect: "no" })));
  return { title: `Move: ${page.title}`, nodes: [tabs(page, "move"), h("h1", {}, `Move: ${page.title}`), place, form] };
}

export async function showTopic(query) {
  const { ok, data: page, error } = await read("page", { title: query.get("title"), redirect: "no" });
  if (!ok) return { title: "New topic", nodes: [h("h1", {}, "New topic"), notice(error, true)] };
  const place = h("div", {});
  const heading = h("input", { id: "heading", maxlength: "120", autocomplete: "off" });
  const words = h("textarea", { id: "words", rows: "6" });
  const form = h("form", { onsubmit: (event) => {
    event.preventDefault();
    submitting(form, "Saving…", async () => {
      const reply = await send("discuss", { title: page.title, heading: heading.value, text: words.value });
      if (reply.ok) location.assign(address(reply.data.title, { note: "topic" }));
      else tell(place, reply.error);
    });
  } },
  field("heading", "Heading", heading), field("words", "Text", words, "Your name and the day are added."),
  h("div", { class: "row" }, h("button", { type: "submit", class: "primary" }, "Add topic"), linkTo(page.title, "Cancel")));
  const said = page.talk ? `The page has ${count(page.talk, "topic")}.` : "Yours is the first topic of the page.";
  return { title: "New topic", nodes: [tabs(page, "talk"), h("h1", {}, `New topic: ${page.title}`), h("p", {}, said), place, form] };
}
