// A page to read: an article, a redirect, an old revision, a talk page, a category, the front page.
import { address, confirming, count, find, h, linkTo, moment, notice, read, send, tell, userLink } from "./kit.js";
import { render } from "./markup.js";

export const NOTES = { saved: "Your change is saved.", moved: "The page is moved.", restored: "The revision is restored.", topic: "Your topic is on the page." };

const isTalk = (title) => title.startsWith("Talk:");

// The tabs above a page; `here` is the name of the one that is open.
export function tabs(page, here) {
  const article = page.title.replace(/^Talk:/, "");
  const talk = `Talk:${article}`;
  const tab = (name, text, href) => h("li", {}, h("a", { href, "aria-current": name === here ? "page" : null }, text));
  return h("nav", { class: "tabs", "aria-label": "This page" }, h("ul", {},
    tab("article", "Article", address(article, page.redirect && !isTalk(page.title) ? { redirect: "no" } : {})),
    tab("talk", page.talk ? `Talk (${page.talk})` : "Talk", address(talk)),
    tab("edit", page.exists ? "Edit" : "Create", address(page.title, { view: "edit" })),
    page.exists && tab("history", "History", address(page.title, { view: "history" })),
    page.exists && tab("move", "Move", address(page.title, { view: "move" })),
    tab("links", "What links here", address(page.title, { view: "links" })),
    page.exists && h("li", {}, watchButton(page))));
}

function watchButton(page) {
  let watched = page.watched;
  const words = () => (watched ? "Unwatch" : "Watch");
  const button = h("button", { type: "button", class: "watch", onclick: async () => {
    button.disabled = true;
    button.textContent = "Saving…";
    const { ok, error } = await send("watch", { title: page.title, watched: !watched });
    if (ok) watched = !watched;
    button.disabled = false;
    button.textContent = words();
    button.focus();
    const place = find("#said") ?? find("#main").insertBefore(h("div", { id: "said" }), find("#main").firstChild);
    tell(place, ok ? `${page.title} is ${watched ? "on" : "no longer on"} your watchlist.` : error, !ok);
  } }, words());
  return button;
}

const categories = (names) => names.length > 0 && h("nav", { class: "categories", "aria-label": "Categories" },
  h("ul", {}, names.map((name) => h("li", {}, linkTo(`Category:${name}`, name)))));

function redirectBody(page) {
  const gone = page.missing.includes(page.redirect);
  return h("div", { class: "text" }, h("p", {}, "This page redirects to ",
    h("a", { href: address(page.redirect, gone ? { view: "edit" } : {}), class: gone ? "missing" : null }, page.redirect), "."),
  gone && notice(`There is no page “${page.redirect}”. This redirect is broken.`, true));
}

function oldRevision(page) {
  const { id, user, time } = page.revision;
  const place = h("div", {});
  const restore = async () => {
    const sure = await confirming({
      title: "Restore this revision?", confirm: "Restore",
      text: `Every edit after ${moment(time)} will be gone from the text. It stays in the history.`,
    });
    if (!sure) return;
    const { ok, error } = await send("restore", { title: page.title, revision: id });
    if (ok) location.assign(address(page.title, { note: "restored", redirect: "no" }));
    else tell(place, error);
  };
  return h("div", { class: "old" }, h("p", {}, `Revision ${id} of ${moment(time)} by `, userLink(user), ". ",
    id === page.newest ? "This is the newest revision." : "The page may have changed since."),
  h("p", { class: "row" }, linkTo(page.title, "Newest revision", { redirect: "no" }),
    id !== page.newest && linkTo(page.title, "Compare with the newest", { view: "compare", from: id, to: page.newest }),
    id !== page.newest && h("button", { type: "button", onclick: restore }, "Restore this revision")), place);
}

export async function showPage(query) {
  const asked = { title: query.get("title") };
  for (const name of ["redirect", "revision"]) if (query.has(name)) asked[name] = query.get(name);
  const { ok, data: page, error } = await read("page", asked);
  if (!ok) return { title: "Not found", nodes: [h("h1", {}, "Not found"), notice(error, true)] };
  const note = NOTES[query.get("note")];
  const head = [tabs(page, isTalk(page.title) ? "talk" : "article"), h("h1", {}, page.title),
    page.came_from && h("p", { class: "soft" }, "Redirected from ", linkTo(page.came_from, page.came_from, { redirect: "no" })),
    note && notice(note)];
  if (!page.exists) return { title: page.title, nodes: [...head, absent(page)] };
  const body = page.redirect ? redirectBody(page) : render(page.revision.text, page.missing);
  return { title: page.title, nodes: [...head, "revision" in asked && oldRevision(page),
    isTalk(page.title) && h("p", {}, h("a", { class: "button", href: address(page.title, { view: "topic" }) }, "New topic")),
    body, categories(page.categories),
    h("p", { class: "soft" }, `Last edited on ${moment(page.revision.time)}, by `, userLink(page.revision.user), ".")] };
}

function absent(page) {
  if (isTalk(page.title)) {
    return h("div", {}, h("p", {}, "Nobody has written on this page yet."),
      h("p", {}, h("a", { class: "button", href: address(page.title, { view: "topic" }) }, "New topic")));
  }
  return h("p", {}, "There is no page with this title. ", linkTo(page.title, "Create it", { view: "edit" }), ", or ",
    h("a", { href: `/wiki/?${new URLSearchParams({ view: "search", q: page.title })}` }, "search for these words"), ".");
}

export async function showCategory(query) {
  const { data } = await read("category", { name: query.get("title").replace("Category:", "") });
  const items = data.titles.map((title) => h("li", {}, linkTo(title, title, { redirect: "no" })));
  return { title: `Category: ${data.name}`, nodes: [h("h1", {}, `Category: ${data.name}`),
    h("p", {}, items.length ? `${count(items.length, "page")} in this category:` : "No page is in this category."),
    h("ul", { class: "columns" }, items),
    h("p", {}, h("a", { href: "/wiki/?view=categories" }, "All categories"))] };
}

export async function showFront(_query, site) {
  const [groups, recent] = await Promise.all([read("categories"), read("recent")]);
  const group = ({ name, count: number }) => h("li", {}, linkTo(`Category:${name}`, name), h("span", { class: "soft" }, ` ${number}`));
  const change = (row) => h("li", {}, linkTo(row.title, row.title, { redirect: "no" }), h("span", { class: "soft" }, ` ${moment(row.time)}`));
  return { title: "Front page", nodes: [h("h1", {}, "Welcome to Tidemark"),
    h("p", { class: "intro" }, "The wiki of ", linkTo(site.region, site.region.replace("The", "the")),
      `, written by those who live there: ${count(site.articles, "article")} so far.`),
    h("div", { class: "cards" },
      h("section", {}, h("h2", {}, "Look around"), h("ul", { class: "columns" }, (groups.data?.rows ?? []).map(group))),
      h("section", {}, h("h2", {}, "Changed lately"), h("ul", {}, (recent.data?.rows ?? []).slice(0, 6).map(change))))] };
}
