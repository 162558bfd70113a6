// The dialog in which a mail is written: it is kept as a draft until it is sent or discarded.
import { ask, button, busy, field, h, menuButton, openDialog, say } from "./parts.js";
import { app, refreshSide, reload } from "./mail.js";
import { peopleField } from "./recipients.js";

let last = Promise.resolve();
const inTurn = (work) => (last = last.then(work, work));

const plain = (people) => people.map(({ name, email }) => ({ name, email }));

export async function openComposer(given = {}, then = reload) {
  if (document.querySelector("dialog.composer")) return;
  const sheet = { id: given.id ?? null, thread: given.thread ?? null, to: [...(given.to ?? [])], cc: [...(given.cc ?? [])], bcc: [...(given.bcc ?? [])], attachments: [...(given.attachments ?? [])] };
  const signature = app.me?.settings.signature;
  const signed = !given.id && signature?.on ? `\n\n${signature.text}` : "";
  let book = [];
  const changed = () => inTurn(keep);
  const people = Object.fromEntries(["to", "cc", "bcc"].map((name) => [name, peopleField(name[0].toUpperCase() + name.slice(1), sheet[name], () => book, changed)]));
  const subject = h("input", { value: given.subject ?? "", autocomplete: "off", id: "compose-subject" });
  const body = h("textarea", { rows: 11, id: "compose-body" });
  body.value = given.forwards ? `${signed}${given.body}` : `${given.body ?? ""}${signed}`;
  const files = h("ul", { class: "chips", "aria-label": "Attachments" });
  const error = h("p", { class: "error", role: "alert" });
  const state = () => ({ thread: sheet.thread, to: plain(sheet.to), cc: plain(sheet.cc), bcc: plain(sheet.bcc), subject: subject.value, body: body.value, attachments: sheet.attachments.map((each) => each.id) });
  let kept = JSON.stringify(state());
  let ended = false;

  async function keep() {
    if (ended || JSON.stringify(state()) === kept) return true;
    const wanted = state();
    const { ok, data } = await ask(sheet.id ? `drafts/${sheet.id}` : "drafts", wanted);
    if (!ok) { error.textContent = data.error; return false; }
    sheet.id = data.id;
    kept = JSON.stringify(wanted);
    note.textContent = "Draft saved.";
    return true;
  }
  const showFiles = () => {
    files.replaceChildren(...sheet.attachments.map((each, i) => h("li", {}, h("span", {}, each.name),
      h("button", { type: "button", "aria-label": `Remove ${each.name}`, onclick: () => { sheet.attachments.splice(i, 1); showFiles(); changed(); } }, "×"))));
    files.hidden = !sheet.attachments.length;
  };
  const take = () => Object.values(people).every((each) => each.take());
  async function send() {
    error.textContent = "";
    if (!take()) return;
    await inTurn(async () => {
      const { ok, data } = await ask("send", { ...state(), draft: sheet.id });
      if (!ok) { error.textContent = data.error; return; }
      ended = true;
      dialog.close();
      await then();
      say("The mail was sent.", { action: { name: "Undo", run: (event) => busy(event.currentTarget, undo) } });
    });
  }
  async function leave() {
    take();
    if (!(await inTurn(keep))) return;
    const saved = note.textContent;
    ended = true;
    dialog.close();
    await then();
    if (saved) say("The draft was kept.");
  }
  async function discard() {
    await inTurn(async () => {
      ended = true;
      if (sheet.id) await ask(`drafts/${sheet.id}/delete`, {});
      dialog.close();
      await then();
      say("The draft was discarded.");
    });
  }
  const note = h("span", { class: "soft", role: "status" });
  const own = (await ask("files")).data?.rows ?? [];
  const attach = menuButton("Attach a file", () => own.map((each) => [each.name, () => { if (!sheet.attachments.some((a) => a.id === each.id)) sheet.attachments.push(each); showFiles(); changed(); }]));
  const form = h("form", { class: "write", novalidate: "", onsubmit: (event) => event.preventDefault() },
    people.to.node, people.cc.node, people.bcc.node,
    sheet.thread ? h("p", { class: "soft" }, `Subject: ${given.subject}`) : field("Subject", subject),
    field("Text", body), files, error,
    h("div", { class: "actions" }, note, attach, button("Discard draft", discard), button("Close", leave), button("Send", send, { class: "primary" })));
  const title = sheet.thread ? "Reply" : given.forwards ? "Forward" : given.id ? "Draft" : "New mail";
  const dialog = openDialog(title, form, { wide: true, leave });
  dialog.classList.add("composer");
  showFiles();
  subject.addEventListener("change", changed);
  body.addEventListener("change", changed);
  form.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.ctrlKey) send(); });
  if (sheet.to.length) { body.focus(); body.setSelectionRange(0, 0); } else people.to.input.focus();
  const { ok, data } = await ask("contacts");
  if (ok) book = data.rows.flatMap((each) => each.emails.map((email) => ({ name: each.name, email, company: each.company })));
}

async function undo() {
  const { ok, data } = await ask("undo", {});
  if (!ok) return say(data.error, { bad: true });
  await refreshSide();
  say("The mail was taken back. It is among the drafts.");
  await openComposer(data);
}
