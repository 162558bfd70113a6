// A field for people: what is typed is completed from the address book, and becomes a chip.
import { find, h, party } from "./parts.js";

const WHOLE = /^[^@\s<>,;]+@[^@\s<>,;]+\.[A-Za-z]{2,}$/;

function read(text) {
  const named = /^(.*)<([^<>]+)>$/.exec(text.trim());
  const email = (named ? named[2] : text).trim();
  return WHOLE.test(email) ? { name: named?.[1].trim() || email, email } : null;
}

export function peopleField(label, people, book, changed) {
  const id = `to-${label.toLowerCase()}`;
  const chips = h("ul", { class: "chips", "aria-label": `${label}: chosen` });
  const list = h("ul", { id: `${id}-list`, class: "options", role: "listbox", "aria-label": `Suggestions for ${label}`, hidden: true });
  const error = h("p", { class: "error", id: `${id}-error`, role: "alert" });
  const input = h("input", { id, autocomplete: "off", role: "combobox", "aria-expanded": "false", "aria-autocomplete": "list", "aria-controls": list.id, "aria-describedby": error.id });
  const node = h("div", { class: "field people-field" }, h("label", { for: id }, label), h("div", { class: "people-box" }, chips, input), list, error);
  let active = -1;

  const show = () => {
    chips.replaceChildren(...people.map((person, i) => h("li", {}, h("span", {}, party(person)),
      h("button", { type: "button", "aria-label": `Remove ${party(person)}`, onclick: () => { people.splice(i, 1); show(); input.focus(); changed(); } }, "×"))));
    chips.hidden = !people.length;
  };
  const close = () => { list.hidden = true; list.replaceChildren(); active = -1; input.setAttribute("aria-expanded", "false"); input.removeAttribute("aria-activedescendant"); };
  const add = (person) => {
    if (!people.some((each) => each.email.toLowerCase() === person.email.toLowerCase())) people.push(person);
    input.value = "";
    error.textContent = "";
    close();
    show();
    changed();
  };
  const suggest = () => {
    const words = input.value.trim().toLowerCase();
    const found = words ? book().filter((each) => party(each).toLowerCase().includes(words)).slice(0, 8) : [];
    if (!found.length) return close();
    active = -1;
    list.replaceChildren(...found.map((person, i) => h("li", { role: "option", id: `${id}-${i}`, "aria-selected": "false", onmousedown: (event) => event.preventDefault(), onclick: () => { add(person); input.focus(); } },
      party(person), person.company ? h("span", { class: "soft" }, ` – ${person.company}`) : null)));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    return null;
  };
  const walk = (step) => {
    const entries = [...list.children];
    if (!entries.length) return;
    active = (active + step + entries.length) % entries.length;
    entries.forEach((entry, i) => entry.setAttribute("aria-selected", `${i === active}`));
    entries[active].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", entries[active].id);
  };
  // Turns what was typed into people; says so where it is no address.
  const take = () => {
    for (const text of input.value.split(/[,;]/).filter((each) => each.trim())) {
      const person = read(text);
      if (!person) {
        error.textContent = `“${text.trim()}” is no address. Choose a suggestion, or write the whole address.`;
        return false;
      }
      add(book().find((each) => each.email.toLowerCase() === person.email.toLowerCase()) ?? person);
    }
    return true;
  };
  input.addEventListener("input", () => { error.textContent = ""; if (/[,;]$/.test(input.value)) take(); else suggest(); });
  input.addEventListener("blur", () => { close(); if (read(input.value)) take(); });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); walk(event.key === "ArrowDown" ? 1 : -1); }
    else if (event.key === "Enter" && !event.ctrlKey) { event.preventDefault(); active >= 0 ? list.children[active].click() : take(); }
    else if (event.key === "Tab" && active >= 0) { event.preventDefault(); list.children[active].click(); }
    else if (event.key === "Escape" && !list.hidden) { event.preventDefault(); event.stopPropagation(); close(); }
    else if (event.key === "Backspace" && !input.value && people.length) find("li:last-child button", chips).click();
  });
  show();
  return { node, take, input };
}
