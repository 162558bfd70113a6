// The address book: entries are found, written, deleted, and merged where one person has two.
import { ask, button, confirmIn, failure, field, find, h, openDialog, say } from "./parts.js";
import { reload } from "./mail.js";

let rows = [];
const lines = (text) => text.split("\n").map((each) => each.trim()).filter(Boolean);

function edit(contact) {
  const control = (name, value) => h("input", { name, value, autocomplete: "off", id: `contact-${name}` });
  const area = (name, value) => { const node = h("textarea", { name, rows: 2, id: `contact-${name}` }); node.value = value; return node; };
  const error = h("p", { class: "error", role: "alert" });
  const save = async () => {
    const get = (name) => find(`[name=${name}]`, dialog).value;
    const { ok, data } = await ask(contact ? `contacts/${contact.id}` : "contacts", { name: get("name"), company: get("company"), notes: get("notes"), emails: lines(get("emails")), phones: lines(get("phones")) });
    if (!ok) { error.textContent = data.error; return; }
    dialog.close();
    await reload();
    say(`${data.name}: saved.`);
  };
  const dialog = openDialog(contact ? "Edit entry" : "New entry", h("form", { novalidate: "", onsubmit: (event) => event.preventDefault() },
    field("Name", control("name", contact?.name ?? "")), field("E-mail addresses", area("emails", contact?.emails.join("\n") ?? ""), "One on each line. The first one is used first."),
    field("Phone numbers", area("phones", contact?.phones.join("\n") ?? ""), "One on each line."), field("Company", control("company", contact?.company ?? "")), field("Notes", area("notes", contact?.notes ?? "")), error,
    h("div", { class: "actions" }, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), button("Save entry", save, { class: "primary" }))), { wide: true });
}

async function remove(contact) {
  if (!(await confirmIn("Delete this entry?", `${contact.name} is taken out of the address book.`, "Delete it"))) return;
  const { ok, data } = await ask(`contacts/${contact.id}/delete`, {});
  if (!ok) return say(data.error, { bad: true });
  await reload();
  say(`${contact.name}: deleted.`);
}

function merge() {
  const chosen = [...document.querySelectorAll(".pick:checked")].map((box) => rows.find((each) => each.id === box.value));
  if (chosen.length < 2) return say("Select two entries or more that are the same person.", { bad: true });
  const radios = chosen.map((each, i) => h("label", { class: "choice" }, h("input", { type: "radio", name: "keep", value: each.id, checked: i === 0 }), `${each.name}, ${each.emails.join(", ")}`));
  const error = h("p", { class: "error", role: "alert" });
  const run = async () => {
    const { ok, data } = await ask("contacts/merge", { ids: chosen.map((each) => each.id), keep: find("input:checked", dialog).value });
    if (!ok) { error.textContent = data.error; return; }
    dialog.close();
    await reload();
    say(`${data.name}: merged.`);
  };
  const dialog = openDialog("Merge entries", [h("fieldset", {}, h("legend", {}, "Which entry stays? Its name and company are kept, and its addresses come first."), radios), error,
    h("div", { class: "actions" }, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), button("Merge", run, { class: "primary" }))]);
}

function row(contact) {
  const first = contact.emails[0] ?? "";
  return h("li", { class: "card" }, h("label", { class: "choice" }, h("input", { type: "checkbox", class: "pick", value: contact.id, "aria-label": `Select ${contact.name}, ${first}` })),
    h("div", {}, h("h2", {}, contact.name), contact.company && h("p", {}, contact.company), contact.emails.map((each) => h("p", { class: "soft" }, each)), contact.phones.map((each) => h("p", { class: "soft" }, each)), contact.notes && h("p", { class: "pre" }, contact.notes)),
    h("div", { class: "tools" }, button("Edit", () => edit(contact), { "aria-label": `Edit ${contact.name}, ${first}` }), button("Delete", () => remove(contact), { "aria-label": `Delete ${contact.name}, ${first}` })));
}

export async function showContacts(main) {
  const filter = h("input", { type: "search", id: "contact-filter", autocomplete: "off" });
  const list = h("ul", { class: "cards", "aria-label": "Contacts" });
  const none = h("p", { class: "empty", role: "status" });
  const { ok, data } = await ask("contacts");
  if (!ok) return main.replaceChildren(h("h1", {}, "Contacts"), failure(data.error, reload));
  rows = data.rows;
  const nodes = rows.map((each) => [JSON.stringify(Object.values(each)).toLowerCase(), row(each)]);
  const show = () => {
    const words = filter.value.trim().toLowerCase();
    for (const [text, node] of nodes) node.hidden = !text.includes(words);
    none.textContent = nodes.every(([, node]) => node.hidden) ? "Nobody in the address book is called so." : "";
  };
  list.append(...nodes.map(([, node]) => node));
  filter.addEventListener("input", show);
  main.replaceChildren(h("div", { class: "head" }, h("h1", {}, "Contacts"), h("p", { class: "soft" }, `${rows.length} entries`)),
    h("div", { class: "bar" }, field("Find a contact", filter), button("New entry", () => edit(null)), button("Merge selected entries", merge)), list, none);
}
