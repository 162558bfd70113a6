// One conversation: its mails, folded but the last, their attachments, and what to do with it.
import { ask, button, day, failure, find, h, moment, openDialog, party, say } from "./parts.js";
import { act, actionBar, markRead } from "./actions.js";
import { openComposer } from "./compose.js";
import { app, go, refreshSide, reload } from "./mail.js";

let open = null;

export async function showThread(main, id) {
  const { ok, data } = await ask(`threads/${id}`);
  if (!ok) {
    open = null;
    return main.replaceChildren(h("h1", {}, "Conversation"), failure(data.error, reload));
  }
  open = data;
  if (data.unread) {
    await ask("read", { ids: [id], unread: false });
    await refreshSide();
  }
  render(main);
}

const back = () => go(app.list);
const ids = () => [open.id];

function unfold(node, message, on) {
  const body = find(".body", node);
  find(".fold", node).setAttribute("aria-expanded", `${on}`);
  body.hidden = !on;
  find(".snippet", node).hidden = on;
}

function people(message) {
  const line = (name, list) => list.length ? h("p", { class: "soft" }, `${name}: ${list.map(party).join(", ")}`) : null;
  return [h("p", {}, `From: ${party(message.from)}`), line("To", message.to), line("Cc", message.cc), line("Bcc", message.bcc)];
}

async function openFile(attachment) {
  const { ok, data } = await ask(`attachments/${attachment.id}`);
  if (!ok) return say(data.error, { bad: true });
  const rows = data.text.trimEnd().split("\n").map((line) => line.split(","));
  const content = attachment.name.endsWith(".csv")
    ? h("table", { class: "sheet" }, h("thead", {}, h("tr", {}, rows[0].map((cell) => h("th", { scope: "col" }, cell)))),
      h("tbody", {}, rows.slice(1).map((cells) => h("tr", {}, cells.map((cell) => h("td", {}, cell))))))
    : h("pre", {}, data.text);
  const dialog = openDialog(attachment.name, [h("div", { class: "file", tabindex: "0", role: "region", "aria-label": `Content of ${attachment.name}` }, content),
    h("div", { class: "actions" }, h("button", { type: "button", onclick: () => dialog.close() }, "Close"))], { wide: true });
}

function mail(message, place, count) {
  const last = place === count - 1;
  const files = message.attachments.map((each) => h("li", {}, button(`Open ${each.name}`, () => openFile(each)), h("span", { class: "soft" }, ` ${each.bytes} bytes`)));
  const node = h("li", {}, h("article", { class: "mail", "aria-label": `${message.from.name}, ${moment(message.date)}` },
    h("button", { type: "button", class: "fold", "aria-expanded": `${last}` },
      h("span", { class: "from" }, message.from.name), h("span", { class: "snippet soft", hidden: last }, message.body.replaceAll(/\s+/g, " ").slice(0, 70)), h("span", { class: "when" }, moment(message.date))),
    h("div", { class: "body", hidden: !last }, h("div", { class: "people" }, people(message)), h("div", { class: "text" }, message.body),
      files.length ? h("div", { class: "files" }, h("h2", {}, files.length === 1 ? "1 attachment" : `${files.length} attachments`), h("ul", {}, files)) : null,
      last ? null : h("div", { class: "tools" }, button("Reply to this mail", () => reply(message)), button("Forward this mail", () => forward(message))))));
  find(".fold", node).addEventListener("click", () => unfold(node, message, find(".body", node).hidden));
  return node;
}

const mine = (email) => email === app.me.user.email;

function reply(message, everybody = false) {
  const own = mine(message.from.email);
  const to = own ? message.to : [message.from];
  const taken = new Set([...to.map((each) => each.email), app.me.user.email]);
  const cc = everybody ? [...(own ? [] : message.to), ...message.cc].filter((each) => !taken.has(each.email)) : [];
  openComposer({ thread: open.id, subject: `Re: ${open.subject}`, to, cc }, reload);
}

function forward(message) {
  const head = ["", "", "---------- Forwarded mail ----------", `From: ${party(message.from)}`, `Date: ${moment(message.date)}`, `Subject: ${open.subject}`, `To: ${message.to.map(party).join(", ")}`, "", message.body];
  openComposer({ subject: `Fwd: ${open.subject}`, body: head.join("\n"), attachments: message.attachments, forwards: true }, reload);
}

async function leaveList() {
  const { ok, data } = await ask(`unsubscribe/${open.id}`, {});
  if (!ok) return say(data.error, { bad: true });
  await reload();
  say(`${data.sender} will write to you no more.`);
}

function render(main) {
  const last = open.messages.at(-1);
  const count = open.messages.length;
  const place = { inbox: "Inbox", archive: "Archive", spam: "Spam", trash: "Trash", sent: "Sent" }[open.folder] ?? open.folder;
  main.replaceChildren(
    h("p", {}, h("a", { href: app.list, class: "back" }, "‹ Back to the list")),
    h("div", { class: "bar", role: "group", "aria-label": "Actions" }, actionBar({ ids, folder: open.folder, given: () => open.labels, then: reload, left: back })),
    h("div", { class: "head" }, h("h1", {}, open.subject), h("p", { class: "soft" }, `In ${place}`, open.starred ? ", starred" : "", open.snoozed ? `, snoozed until ${day(open.snoozed)}` : "", " ", open.labels.map((name) => h("span", { class: "label" }, name)))),
    open.folder === "spam" ? h("p", { class: "notice bad" }, "This conversation was reported as spam.") : "",
    open.bulk ? h("p", { class: "notice" }, "This mail went to a list. ", open.unsubscribed ? "You have left it." : button("Unsubscribe", leaveList)) : "",
    count > 2 ? h("p", {}, button(`Unfold all ${count} mails`, () => { for (const each of main.querySelectorAll(".fold[aria-expanded=false]")) each.click(); })) : "",
    h("ol", { class: "mails", "aria-label": "Mails of this conversation" }, open.messages.map((each, i) => mail(each, i, count))),
    h("div", { class: "tools end" }, button("Reply", () => reply(last), { class: "primary" }), button("Reply to all", () => reply(last, true)), button("Forward", () => forward(last))));
}

export function threadKey(key) {
  if (!find(".mails") || !open) return false;
  const last = open.messages.at(-1);
  const keys = {
    r: () => reply(last), a: () => reply(last, true), f: () => forward(last),
    e: () => act(ids(), "move", "archive", "archived", back), "!": () => act(ids(), "move", "spam", "reported as spam", back),
    "#": () => act(ids(), "move", "trash", "moved to the trash", back), u: () => markRead(ids(), true, back),
    s: () => act(ids(), "star", open.starred ? "off" : "on", open.starred ? "unstarred" : "starred", reload),
  };
  if (!keys[key]) return false;
  keys[key]();
  return true;
}
