import { ask, find } from "/assets/kit.js";

find("#login").addEventListener("submit", async (event) => {
  event.preventDefault();
  const given = Object.fromEntries(new FormData(event.target));
  const { ok, data } = await ask("/api/admin/login", given);
  if (ok) {
    location.assign("/admin/tickets/");
    return;
  }
  find("#failed").textContent = data.error;
  find("#failed").hidden = false;
  find("#password").value = "";
  find("#password").focus();
});
