// What all pages share: making elements, asking the server, saying what it says.

export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && typeof value !== "string") node[name] = value;
    else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? "" : value);
    }
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const find = (selector, root = document) => root.querySelector(selector);
export const read = () => new URLSearchParams(location.search);
export const plural = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

// A request's reply; a network that fails is a reply too, with words to show.
export async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  try {
    const reply = await fetch(`/api/booking/${path}`, options);
    const data = await reply.json().catch(() => null);
    return { ok: reply.ok, status: reply.status, data: data ?? { error: "There is nothing at this address." } };
  } catch {
    return { ok: false, status: 0, data: { error: "Roost cannot be reached. Check your connection, and try again." } };
  }
}

export function money(cents) {
  const [euros, rest] = (Math.abs(cents) / 100).toFixed(2).split(".");
  return `${cents < 0 ? "−" : ""}€${euros.replace(/\B(?=(\d{3})+$)/g, ",")}.${rest}`;
}
export const euros = (cents) => money(Math.round(cents / 100) * 100).replace(".00", "");
export const metres = (m) => (m < 1000 ? `${m} m` : `${(m / 1000).toFixed(2).replace(/0$/, "")} km`);

export function say(text, bad = false) {
  let toast = find("#toast");
  if (!toast) document.body.append(toast = h("div", { id: "toast", role: "status" }));
  toast.className = bad ? "bad" : "";
  toast.textContent = text;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { toast.textContent = ""; }, 7000);
}

// While something is saved, its button is shut and says so; focus stays where it was.
export async function saving(button, work) {
  if (button.getAttribute("aria-disabled") === "true") return undefined;
  const text = button.textContent;
  button.setAttribute("aria-disabled", "true");
  button.textContent = "Please wait…";
  try {
    return await work();
  } finally {
    button.removeAttribute("aria-disabled");
    button.textContent = text;
  }
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
    control.removeAttribute("aria-describedby");
  }
  let first = null;
  for (const [name, text] of Object.entries(errors)) {
    const found = form.elements[name];
    const control = found instanceof RadioNodeList ? found[0] : found;
    if (!control) continue;
    const id = `error-${name}`;
    control.closest(".field").append(h("p", { class: "error", id }, text));
    control.setAttribute("aria-invalid", "true");
    control.setAttribute("aria-describedby", id);
    first ??= control;
  }
  first?.focus();
}

// Bring what has changed into view, where it is not.
export function reveal(node) {
  const { top } = node.getBoundingClientRect();
  if (top < 0 || top > innerHeight / 2) node.scrollIntoView();
}

export function options(select, values, chosen) {
  select.replaceChildren(...values.map((entry) => {
    const [value, text] = Array.isArray(entry) ? entry : [entry, entry];
    return h("option", { value, selected: value === chosen }, text);
  }));
}

// A dialog with a title; Escape and "Close" leave it, and the focus goes back to what opened it.
export function openDialog(title, ...content) {
  const opener = document.activeElement;
  const dialog = h("dialog", { "aria-labelledby": "dialog-title" },
    h("h2", { id: "dialog-title" }, title), ...content);
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (opener?.isConnected) opener.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

export function prices(price, extra = "Total") {
  const rows = [
    [plural(price.count, "night"), price.nights], ["Weekly discount", price.weekly],
    ["Voucher", price.voucher], ["Cleaning fee", price.cleaning], ["City tax", price.tax]];
  return h("dl", { class: "prices" },
    rows.filter(([, cents], i) => i === 0 || cents).flatMap(([name, cents]) => [h("dt", {}, name), h("dd", {}, money(cents))]),
    h("dt", { class: "grand" }, extra), h("dd", { class: "grand" }, money(price.total)));
}

export const field = (id, label, control, hint) => h("div", { class: "field" },
  h("label", { for: id }, label), control, hint ? h("p", { class: "hint" }, hint) : null);

export function empty(text, href, link) {
  return h("div", { class: "panel empty" }, h("p", {}, text),
    href ? h("a", { class: "button primary", href }, link) : null);
}
