// The single file: the record of one job is in the page.

import { App } from './app.js';
import { $ } from './dom.js';
import { wholeSteps } from './player.js';

const record = JSON.parse($('report-data').textContent);
const places = new Map(record.trajectories.map(trajectory => [trajectory.id, trajectory]));

function pictureOf(shot) {
  const known = record.pictures[shot.sha256];
  if (known?.problem) return { problem: `The picture ${known.problem}.` };
  const text = known && $(`picture-${shot.sha256}`)?.textContent;
  if (text) return { url: `data:${known.mime};base64,${text}` };
  return { problem: document.readyState === 'loading' ? 'The picture is still loading.' : 'The picture is missing.' };
}

const source = {
  home: 'job',
  job: async () => record,
  trajectory: async id => {
    const trajectory = places.get(id);
    if (!trajectory) throw new Error(`This report has no trajectory ${id}.`);
    return { trajectory, steps: wholeSteps(trajectory.steps, trajectory.spans) };
  },
  picture: pictureOf,
};

new App(source).start();
