// What all views share: making elements, asking the server, addresses, messages.

export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && typeof value === "boolean") node[name] = value;
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const find = (selector, root = document) => root.querySelector(selector);

export const address = (title, more = {}) => `/wiki/?${new URLSearchParams({ title, ...more })}`;

export const linkTo = (title, text = title, more = {}) => h("a", { href: address(title, more) }, text);

export const userLink = (user) => h("a", { href: `/wiki/?${new URLSearchParams({ view: "recent", user })}` }, user);

const UNREACHABLE = "The wiki cannot be reached. Check your connection, and try again.";

async function receive(path, options) {
  try {
    const reply = await fetch(path, options);
    const data = await reply.json().catch(() => null);
    const error = data?.error ?? (reply.ok && data !== null ? null : "The wiki did not understand this.");
    return { ok: reply.ok && data !== null, status: reply.status, data, error };
  } catch {
    return { ok: false, status: 0, data: null, error: UNREACHABLE };
  }
}

export const read = (path, query = {}) => receive(`/api/wiki/${path}?${new URLSearchParams(query)}`);

export const send = (path, body) => receive(`/api/wiki/${path}`, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
});

const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September",
  "October", "November", "December"];

// "2031-05-12 09:00" is shown as "12 May 2031, 09:00", whatever the browser's language.
export function moment(text) {
  const [day, clock] = text.split(" ");
  const [year, month, date] = day.split("-").map(Number);
  return `${date} ${MONTHS[month - 1]} ${year}${clock ? `, ${clock}` : ""}`;
}

export const count = (number, one, many = `${one}s`) => `${number} ${number === 1 ? one : many}`;

export const notice = (text, bad = false) => h("p", { class: bad ? "notice bad" : "notice", role: bad ? "alert" : "status" }, text);

// Put a message where there is one place for it, instead of the one before.
export function tell(place, text, bad = true) {
  place.replaceChildren(notice(text, bad));
}

// A form is sent once: its buttons rest until the reply is there.
export async function submitting(form, label, work) {
  const buttons = [...form.querySelectorAll("button")];
  if (form.getAttribute("aria-busy") === "true") return;
  const pressed = find("button[type=submit]", form);
  const words = pressed.textContent;
  form.setAttribute("aria-busy", "true");
  for (const button of buttons) button.disabled = true;
  pressed.textContent = label;
  try {
    await work();
  } finally {
    form.removeAttribute("aria-busy");
    for (const button of buttons) button.disabled = false;
    pressed.textContent = words;
  }
}

export function confirming({ title, text, confirm }) {
  return new Promise((resolve) => {
    const close = (answer) => { dialog.close(); dialog.remove(); resolve(answer); };
    const dialog = h("dialog", { "aria-labelledby": "dialog-title", oncancel: () => close(false) },
      h("h2", { id: "dialog-title" }, title), h("p", {}, text),
      h("div", { class: "actions" },
        h("button", { type: "button", onclick: () => close(false) }, "Cancel"),
        h("button", { type: "button", class: "primary", onclick: () => close(true) }, confirm)));
    document.body.append(dialog);
    dialog.showModal();
  });
}
