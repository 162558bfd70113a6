// What all parts of the mail client share: elements, requests, dates, dialogs, menus, messages.

export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name in node && typeof value !== "string") node[name] = value;
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const find = (selector, root = document) => root.querySelector(selector);

const LOST = "The mailbox does not answer. Please try again.";

export async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  try {
    const reply = await fetch(`/api/mail/${path}`, options);
    const data = await reply.json().catch(() => null);
    if (reply.ok && data !== null) return { ok: true, data };
    return { ok: false, data: { error: data?.error ?? (reply.status === 404 ? "This is not there any more." : LOST) } };
  } catch {
    return { ok: false, data: { error: LOST } };
  }
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

export function day(iso, weekday = false) {
  const [year, month, date] = iso.slice(0, 10).split("-").map(Number);
  const name = weekday ? `${WEEKDAYS[new Date(Date.UTC(year, month - 1, date)).getUTCDay()]}, ` : "";
  return `${name}${date} ${MONTHS[month - 1]} ${year}`;
}
export const moment = (iso) => `${day(iso)}, ${iso.slice(11, 16)}`;
export function plus(iso, days) {
  const [year, month, date] = iso.split("-").map(Number);
  return new Date(Date.UTC(year, month - 1, date + days)).toISOString().slice(0, 10);
}
export function nextMonday(iso) {
  const [year, month, date] = iso.split("-").map(Number);
  const weekday = new Date(Date.UTC(year, month - 1, date)).getUTCDay();
  return plus(iso, ((8 - weekday) % 7) || 7);
}

export function say(text, { bad = false, action = null } = {}) {
  const toast = find("#toast");
  toast.className = bad ? "bad" : "";
  toast.replaceChildren(text && h("span", {}, text), action ? h("button", { type: "button", onclick: action.run }, action.name) : "",
    text && h("button", { type: "button", class: "close", "aria-label": "Dismiss message", onclick: () => say("") }, "×"));
}

// Runs work with a button disabled, so that a second click does nothing.
export async function busy(button, work) {
  if (button.disabled) return;
  button.disabled = true;
  button.setAttribute("aria-busy", "true");
  try { await work(); } finally {
    button.disabled = false;
    button.removeAttribute("aria-busy");
  }
}

export const button = (text, run, props = {}) =>
  h("button", { type: "button", ...props, onclick: (event) => busy(event.currentTarget, () => run(event)) }, text);

export function field(label, control, hint = "") {
  control.id ||= `f-${label.toLowerCase().replaceAll(/[^a-z]+/g, "-")}`;
  if (hint) control.setAttribute("aria-describedby", `${control.id}-hint`);
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control,
    hint && h("p", { class: "hint", id: `${control.id}-hint` }, hint));
}
export const choice = (label, props = {}) => h("label", { class: "choice" }, h("input", { type: "checkbox", ...props }), label);
export function select(values, chosen, props = {}) {
  return h("select", props, values.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
}

// A modal dialog: the browser keeps the focus inside; closing gives it back to where it was.
export function openDialog(title, content, { wide = false, closed = () => {}, leave = null } = {}) {
  const before = document.activeElement;
  const id = `dialog-${document.querySelectorAll("dialog").length}`;
  const dialog = h("dialog", { "aria-labelledby": id, class: wide ? "wide" : "" }, h("h2", { id }, title), content);
  dialog.addEventListener("cancel", (event) => { if (leave) { event.preventDefault(); leave(); } });
  dialog.addEventListener("close", () => { dialog.remove(); before?.isConnected ? before.focus() : find("#main").focus(); closed(); });
  document.body.prepend(dialog);
  dialog.showModal();
  return dialog;
}

export function confirmIn(title, text, name) {
  return new Promise((resolve) => {
    let answer = false;
    const end = (value) => { answer = value; dialog.close(); };
    const dialog = openDialog(title, [h("p", {}, text), h("div", { class: "actions" },
      h("button", { type: "button", onclick: () => end(false) }, "Cancel"),
      h("button", { type: "button", class: "primary", onclick: () => end(true) }, name))], { closed: () => resolve(answer) });
  });
}

let shut = () => {};

// A button that opens a menu; arrows go through it, Escape closes it.
export function menuButton(name, items, props = {}) {
  const opener = h("button", { type: "button", "aria-haspopup": "menu", "aria-expanded": "false", ...props }, name);
  const box = h("span", { class: "menu-box" }, opener);
  const close = () => { find(".menu", box)?.remove(); opener.setAttribute("aria-expanded", "false"); };
  const open = () => {
    shut();
    shut = close;
    opener.setAttribute("aria-expanded", "true");
    const list = h("ul", { class: "menu", role: "menu", "aria-label": name }, items().map(([text, run]) =>
      h("li", { role: "none" }, h("button", { type: "button", role: "menuitem", tabindex: "-1", onclick: () => { close(); opener.focus(); run(); } }, text))));
    box.append(list);
    const over = list.getBoundingClientRect().right - document.documentElement.clientWidth;
    if (over > 0) list.style.marginInlineStart = `${-over - 8}px`;
    find("button", list)?.focus();
  };
  opener.addEventListener("click", () => (find(".menu", box) ? close() : open()));
  box.addEventListener("keydown", (event) => {
    const entries = [...box.querySelectorAll("[role=menuitem]")];
    const at = entries.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && entries.length) { event.preventDefault(); entries[(at + step + entries.length) % entries.length].focus(); }
    if (event.key === "Escape" && entries.length) { event.stopPropagation(); close(); opener.focus(); }
    if (event.key === "Tab") close();
  });
  return box;
}
document.addEventListener("click", (event) => { if (!event.target.closest(".menu-box")) shut(); });

export const party = ({ name, email }) => (name && name !== email ? `${name} <${email}>` : email);

export function failure(text, again) {
  return h("div", { class: "notice bad", role: "alert" }, h("p", {}, text), button("Try again", again));
}
