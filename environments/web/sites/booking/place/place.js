import { distances, map, picture } from "../art.js";
import { addDays, day, pickDays, readDay, readStay, shortDay } from "../dates.js";
import { compareButton, frame, rating, saveButton } from "../frame.js";
import { ask, empty, euros, field, find, h, money, plural, prices, read, reveal, showErrors } from "../kit.js";
import { calendar } from "./calendar.js";
import { reviews } from "./reviews.js";

let site = null;
let turn = 0;

const input = (name, value, more = {}) => h("input", { id: name, name, value, autocomplete: "off", ...more });

function stayForm(query) {
  const when = (name) => (query.get(name) ? shortDay(query.get(name)) : "");
  const form = h("form", { class: "search", novalidate: true, "aria-label": "Your stay" },
    field("from", "Check-in", input("from", when("from"), { placeholder: "12 Jun 2027" })),
    field("to", "Check-out", input("to", when("to"), { placeholder: "15 Jun 2027" })),
    field("adults", "Adults", input("adults", query.get("adults") ?? "2", { inputmode: "numeric" })),
    field("children", "Children", input("children", query.get("children") ?? "0", { inputmode: "numeric" })),
    h("div", { class: "row" }, h("button", { type: "submit", class: "primary" }, "Show prices"),
      h("button", { type: "button", id: "pick" }, "Calendar")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const { from, to, errors } = readStay(form);
    for (const [name, least] of [["adults", 1], ["children", 0]]) {
      const text = form.elements[name].value.trim();
      if (!/^\d+$/.test(text) || Number(text) < least || Number(text) > 12) errors[name] = `Write a number from ${least} to 12.`;
    }
    showErrors(form, errors);
    if (Object.keys(errors).length) return;
    const next = new URLSearchParams({ id: query.get("id"), from, to,
      adults: form.elements.adults.value.trim(), children: form.elements.children.value.trim() });
    history.pushState(null, "", `/booking/place/?${next}`);
    showRooms();
    reveal(find("#h-rooms"));
  });
  find("#pick", form).addEventListener("click", () => pickDays({
    today: site.today, last: site.last, from: form.elements.from, to: form.elements.to,
  }));
  return form;
}

function reserve(event, place, room, query) {
  event.preventDefault();
  const form = event.target;
  const units = [...form.querySelectorAll("input:checked")].map((box) => box.value);
  const problem = find(".problem", form);
  const people = Number(query.get("adults") ?? 2) + Number(query.get("children") ?? 0);
  problem.textContent = "";
  if (!units.length) problem.textContent = "Choose a room first.";
  else if (people > room.sleeps * units.length) {
    problem.textContent = `${plural(people, "person", "people")} do not fit. Choose more rooms, or a larger one.`;
  }
  if (problem.textContent) return;
  const next = new URLSearchParams({ place: place.id, room: room.id, units: units.join(","), from: query.get("from"),
    to: query.get("to"), adults: query.get("adults") ?? "2", children: query.get("children") ?? "0" });
  location.assign(`/booking/checkout/?${next}`);
}

function roomPanel(place, room, query) {
  const head = [h("h3", {}, room.name), h("p", {}, `${room.beds} · sleeps up to ${room.sleeps}`)];
  if (!room.price) {
    return h("li", { class: "panel room" }, h("div", {}, head), h("p", {}, "from ", h("b", {}, euros(room.base)), " a night"));
  }
  if (!room.free.length) {
    return h("li", { class: "panel room" }, h("div", {}, head, h("p", { class: "badge bad" }, "Not free on these days")));
  }
  const form = h("form", { onsubmit: (event) => reserve(event, place, room, query), "aria-label": room.name },
    h("fieldset", {}, h("legend", {}, "Free rooms"), h("div", { class: "units" }, room.free.map((unit) =>
      h("label", { class: "choice" }, h("input", { type: "checkbox", value: `${unit}`, "aria-label": `${room.name} no. ${unit}` }), h("span", {}, `No. ${unit}`))))),
    h("p", { class: "problem", role: "alert" }),
    h("button", { type: "submit", class: "primary", "aria-label": `Reserve ${room.name}` }, "Reserve"));
  return h("li", { class: "panel room" },
    h("div", {}, head, room.fits ? null : h("p", { class: "badge warn" }, "One such room is too small for all of you"), form),
    prices(room.price, "Total for one room"));
}

async function showRooms() {
  const query = read();
  const mine = ++turn;
  const box = find("#rooms");
  find("#rooms-say").textContent = "Loading…";
  const { ok, data } = await ask(`places/${query.get("id")}?${query}`);
  if (mine !== turn) return;
  const fault = ok ? data.fault : data.error;
  find("#rooms-say").textContent = fault ?? (query.get("from")
    ? `${day(query.get("from"))} to ${day(query.get("to"))}, ${plural(Number(query.get("adults") ?? 2), "adult")}, ${plural(Number(query.get("children") ?? 0), "child", "children")}`
    : "Choose your days to see which rooms are free, and what they cost in all.");
  box.replaceChildren(...(fault ? [] : data.rooms.map((room) => roomPanel(data, room, query))));
}

function rules(place) {
  const festival = place.festival;
  const until = addDays(festival.from, festival.nights);
  return h("ul", { class: "rules" },
    h("li", {}, place.policy),
    h("li", {}, place.cleaning ? `Cleaning fee: ${money(place.cleaning)} for each room and stay.` : "No cleaning fee."),
    h("li", {}, `City tax of ${place.town}: ${money(place.tax)} for each adult and night. Children pay none.`),
    h("li", {}, place.weekly ? `From 7 nights on, ${place.weekly} % off the price of the nights.` : "No discount for long stays."),
    h("li", {}, place.weekend ? `Nights from Friday and from Saturday cost ${place.weekend} % more.` : "Weekends cost no more than other days."),
    h("li", {}, `During ${festival.name}, ${day(festival.from)} to ${day(until)}, nights cost ${festival.rise} % more.`),
    h("li", {}, "Rooms whose numbers follow one another, such as 103 and 104, are next to each other."));
}

const section = (id, title, ...content) => h("section", { "aria-labelledby": id, class: "block" }, h("h2", { id }, title), ...content);

async function start() {
  const query = read();
  site = await frame();
  const { ok, data: place } = await ask(`places/${query.get("id")}`);
  if (!ok) {
    find("#name").textContent = "There is no such place";
    find("#content").replaceChildren(empty(place.error, "/booking/", "Look at all places"));
    return;
  }
  document.title = `${place.name} – Roost`;
  find("#name").textContent = place.name;
  find("#content").replaceChildren(
    h("div", { class: "row head" }, h("p", {}, `${place.kind} · ${plural(place.stars, "star")} · ${place.town}, ${place.region}`),
      rating(place), saveButton(place), compareButton(place)),
    h("div", { class: "gallery" }, picture(place, 0), picture(place, 1), picture(place, 2)),
    h("p", { class: "blurb" }, place.blurb),
    h("p", {}, h("b", {}, "Facilities: "), place.facilities.join(", ")),
    section("h-rooms", "Rooms and prices", h("div", { class: "panel" }, stayForm(query)),
      h("p", { id: "rooms-say", role: "status" }), h("ul", { class: "rooms", id: "rooms" })),
    section("h-calendar", "Prices by night", calendar(place, site, readDay(query.get("from") ?? "") ?? site.today)),
    section("h-rules", "Rules and fees", h("div", { class: "panel" }, rules(place))),
    section("h-map", "Where it is", h("div", { class: "panel where" },
      map(place.town, place.sights, [{ x: place.x, y: place.y, mark: "●", name: place.name }]), distances(place.sights))),
    section("h-reviews", "Reviews", reviews(place, site)));
  showRooms();
}

addEventListener("popstate", () => location.reload());
start();
