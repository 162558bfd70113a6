import { ask, find, h, money, say } from "/assets/kit.js";
import { countCart, frame, picture } from "../frame.js";

async function send(path, body, done) {
  const { ok, data } = await ask(`/api/shop/${path}`, body);
  if (!ok) return say(data.error, true);
  show(data);
  if (done) say(done);
}

const setQuantity = (line, quantity, done) =>
  send("cart/set", { product: line.product, variant: line.variant, quantity }, done);

function row(line) {
  const name = `${line.name}, ${line.variant}`;
  return h("li", { class: "line", "aria-label": name }, picture(line.shape, line.tint),
    h("div", {}, h("a", { href: `/shop/product/?id=${line.product}` }, line.name),
      h("p", { class: "soft" }, `${line.kind}: ${line.variant} · ${money(line.price)} each`)),
    h("div", { class: "count" },
      h("button", { type: "button", "aria-label": `One less: ${name}`, disabled: line.quantity <= 1, onclick: () => setQuantity(line, line.quantity - 1) }, "−"),
      h("output", { "aria-label": `Quantity: ${name}` }, `${line.quantity}`),
      h("button", { type: "button", "aria-label": `One more: ${name}`, disabled: line.quantity >= line.most, onclick: () => setQuantity(line, line.quantity + 1) }, "+"),
      h("button", { type: "button", class: "quiet", style: "padding:0 8px", "aria-label": `Remove ${name}`, onclick: () => setQuantity(line, 0, `Removed: ${name}.`) }, "Remove")),
    h("p", { class: "sum" }, money(line.total)));
}

function voucher(cart) {
  if (cart.voucher) {
    return h("p", { class: "row" }, h("span", { class: "badge good" }, cart.voucher),
      h("button", { type: "button", class: "quiet", onclick: () => send("voucher", { code: "" }, "Voucher removed.") }, "Remove voucher"));
  }
  const redeem = (event) => {
    event.preventDefault();
    send("voucher", { code: find("#code").value }, "Voucher applied.");
  };
  return h("form", { onsubmit: redeem }, h("div", { class: "field" },
    h("label", { for: "code" }, "Voucher code"), h("input", { id: "code", autocomplete: "off" })),
    h("button", { type: "submit" }, "Apply"));
}

function show(cart) {
  countCart(cart);
  if (!cart.lines.length) {
    find("#cart").replaceChildren(h("div", { class: "panel empty" }, h("p", {}, "Your cart is empty."),
      h("a", { class: "button primary", href: "/shop/" }, "Browse products")));
    return;
  }
  const amounts = [["Goods", cart.goods], ...(cart.discount ? [["Discount", -cart.discount]] : [])];
  find("#cart").replaceChildren(h("div", { class: "split" },
    h("ul", { class: "panel lines" }, cart.lines.map(row)),
    h("aside", { class: "panel summary", "aria-label": "Summary" }, h("h2", {}, "Summary"), voucher(cart),
      h("dl", {}, amounts.flatMap(([text, cents]) => [h("dt", {}, text), h("dd", {}, cents < 0 ? `−${money(-cents)}` : money(cents))]),
        h("dt", { class: "grand" }, "Total before delivery"), h("dd", { class: "grand" }, money(cart.total))),
      h("a", { class: "button primary", href: "/shop/checkout/" }, "Go to checkout"))));
}

show(await frame());
