// What can be done with conversations, of a list or of one that is open.
import { ask, button, choice, day, field, h, menuButton, nextMonday, openDialog, plus, say } from "./parts.js";
import { app } from "./mail.js";

const count = (ids) => (ids.length === 1 ? "1 conversation" : `${ids.length} conversations`);

export async function act(ids, action, value, done, then) {
  if (!ids.length) return say("Select a conversation first.", { bad: true });
  const { ok, data } = await ask("act", { ids, action, value });
  if (!ok) return say(data.error, { bad: true });
  await then();
  say(`${count(ids)} ${done}.`);
}

export async function markRead(ids, unread, then) {
  if (!ids.length) return say("Select a conversation first.", { bad: true });
  const { ok, data } = await ask("read", { ids, unread });
  if (!ok) return say(data.error, { bad: true });
  await then();
  say(`${count(ids)} marked as ${unread ? "unread" : "read"}.`);
}

export function snoozeIn(ids, then) {
  if (!ids().length) return say("Select a conversation first.", { bad: true });
  const today = app.me.today;
  const until = async (value) => {
    const error = dialog.querySelector(".error");
    if (!/^\d{4}-\d\d-\d\d$/.test(value)) { error.textContent = "Write the day as YYYY-MM-DD."; return; }
    const { ok, data } = await ask("act", { ids: ids(), action: "snooze", value });
    if (!ok) { error.textContent = data.error; return; }
    const text = `${count(ids())} snoozed until ${day(value)}.`;
    dialog.close();
    await then();
    say(text);
  };
  const other = h("input", { placeholder: "YYYY-MM-DD", autocomplete: "off" });
  const form = h("form", { novalidate: "", onsubmit: (event) => { event.preventDefault(); until(other.value.trim()); } },
    field("Another day", other, "Write it as YYYY-MM-DD."), h("p", { class: "error", role: "alert" }),
    h("div", { class: "actions" }, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), h("button", { type: "submit", class: "primary" }, "Snooze until then")));
  const quick = [["Tomorrow", plus(today, 1)], ["In three days", plus(today, 3)], ["Next Monday", nextMonday(today)]];
  const dialog = openDialog("Snooze", [h("p", {}, "It leaves the inbox, and comes back at the beginning of the day."),
    h("div", { class: "quick" }, quick.map(([name, value]) => button(`${name}, ${day(value)}`, () => until(value)))), form]);
}

export function labelsIn(ids, given, then) {
  if (!ids().length) return say("Select a conversation first.", { bad: true });
  const boxes = app.me.labels.map((name) => choice(name, { name, checked: given.includes(name) }));
  const save = async () => {
    for (const box of dialog.querySelectorAll("input")) {
      if (box.checked === given.includes(box.name)) continue;
      const { ok, data } = await ask("act", { ids: ids(), action: box.checked ? "label" : "unlabel", value: box.name });
      if (!ok) { dialog.querySelector(".error").textContent = data.error; return; }
    }
    dialog.close();
    await then();
    say("The labels are saved.");
  };
  const dialog = openDialog("Labels", [h("div", { class: "quick" }, boxes), h("p", { class: "error", role: "alert" }),
    h("div", { class: "actions" }, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), button("Save labels", save, { class: "primary" }))]);
}

// The row of buttons over a list or a conversation. `ids` says what they are for, `given` its labels.
export function actionBar({ ids, folder, given, then, left }) {
  const move = (value, done) => act(ids(), "move", value, done, left);
  const places = () => [["Inbox", "inbox"], ["Archive", "archive"], ["Trash", "trash"], ...app.me.folders.map((name) => [name, name])];
  return [
    folder === "archive" ? null : button("Archive", () => move("archive", "archived")),
    folder === "spam" ? button("Not spam", () => move("inbox", "moved to the inbox")) : button("Report spam", () => move("spam", "reported as spam")),
    folder === "trash" ? button("Restore", () => move("inbox", "moved to the inbox")) : button("Delete", () => move("trash", "moved to the trash")),
    menuButton("Move to", () => places().map(([name, value]) => [name, () => move(value, `moved to ${name}`)])),
    button("Labels", () => labelsIn(ids, given(), then)),
    folder === "snoozed" ? button("Wake up", () => act(ids(), "snooze", "", "back in the inbox", left)) : button("Snooze", () => snoozeIn(ids, left)),
    menuButton("Mark as", () => [["Read", () => markRead(ids(), false, then)], ["Unread", () => markRead(ids(), true, left)],
      ["Starred", () => act(ids(), "star", "on", "starred", then)], ["Not starred", () => act(ids(), "star", "off", "unstarred", then)]]),
  ].filter(Boolean);
}
