// Pictures of places, and the maps of towns, drawn as SVG.
import { h, metres } from "./kit.js";

const tone = (hue, s, l) => `hsl(${hue % 360} ${s}% ${l}%)`;
const windows = (rows, columns, x, y, dx, dy, fill) => Array.from({ length: rows * columns }, (_, i) =>
  `<rect x="${x + (i % columns) * dx}" y="${y + Math.floor(i / columns) * dy}" width="11" height="15" rx="2" fill="${fill}"/>`).join("");

function land(hue) {
  return `<rect width="200" height="140" fill="${tone(hue + 200, 45, 82)}"/><circle cx="160" cy="28" r="13" fill="#fff3cf"/>
    <path d="M0 96 44 58l38 30 36-42 82 54v40H0z" fill="${tone(hue + 120, 26, 62)}"/>
    <path d="M0 108q52-18 100-4t100-6v42H0z" fill="${tone(hue + 90, 30, 50)}"/>`;
}

const HOUSES = {
  "Hotel": (hue) => `<rect x="52" y="32" width="96" height="84" fill="${tone(hue, 42, 58)}"/><rect x="46" y="26" width="108" height="9" rx="3" fill="${tone(hue, 40, 36)}"/>
    ${windows(3, 4, 62, 42, 22, 21, "#fff6dc")}<path d="M92 116v-12h18v12z" fill="${tone(hue, 40, 28)}"/><path d="M86 104h30l-4-7H90z" fill="#fff"/>`,
  "Guest house": (hue) => `<path d="M48 70 100 28l52 42z" fill="${tone(hue + 10, 46, 38)}"/><rect x="58" y="68" width="84" height="48" fill="${tone(hue, 45, 76)}"/>
    ${windows(1, 2, 68, 78, 54, 0, tone(hue + 200, 40, 55))}<path d="M91 116V88a9 9 0 0 1 18 0v28z" fill="${tone(hue, 45, 34)}"/><rect x="94" y="48" width="12" height="12" rx="6" fill="#fff6dc"/>`,
  "Cabin": (hue) => `<path d="M46 116 100 34l54 82z" fill="${tone(hue + 20, 38, 38)}"/><path d="M66 116 100 62l34 54z" fill="${tone(hue + 30, 45, 68)}"/>
    <path d="M90 116V96h20v20z" fill="${tone(hue, 40, 30)}"/><path d="M124 52V34h9v32z" fill="${tone(hue, 18, 46)}"/><path d="M22 116l11-38 11 38zM158 118l10-34 10 34z" fill="${tone(hue + 100, 32, 34)}"/>`,
};

const ROOMS = (hue) => `<rect width="200" height="140" fill="${tone(hue, 34, 88)}"/><rect y="108" width="200" height="32" fill="${tone(hue + 25, 34, 62)}"/>
  <rect x="124" y="20" width="52" height="44" fill="${tone(hue + 200, 48, 80)}" stroke="#fff" stroke-width="5"/><path d="M150 20v44" stroke="#fff" stroke-width="4"/>
  <rect x="20" y="52" width="84" height="30" rx="6" fill="${tone(hue, 36, 44)}"/><rect x="20" y="76" width="98" height="34" rx="6" fill="#fff"/>
  <path d="M52 80h66v30H52z" fill="${tone(hue + 180, 34, 60)}"/><rect x="26" y="70" width="28" height="15" rx="7" fill="#f4efe6"/>
  <path d="M128 110V84h18v26" fill="${tone(hue, 30, 40)}"/><path d="M130 84l4-16h6l4 16z" fill="#fff3cf"/>`;

const VIEWS = (hue) => `${land(hue + 40)}<path d="M0 116q50-8 100 0t100 0v24H0z" fill="${tone(hue + 210, 44, 62)}"/>
  <path d="M20 128h30M80 132h40M140 126h34" stroke="#fff" stroke-width="2" opacity=".7"/>`;

export function picture(place, which = 0) {
  const hue = place.hue;
  const body = [`${land(hue)}${HOUSES[place.kind](hue)}`, ROOMS(hue), VIEWS(hue)][which];
  const box = h("div", { class: "art", "aria-hidden": "true" });
  box.innerHTML = `<svg viewBox="0 0 200 140" preserveAspectRatio="xMidYMid slice">${body}</svg>`;
  return box;
}

// A town's map: its sights with their names, and places as numbered points.
export function map(town, sights, places) {
  const [centre, station, sight] = sights;
  const pins = places.map((place) => `<g class="pin"><circle cx="${place.x}" cy="${place.y}" r="3.4"/>
    <text x="${place.x}" y="${place.y + 1.3}">${place.mark}</text></g>`).join("");
  const names = sights.map((s) => `<g class="sight"><path d="M${s.x} ${s.y - 2.6} ${s.x + 2.6} ${s.y} ${s.x} ${s.y + 2.6} ${s.x - 2.6} ${s.y}z"/>
    <text x="${s.x}" y="${s.y - 4}">${s.name}</text></g>`).join("");
  const words = places.map((p) => (p.name ? `${p.mark}: ${p.name}` : p.mark)).join(", ");
  const box = h("figure", { class: "map" });
  box.innerHTML = `<svg viewBox="0 0 100 100" role="img"><rect width="100" height="100" class="ground"/>
    <path class="water" d="M${sight.x - 30} 0Q${sight.x} 22 100 ${sight.y + 30}V0z"/>
    <path class="road" d="M0 46 50 50 100 62M50 50 ${station.x} ${station.y} 8 100M50 50 ${sight.x} ${sight.y}M50 50 58 100"/>
    <circle class="square" cx="${centre.x}" cy="${centre.y}" r="6"/>${names}${pins}</svg>`;
  box.firstChild.setAttribute("aria-label", `Map of ${town}: ${words}`);
  return box;
}

export const distances = (sights) => h("ul", { class: "distances" },
  sights.map((s) => h("li", {}, `${s.name}: ${metres(s.distance)}`)));
