import { ask, find, h, money, options, showErrors } from "/assets/kit.js";
import { frame } from "../frame.js";

const form = find("#checkout");

function totals(cart) {
  const chosen = cart.delivery.find((d) => d.id === form.elements.delivery?.value);
  const rows = [["Goods", money(cart.goods)]];
  if (cart.discount) rows.push([`Voucher ${cart.voucher}`, `−${money(cart.discount)}`]);
  rows.push(["Delivery", chosen ? money(chosen.price) : "not chosen"]);
  find("#totals").replaceChildren(...rows.flatMap(([text, value]) => [h("dt", {}, text), h("dd", {}, value)]),
    h("dt", { class: "grand" }, "Total"),
    h("dd", { class: "grand" }, money(cart.goods - cart.discount + (chosen?.price ?? 0))));
}

function show(cart) {
  if (!cart.lines.length) {
    find("#content").replaceWith(h("div", { class: "panel empty" }, h("p", {}, "There is nothing to order yet."),
      h("a", { class: "button primary", href: "/shop/" }, "Browse products")));
    return;
  }
  options(form.elements.country, [["", "Choose…"], ...cart.countries], "");
  find("#delivery").replaceChildren(...cart.delivery.map((d) => h("label", { class: "choice" },
    h("input", { type: "radio", name: "delivery", value: d.id, onchange: () => totals(cart) }),
    h("span", {}, d.label), h("span", {}, d.price ? money(d.price) : "free"))));
  find("#items").replaceChildren(...cart.lines.map((line) =>
    h("li", {}, `${line.quantity} × ${line.name}, ${line.variant}`)));
  totals(cart);
}

async function order(event) {
  event.preventDefault();
  const given = Object.fromEntries(new FormData(form));
  given.gift = form.elements.gift.checked;
  given.terms = form.elements.terms.checked;
  const failed = find("#failed");
  const { ok, data } = await ask("/api/shop/orders", given);
  if (ok) {
    location.assign(`/shop/orders/?placed=${data.number}`);
    return;
  }
  failed.textContent = data.error;
  failed.hidden = false;
  showErrors(form, data.fields);
}

form.addEventListener("submit", order);
form.elements.gift.addEventListener("change", (e) => { find("#note-field").hidden = !e.target.checked; });
show(await frame());
