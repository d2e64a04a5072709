// Owns the page's address: a state, which is a plain object of texts such as {verdict:
// "incorrect"}, stands behind # and in the browser's history.
(() => {
  "use strict";
  const apb = (globalThis.apb = globalThis.apb || {});
  const LATER = 200; // ms
  const GONE = 2000; // ms: a browser that has not gone back by then never will

  // What the part behind # asks for; null where it is no state, but a place on the page.
  function readAddress(fragment) {
    const text = fragment.replace(/^#/, "");
    if (text && !text.includes("=")) return null;
    return Object.fromEntries(new URLSearchParams(text));
  }

  function writeAddress(state) {
    const kept = Object.entries(state).filter(([, value]) => value !== undefined && value !== "");
    return `#${new URLSearchParams(kept)}`;
  }

  // ``due`` is the present entry of the history as it will be a little later: browsers bear only
  // so many changes in a row, and a key that is held down makes many. ``last`` is when it was last
  // changed. ``isLeaving`` from when the browser is asked to go back until it has gone: a change of
  // the address would stop it.
  function makeAddress() {
    const kept = { due: null, timer: 0, last: -LATER, isLeaving: false };
    addEventListener("popstate", () => forget(kept));
    document.addEventListener("click", (event) => {
      if (event.target.closest("a")) settle(kept);
    }, true);
    return {
      push: (state) => push(kept, state),
      replace: (state) => replace(kept, state),
      forget: () => forget(kept),
      back: () => back(kept),
    };
  }

  // A new entry of the history, unless the present one says the same, as after a double click.
  function push(kept, state) {
    if (kept.isLeaving) return;
    settle(kept);
    const wanted = writeAddress(state);
    if (wanted !== location.hash) history.pushState({ opened: true }, "", wanted);
  }

  function replace(kept, state) {
    if (kept.isLeaving) return;
    const isQuiet = performance.now() - kept.last >= LATER;
    kept.last = performance.now();
    kept.due = writeAddress(state);
    clearTimeout(kept.timer);
    if (isQuiet) settle(kept);
    else kept.timer = setTimeout(() => settle(kept), LATER);
  }

  function settle(kept) {
    clearTimeout(kept.timer);
    if (kept.due !== null) history.replaceState(history.state, "", kept.due);
    kept.due = null;
  }

  // What is due was meant for an entry of the history that has been left.
  function forget(kept) {
    clearTimeout(kept.timer);
    Object.assign(kept, { due: null, isLeaving: false });
  }

  // Goes to where the present entry was opened from; false where it was opened from nowhere.
  function back(kept) {
    settle(kept);
    if (!history.state || !history.state.opened) return false;
    if (kept.isLeaving) return true;
    kept.isLeaving = true;
    history.back();
    setTimeout(() => (kept.isLeaving = false), GONE);
    return true;
  }

  Object.assign(apb, { makeAddress, readAddress, writeAddress });
})();
