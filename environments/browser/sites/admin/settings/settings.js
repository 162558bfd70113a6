import { ask, find, h, options, say, showErrors } from "/assets/kit.js";
import { frame } from "../frame.js";

const SWITCHES = [
  ["digest", "Daily digest", "A mail at eight with what changed overnight."],
  ["auto_assign", "Assign new tickets automatically", "In turn, to whoever is on duty."],
  ["status_page", "Public status page", "Customers see which services run."],
  ["weekend_cover", "Weekend cover", "Urgent tickets ring a phone on Saturdays and Sundays."],
  ["two_step", "Two-step sign-in", "A code from the phone, beside the password."],
];
const form = find("#settings");
const [choices, { data: settings }] = await Promise.all([frame(), ask("/api/admin/settings")]);

function toggle(name) {
  const button = find(`#${name}`);
  const on = button.getAttribute("aria-checked") !== "true";
  button.setAttribute("aria-checked", `${on}`);
  settings[name] = on;
  find("#state").textContent = "Changes are not saved yet.";
}

function setting(name, text, about, control) {
  return h("div", { class: "setting field" }, h("label", { for: name, id: `label-${name}` }, text),
    h("p", { class: "soft", id: `about-${name}` }, about), h("div", { class: "control" }, control));
}

const switches = SWITCHES.map(([name, text, about]) => setting(name, text, about,
  h("button", { type: "button", role: "switch", id: name, "aria-checked": `${settings[name]}`, "aria-labelledby": `label-${name}`, "aria-describedby": `about-${name}`, onclick: () => toggle(name) })));
const days = h("input", { id: "close_after", name: "close_after", type: "number", min: "1", max: "90", value: `${settings.close_after}` });
const language = h("select", { id: "reply_language", name: "reply_language" });
options(language, choices.language, settings.reply_language);
find("#rows").replaceChildren(...switches,
  setting("close_after", "Close waiting tickets after (days)", "From 1 to 90 days without an answer.", days),
  setting("reply_language", "Language of automatic replies", "Used until a person answers.", language));

form.addEventListener("input", () => { find("#state").textContent = "Changes are not saved yet."; });
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const given = { ...settings, close_after: Number(days.value), reply_language: language.value };
  const { ok, data } = await ask("/api/admin/settings", given);
  showErrors(form, data.fields);
  find("#state").textContent = ok ? "All changes are saved." : data.error;
  if (ok) say("Settings saved.");
});
