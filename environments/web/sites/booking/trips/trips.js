import { picture } from "../art.js";
import { day } from "../dates.js";
import { frame } from "../frame.js";
import { ask, empty, find, h, money, plural } from "../kit.js";

const people = (trip) => `${plural(trip.adults, "adult")}, ${plural(trip.children, "child", "children")}`;

const card = (trip) => h("li", { class: "card panel" }, picture(trip.place),
  h("div", { class: "body" },
    h("h3", {}, h("a", { href: `/booking/trips/trip/?id=${trip.id}` }, trip.place.name)),
    h("p", {}, `${trip.place.kind} in ${trip.place.town}`),
    h("p", {}, `${day(trip.from)} to ${day(trip.to)} · ${people(trip)}`),
    h("p", { class: "soft" }, trip.place.policy)),
  h("div", { class: "side" }, h("p", {}, h("b", {}, trip.id)), h("p", {}, money(trip.price.total)),
    trip.status === "cancelled" ? h("p", { class: "badge bad" }, "Cancelled") : null));

await frame();
const { ok, data } = await ask("bookings");
const groups = ok ? [
  ["To come", data.filter((t) => !t.over && t.status === "confirmed")],
  ["Over", data.filter((t) => t.over && t.status === "confirmed")],
  ["Cancelled", data.filter((t) => t.status === "cancelled")]] : [];
find("#found").textContent = ok ? plural(data.length, "booking") : data.error;
find("#trips").replaceChildren(...groups.filter(([, rows]) => rows.length).map(([title, rows]) => h("section", { class: "block" },
  h("h2", {}, title), h("ul", { class: "places" }, rows.sort((a, b) => (a.from < b.from ? -1 : 1)).map(card)))));
if (ok && !data.length) find("#trips").append(empty("You have no bookings yet.", "/booking/", "Find a stay"));
