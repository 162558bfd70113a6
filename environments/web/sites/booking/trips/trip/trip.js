import { picture } from "../../art.js";
import { day, pickDays, readStay, shortDay } from "../../dates.js";
import { frame } from "../../frame.js";
import { ask, empty, field, find, h, money, openDialog, plural, prices, read, saving, say, showErrors } from "../../kit.js";

const id = read().get("id");
let site = null;
let trip = null;

const actions = (...buttons) => h("div", { class: "actions" }, buttons);
const closer = (text, dialog) => h("button", { type: "button", onclick: () => dialog().close() }, text);

async function save(button, path, body, done, form, problem) {
  problem.hidden = true;
  const { ok, data } = await saving(button, () => ask(`bookings/${id}/${path}`, body)) ?? {};
  if (ok === undefined) return;
  if (form) showErrors(form, ok ? {} : data.fields);
  if (!ok) {
    problem.textContent = data.error;
    problem.hidden = false;
    return;
  }
  find("dialog").close();
  await show();
  say(done);
}

function openCancel() {
  const fee = trip.cancel_fee;
  const problem = h("p", { class: "notice bad", role: "alert", hidden: true });
  const button = h("button", { type: "button", class: "danger" }, "Cancel this booking");
  button.addEventListener("click", () => save(button, "cancel", { fee }, "The booking is cancelled.", null, problem));
  const dialog = openDialog("Cancel this booking?",
    h("p", {}, fee ? `To cancel it today costs ${money(fee)}.` : "To cancel it today is free of charge."),
    h("p", { class: "soft" }, trip.place.policy), problem, actions(closer("Keep the booking", () => dialog), button));
}

function openGuest() {
  const problem = h("p", { class: "notice bad", role: "alert", hidden: true });
  const kinds = [["adult", "Adult"], ["child", "Child"]].map(([value, text]) =>
    h("label", { class: "choice" }, h("input", { type: "radio", name: "kind", value }), h("span", {}, text)));
  const button = h("button", { type: "submit", class: "primary" }, "Add this guest");
  const form = h("form", { novalidate: true, class: "stack" },
    field("guest-name", "Full name of the guest", h("input", { id: "guest-name", name: "name", autocomplete: "off" })),
    h("fieldset", { class: "field" }, h("legend", {}, "Age"), kinds), problem, actions(closer("Back", () => dialog), button));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(form));
    save(button, "guests", given, "The guest is added.", form, problem);
  });
  const dialog = openDialog("Add a guest", h("p", {}, "Each adult pays the city tax. Children pay none."), form);
}

function openDates() {
  const problem = h("p", { class: "notice bad", role: "alert", hidden: true });
  const result = h("div", { role: "status" });
  const input = (name, value) => h("input", { id: `new-${name}`, name, value: shortDay(value), autocomplete: "off" });
  const keep = h("button", { type: "button", class: "primary", hidden: true }, "Save the new days");
  const look = h("button", { type: "submit" }, "Check");
  const form = h("form", { novalidate: true, class: "stack" },
    h("div", { class: "pair" }, field("new-from", "New check-in", input("from", trip.from)), field("new-to", "New check-out", input("to", trip.to))),
    h("div", { class: "row" }, look, h("button", { type: "button", onclick: () => pickDays({
      today: site.today, last: site.last, from: form.elements.from, to: form.elements.to, done: stale }) }, "Calendar")),
    problem, result);
  let checked = null;
  const stale = () => { checked = null; keep.hidden = true; result.replaceChildren(); problem.hidden = true; };
  form.addEventListener("input", stale);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    stale();
    const { from, to, errors } = readStay(form);
    showErrors(form, errors);
    if (Object.keys(errors).length) return;
    const { ok, data } = await saving(look, () => ask(`bookings/${id}/quote?from=${from}&to=${to}`)) ?? {};
    if (ok === undefined) return;
    if (!ok) {
      problem.textContent = data.error;
      problem.hidden = false;
      return;
    }
    checked = { from, to };
    const lost = trip.voucher && !data.voucher ? h("p", { class: "badge warn" }, `Your voucher ${trip.voucher} does not hold then`) : null;
    result.replaceChildren(h("p", {}, `${trip.room.name}, no. ${data.units.join(", ")}, ${day(from)} to ${day(to)}`), ...[lost].filter(Boolean), prices(data.price, "New total"));
    keep.hidden = false;
  });
  keep.addEventListener("click", () => checked && save(keep, "dates", checked, "The new days are saved.", form, problem));
  const dialog = openDialog("Change the days", h("p", {}, "You keep your kind of room. Another number may be given to you."), form,
    actions(closer("Back", () => dialog), keep));
}

function facts() {
  const rows = [["Booking number", trip.id], ["Room", `${trip.room.name}, no. ${trip.units.join(", ")}`],
    ["Check-in", day(trip.from)], ["Check-out", day(trip.to)],
    ["Guests", `${plural(trip.adults, "adult")}, ${plural(trip.children, "child", "children")}`],
    ["Main guests", Object.entries(trip.mains).map(([unit, name]) => `${name} (room ${unit})`).join(", ")],
    ["Further guests", trip.guests.map((guest) => `${guest.name} (${guest.kind})`).join(", ")],
    ["Contact", Object.values(trip.contact).join(", ")], ["Arrival", trip.arrival], ["Request", trip.request],
    ["Voucher", trip.voucher], ["Booked on", day(trip.booked)]];
  return h("dl", { class: "facts" }, rows.filter(([, text]) => text).flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)]));
}

function state() {
  if (trip.status === "cancelled") {
    return h("p", { class: "notice bad" }, trip.fee ? `This booking is cancelled. The fee was ${money(trip.fee)}.` : "This booking is cancelled, free of charge.");
  }
  if (trip.over) return h("p", { class: "notice" }, "This stay is over.");
  return read().get("new") ? h("p", { class: "notice good" }, `Thank you. Your booking is confirmed: ${trip.id}`) : null;
}

async function show() {
  const { ok, data } = await ask(`bookings/${id}`);
  if (!ok) {
    find("#title").textContent = "There is no such booking";
    find("#content").replaceChildren(empty(data.error, "/booking/trips/", "My bookings"));
    return;
  }
  trip = data;
  document.title = `${trip.place.name} – Roost`;
  find("#title").textContent = trip.place.name;
  const open = trip.status === "confirmed" && !trip.over;
  find("#content").replaceChildren(
    h("p", {}, `${trip.place.kind} · ${plural(trip.place.stars, "star")} · ${trip.place.town}`), state() ?? "",
    h("div", { class: "split" },
      h("section", { class: "panel", "aria-label": "Your stay" }, facts(), h("p", { class: "soft" }, trip.place.policy),
        h("div", { class: "row", hidden: !open },
          h("button", { type: "button", onclick: openDates }, "Change the days"),
          h("button", { type: "button", onclick: openGuest }, "Add a guest"),
          h("button", { type: "button", onclick: openCancel }, "Cancel the booking"))),
      h("aside", { class: "panel summary", "aria-label": "Price" }, picture(trip.place), prices(trip.price))));
}

site = await frame();
show();
