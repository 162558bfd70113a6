// Filters: what is done with mails that meet conditions, when they come, and if wanted at once.
import { ask, button, choice, confirmIn, failure, field, find, h, openDialog, say, select } from "./parts.js";
import { app, reload } from "./mail.js";

const CONDITIONS = [["from", "From has"], ["to", "To has"], ["subject", "Subject has"], ["words", "Mail has all these words"]];

export function describe(rule) {
  const conditions = [...CONDITIONS.filter(([name]) => rule[name]).map(([name, text]) => `${text} “${rule[name]}”`), rule.has_attachment && "it has an attachment"].filter(Boolean);
  const actions = [rule.label && `add the label ${rule.label}`, rule.archive && "archive it", rule.move && `move it to ${rule.move === "trash" ? "Trash" : rule.move}`, rule.read && "mark it as read", rule.star && "star it"].filter(Boolean);
  return [`If ${conditions.join(", and ")}:`, `${actions.join(", ")}.`];
}

function edit(rule) {
  const texts = CONDITIONS.map(([name, label]) => field(label, h("input", { name, value: rule?.[name] ?? "", autocomplete: "off", id: `rule-${name}` })));
  const label = select([["", "No label"], ...app.me.labels.map((name) => [name, name])], rule?.label ?? "", { name: "label", id: "rule-label" });
  const move = select([["", "Nowhere"], ...app.me.folders.map((name) => [name, name]), ["trash", "Trash"]], rule?.move ?? "", { name: "move", id: "rule-move" });
  const switches = [["archive", "Archive it"], ["read", "Mark it as read"], ["star", "Star it"]].map(([name, text]) => choice(text, { name, checked: rule?.[name] ?? false }));
  const error = h("p", { class: "error", role: "alert" });
  const told = h("p", { class: "soft", role: "status" });
  const read = () => {
    const values = {};
    for (const control of dialog.querySelectorAll("[name]")) values[control.name] = control.type === "checkbox" ? control.checked : control.value;
    return values;
  };
  let turn = 0;
  const count = async () => {
    const mine = ++turn;
    const values = read();
    const query = new URLSearchParams({ from: values.from, to: values.to, subject: values.subject, words: values.words, has_attachment: values.has_attachment ? "1" : "" });
    if (![...query.values()].some(Boolean)) { told.textContent = ""; return; }
    const { ok, data } = await ask(`filters/preview?${query}`);
    if (ok && mine === turn) told.textContent = data.count === 1 ? "1 conversation of the mailbox meets this." : `${data.count} conversations of the mailbox meet this.`;
  };
  const save = async () => {
    const { ok, data } = await ask(rule ? `filters/${rule.id}` : "filters", read());
    if (!ok) { error.textContent = data.error; return; }
    const applied = read().apply ? ` It was applied to ${data.applied} conversation${data.applied === 1 ? "" : "s"}.` : "";
    dialog.close();
    await reload();
    say(`The filter is saved.${applied}`);
  };
  const form = h("form", { novalidate: "", onsubmit: (event) => event.preventDefault() },
    h("fieldset", {}, h("legend", {}, "Which mails"), texts, choice("It has an attachment", { name: "has_attachment", checked: rule?.has_attachment ?? false }), told),
    h("fieldset", {}, h("legend", {}, "What is done with them"), field("Add the label", label), field("Move it to", move), switches),
    choice("Also apply it to the mails that are there", { name: "apply" }), error,
    h("div", { class: "actions" }, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), button("Save filter", save, { class: "primary" })));
  const dialog = openDialog(rule ? "Edit filter" : "New filter", form, { wide: true });
  form.addEventListener("input", count);
  if (rule) count();
}

async function remove(rule) {
  if (!(await confirmIn("Delete this filter?", "Mails that it has changed stay as they are.", "Delete it"))) return;
  const { ok, data } = await ask(`filters/${rule.id}/delete`, {});
  if (!ok) return say(data.error, { bad: true });
  await reload();
  say("The filter was deleted.");
}

function row(rule) {
  const [conditions, actions] = describe(rule);
  return h("li", { class: "card" }, h("div", {}, h("h2", {}, conditions), h("p", {}, actions)),
    h("div", { class: "tools" }, button("Edit", () => edit(rule), { "aria-label": `Edit the filter: ${conditions}` }), button("Delete", () => remove(rule), { "aria-label": `Delete the filter: ${conditions}` })));
}

export async function showFilters(main) {
  const { ok, data } = await ask("filters");
  if (!ok) return main.replaceChildren(h("h1", {}, "Filters"), failure(data.error, reload));
  main.replaceChildren(h("h1", {}, "Filters"), h("p", { class: "soft" }, "All conditions of a filter must be met. A filter leaves spam and trash alone."),
    h("div", { class: "bar" }, button("New filter", () => edit(null), { class: "primary" })),
    data.rows.length ? h("ul", { class: "cards", "aria-label": "Filters" }, data.rows.map(row)) : h("p", { class: "empty" }, "There are no filters."));
  return find("h1", main);
}
