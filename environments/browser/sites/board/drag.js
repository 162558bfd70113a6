// Dragging with the pointer: a ghost follows it, and a slot shows where the card would go.
import { h } from "/assets/kit.js";

const START_PX = 6;

function placeAt(x, y, dragged) {
  const list = document.elementFromPoint(x, y)?.closest(".column")?.querySelector("ol");
  if (!list) return null;
  const cards = [...list.querySelectorAll(".card")].filter((card) => card !== dragged);
  const below = cards.findIndex((card) => {
    const box = card.getBoundingClientRect();
    return y < box.top + box.height / 2;
  });
  return { list, cards, place: below === -1 ? cards.length : below };
}

export function makeDraggable(node, drop) {
  node.addEventListener("pointerdown", (down) => {
    if (down.button !== 0 || down.target.closest("button, .menu")) return;
    const box = node.getBoundingClientRect();
    const slot = h("li", { class: "slot", role: "presentation" });
    let ghost = null;
    let target = null;

    function follow(event) {
      if (!ghost && Math.hypot(event.clientX - down.clientX, event.clientY - down.clientY) < START_PX) return;
      if (!ghost) {
        ghost = node.cloneNode(true);
        ghost.classList.add("ghost");
        ghost.removeAttribute("id");
        ghost.style.width = `${box.width}px`;
        document.body.append(ghost);
        node.classList.add("lifted");
      }
      ghost.style.left = `${event.clientX - (down.clientX - box.left)}px`;
      ghost.style.top = `${event.clientY - (down.clientY - box.top)}px`;
      slot.remove();
      target = placeAt(event.clientX, event.clientY, node);
      if (target) target.list.insertBefore(slot, target.cards[target.place] ?? null);
    }

    function finish(event) {
      document.removeEventListener("pointermove", follow);
      document.removeEventListener("pointerup", finish);
      document.removeEventListener("pointercancel", finish);
      ghost?.remove();
      slot.remove();
      node.classList.remove("lifted");
      if (ghost && target && event.type === "pointerup") drop(target.list.closest(".column").dataset.name, target.place);
    }

    document.addEventListener("pointermove", follow);
    document.addEventListener("pointerup", finish);
    document.addEventListener("pointercancel", finish);
  });
}
