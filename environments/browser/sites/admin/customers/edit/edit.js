import { ask, find, options, say, showErrors } from "/assets/kit.js";
import { frame } from "../../frame.js";

const form = find("#edit");
const id = new URLSearchParams(location.search).get("id");
const [choices, { ok, data: customer }] = await Promise.all([frame(), ask(`/api/admin/customers/${encodeURIComponent(id)}`)]);

function regions(chosen) {
  options(form.elements.region, [["", "Choose…"], ...choices.regions[form.elements.country.value]], chosen);
}

function localErrors(given) {
  const errors = {};
  if (!given.name.trim()) errors.name = "Enter a name.";
  if (!given.email.includes("@")) errors.email = "Enter an e-mail address such as name@example.org.";
  if (!given.region) errors.region = "Choose a region of this country.";
  return errors;
}

function refuse(text, fields) {
  find("#failed").textContent = text;
  find("#failed").hidden = false;
  showErrors(form, fields);
}

if (ok) {
  document.title = `${customer.name} – Quayside Desk`;
  find("#title").textContent = customer.name;
  options(form.elements.country, Object.keys(choices.regions), customer.country);
  regions(customer.region);
  options(form.elements.plan, choices.plan, customer.plan);
  for (const name of ["name", "email", "start", "end", "notes"]) form.elements[name].value = customer[name];
} else {
  find("#title").textContent = "There is no such customer";
  form.hidden = true;
}

form.elements.country.addEventListener("change", () => regions(""));
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const given = Object.fromEntries(new FormData(form));
  const errors = localErrors(given);
  if (Object.keys(errors).length) {
    refuse("Please check the form.", errors);
    return;
  }
  const saved = await ask(`/api/admin/customers/${customer.id}`, given);
  if (!saved.ok) {
    refuse(saved.data.error, saved.data.fields);
    return;
  }
  showErrors(form);
  find("#failed").hidden = true;
  find("#title").textContent = saved.data.name;
  say(`${saved.data.name} saved.`);
});
find("#delete").addEventListener("click", async () => {
  if (!confirm(`Delete ${customer.name}? This cannot be undone.`)) return;
  await ask(`/api/admin/customers/${customer.id}/delete`, {});
  location.assign("/admin/customers/");
});
