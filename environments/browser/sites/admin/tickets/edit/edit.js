import { ask, day, find, options, say, showErrors } from "/assets/kit.js";
import { frame } from "../../frame.js";

const form = find("#edit");
const id = new URLSearchParams(location.search).get("id");
const [choices, { ok, data: ticket }] = await Promise.all([frame(), ask(`/api/admin/tickets/${encodeURIComponent(id)}`)]);

if (ok) {
  document.title = `${ticket.id} – Quayside Desk`;
  find("#title").textContent = `Ticket ${ticket.id}`;
  find("#about").textContent = `${ticket.customer}, ${day(ticket.created)}`;
  for (const name of ["status", "priority", "topic"]) options(form.elements[name], choices[name], ticket[name]);
  options(form.elements.assignee, choices.assignee.map((name) => [name, name || "Nobody yet"]), ticket.assignee);
  form.elements.subject.value = ticket.subject;
  form.elements.note.value = ticket.note;
} else {
  find("#title").textContent = "There is no such ticket";
  form.hidden = true;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const saved = await ask(`/api/admin/tickets/${ticket.id}`, Object.fromEntries(new FormData(form)));
  find("#failed").hidden = saved.ok;
  find("#failed").textContent = saved.ok ? "" : saved.data.error;
  showErrors(form, saved.data.fields);
  if (saved.ok) say(`Ticket ${ticket.id} saved.`);
});
