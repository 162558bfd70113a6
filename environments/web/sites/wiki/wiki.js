// Which view an address asks for, and the frame around it.
import { count, find, h, moment, notice, read } from "./kit.js";
import { showCategory, showFront, showPage } from "./reading.js";
import { showEditor, showMove, showTopic } from "./editing.js";
import { showComparison, showHistory } from "./past.js";
import { showCategories, showHelp, showLinks, showPages, showRecent, showSearch, showWatchlist } from "./lists.js";

const VIEWS = {
  edit: showEditor, move: showMove, topic: showTopic, history: showHistory, compare: showComparison,
  links: showLinks, search: showSearch, categories: showCategories, pages: showPages, recent: showRecent,
  watchlist: showWatchlist, help: showHelp,
};

function choose(query) {
  const title = query.get("title") ?? "";
  if (title.startsWith("Category:")) return showCategory;
  return VIEWS[query.get("view")] ?? (title ? showPage : showFront);
}

async function start() {
  const query = new URLSearchParams(location.search);
  const main = find("#main");
  const { ok, data: site, error } = await read("site");
  if (ok) {
    find("#who").textContent = `Signed in as ${site.user}`;
    find("#today").textContent = `Tidemark, the wiki of ${site.region.replace("The", "the")}. ${count(site.articles, "article")}. Today is ${moment(site.today)}.`;
    find("#q").value = query.get("q") ?? "";
  }
  for (const link of document.querySelectorAll(".page > nav a")) {
    if (link.getAttribute("href") === location.pathname + location.search) link.setAttribute("aria-current", "page");
  }
  const view = ok ? await choose(query)(query, site) : { title: "Not loaded", nodes: [h("h1", {}, "Not loaded"), notice(error, true)] };
  document.title = `${view.title} – Tidemark`;
  main.replaceChildren(...view.nodes.flat().filter(Boolean));
  main.removeAttribute("aria-busy");
  const place = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (place) place.scrollIntoView();
}

start();
