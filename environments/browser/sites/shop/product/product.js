import { ask, day, find, h, money, say } from "/assets/kit.js";
import { countCart, frame, picture } from "../frame.js";

const id = new URLSearchParams(location.search).get("id");
const main = find("#main");

function variants(product) {
  return h("fieldset", {}, h("legend", { style: "font-weight:600" }, product.kind),
    h("div", { class: "variants" }, product.variants.map((v) => h("label", {},
      h("input", { type: "radio", name: "variant", value: v.name, disabled: v.stock === 0, onchange: () => choose(product) }),
      v.stock === 0 ? `${v.name} (sold out)` : v.name))));
}

function choose(product) {
  const chosen = find("input[name=variant]:checked");
  const variant = product.variants.find((v) => v.name === chosen?.value);
  const from = !variant && product.variants.some((v) => v.extra > 0);
  find(".price").textContent = (from ? "from " : "") + money(product.price + (variant?.extra ?? 0));
  find("#left").textContent = variant ? `${variant.stock} in stock` : `Choose: ${product.kind.toLowerCase()}`;
}

async function add(event, product) {
  event.preventDefault();
  const variant = find("input[name=variant]:checked")?.value;
  const failed = find("#failed");
  failed.hidden = true;
  if (!variant) {
    failed.textContent = `Choose one: ${product.kind.toLowerCase()}.`;
    failed.hidden = false;
    return;
  }
  const quantity = Number(find("#quantity").value);
  const { ok, data } = await ask("/api/shop/cart/add", { product: product.id, variant, quantity });
  if (ok) {
    countCart(data);
    say(`Added to the cart: ${quantity} × ${product.name}, ${variant}.`);
  } else {
    failed.textContent = data.error;
    failed.hidden = false;
  }
}

function show(product) {
  document.title = `${product.name} – Alder Goods`;
  const form = h("form", { class: "info", novalidate: true, onsubmit: (e) => add(e, product) },
    variants(product),
    h("p", { class: "soft", id: "left", role: "status" }),
    h("p", { class: "notice bad", id: "failed", role: "alert", hidden: true }),
    h("div", { class: "buy" },
      h("div", { class: "field" }, h("label", { for: "quantity" }, "Quantity"),
        h("input", { id: "quantity", type: "number", min: "1", max: "10", value: "1" })),
      h("button", { type: "submit", class: "primary", disabled: !product.in_stock },
        product.in_stock ? "Add to cart" : "Sold out")));
  main.replaceChildren(
    h("p", { class: "crumbs" }, h("a", { href: "/shop/" }, "Products"), " / ",
      h("a", { href: `/shop/?category=${product.category}` }, product.category)),
    h("div", { class: "product" }, picture(product.shape, product.tint),
      h("div", { class: "info" }, h("h1", {}, product.name),
        h("p", { class: "stars" }, `★ ${product.rating.toFixed(1)} from ${product.reviews} reviews`),
        h("p", { class: "price" }), h("p", {}, product.blurb), form,
        h("dl", { class: "facts" }, h("dt", {}, "Article"), h("dd", {}, product.id),
          h("dt", {}, "In the shop since"), h("dd", {}, day(product.added))))));
  choose(product);
}

frame();
const { ok, data } = await ask(`/api/shop/products/${encodeURIComponent(id)}`);
if (ok) show(data);
else main.replaceChildren(h("h1", {}, "Not found"), h("p", {}, h("a", { href: "/shop/" }, "All products")));
