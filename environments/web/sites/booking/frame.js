// The header of all pages, and the two buttons that a place has everywhere: save and compare.
import { day } from "./dates.js";
import { ask, field, find, h, openDialog, plural, saving, say, showErrors } from "./kit.js";

const LINKS = [["/booking/", "Stays"], ["/booking/trips/", "My bookings"], ["/booking/lists/", "Favourites"],
  ["/booking/compare/", "Compare"], ["/booking/vouchers/", "Vouchers"]];

let site = null;

export async function frame() {
  const here = location.pathname;
  const mark = h("span", { class: "mark" });
  mark.innerHTML = `<svg viewBox="0 0 32 32" aria-hidden="true"><path d="M3 17 16 5l13 12v12H3z" fill="currentColor"/>
    <path d="M10 29v-8a6 6 0 0 1 12 0v8" fill="var(--paper)"/><circle cx="16" cy="12.5" r="2" fill="var(--paper)"/></svg>`;
  const links = LINKS.map(([href, text]) => h("a", { href, "aria-current": here === href ? "page" : null }, text));
  document.body.prepend(
    h("a", { class: "skip", href: "#main" }, "Skip to content"),
    h("header", { class: "site" }, h("div", { class: "bar" },
      h("a", { class: "brand", href: "/booking/" }, mark, "Roost"),
      h("nav", { "aria-label": "Roost" }, links),
      h("p", { class: "today", id: "today" }, "Loading…"))));
  const { ok, data } = await ask("site");
  if (!ok) {
    find("#today").textContent = "";
    say(data.error, true);
    throw new Error("The site cannot be read.");
  }
  site = data;
  find("#today").replaceChildren(h("span", {}, `Today is ${day(site.today)}`), h("span", {}, `Signed in as ${site.user.name}`));
  countCompared();
  return site;
}

function countCompared() {
  const link = find('nav [href="/booking/compare/"]');
  link.textContent = site.compare.length ? `Compare (${site.compare.length})` : "Compare";
}

export function compareButton(place) {
  const text = () => (site.compare.includes(place.id) ? "Do not compare" : "Compare");
  const button = h("button", { type: "button", "aria-label": `${text()}: ${place.name}` }, text());
  button.addEventListener("click", async () => {
    const on = !site.compare.includes(place.id);
    const { ok, data } = await saving(button, () => ask("compare", { place: place.id, on })) ?? {};
    if (ok === undefined) return;
    if (ok) site.compare = data.compare;
    say(ok ? `${place.name} ${on ? "is compared now" : "is no longer compared"}.` : data.error, !ok);
    button.textContent = text();
    button.setAttribute("aria-label", `${text()}: ${place.name}`);
    countCompared();
  });
  return button;
}

export function saveButton(place) {
  const text = () => (site.lists.some((row) => row.places.includes(place.id)) ? "Saved" : "Save");
  const button = h("button", { type: "button", "aria-label": `${text()}: ${place.name}` }, text());
  const update = () => {
    button.textContent = text();
    button.setAttribute("aria-label", `${text()}: ${place.name}`);
  };
  button.addEventListener("click", () => openLists(place, update));
  return button;
}

function openLists(place, update) {
  const rows = h("div", { class: "choices" });
  const box = (row) => h("label", { class: "choice" }, h("input", {
    type: "checkbox", checked: row.places.includes(place.id),
    onchange: async (e) => {
      const control = e.target;
      control.disabled = true;
      const { ok, data } = await ask(`lists/${row.id}/places`, { place: place.id, on: control.checked });
      control.disabled = false;
      control.focus();
      if (ok) row.places = data.places;
      else control.checked = !control.checked;
      say(ok ? `${place.name}: ${control.checked ? "saved to" : "taken off"} “${row.name}”.` : data.error, !ok);
      update();
    },
  }), h("span", {}, row.name));
  const draw = () => rows.replaceChildren(...site.lists.map(box));
  const form = h("form", { novalidate: true, class: "line" },
    field("new-list", "New list", h("input", { id: "new-list", name: "name", autocomplete: "off", maxlength: "60" })),
    h("button", { type: "submit" }, "Create and save"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const given = { name: form.elements.name.value, place: place.id };
    const { ok, data } = await saving(find("button", form), () => ask("lists", given)) ?? {};
    if (ok === undefined) return;
    showErrors(form, ok ? {} : data.fields ?? { name: data.error });
    if (!ok) return;
    site.lists.push(data);
    form.reset();
    draw();
    say(`${place.name}: saved to “${data.name}”.`);
    update();
  });
  draw();
  const dialog = openDialog(`Save ${place.name}`, h("fieldset", {}, h("legend", {}, "Lists"), rows), form,
    h("div", { class: "actions" }, h("button", { type: "button", class: "primary", onclick: () => dialog.close() }, "Done")));
}

const WORDS = [[9, "Superb"], [8, "Very good"], [7, "Good"], [0, "Fair"]];

export const rating = (place) => h("p", { class: "rating" }, h("b", {}, place.rating.toFixed(1)), " ",
  WORDS.find(([least]) => place.rating >= least)[1], h("span", { class: "soft" }, ` · ${plural(place.count, "review")}`));
