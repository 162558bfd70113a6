"""The script that begins an episode on a page of MiniWoB++."""

__all__ = ["BEGIN", "ENDED"]

BEGIN = """async ([seed, key]) => {
  const until = async ready => {
    while (!ready()) await new Promise(resolve => setTimeout(resolve, 5));
  };
  await until(() => window.core && core.cover_div);
  Math.seedrandom(seed);
  core.EPISODE_MAX_TIME = 1e9;
  core.startEpisodeReal();
  await until(() => WOB_TASK_READY);

  // What the yellow box shows without words is told by its colour or the name of its icon.
  const told = node => {
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    if (node.nodeType !== Node.ELEMENT_NODE) return '';
    const icon = /(?:^| )ui-icon (ui-icon-[a-z0-9-]+)/.exec(node.className);
    if (icon) return `"${icon[1]}"`;
    const color = /rgb\\((\\d+), (\\d+), (\\d+)\\)/.exec(node.style.backgroundColor);
    if (color && !node.textContent.trim()) {
      const hex = n => Number(n).toString(16).padStart(2, '0');
      return '#' + color.slice(1).map(hex).join('');
    }
    return [...node.childNodes].map(told).join('');
  };
  const query = document.querySelector('#query');
  const bare = [...query.children].some(child => !child.textContent.trim());
  const ownsUtterance = !String(core.getUtterance).includes('query.textContent');
  const asked = ownsUtterance || !bare ? core.getUtterance() : told(query);
  const utterance = typeof asked === 'string' ? asked : asked.utterance;

  core.clearTimer();
  document.body.removeEventListener('click', core.canvasDrawClick);
  for (const id of ['reward-display', 'click-canvas', 'sync-task-cover']) {
    document.getElementById(id)?.remove();
  }
  const rules = document.createElement('meta');
  rules.httpEquiv = 'Content-Security-Policy';
  rules.content = "script-src 'none'; object-src 'none'; frame-src 'none'; form-action 'none'";
  document.head.append(rules);
  // A tab that a link opens could hold this page's window.
  const stay = event => {
    const link = event.target.closest?.('a, area');
    if (link && (link.hasAttribute('target') || !/^#|^$/.test(link.getAttribute('href') ?? ''))) {
      event.preventDefault();
    }
  };
  for (const kind of ['click', 'auxclick']) document.addEventListener(kind, stay, true);

  core.startEpisode = core.startEpisodeReal = () => {};
  Object.defineProperty(window, key, {
    configurable: true,
    value: new Promise(resolve => {
      let over = false;
      core.endEpisode = (reward, _timely, reason) => {
        if (over) return;
        over = true;
        clearTimeout(core.EP_TIMER);
        core.EP_TIMER = null;
        WOB_DONE_GLOBAL = true;
        const note = document.createElement('p');
        note.setAttribute('role', 'status');
        note.style.cssText = 'margin: 4px; color: white; font-size: 12px';
        note.textContent = 'The episode is over.';
        document.body.append(note);
        resolve({ reward, reason: reason == null ? null : String(reason) });
      };
    }),
  });
  return utterance.replace(/\\s+/g, ' ').trim();
}"""
"""Starts an episode with a seed, takes away what is for people alone, and returns what it asks.

The promise of its first result is kept under a key that `ENDED` takes back; no later one counts,
and no START begins another. Scripts that an agent writes into the page do not run: one of the
pages shows what is typed as HTML.
"""

ENDED = """key => {
  const first = window[key];
  delete window[key];
  return first;
}"""
"""Returns the first result of the episode, when it is there."""
