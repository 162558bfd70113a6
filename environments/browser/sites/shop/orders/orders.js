import { ask, day, find, h, money } from "/assets/kit.js";
import { frame } from "../frame.js";

function items(order) {
  const head = ["Article", "Quantity", "Price"].map((text) => h("th", { scope: "col" }, text));
  const rows = order.lines.map((line) => h("tr", {}, h("td", {}, `${line.name}, ${line.variant}`),
    h("td", {}, `${line.quantity}`), h("td", {}, money(line.total))));
  return h("table", { class: "items" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows));
}

function row(order) {
  const discount = order.discount ? `Voucher ${order.voucher}: −${money(order.discount)} · ` : "";
  return h("details", { class: "panel" },
    h("summary", {}, h("strong", {}, order.number), h("span", {}, day(order.date)),
      h("span", {}, h("span", { class: `badge ${order.status === "Delivered" ? "good" : "warn"}` }, order.status)),
      h("span", { class: "price" }, money(order.total))),
    h("div", { class: "inside" }, items(order),
      h("p", { class: "soft" }, `${discount}Delivery: ${money(order.shipping)} · Total: ${money(order.total)}`)));
}

frame();
const { data } = await ask("/api/shop/orders");
find("#orders").replaceChildren(...data.map(row));
const placed = data.find((order) => order.number === new URLSearchParams(location.search).get("placed"));
if (placed) {
  find("#placed").replaceChildren(h("section", { class: "panel thanks", "aria-label": "Confirmation" },
    h("h2", {}, "Thank you for your order"),
    h("p", {}, "Your order number is ", h("strong", {}, placed.number), `. The total is ${money(placed.total)}.`),
    h("p", { class: "soft" }, "The invoice comes with the parcel.")));
}
