// What is shown of a run beside its steps: what was asked, how it ended, its log and its grade.

import { $, facts, say } from './dom.js';
import { gradeOf } from './grade.js';
import { showTools } from './tools.js';
import { turnItem } from './turns.js';
import { moment, secondsText, titleOf, verdict } from './words.js';

export function drawRun(run) {
  $('task-name').textContent = titleOf(run);
  say($('task-description'), run.description);
  facts($('task-facts'), [
    `${run.environment} ${run.environment_version}`.trim(),
    `template ${run.template}`,
    run.args && `with ${run.args}`,
    run.context && `context ${run.context}`,
    run.seed !== null && `seed ${run.seed}`,
    moment(run.started_at),
    secondsText(run.seconds),
    `record ${run.id}`,
    run.use && `model: ${run.use}`,
    run.user && `conversation: ${run.user}`,
  ]);
  $('verdict').replaceChildren(...verdict(run));
  $('prompt').textContent = run.prompt ?? (run.pruned ? `Its prompt and its steps were removed. It was ${run.pruned}.` : 'None was recorded.');
  $('no-steps').textContent = run.pruned ? 'Its steps were removed.' : 'It has no steps.';
  $('grade').replaceChildren(...gradeOf(run));
  say($('log'), run.logs ?? (run.pruned ? 'No log is kept.' : 'Nothing was logged.'));
  showTools('run-tools', run.tools);
  $('turns-left').replaceChildren(...(run.turns ?? []).map(turnItem));
}
