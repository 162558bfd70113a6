import { ask, find, h, money, pager } from "/assets/kit.js";
import { frame, picture } from "./frame.js";

let turn = 0;
const read = () => new URLSearchParams(location.search);

function change(changes) {
  const query = read();
  query.delete("page");
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  history.pushState(null, "", `/shop/${query.size ? `?${query}` : ""}`);
  show();
}

function card(product) {
  const extra = product.variants.some((v) => v.extra > 0);
  return h("li", { class: "card panel" }, picture(product.shape, product.tint),
    h("div", { class: "body" },
      h("h2", {}, h("a", { href: `/shop/product/?id=${product.id}` }, product.name)),
      h("p", { class: "soft" }, product.category),
      h("p", { class: "foot" },
        h("span", { class: "price" }, `${extra ? "from " : ""}${money(product.price)}`),
        product.in_stock
          ? h("span", { class: "stars" }, `★ ${product.rating.toFixed(1)}`)
          : h("span", { class: "badge bad" }, "Sold out"))));
}

function categories(counts, chosen) {
  const all = Object.values(counts).reduce((a, b) => a + b, 0);
  const rows = [["", "All", all], ...Object.entries(counts).map(([name, n]) => [name, name, n])];
  find("#categories").replaceChildren(...rows.map(([value, text, n]) => h("label", { class: "choice" },
    h("input", { type: "radio", name: "category", value, checked: value === chosen, onchange: () => change({ category: value }) }),
    h("span", {}, text), h("span", { "aria-hidden": "true" }, `${n}`))));
}

async function show() {
  const query = read();
  const mine = ++turn;
  find("#found").textContent = "Loading…";
  const { data } = await ask(`/api/shop/products?${query}`);
  if (mine !== turn) return;
  find("#products").replaceChildren(...data.rows.map(card));
  const words = query.get("q");
  find("h1").textContent = words ? `Results for “${words}”` : query.get("category") || "Products";
  find("#found").textContent = data.total === 1 ? "1 product" : `${data.total} products`;
  find("#max").value = query.get("max") ?? "";
  find("#stock").checked = query.has("stock");
  find("#sort").value = query.get("sort") ?? "featured";
  categories(data.counts, query.get("category") ?? "");
  find("#pager").replaceChildren(pager("Pages of products", data.page, data.pages, (page) => {
    change({ page: `${page}` });
    scrollTo({ top: 0 });
  }));
}

find("#max").addEventListener("change", (e) => change({ max: e.target.value }));
find("#sort").addEventListener("change", (e) => change({ sort: e.target.value }));
find("#stock").addEventListener("change", (e) => change({ stock: e.target.checked ? "1" : "" }));
find("#clear").addEventListener("click", () => change({ category: "", max: "", stock: "", q: "" }));
addEventListener("popstate", show);
frame();
show();
