import { day } from "../dates.js";
import { frame } from "../frame.js";
import { ask, field, find, h, money, options, plural, prices, read, saving, showErrors } from "../kit.js";

const form = find("#checkout");
const query = read();
const units = (query.get("units") ?? "").split(",");
let voucher = "";
let total;

function refuse(text) {
  find("#problem").textContent = text;
  find("#problem").hidden = false;
}

async function quote(code) {
  const asked = new URLSearchParams(query);
  asked.set("voucher", code);
  return ask(`places/${query.get("place")}/quote?${asked}`);
}

async function apply() {
  const code = form.elements.voucher.value.trim().toUpperCase();
  const says = find("#voucher-says");
  says.textContent = "Loading…";
  const { ok, data } = await saving(find("#apply"), () => quote(code)) ?? {};
  if (ok === undefined) return;
  if (ok) {
    voucher = code;
    total = data.total;
    find("#price").replaceChildren(prices(data));
  }
  if (!ok) says.textContent = data.error + (voucher ? ` ${voucher} is still used.` : "");
  else says.textContent = code ? `${code} is used: ${money(data.voucher)}.` : "No voucher is used.";
}

async function book(event) {
  event.preventDefault();
  const given = Object.fromEntries(new FormData(form));
  const body = {
    place: query.get("place"), room: query.get("room"), units: units.map(Number),
    from: query.get("from"), to: query.get("to"), adults: Number(query.get("adults")), children: Number(query.get("children")),
    mains: Object.fromEntries(units.map((unit) => [unit, given[`main-${unit}`]])),
    name: given.name, email: given.email, phone: given.phone, arrival: given.arrival, request: given.request,
    terms: form.elements.terms.checked, voucher, total,
  };
  const failed = find("#failed");
  failed.hidden = true;
  showErrors(form);
  const written = form.elements.voucher.value.trim().toUpperCase();
  if (written !== voucher) {
    showErrors(form, { voucher: "Apply this voucher, or empty the field and apply." });
    return;
  }
  const { ok, data } = await saving(find("button[type=submit]", form), () => ask("bookings", body)) ?? {};
  if (ok === undefined) return;
  if (ok) {
    location.assign(`/booking/trips/trip/?id=${data.id}&new=1`);
    return;
  }
  failed.textContent = data.error;
  failed.hidden = false;
  showErrors(form, data.fields);
}

async function start() {
  const site = await frame();
  const [{ ok, data: place }, priced] = await Promise.all([ask(`places/${query.get("place")}`), quote("")]);
  if (!ok || !priced.ok) {
    refuse(ok ? priced.data.error : place.error);
    return;
  }
  const room = place.rooms.find((each) => each.id === query.get("room"));
  find("#mains").replaceChildren(...units.map((unit) => field(`main-${unit}`, `Main guest of room ${unit}`,
    h("input", { id: `main-${unit}`, name: `main-${unit}`, autocomplete: "off" }))));
  options(form.elements.arrival, [["", "Choose…"], ...site.arrivals], "");
  find("#policy").textContent = place.policy;
  find("#summary").replaceChildren(h("p", {}, h("b", {}, place.name), `, ${place.town}`),
    h("p", {}, `${room.name}, ${units.length === 1 ? "no." : "nos."} ${units.join(", ")}`),
    h("p", {}, `${day(query.get("from"))} to ${day(query.get("to"))}`),
    h("p", {}, `${plural(Number(query.get("adults")), "adult")}, ${plural(Number(query.get("children")), "child", "children")}`));
  total = priced.data.total;
  find("#price").replaceChildren(prices(priced.data));
  find("#content").hidden = false;
}

form.addEventListener("submit", book);
find("#apply").addEventListener("click", apply);
form.elements.voucher.addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  apply();
});
start();
