import { ask, day, find, h } from "/assets/kit.js";

let loaded = 0;
let busy = false;

function entry({ who, verb, card, day: date }) {
  return h("li", {}, h("span", { class: "who", "aria-hidden": "true" }, who[0]),
    h("span", {}, h("strong", {}, who), ` ${verb} “${card}”`), h("span", { class: "soft" }, day(date)));
}

async function more() {
  if (busy) return;
  busy = true;
  const { data } = await ask(`/api/board/activity?from=${loaded}`);
  loaded += data.entries.length;
  find("#entries").append(...data.entries.map(entry));
  busy = false;
  if (data.more) return;
  watcher.disconnect();
  find("#more").textContent = "This is the first entry.";
}

const watcher = new IntersectionObserver((seen) => { if (seen.some((s) => s.isIntersecting)) more(); });
watcher.observe(find("#more"));
