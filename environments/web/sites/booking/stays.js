import { map, picture } from "./art.js";
import { nightsBetween, pickDays, readStay, shortDay } from "./dates.js";
import { compareButton, frame, rating, saveButton } from "./frame.js";
import { ask, empty, euros, find, h, metres, options, pager, plural, read, reveal, showErrors } from "./kit.js";

const FIELDS = ["q", "kind", "stars", "rating", "max", "near"];
const STAY = ["from", "to", "adults", "children", "rooms"];
const form = find("#search");
const filters = find("#filter-form");
let site = null;
let turn = 0;

function change(changes, { keepPage = false } = {}) {
  const query = read();
  if (!keepPage) query.delete("page");
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  history.pushState(null, "", `/booking/${query.size ? `?${query}` : ""}`);
  show();
}

function card(place, index, query, nights) {
  const link = new URLSearchParams({ id: place.id });
  for (const name of STAY.slice(0, 4)) if (query.get(name)) link.set(name, query.get(name));
  const what = `${place.kind} · ${plural(place.stars, "star")} · ${place.town} · ${metres(place.centre)} from the centre`;
  return h("li", { class: "card panel" }, picture(place),
    h("div", { class: "body" },
      h("h2", {}, h("span", { class: "number", "aria-hidden": "true" }, `${index + 1}`), h("a", { href: `/booking/place/?${link}` }, place.name)),
      h("p", {}, what), h("p", { class: "soft" }, place.facilities.join(", ")), h("p", { class: "soft" }, place.policy)),
    h("div", { class: "side" }, rating(place),
      h("p", { class: "price" }, nights ? "" : "from ", h("b", {}, euros(place.price)), " a night"),
      h("p", { class: "soft" }, "without cleaning fee and city tax"),
      h("div", { class: "row" }, saveButton(place), compareButton(place))));
}

function fill(query) {
  for (const name of FIELDS) filters.elements[name].value = query.get(name) ?? "";
  filters.elements.free.checked = query.has("free");
  const asked = (query.get("facilities") ?? "").split(",");
  for (const box of filters.querySelectorAll("#facilities input")) box.checked = asked.includes(box.value);
  form.elements.town.value = query.get("town") ?? "";
  for (const name of ["from", "to"]) form.elements[name].value = query.get(name) ? shortDay(query.get(name)) : "";
  form.elements.adults.value = query.get("adults") ?? "2";
  form.elements.children.value = query.get("children") ?? "0";
  form.elements.rooms.value = query.get("rooms") ?? "1";
  find("#sort").value = query.get("sort") ?? "picks";
}

function words(data, nights) {
  const found = plural(data.total, "place");
  const where = data.town ? ` in ${data.town}` : "";
  const full = data.full ? `; ${data.full} more ${data.full === 1 ? "has" : "have"} no such room free` : "";
  return nights ? `${found}${where} for ${plural(nights, "night")}${full}` : `${found}${where}`;
}

async function show() {
  const query = read();
  const mine = ++turn;
  fill(query);
  find("#found").textContent = "Loading…";
  find("#places").setAttribute("aria-busy", "true");
  const { ok, data } = await ask(`places?${query}`);
  if (mine !== turn) return;
  find("#places").removeAttribute("aria-busy");
  find("#places").hidden = !ok;
  find("#pager").replaceChildren();
  find("#map-button").hidden = !ok || !data.sights;
  find("#map").replaceChildren();
  if (!ok) {
    find("#found").textContent = data.error;
    return;
  }
  const nights = query.get("from") && query.get("to") ? nightsBetween(query.get("from"), query.get("to")) : 0;
  const before = (data.page - 1) * 8;
  find("#places").replaceChildren(...data.rows.map((place, i) => card(place, before + i, query, nights)));
  if (!data.total) find("#places").append(h("li", {}, empty("No place is like this. Take a filter away, or choose other days.")));
  if (data.sights) {
    find("#map").replaceChildren(map(data.town, data.sights,
      data.rows.map((p, i) => ({ x: p.x, y: p.y, name: p.name, mark: `${before + i + 1}` }))));
  }
  find("#pager").replaceChildren(pager("Pages of places", data.page, data.pages, (page) => {
    change({ page: `${page}` }, { keepPage: true });
    find("#main").focus();
    scrollTo({ top: 0 });
  }));
  find("#found").textContent = words(data, nights);
}

function numbers() {
  const errors = {};
  const given = {};
  for (const [name, least, most] of [["adults", 1, 12], ["children", 0, 12], ["rooms", 1, 4]]) {
    const text = form.elements[name].value.trim();
    if (!/^\d+$/.test(text) || Number(text) < least || Number(text) > most) errors[name] = `Write a number from ${least} to ${most}.`;
    given[name] = text;
  }
  return { given, errors };
}

function search(event) {
  event?.preventDefault();
  const dated = form.elements.from.value.trim() || form.elements.to.value.trim();
  const stay = dated ? readStay(form) : { from: "", to: "", errors: {} };
  const { given, errors } = numbers();
  showErrors(form, { ...stay.errors, ...errors });
  if (Object.keys({ ...stay.errors, ...errors }).length) return;
  change({ town: form.elements.town.value, from: stay.from, to: stay.to, ...given });
  reveal(find("#results"));
}

form.addEventListener("submit", search);
find("#pick").addEventListener("click", () => pickDays({
  today: site.today, last: site.last, from: form.elements.from, to: form.elements.to,
}));
filters.addEventListener("submit", (event) => { event.preventDefault(); change({ q: filters.elements.q.value.trim() }); });
for (const name of FIELDS) filters.elements[name].addEventListener("change", (e) => change({ [name]: e.target.value.trim() }));
filters.elements.free.addEventListener("change", (e) => change({ free: e.target.checked ? "1" : "" }));
find("#clear").addEventListener("click", () => change({ ...Object.fromEntries(FIELDS.map((name) => [name, ""])), free: "", facilities: "" }));
find("#sort").addEventListener("change", (e) => change({ sort: e.target.value }));
find("#map-button").addEventListener("click", (e) => {
  const open = find("#map").hidden;
  find("#map").hidden = !open;
  e.target.setAttribute("aria-expanded", `${open}`);
  e.target.textContent = open ? "Hide the map" : "Show the map";
});
addEventListener("popstate", show);
find("#filters").open = matchMedia("(min-width: 900px)").matches;

site = await frame();
options(form.elements.town, [["", "Anywhere"], ...site.towns.map((town) => [town.id, `${town.name}, ${town.region}`])], "");
options(filters.elements.kind, [["", "Any"], ...site.kinds], "");
find("#facilities").replaceChildren(...site.facilities.map((name) => h("label", { class: "choice" },
  h("input", {
    type: "checkbox", value: name,
    onchange: () => change({ facilities: [...filters.querySelectorAll("#facilities input:checked")].map((box) => box.value).join(",") }),
  }), h("span", {}, name))));
show();
