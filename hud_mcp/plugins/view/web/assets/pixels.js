// Which regions of a picture are others than in the picture before it.

const CELL_PX = 8, MOST_REGIONS = 40, MOST_KEPT = 60, MOST_PIXELS = 2_200_000, FAR = 40;
const compared = new Map();

async function pixelsOf(url, width, height) {
  const image = new Image();
  image.src = url;
  await image.decode();
  const canvas = new OffscreenCanvas(width, height), drawing = canvas.getContext('2d', { willReadFrequently: true });
  drawing.drawImage(image, 0, 0, width, height);
  return drawing.getImageData(0, 0, width, height).data;
}

/**
 * The regions of `after` that differ from `before`, as parts of its width and height, and their share.
 * urls: of both pictures; `before` and `after` are what is known of them.
 */
export function changedRegions(before, after, urls) {
  const key = `${before.sha256} ${after.sha256}`;
  if (!compared.has(key)) {
    compared.set(key, compareShots(before, after, urls));
    if (compared.size > MOST_KEPT) compared.delete(compared.keys().next().value);
  }
  return compared.get(key);
}

async function compareShots(before, after, urls) {
  if (before.sha256 === after.sha256) return { regions: [], share: 0 };
  const scale = Math.min(1, Math.sqrt(MOST_PIXELS / (after.width * after.height)));
  const width = Math.max(1, Math.round(after.width * scale)), height = Math.max(1, Math.round(after.height * scale));
  const [was, now] = await Promise.all(urls.map(url => pixelsOf(url, width, height)));
  const columns = Math.ceil(width / CELL_PX), rows = Math.ceil(height / CELL_PX);
  const cells = new Uint8Array(columns * rows);
  for (let y = 0, at = 0; y < height; y++) {
    const row = Math.floor(y / CELL_PX) * columns;
    for (let x = 0; x < width; x++, at += 4) {
      const far = Math.abs(was[at] - now[at]) + Math.abs(was[at + 1] - now[at + 1]) + Math.abs(was[at + 2] - now[at + 2]);
      if (far > FAR) cells[row + Math.floor(x / CELL_PX)] = 1;
    }
  }
  const boxes = regionsOf(cells, columns, rows);
  return {
    share: cells.reduce((sum, cell) => sum + cell, 0) / cells.length,
    regions: boxes.map(([left, top, right, bottom]) => ({
      x: left / columns, y: top / rows, width: (right + 1 - left) / columns, height: (bottom + 1 - top) / rows,
    })),
  };
}

/** Boxes around changed cells that lie at most one cell apart; the largest ones first. */
function regionsOf(cells, columns, rows) {
  const seen = new Uint8Array(cells.length), boxes = [];
  for (let start = 0; start < cells.length; start++) {
    if (!cells[start] || seen[start]) continue;
    const box = [columns, rows, 0, 0], open = [start];
    seen[start] = 1;
    while (open.length) {
      const at = open.pop(), x = at % columns, y = Math.floor(at / columns);
      box[0] = Math.min(box[0], x);
      box[1] = Math.min(box[1], y);
      box[2] = Math.max(box[2], x);
      box[3] = Math.max(box[3], y);
      for (let v = Math.max(0, y - 2); v <= Math.min(rows - 1, y + 2); v++) {
        for (let u = Math.max(0, x - 2); u <= Math.min(columns - 1, x + 2); u++) {
          const next = v * columns + u;
          if (cells[next] && !seen[next]) {
            seen[next] = 1;
            open.push(next);
          }
        }
      }
    }
    boxes.push(box);
  }
  const area = ([left, top, right, bottom]) => (right + 1 - left) * (bottom + 1 - top);
  return boxes.sort((one, other) => area(other) - area(one)).slice(0, MOST_REGIONS);
}
