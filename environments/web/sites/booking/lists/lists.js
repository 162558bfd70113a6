import { frame } from "../frame.js";
import { ask, field, find, h, metres, openDialog, plural, saving, say, showErrors } from "../kit.js";

const form = find("#new");

function openRename(row) {
  const button = h("button", { type: "submit", class: "primary" }, "Save the name");
  const rename = h("form", { novalidate: true, class: "stack" },
    field("rename", "Name of the list", h("input", { id: "rename", name: "name", value: row.name, autocomplete: "off", maxlength: "60" })),
    h("div", { class: "actions" }, h("button", { type: "button", onclick: () => dialog.close() }, "Back"), button));
  rename.addEventListener("submit", async (event) => {
    event.preventDefault();
    const { ok, data } = await saving(button, () => ask(`lists/${row.id}/rename`, { name: rename.elements.name.value })) ?? {};
    if (ok === undefined) return;
    showErrors(rename, ok ? {} : data.fields ?? { name: data.error });
    if (!ok) return;
    dialog.close();
    await show();
    say("The list is renamed.");
  });
  const dialog = openDialog("Rename the list", rename);
}

function openDelete(row) {
  const button = h("button", { type: "button", class: "danger" }, "Delete this list");
  button.addEventListener("click", async () => {
    const { ok, data } = await saving(button, () => ask(`lists/${row.id}/delete`, {})) ?? {};
    if (ok === undefined) return;
    dialog.close();
    await show();
    find("#list-name").focus();
    say(ok ? `“${row.name}” is deleted.` : data.error, !ok);
  });
  const dialog = openDialog(`Delete “${row.name}”?`, h("p", {}, "The places stay on Roost, only the list is gone."),
    h("div", { class: "actions" }, h("button", { type: "button", onclick: () => dialog.close() }, "Keep the list"), button));
}

function remover(row, place) {
  const button = h("button", { type: "button", "aria-label": `Remove ${place.name} from ${row.name}` }, "Remove");
  button.addEventListener("click", async () => {
    const { ok, data } = await saving(button, () => ask(`lists/${row.id}/places`, { place: place.id, on: false })) ?? {};
    if (ok === undefined) return;
    if (ok) await show();
    find("#list-name").focus();
    say(ok ? `${place.name} is removed.` : data.error, !ok);
  });
  return button;
}

const line = (row, place) => h("li", {}, h("a", { href: `/booking/place/?id=${place.id}` }, place.name),
  h("span", { class: "soft" }, `${place.kind} · ${plural(place.stars, "star")} · ${place.town} · ${metres(place.centre)} from the centre · ${place.rating.toFixed(1)}`),
  remover(row, place));

const panel = (row) => h("section", { class: "panel", "aria-label": row.name },
  h("div", { class: "row head" }, h("h2", {}, row.name), h("span", { class: "soft" }, plural(row.places.length, "place")),
    h("button", { type: "button", "aria-label": `Rename ${row.name}`, onclick: () => openRename(row) }, "Rename"),
    h("button", { type: "button", "aria-label": `Delete ${row.name}`, onclick: () => openDelete(row) }, "Delete")),
  row.places.length ? h("ul", { class: "lines" }, row.places.map((place) => line(row, place))) : h("p", { class: "soft" }, "Nothing is saved here yet."));

async function show() {
  const { ok, data } = await ask("lists");
  find("#found").textContent = ok ? plural(data.length, "list") : data.error;
  if (ok) find("#lists").replaceChildren(...data.map(panel));
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const { ok, data } = await saving(find("button", form), () => ask("lists", { name: form.elements.name.value })) ?? {};
  if (ok === undefined) return;
  showErrors(form, ok ? {} : data.fields ?? { name: data.error });
  if (!ok) return;
  form.reset();
  await show();
  say(`“${data.name}” is created.`);
});

await frame();
show();
