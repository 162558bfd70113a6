// The shop's header, and the pictures of its products.
import { ask, find, h } from "/assets/kit.js";

const LINKS = [["/shop/", "Products"], ["/shop/offers/", "Offers"], ["/shop/orders/", "My orders"]];

export async function frame() {
  const here = location.pathname;
  const mark = h("span", {});
  mark.innerHTML = `<svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="9" fill="#2f5d50"/>
    <path d="M16 26V11M16 17c-5 0-7-3-7-7 5 0 7 3 7 7Zm0-3c0-5 3-7 7-7 0 5-2 7-7 7Z" fill="none" stroke="#fff" stroke-width="2" stroke-linejoin="round" stroke-linecap="round"/></svg>`;
  const cart = h("a", { href: "/shop/cart/", id: "cart-link", "aria-current": here === "/shop/cart/" ? "page" : null }, "Cart");
  const links = LINKS.map(([href, text]) => h("a", { href, "aria-current": here === href ? "page" : null }, text));
  const search = h("form", { role: "search", action: "/shop/", method: "get" },
    h("label", { class: "visually-hidden", for: "q" }, "Search products"),
    h("input", { type: "search", id: "q", name: "q", placeholder: "Search products" }),
    h("button", { type: "submit" }, "Search"));
  document.body.prepend(
    h("a", { class: "skip", href: "#main" }, "Skip to content"),
    h("header", { class: "site" }, h("div", { class: "bar" },
      h("a", { class: "brand", href: "/shop/" }, ...mark.childNodes, "Alder Goods"),
      h("nav", { "aria-label": "Shop" }, links, cart), search)));
  find("#q").value = new URLSearchParams(location.search).get("q") ?? "";
  const { data } = await ask("/api/shop/cart");
  countCart(data);
  return data;
}

export function countCart(cart) {
  const link = find("#cart-link");
  link.textContent = `Cart (${cart.count})`;
  link.setAttribute("aria-label", `Cart, ${cart.count} ${cart.count === 1 ? "item" : "items"}`);
}

// Each shape is drawn on a 100 by 100 field; {t} is the product's colour, {d} a darker one.
const SHAPES = {
  lamp: `<path d="M30 88h34M47 88V66L30 44l26-20" stroke="{d}" stroke-width="4" fill="none" stroke-linecap="round"/><path d="M50 16l26 8-14 22-18-16z" fill="{t}"/><circle cx="30" cy="44" r="4" fill="{d}"/>`,
  tablelamp: `<path d="M34 18h32l12 34H22z" fill="{t}"/><path d="M34 18l6 34M50 18v34M66 18l-6 34" stroke="#fff" stroke-opacity=".5" stroke-width="2"/><path d="M50 52v28" stroke="{d}" stroke-width="6"/><ellipse cx="50" cy="84" rx="19" ry="6" fill="{d}"/>`,
  floorlamp: `<path d="M36 8h28l9 22H27z" fill="{t}"/><path d="M50 30v58" stroke="{d}" stroke-width="4"/><ellipse cx="50" cy="90" rx="17" ry="4" fill="{d}"/>`,
  lantern: `<path d="M38 22a12 12 0 0 1 24 0" fill="none" stroke="{d}" stroke-width="4"/><rect x="30" y="24" width="40" height="8" rx="3" fill="{d}"/><rect x="33" y="34" width="34" height="42" rx="6" fill="{t}" fill-opacity=".55"/><path d="M50 44c7 9 7 20 0 22-7-2-7-13 0-22z" fill="#fff"/><rect x="28" y="78" width="44" height="9" rx="3" fill="{d}"/>`,
  pendant: `<path d="M50 4v24" stroke="{d}" stroke-width="3"/><path d="M14 70c2-28 18-42 36-42s34 14 36 42z" fill="{t}"/><path d="M22 56h56M18 64h64M30 44h40" stroke="{d}" stroke-opacity=".5" stroke-width="2.5"/><circle cx="50" cy="74" r="8" fill="#fff4d6" stroke="{d}" stroke-width="2"/>`,
  mug: `<path d="M66 40h8a14 14 0 0 1 0 28h-8" fill="none" stroke="{d}" stroke-width="6"/><path d="M24 32h44v30a20 20 0 0 1-20 20h-4a20 20 0 0 1-20-20z" fill="{t}"/><ellipse cx="46" cy="32" rx="22" ry="6" fill="{d}"/>`,
  bowl: `<path d="M14 44h72c0 24-16 38-36 38S14 68 14 44z" fill="{t}"/><ellipse cx="50" cy="44" rx="36" ry="9" fill="{d}"/><path d="M36 84h28" stroke="{d}" stroke-width="5" stroke-linecap="round"/>`,
  kettle: `<path d="M30 34a20 20 0 0 1 40 0" fill="none" stroke="{d}" stroke-width="5"/><path d="M26 84c-6-26 4-48 24-48s30 22 24 48z" fill="{t}"/><path d="M74 56l16-10v8L77 70z" fill="{t}"/><circle cx="50" cy="33" r="4" fill="{d}"/><path d="M26 84h48" stroke="{d}" stroke-width="5" stroke-linecap="round"/>`,
  board: `<rect x="28" y="28" width="44" height="62" rx="9" fill="{t}"/><rect x="44" y="8" width="12" height="26" rx="6" fill="{t}"/><circle cx="50" cy="15" r="3" fill="#fff"/><path d="M38 40v40M50 44v38M62 40v40" stroke="{d}" stroke-opacity=".4" stroke-width="2"/>`,
  plates: `<ellipse cx="50" cy="74" rx="38" ry="10" fill="{d}"/><ellipse cx="50" cy="66" rx="38" ry="10" fill="{t}"/><ellipse cx="50" cy="58" rx="38" ry="10" fill="{d}"/><ellipse cx="50" cy="50" rx="38" ry="10" fill="{t}"/><ellipse cx="50" cy="49" rx="23" ry="5" fill="#fff" fill-opacity=".5"/>`,
  jar: `<rect x="34" y="12" width="32" height="12" rx="4" fill="#b98d5b"/><path d="M32 26h36c8 6 8 12 8 16v36a10 10 0 0 1-10 10H34a10 10 0 0 1-10-10V42c0-4 0-10 8-16z" fill="{t}" fill-opacity=".7"/><rect x="34" y="48" width="32" height="22" rx="3" fill="#fff"/><path d="M40 56h20M40 62h13" stroke="{d}" stroke-width="2.5"/>`,
  blanket: `<rect x="16" y="28" width="68" height="18" rx="7" fill="{t}"/><rect x="16" y="48" width="68" height="18" rx="7" fill="{d}"/><rect x="16" y="68" width="68" height="16" rx="7" fill="{t}"/><path d="M22 84v7M32 84v7M42 84v7M52 84v7M62 84v7M72 84v7" stroke="{d}" stroke-width="2.5"/>`,
  cushion: `<path d="M18 22c20 5 44 5 64 0 -5 20 -5 40 0 60 -20 -5 -44 -5 -64 0 5 -20 5 -40 0 -60z" fill="{t}"/><circle cx="38" cy="52" r="3.5" fill="#fff"/><circle cx="50" cy="52" r="3.5" fill="#fff"/><circle cx="62" cy="52" r="3.5" fill="#fff"/>`,
  towel: `<path d="M14 20h72" stroke="#8a7a66" stroke-width="5" stroke-linecap="round"/><path d="M26 20h48v64H26z" fill="#fff" stroke="{t}" stroke-width="2"/><path d="M26 58h48M26 66h48M26 74h48" stroke="{t}" stroke-width="4"/>`,
  rug: `<path d="M18 26h64v52H18z" fill="{t}"/><path d="M26 34h48v36H26z" fill="none" stroke="#fff" stroke-width="3"/><path d="M50 40l14 12-14 12-14-12z" fill="{d}"/><path d="M18 26v-6M30 26v-6M42 26v-6M54 26v-6M66 26v-6M82 26v-6M18 78v6M30 78v6M42 78v6M54 78v6M66 78v6M82 78v6" stroke="{d}" stroke-width="2.5"/>`,
  apron: `<path d="M38 14c0 14 24 14 24 0l6 24c8 3 10 8 10 14v34H22V52c0-6 2-11 10-14z" fill="{t}"/><path d="M38 14c-2-8 26-8 24 0" fill="none" stroke="{d}" stroke-width="3"/><rect x="36" y="56" width="28" height="18" rx="3" fill="none" stroke="{d}" stroke-width="3"/>`,
  basket: `<path d="M30 40c0-30 40-30 40 0" fill="none" stroke="{d}" stroke-width="5"/><path d="M16 40h68l-9 44H25z" fill="{t}"/><path d="M20 54h60M23 68h54M34 40l4 44M50 40v44M66 40l-4 44" stroke="{d}" stroke-opacity=".55" stroke-width="2.5"/>`,
  rail: `<rect x="10" y="34" width="80" height="15" rx="5" fill="{t}"/><path d="M22 44v18M41 44v18M60 44v18M79 44v18" stroke="{d}" stroke-width="7" stroke-linecap="round"/>`,
  crate: `<path d="M16 34h68v48H16z" fill="{t}"/><path d="M16 50h68M16 66h68" stroke="#fff" stroke-opacity=".8" stroke-width="4"/><path d="M22 34v48M78 34v48" stroke="{d}" stroke-width="6"/><rect x="40" y="38" width="20" height="7" rx="3.5" fill="{d}"/>`,
  shelf: `<path d="M20 12v76" stroke="{d}" stroke-width="5"/><path d="M20 26h56l-8 8H20zM20 52h56l-8 8H20zM20 78h56l-8 8H20z" fill="{t}"/><path d="M34 26V14h8v12M48 26V17h6v9" fill="{d}"/><circle cx="42" cy="44" r="8" fill="{d}" fill-opacity=".6"/>`,
  notebook: `<rect x="26" y="14" width="50" height="72" rx="5" fill="{t}"/><path d="M36 14v72" stroke="{d}" stroke-width="3"/><rect x="44" y="28" width="24" height="15" rx="2" fill="#fff"/><path d="M67 14v72" stroke="{d}" stroke-width="2.5"/>`,
  pen: `<path d="M72 12l16 16-44 46-18-18z" fill="{t}"/><path d="M26 56l18 18-28 12z" fill="#d8b45e"/><path d="M16 86l16-18" stroke="#7a5f22" stroke-width="2"/><path d="M60 24l16 16" stroke="#fff" stroke-opacity=".7" stroke-width="4"/>`,
  planner: `<rect x="18" y="22" width="64" height="62" rx="6" fill="#fff" stroke="{t}" stroke-width="3"/><path d="M18 28a6 6 0 0 1 6-6h52a6 6 0 0 1 6 6v12H18z" fill="{t}"/><path d="M34 14v14M66 14v14" stroke="{d}" stroke-width="5" stroke-linecap="round"/><path d="M28 52h8M46 52h8M64 52h8M28 66h8M46 66h8" stroke="{d}" stroke-width="6"/>`,
  postcards: `<rect x="24" y="18" width="58" height="40" rx="3" fill="#fff" stroke="{d}" stroke-width="2" transform="rotate(7 53 38)"/><rect x="16" y="28" width="62" height="42" rx="3" fill="{t}"/><circle cx="62" cy="40" r="6" fill="#fff2c9"/><path d="M16 62l18-16 14 12 12-8 18 14v6H16z" fill="{d}"/><path d="M12 72h72v14H12z" fill="#b98d5b"/>`,
};

export function picture(shape, tint) {
  const box = h("div", { class: "art", style: `--tint:${tint}`, "aria-hidden": "true" });
  const dark = `color-mix(in srgb, ${tint} 62%, #1c2b2b)`;
  const body = SHAPES[shape].replaceAll("{t}", tint).replaceAll("{d}", dark);
  box.innerHTML = `<svg viewBox="0 0 100 100">${body}</svg>`;
  return box;
}
