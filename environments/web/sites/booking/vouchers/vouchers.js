import { day } from "../dates.js";
import { frame } from "../frame.js";
import { ask, find, h, plural } from "../kit.js";

const site = await frame();
const { ok, data } = await ask("vouchers");
find("#found").textContent = ok ? plural(data.length, "voucher") : data.error;
if (ok) {
  find("#vouchers").replaceChildren(...data.map((rule) => h("li", { class: "panel" },
    h("h2", {}, rule.code),
    h("p", {}, `${rule.percent} % off the nights`),
    h("p", {}, rule.nights > 1 ? `For stays from ${rule.nights} nights on` : "For stays of any length"),
    h("p", {}, rule.kind ? `Only for places of the kind “${rule.kind}”` : "For all places"),
    h("p", { class: rule.until < site.today ? "badge bad" : "soft" },
      rule.until < site.today ? `Ended on ${day(rule.until)}` : `For bookings until ${day(rule.until)}`))));
}
