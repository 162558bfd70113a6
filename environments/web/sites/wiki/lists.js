// Lists of pages: found by words, by letter, by category, by time, by what they link to.
import { count, h, linkTo, moment, notice, read, send, userLink } from "./kit.js";
import { render } from "./markup.js";
import { tabs } from "./reading.js";

const failed = (title, error) => ({ title, nodes: [h("h1", {}, title), notice(error, true)] });

export async function showSearch(query) {
  const asked = { q: query.get("q") ?? "", page: query.get("page") ?? "1" };
  const { ok, data, error } = await read("search", asked);
  if (!ok) return failed("Search", error);
  const said = data.total ? `${count(data.total, "page")} found for “${data.q}”.`
    : data.q ? `No page has all of these words: “${data.q}”. Try fewer words.` : "Write one word or more into the search field.";
  const to = (page) => `/wiki/?${new URLSearchParams({ view: "search", q: data.q, page })}`;
  const results = data.rows.map((row) => h("li", {}, h("h2", {}, linkTo(row.title)),
    h("p", {}, row.snippet.map((part, place) => (place % 2 ? h("mark", {}, part) : part)))));
  return { title: "Search", nodes: [h("h1", {}, "Search"), h("p", { role: "status" }, said),
    h("ol", { class: "results", start: 1 + 8 * (data.page - 1) }, results),
    data.pages > 1 && h("nav", { class: "row", "aria-label": "Pages of results" },
      data.page > 1 && h("a", { class: "button", href: to(data.page - 1) }, "Previous results"),
      h("span", {}, `Page ${data.page} of ${data.pages}`),
      data.page < data.pages && h("a", { class: "button", href: to(data.page + 1) }, "Next results"))] };
}

export async function showCategories() {
  const { ok, data, error } = await read("categories");
  if (!ok) return failed("Categories", error);
  return { title: "Categories", nodes: [h("h1", {}, "Categories"), h("ul", { class: "columns" }, data.rows.map(({ name, count: number }) =>
    h("li", {}, linkTo(`Category:${name}`, name), h("span", { class: "soft" }, ` ${count(number, "page")}`))))] };
}

export async function showPages() {
  const { ok, data, error } = await read("pages");
  if (!ok) return failed("All pages", error);
  const item = (row) => h("li", {}, linkTo(row.title, row.title, row.redirect ? { redirect: "no" } : {}),
    row.redirect && h("span", { class: "soft" }, ` redirects to ${row.redirect}`));
  const section = (name, rows) => [h("h2", {}, name), h("ul", { class: "columns" }, rows.map(item))];
  const talk = ({ title }) => title.startsWith("Talk:");
  return { title: "All pages", nodes: [h("h1", {}, "All pages"),
    ...section("Articles", data.rows.filter((row) => !row.redirect && !talk(row))),
    ...section("Redirects", data.rows.filter((row) => row.redirect)),
    ...section("Talk pages", data.rows.filter((row) => talk(row) && !row.redirect))] };
}

const changes = (rows) => h("ul", { class: "history" }, rows.map((row) => h("li", {}, h("span", { class: "what" },
  linkTo(row.title, row.title, { redirect: "no" }), ` ${moment(row.time)}, `, userLink(row.user), " ", row.summary && h("i", {}, `(${row.summary})`)),
h("span", { class: "row" }, linkTo(row.title, "History", { view: "history" })))));

export async function showRecent(query) {
  const user = query.get("user");
  const { ok, data, error } = await read("recent", user ? { user } : {});
  const title = user ? `Edits by ${user}` : "Recent changes";
  if (!ok) return failed(title, error);
  const shown = data.rows.length < data.total ? `The newest ${data.rows.length} of ${data.total} edits:` : `${count(data.total, "edit")}:`;
  return { title, nodes: [h("h1", {}, title), h("p", {}, data.total ? shown : "There are no edits."), changes(data.rows)] };
}

export async function showWatchlist() {
  const { ok, data, error } = await read("watchlist");
  if (!ok) return failed("Watchlist", error);
  const item = (title) => {
    const button = h("button", { type: "button", class: "quiet", onclick: async () => {
      button.disabled = true;
      button.textContent = "Saving…";
      const reply = await send("watch", { title, watched: false });
      if (reply.ok) return location.reload();
      row.append(notice(reply.error, true));
      button.disabled = false;
      button.textContent = `Unwatch ${title}`;
    } }, `Unwatch ${title}`);
    const row = h("li", {}, h("span", { class: "what" }, linkTo(title, title, { redirect: "no" })), button);
    return row;
  };
  return { title: "Watchlist", nodes: [h("h1", {}, "Watchlist"),
    h("p", {}, data.titles.length ? `You watch ${count(data.titles.length, "page")}:` : "You watch no page. Open one, and press “Watch”."),
    h("ul", { class: "history" }, data.titles.map(item)), h("h2", {}, "Their newest changes"),
    data.rows.length ? changes(data.rows) : h("p", {}, "There are none.")] };
}

export async function showLinks(query) {
  const title = query.get("title");
  const [page, links] = await Promise.all([read("page", { title, redirect: "no" }), read("links", { title })]);
  if (!links.ok || !page.ok) return failed("What links here", links.error ?? page.error);
  const item = (row) => h("li", {}, linkTo(row.title, row.title, { redirect: "no" }), row.redirect && h("span", { class: "soft" }, " (redirect)"));
  return { title: `Links to ${title}`, nodes: [tabs(page.data, "links"), h("h1", {}, `What links to ${title}`),
    h("p", {}, links.data.rows.length ? `${count(links.data.rows.length, "page")}:` : "No page links here."),
    h("ul", {}, links.data.rows.map(item))] };
}

const MARKUP = [
  ["'''words'''", "bold"], ["[[Title]]", "a link to a page"], ["[[Title|words]]", "a link with other words"],
  ["[[Category:Name]]", "puts the page into a category"], ["#REDIRECT [[Title]]", "as the first line: the page leads on to another"],
  ["== Heading ==", "a section"], ["* words", "an item of a list"], ["<ref>source</ref>", "a source, listed at the page's end"],
  ["| name = value", "a line of an infobox"], ["| one || two", "a row of a table"],
];

export async function showHelp() {
  return { title: "Help with markup", nodes: [h("h1", {}, "Help with markup"), h("p", {}, "A page's source is plain text with these signs."),
    h("table", { class: "help" }, h("tbody", {}, MARKUP.map(([source, words]) => h("tr", {}, h("th", { scope: "row" }, h("code", {}, source)), h("td", {}, words))))),
    h("h2", {}, "Example"), render("'''Bold''' words, and a list:\n* one\n* two")] };
}
