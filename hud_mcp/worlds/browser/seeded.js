// Makes a page's random numbers repeat: mulberry32, public domain, from the seed, the page's
// address and how often it was visited.
(seed, alsoCrypto) => {
  let state = seed >>> 0;
  const stir = word => {
    for (const c of word) state = Math.imul(state ^ c.charCodeAt(0), 0x01000193) >>> 0;
  };
  const navigation = performance.getEntriesByType('navigation')[0];
  const visit = navigation && navigation.serverTiming.find(({ name }) => name === '__VISIT__');
  stir(location.pathname + location.search + (visit ? visit.duration : 0));
  const draw = () => {
    state = (state + 0x6D2B79F5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  };
  Math.random = function random() { return draw() / 4294967296; };
  if (!alsoCrypto || !window.crypto) return;
  const check = Crypto.prototype.getRandomValues;
  Crypto.prototype.getRandomValues = function getRandomValues(array) {
    check.call(this, array);
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    for (let i = 0; i < bytes.length; i++) bytes[i] = draw() >>> 24;
    return array;
  };
  if (!crypto.randomUUID) return;
  Crypto.prototype.randomUUID = function randomUUID() {
    const bytes = Array.from({ length: 16 }, () => draw() >>> 24);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = bytes.map(byte => byte.toString(16).padStart(2, '0')).join('');
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  };
}
