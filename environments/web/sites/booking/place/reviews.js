// What guests wrote, filtered by who travelled, in pages.
import { day } from "../dates.js";
import { ask, field, find, h, options, pager, plural } from "../kit.js";

const SORTS = [["new", "Newest first"], ["old", "Oldest first"], ["high", "Highest score first"], ["low", "Lowest score first"]];

export function reviews(place, site) {
  let turn = 0;
  const kind = h("select", { id: "review-kind" });
  const sort = h("select", { id: "review-sort" });
  options(kind, [["", "Everybody"], ...site.travellers], "");
  options(sort, SORTS, "new");
  const status = h("p", { role: "status" });
  const list = h("ul", { class: "reviews" });
  const pages = h("div", {});
  const item = (row) => h("li", { class: "panel" },
    h("p", {}, h("b", { class: "score" }, `${row.score}`), h("span", { class: "soft" }, " of 10 · "), h("b", {}, row.name), ` · ${row.kind} · ${day(row.day)}`),
    h("p", {}, row.text));
  async function show(page) {
    const mine = ++turn;
    status.textContent = "Loading…";
    const query = new URLSearchParams({ kind: kind.value, sort: sort.value, page: `${page}` });
    const { ok, data } = await ask(`places/${place.id}/reviews?${query}`);
    if (mine !== turn) return;
    if (!ok) {
      status.textContent = data.error;
      return;
    }
    status.textContent = data.pages > 1 ? `${plural(data.total, "review")}, page ${data.page} of ${data.pages}` : plural(data.total, "review");
    list.replaceChildren(...data.rows.map(item));
    pages.replaceChildren(pager("Pages of reviews", data.page, data.pages, (next) => {
      show(next);
      find("#h-reviews").scrollIntoView();
    }));
  }
  kind.addEventListener("change", () => show(1));
  sort.addEventListener("change", () => show(1));
  show(1);
  return h("div", {}, h("div", { class: "row" }, field("review-kind", "Written by", kind), field("review-sort", "Order of reviews", sort)),
    status, list, pages);
}
