// The single file: the record of one job is in the page.

import { App } from './app.js';
import { pictureOf, record } from './embedded.js';
import { wholeSteps } from './player.js';

const places = new Map(record.trajectories.map(trajectory => [trajectory.id, trajectory]));

const source = {
  home: 'job',
  job: async () => record,
  trajectory: async id => {
    const trajectory = places.get(id);
    if (!trajectory) throw new Error(`This report has no trajectory ${id}.`);
    return { trajectory, steps: wholeSteps(trajectory.steps, trajectory.spans) };
  },
  place: async ({ id, task }) => {
    const { job, trajectories } = record, index = trajectories.findIndex(row => row.id === id);
    const [previous, next] = [trajectories[index - 1], trajectories[index + 1]];
    return { job, previous, next, live: null, runs: trajectories.filter(row => row.task === task) };
  },
  picture: pictureOf,
};

new App(source).start();
