// Says in a dialog, which is answered and told as any other, what a page asks a person for and
// nothing here can give: a printer, and the files of the newer pickers, of which no event tells.
(() => {
  const say = window.alert.bind(window);
  const asks = {
    print: 'to print. There is no printer here.',
    showOpenFilePicker: 'for a file. None can be given here.',
    showSaveFilePicker: 'where to save a file. None can be saved here.',
    showDirectoryPicker: 'for a folder. None can be given here.',
  };
  for (const [name, what] of Object.entries(asks)) {
    const own = Object.getOwnPropertyDescriptor(window, name);
    if (!own) continue;
    const value = new Proxy(own.value, { apply(target, self, args) {
      const done = Reflect.apply(target, self, args);
      say(`${location.host} asks ${what}`);
      return done;
    }});
    Object.defineProperty(window, name, { ...own, value });
  }
})();
