import { find, h, money, options, pager } from "/assets/kit.js";
import { frame, list } from "../frame.js";

const COLUMNS = [["id", "Number"], ["name", "Name"], ["plan", "Plan"], ["country", "Country"],
  ["region", "Region"], ["end", "Contract until"], ["spent", "Spent", "number"]];

function row(customer) {
  return h("tr", {}, h("td", {}, customer.id),
    h("td", { class: "wrap" }, h("a", { href: `/admin/customers/edit/?id=${customer.id}` }, customer.name)),
    h("td", {}, h("span", { class: "badge" }, customer.plan)), h("td", {}, customer.country),
    h("td", {}, customer.region), h("td", {}, customer.end), h("td", { class: "number" }, money(customer.spent)));
}

function onrows(data, headings) {
  find("thead").replaceChildren(h("tr", {}, headings));
  find("tbody").replaceChildren(...(data.rows.length ? data.rows.map(row)
    : [h("tr", {}, h("td", { colspan: "7", class: "empty" }, "No customer matches."))]));
  find("#count").textContent = data.total === 1 ? "1 customer" : `${data.total} customers`;
}

const foot = (data, go) => find("#pager").replaceChildren(pager("Pages of customers", data.page, data.pages, go));

const choices = await frame();
options(find("#plan"), [["", "Any"], ...choices.plan]);
options(find("#country"), [["", "Any"], ...Object.keys(choices.regions)]);
const customers = list({ path: "/api/admin/customers", columns: COLUMNS, table: find("#table"), foot, label: "customers", onrows });
for (const name of ["plan", "country", "q"]) find(`#${name}`).value = customers.read().get(name) ?? "";
for (const name of ["plan", "country"]) {
  find(`#${name}`).addEventListener("change", (e) => customers.change({ [name]: e.target.value }));
}
find("#tools").addEventListener("submit", (event) => {
  event.preventDefault();
  customers.change({ q: find("#q").value.trim() });
});
customers.load();
