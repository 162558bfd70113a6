import { compareButton, frame } from "../frame.js";
import { ask, empty, euros, find, h, metres, money, plural } from "../kit.js";

const ROWS = [
  ["Kind", (p) => p.kind], ["Town", (p) => p.town], ["Stars", (p) => plural(p.stars, "star")],
  ["Guests' rating", (p) => `${p.rating.toFixed(1)} from ${plural(p.count, "review")}`],
  ["Price of a night", (p) => `from ${euros(p.base)}`],
  ["Cleaning fee", (p) => (p.cleaning ? money(p.cleaning) : "none")],
  ["City tax", (p) => `${money(p.tax)} for each adult and night`],
  ["From 7 nights on", (p) => (p.weekly ? `${p.weekly} % off` : "no discount")],
  ["Cancellation", (p) => p.policy], ["Facilities", (p) => p.facilities.join(", ")],
  ["Distances", (p) => p.sights.map(([name, m]) => `${name} ${metres(m)}`).join(", ")]];

await frame();
const { ok, data } = await ask("compare");
find("#found").textContent = ok ? `${plural(data.length, "place")} of at most 4` : data.error;
if (ok && !data.length) {
  find("#table").replaceChildren(empty("Press “Compare” at up to four places, and see them side by side here.", "/booking/", "Look at all places"));
} else if (ok) {
  find("#table").replaceChildren(h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Comparison" }, h("table", { class: "compare" },
    h("thead", {}, h("tr", {}, h("td", {}), data.map((p) => h("th", { scope: "col" },
      h("a", { href: `/booking/place/?id=${p.id}` }, p.name))))),
    h("tbody", {}, ROWS.map(([name, text]) => h("tr", {}, h("th", { scope: "row" }, name), data.map((p) => h("td", {}, text(p))))),
      h("tr", {}, h("th", { scope: "row" }, "Change"), data.map((p) => h("td", {}, compareButton(p))))))));
}
