// Tabs, as the ARIA patterns have them: arrow keys go from one to the next, and one panel is shown.

export class Tabs {
  /** root: a tab list whose tabs name their panels. chosen: told which tab was asked for. */
  constructor(root, chosen) {
    this.root = root;
    this.chosen = chosen;
    this.all = [...root.querySelectorAll('[role=tab]')];
    root.addEventListener('click', event => {
      const tab = event.target.closest('[role=tab]');
      if (tab) this.choose(tab);
    });
    root.addEventListener('keydown', event => this.pressed(event));
  }

  get here() {
    return this.all.filter(tab => !tab.hidden);
  }

  get name() {
    return this.all.find(tab => tab.getAttribute('aria-selected') === 'true')?.dataset.tab ?? null;
  }

  /** Shows a tab's panel; the first one where it is not here. */
  show(name) {
    const shown = this.here.find(tab => tab.dataset.tab === name) ?? this.here[0];
    for (const tab of this.all) {
      const isShown = tab === shown;
      tab.setAttribute('aria-selected', isShown);
      tab.tabIndex = isShown ? 0 : -1;
      document.getElementById(tab.getAttribute('aria-controls')).hidden = !isShown;
    }
  }

  offer(name, isHere) {
    this.all.find(tab => tab.dataset.tab === name).hidden = !isHere;
    if (!isHere && this.name === name) this.show(null);
  }

  choose(tab) {
    this.show(tab.dataset.tab);
    this.chosen(tab.dataset.tab);
  }

  pressed(event) {
    const { here } = this, at = here.indexOf(event.target);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: here.length - 1 }[event.key];
    if (at < 0 || to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const tab = here[(to + here.length) % here.length];
    this.choose(tab);
    tab.focus();
  }
}
