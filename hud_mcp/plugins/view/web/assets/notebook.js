// One trajectory in a frame of a notebook: the player, with what it shows in the page.

import { $, isTyping } from './dom.js';
import { pictureOf, record } from './embedded.js';
import { Player, wholeSteps } from './player.js';
import { drawRun } from './run.js';

const { trajectory } = record, player = new Player({ picture: pictureOf });

drawRun(trajectory);
player.open(wholeSteps(trajectory.steps, trajectory.spans), 0);
player.tabs.show(trajectory.steps.length ? 'step' : 'grade');
player.tabs.offer('raw', trajectory.steps.some(step => step.raw));
document.addEventListener('keydown', event => {
  if (event.altKey || event.ctrlKey || event.metaKey || isTyping(event)) return;
  if (player.pressed(event)) event.preventDefault();
});
document.documentElement.dataset.rendered = 'yes';
