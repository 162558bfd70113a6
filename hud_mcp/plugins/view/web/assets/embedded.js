// What a single file holds: its record as JSON, and its pictures as texts that stand after the script.

import { $ } from './dom.js';

export const record = JSON.parse($('report-data').textContent);

export function pictureOf(shot) {
  const known = record.pictures[shot.sha256];
  if (known?.problem) return { problem: `The picture ${known.problem}.` };
  const text = known && $(`picture-${shot.sha256}`)?.textContent;
  if (text) return { url: `data:${known.mime};base64,${text}` };
  return { problem: document.readyState === 'loading' ? 'The picture is still loading.' : 'The picture is missing.' };
}
