// A clipboard of the session's own, in place of the one that all sessions of a browser share.
//
// What is copied goes to the session, and what is pasted comes from there. The browser's own
// clipboard is neither written nor read: its events end here, before a page has them, and pages
// get events of their own with the session's data. Runs before the page's own scripts, after
// the tracker, which has both listen again after `document.open`, and in a window that is taken over.
(() => {
  const NAME = '__NAME__', KEY = '__KEY__';
  const exchange = window[NAME];
  if (typeof exchange !== 'function') return;
  delete window[NAME];
  const tracker = window[KEY];
  const counted = promise => tracker.until(promise);
  const text = value => typeof value === 'string' ? value : '';
  const put = items => counted(exchange(JSON.stringify(items)));
  const take = () => counted(exchange(null).then(told => JSON.parse(told)));

  const field = node => node && (node.tagName === 'TEXTAREA' || node.tagName === 'INPUT')
    && typeof node.selectionStart === 'number' ? node : null;
  const selected = node => {
    const input = field(node);
    if (input) {
      if (input.type === 'password') return null;
      const part = input.value.slice(input.selectionStart, input.selectionEnd);
      return part ? { 'text/plain': part } : null;
    }
    const selection = node.ownerDocument.getSelection();
    if (!selection || selection.isCollapsed) return null;
    const holder = document.createElement('div');
    for (let i = 0; i < selection.rangeCount; i++) {
      holder.append(selection.getRangeAt(i).cloneContents());
    }
    return { 'text/plain': selection.toString(), 'text/html': holder.innerHTML };
  };
  const deepest = () => {
    let node = document.activeElement || document.documentElement;
    for (let root; (root = tracker.rootOf(node)) && root.activeElement; ) node = root.activeElement;
    return node;
  };
  const send = (kind, target, items) => {
    const data = new DataTransfer();
    for (const [type, value] of Object.entries(items)) data.setData(type, value);
    const options = { bubbles: true, cancelable: true, composed: true, clipboardData: data };
    const event = new ClipboardEvent(kind, options);
    target.dispatchEvent(event);
    return event;
  };
  const written = data => Object.fromEntries([...data.types]
    .filter(type => type !== 'Files').map(type => [type, data.getData(type)]));

  const copy = (event, target) => {
    const given = send(event.type, target, {});
    if (given.defaultPrevented) {
      const items = written(given.clipboardData);
      if (Object.keys(items).length) put(items);
      return;
    }
    const node = field(deepest()) || target;
    const items = selected(node);
    if (!items) return;
    put(items);
    const input = field(node);
    const editable = input ? !input.readOnly && !input.disabled : node.isContentEditable;
    if (event.type === 'cut' && editable) document.execCommand('delete');
  };
  const paste = async target => {
    const items = await take();
    if (!target.isConnected) return;
    if (send('paste', target, items).defaultPrevented) return;
    const node = deepest(), words = text(items['text/plain']);
    if (!words || !(field(node) || node.isContentEditable)) return;
    document.execCommand('insertText', false,
      node.tagName === 'INPUT' ? words.replace(/[\r\n]+/g, ' ') : words);
  };
  // A press of the middle button pastes what is selected somewhere, in whichever session.
  let middle = false;
  const onButton = event => { middle = event.isTrusted && event.button === 1; };
  const onKey = event => { if (event.isTrusted) middle = false; };
  const onClipboard = event => {
    if (!event.isTrusted) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const target = tracker.pathOf(event)[0] || document.body || document.documentElement;
    if (event.type !== 'paste') copy(event, target);
    else if (!middle) paste(target);
  };
  const listen = () => {
    for (const kind of ['pointerdown', 'mousedown', 'mouseup', 'pointerup', 'auxclick']) {
      addEventListener(kind, onButton, true);
    }
    addEventListener('keydown', onKey, true);
    for (const kind of ['copy', 'cut', 'paste']) addEventListener(kind, onClipboard, true);
  };
  tracker.last(listen);

  if (!window.Clipboard) return;
  // As in Chrome: a page in view may write. To read, it asks the person after a click or a key,
  // as a dialog, which is answered and told as any other. The browser's own permissions are all
  // denied, so that nothing reaches its own clipboard.
  const permissions = navigator.permissions, policy = document.featurePolicy;
  const ask = permissions && permissions.query.bind(permissions);
  const person = window.confirm.bind(window);
  const wish = () => person(`${location.host} asks to see what was copied. May it?`);
  const refuse = (name, what) => new DOMException(
    `Failed to execute '${name}' on 'Clipboard': ${what} permission denied.`, 'NotAllowedError');
  const allowed = async (name, what) => {
    const feature = `clipboard-${what.toLowerCase()}`;
    const open = document.hasFocus() && (!policy || policy.allowsFeature(feature));
    const given = what === 'Write' || (await ask({ name: feature })).state === 'granted';
    const may = open && (given || (navigator.userActivation.isActive && wish()));
    if (!may) throw refuse(name, what);
  };
  if (ask) {
    const states = { 'clipboard-write': 'granted', 'clipboard-read': 'prompt' };
    const known = status => states[status.name.replace('_', '-')];
    const state = Object.getOwnPropertyDescriptor(PermissionStatus.prototype, 'state');
    const get = new Proxy(state.get, { apply(target, self) {
      const real = Reflect.apply(target, self, []);
      return real === 'denied' && known(self) || real;
    }});
    Object.defineProperty(PermissionStatus.prototype, 'state', { ...state, get });
  }
  const replace = (name, apply) => {
    Clipboard.prototype[name] = new Proxy(Clipboard.prototype[name], { apply });
  };
  replace('writeText', async (_target, _self, [words]) => {
    await allowed('writeText', 'Write');
    await put({ 'text/plain': String(words) });
  });
  replace('readText', async () => {
    await allowed('readText', 'Read');
    return text((await take())['text/plain']);
  });
  replace('write', async (_target, _self, [items]) => {
    await allowed('write', 'Write');
    const found = {};
    for (const item of items) {
      for (const type of item.types) {
        if (type.startsWith('text/')) found[type] = await (await item.getType(type)).text();
      }
    }
    await put(found);
  });
  replace('read', async () => {
    await allowed('read', 'Read');
    const items = await take();
    const blobs = Object.entries(items).map(([type, value]) => [type, new Blob([value], { type })]);
    return blobs.length ? [new ClipboardItem(Object.fromEntries(blobs))] : [];
  });
})();
