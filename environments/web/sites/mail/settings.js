// Settings: the signature, and the reply that is sent while the owner is away.
import { ask, button, choice, failure, field, find, h, say } from "./parts.js";
import { reload } from "./mail.js";

const area = (name, value, id) => { const node = h("textarea", { name, rows: 4, id }); node.value = value; return node; };

function section(title, path, controls, name) {
  const error = h("p", { class: "error", role: "alert" });
  const form = h("form", { class: "panel", "aria-label": title, novalidate: "", onsubmit: (event) => event.preventDefault() }, h("h2", {}, title), controls, error, h("div", { class: "actions" }));
  const save = async () => {
    const values = {};
    for (const control of form.querySelectorAll("[name]")) values[control.name] = control.type === "checkbox" ? control.checked : control.value;
    error.textContent = "";
    const { ok, data } = await ask(`settings/${path}`, values);
    if (!ok) { error.textContent = data.error; return; }
    await reload();
    say(`${title}: saved.`);
  };
  find(".actions", form).append(button(name, save, { class: "primary" }));
  return form;
}

export async function showSettings(main) {
  const { ok, data } = await ask("settings");
  if (!ok) return main.replaceChildren(h("h1", {}, "Settings"), failure(data.error, reload));
  const { signature, vacation } = data;
  const text = (name, value) => h("input", { name, value, autocomplete: "off", id: `vacation-${name}` });
  main.replaceChildren(h("h1", {}, "Settings"),
    section("Vacation reply", "vacation", [
      choice("Send a reply while I am away", { name: "on", checked: vacation.on }),
      field("First day", text("first", vacation.first), "Write it as YYYY-MM-DD."), field("Last day", text("last", vacation.last), "The last day on which the reply is sent, as YYYY-MM-DD. Empty: until it is turned off."),
      field("Subject of the reply", text("subject", vacation.subject)), field("Text of the reply", area("text", vacation.text, "vacation-text")),
      choice("Reply only to people in my contacts", { name: "contacts_only", checked: vacation.contacts_only })], "Save vacation reply"),
    section("Signature", "signature", [choice("Add the signature to new mails", { name: "on", checked: signature.on }), field("Text of the signature", area("text", signature.text, "signature-text"))], "Save signature"));
}
