// The prices of a kind of room, night by night.
import { addMonths, monthTable, monthTitle } from "../dates.js";
import { ask, euros, field, find, h, options } from "../kit.js";

export function calendar(place, site, from) {
  let month = from.slice(0, 7);
  let turn = 0;
  const select = h("select", { id: "calendar-room" });
  options(select, place.rooms.map((room) => [room.id, room.name]), place.rooms[0].id);
  const status = h("p", { role: "status" });
  const table = h("div", {});
  const step = (text, n) => h("button", { type: "button", onclick: () => { month = addMonths(month, n); draw(); } }, text);
  const back = step("Previous month", -1);
  const on = step("Next month", 1);
  const cell = (days) => (iso) => {
    const found = days.find((each) => each.day === iso);
    const number = h("b", {}, `${Number(iso.slice(8))}`);
    if (found.price === null) return h("td", { class: "over" }, number);
    return found.free
      ? h("td", {}, number, " ", h("span", {}, euros(found.price)))
      : h("td", { class: "sold" }, number, " ", h("span", {}, "sold out"));
  };
  async function draw() {
    const mine = ++turn;
    back.disabled = month <= site.today.slice(0, 7);
    on.disabled = month >= site.last.slice(0, 7);
    status.textContent = "Loading…";
    const { ok, data } = await ask(`places/${place.id}/calendar?room=${select.value}&month=${month}`);
    if (mine !== turn) return;
    status.textContent = ok ? `${select.selectedOptions[0].textContent}, ${monthTitle(month)}` : data.error;
    if (ok) table.replaceChildren(monthTable(month, cell(data.days)));
  }
  select.addEventListener("change", draw);
  draw();
  return h("div", { class: "panel calendar" },
    h("div", { class: "row" }, field("calendar-room", "Kind of room", select), back, on), status, table,
    h("p", { class: "hint" }, "Each price is that of the night which begins on the day. A night is sold out where no room of the kind is free."));
}
