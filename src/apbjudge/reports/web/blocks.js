// Owns the blocks in which data travels inside the page: JSON, compressed, in base64.
(() => {
  "use strict";
  const apb = (globalThis.apb = globalThis.apb || {});

  // Blocks -----------------------------------------------------------------------------------

  function bytesOf(text) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const raw = atob(text);
    const bytes = new Uint8Array(raw.length);
    for (let at = 0; at < raw.length; at += 1) bytes[at] = raw.charCodeAt(at);
    return bytes;
  }

  async function unpack(text) {
    const unzip = new DecompressionStream("gzip");
    const stream = new Blob([bytesOf(text)]).stream().pipeThrough(unzip);
    return JSON.parse(await new Response(stream).text());
  }

  function parsed() {
    if (document.readyState !== "loading") return Promise.resolve();
    return new Promise((done) => document.addEventListener("DOMContentLoaded", done));
  }

  // Most details stand behind the scripts, so a block may not be there yet, or its beginning alone:
  // it is whole once something stands behind it.
  async function readBlock(id) {
    if (!document.getElementById(id)?.nextSibling) await parsed();
    const element = document.getElementById(id);
    if (!element) throw new Error(`the page has no block ${id}: it was cut off`);
    return unpack(element.textContent);
  }

  function chunkOf(starts, at) {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle] <= at) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  // Gives records by number and keeps the few blocks that were read last.
  function makeReader(name, starts, kept = 6) {
    const blocks = new Map();
    return async (at) => {
      const chunk = chunkOf(starts, at);
      const found = blocks.get(chunk) || readBlock(`${name}-${chunk}`);
      blocks.delete(chunk);
      blocks.set(chunk, found);
      if (blocks.size > kept) blocks.delete(blocks.keys().next().value);
      return (await found)[at - starts[chunk]];
    };
  }

  Object.assign(apb, {
    makeReader, readBlock,
  });
})();
