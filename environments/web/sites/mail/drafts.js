// The list of drafts.
import { ask, button, confirmIn, failure, h, moment, party, say } from "./parts.js";
import { openComposer } from "./compose.js";
import { reload } from "./mail.js";

async function remove(draft) {
  if (!(await confirmIn("Delete this draft?", `The draft ${draft.subject ? `“${draft.subject}”` : "without a subject"} cannot be brought back.`, "Delete it"))) return;
  const { ok, data } = await ask(`drafts/${draft.id}/delete`, {});
  if (!ok) return say(data.error, { bad: true });
  await reload();
  say("The draft was deleted.");
}

function row(draft) {
  const to = draft.to.map(party).join(", ") || "nobody yet";
  const name = `${draft.subject || "(no subject)"}, to ${to}, ${moment(draft.date)}`;
  return h("li", { class: "card" }, h("div", {}, h("h2", {}, draft.subject || "(no subject)"), h("p", { class: "soft" }, `To: ${to} · ${moment(draft.date)}`),
    h("p", { class: "pre" }, draft.body ? draft.body.slice(0, 160) : h("em", {}, "No text"))),
  h("div", { class: "tools" }, button("Edit", () => openComposer(draft), { "aria-label": `Edit ${name}` }), button("Delete", () => remove(draft), { "aria-label": `Delete ${name}` })));
}

export async function showDrafts(main) {
  const { ok, data } = await ask("drafts");
  if (!ok) return main.replaceChildren(h("h1", {}, "Drafts"), failure(data.error, reload));
  main.replaceChildren(h("h1", {}, "Drafts"), data.rows.length ? h("ul", { class: "cards", "aria-label": "Drafts" }, data.rows.map(row)) : h("p", { class: "empty" }, "There are no drafts."));
}
