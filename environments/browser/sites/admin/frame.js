// The desk's side bar; without a login every page leads to the first.
import { ask, find, h } from "/assets/kit.js";

const LINKS = [["/admin/tickets/", "Tickets"], ["/admin/customers/", "Customers"], ["/admin/settings/", "Settings"]];
export const MARK = `<svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8" fill="#f2c46d"/>
  <path d="M13 26l1.5-13h3L19 26zM12 13h8l-1-4h-6zM16 9V6M6 11h3M23 11h3" fill="#232b4d" stroke="#232b4d" stroke-width="1.6" stroke-linecap="round"/></svg>`;

export async function frame() {
  const { ok, data } = await ask("/api/admin/me");
  if (!ok) {
    location.replace("/admin/");
    return new Promise(() => {});
  }
  const here = location.pathname;
  const brand = h("a", { class: "brand", href: "/admin/tickets/" });
  brand.innerHTML = `${MARK}Quayside Desk`;
  const leave = async () => {
    await ask("/api/admin/logout", {});
    location.assign("/admin/");
  };
  document.body.prepend(h("header", { class: "side" }, brand,
    h("nav", { "aria-label": "Desk" }, LINKS.map(([href, text]) =>
      h("a", { href, "aria-current": here.startsWith(href) ? "page" : null }, text))),
    h("div", { class: "who" }, h("span", {}, `Signed in as ${data.user}`),
      h("button", { type: "button", onclick: leave }, "Sign out"))));
  find("main").hidden = false;
  return data.choices;
}

// A table that the server sorts and pages; the state of the view is in the address.
export function list({ path, columns, table, foot, label, onrows }) {
  const read = () => new URLSearchParams(location.search);
  const busy = h("div", { class: "loading", role: "status" }, h("span", {}, `Loading ${label}…`));
  let turn = 0;

  function change(changes) {
    const query = read();
    if (!("page" in changes)) query.delete("page");
    for (const [name, value] of Object.entries(changes)) {
      if (value) query.set(name, value);
      else query.delete(name);
    }
    history.pushState(null, "", `${location.pathname}${query.size ? `?${query}` : ""}`);
    return load();
  }

  function heading([name, text, kind]) {
    const query = read();
    const chosen = (query.get("sort") ?? "id") === name;
    const down = query.get("order") === "desc";
    const sort = () => change({ sort: name, order: chosen && !down ? "desc" : "" });
    return h("th", { scope: "col", class: kind ?? "", "aria-sort": chosen ? (down ? "descending" : "ascending") : null },
      h("button", { type: "button", onclick: sort }, text));
  }

  async function load() {
    const mine = ++turn;
    table.setAttribute("aria-busy", "true");
    table.prepend(busy);
    const { data, status } = await ask(`${path}?${read()}`);
    if (status === 401) return location.replace("/admin/");
    if (mine !== turn) return null;
    onrows(data, columns.map(heading));
    foot(data, (page) => change({ page: `${page}` }));
    busy.remove();
    table.setAttribute("aria-busy", "false");
    return null;
  }

  addEventListener("popstate", load);
  return { change, load, read };
}
