// Sets the page's guard, which stops keys whose first one another element gets.
(element, key) => {
  const tracker = window[key];
  if (!tracker) return;
  const judge = event => {
    const got = tracker.pathOf(event)[0];
    for (let n = got; n; n = n.parentNode || n.host) if (n === element) return '';
    return !got || !got.tagName ? 'nothing'
      : `<${got.tagName.toLowerCase()}${got.id ? '#' + got.id : ''}>`;
  };
  tracker.arm(['keydown', 'beforeinput'], ['keydown', 'keypress', 'keyup', 'beforeinput'], judge);
}
