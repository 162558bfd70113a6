// What all pages share: making elements, asking the server, showing what it says.

export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name in node && typeof value !== "string") node[name] = value;
    else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? "" : value);
    }
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const find = (selector, root = document) => root.querySelector(selector);

export async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  const reply = await fetch(path, options);
  const data = await reply.json().catch(() => null);
  return { ok: reply.ok, status: reply.status, data };
}

export const money = (cents) => `€${(cents / 100).toFixed(2)}`;

const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September",
  "October", "November", "December"];
export const monthName = (index) => MONTHS[index];
export function day(iso) {
  if (!iso) return "";
  const [year, month, date] = iso.split("-").map(Number);
  return `${date} ${MONTHS[month - 1]} ${year}`;
}

export function say(text, bad = false) {
  let toast = find("#toast");
  if (!toast) document.body.append(toast = h("div", { id: "toast", role: "status" }));
  toast.className = bad ? "bad" : "";
  toast.textContent = text;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { toast.textContent = ""; }, 6000);
}

export function pager(label, page, pages, go) {
  const button = (text, to, props = {}) =>
    h("button", { type: "button", onclick: () => go(to), ...props }, text);
  const numbers = Array.from({ length: pages }, (_, i) =>
    button(`${i + 1}`, i + 1, { "aria-label": `Page ${i + 1}`, "aria-current": i + 1 === page ? "page" : null }));
  return h("nav", { class: "pages", "aria-label": label, hidden: pages < 2 },
    button("Previous", page - 1, { disabled: page <= 1 }), numbers,
    button("Next", page + 1, { disabled: page >= pages }));
}

// A form's fields are <div class="field"> with a control; errors appear below the control.
export function showErrors(form, errors = {}) {
  for (const old of form.querySelectorAll(".error")) old.remove();
  for (const control of form.querySelectorAll("[aria-invalid]")) {
    control.removeAttribute("aria-invalid");
    control.removeAttribute("aria-errormessage");
  }
  let first = null;
  for (const [name, text] of Object.entries(errors)) {
    const found = form.elements[name];
    const control = found instanceof RadioNodeList ? found[0] : found;
    if (!control) continue;
    const id = `error-${name}`;
    const field = control.closest(".field") ?? control.parentElement;
    field.append(h("p", { class: "error", id }, text));
    control.setAttribute("aria-invalid", "true");
    control.setAttribute("aria-errormessage", id);
    first ??= control;
  }
  first?.focus();
}

export function options(select, values, chosen) {
  select.replaceChildren(...values.map((entry) => {
    const [value, text] = Array.isArray(entry) ? entry : [entry, entry];
    return h("option", { value, selected: value === chosen }, text);
  }));
}

export function askInDialog({ title, text, confirm, danger = false }) {
  return new Promise((resolve) => {
    const close = (answer) => { dialog.close(); dialog.remove(); resolve(answer); };
    const dialog = h("dialog", { "aria-labelledby": "dialog-title", oncancel: () => close(false) },
      h("h2", { id: "dialog-title" }, title), h("p", {}, text),
      h("div", { class: "actions" },
        h("button", { type: "button", onclick: () => close(false) }, "Cancel"),
        h("button", { type: "button", class: danger ? "danger" : "primary", onclick: () => close(true) }, confirm)));
    document.body.append(dialog);
    dialog.showModal();
  });
}
