// Owns the choice whether single characters act as keys. Who dictates, or strikes keys without
// meaning to, can switch them off; the browser remembers it where it lets the page.
(() => {
  "use strict";
  const apb = (globalThis.apb = globalThis.apb || {});
  const NAME = "apbjudge-single-keys";
  const root = document.documentElement;

  const areOn = () => root.dataset.keys !== "off";

  // Pages opened as a file, or in a private window, may be refused: then it holds for this page.
  const remembered = () => {
    try {
      return localStorage.getItem(NAME);
    } catch {
      return null;
    }
  };

  const remember = (word) => {
    try {
      localStorage.setItem(NAME, word);
    } catch {
      // The page has the choice already.
    }
  };

  const choose = (word) => {
    root.dataset.keys = word === "off" ? "off" : "on";
    for (const made of document.querySelectorAll("[data-shortcut]")) {
      if (areOn()) made.setAttribute("aria-keyshortcuts", made.dataset.shortcut);
      else made.removeAttribute("aria-keyshortcuts");
    }
  };

  // Attributes of a button that a key stands for; the key is named while it is one.
  const shortcut = (key) => ({ "data-shortcut": key, "aria-keyshortcuts": areOn() ? key : null });

  const isMuted = (event) => !areOn() && event.key.length === 1;

  // Makes a checkbox say whether single characters are keys, and hears what is chosen there.
  const offerKeys = (box) => {
    box.checked = areOn();
    box.addEventListener("change", () => {
      const word = box.checked ? "on" : "off";
      choose(word);
      remember(word);
    });
  };

  choose(remembered());
  apb.keys = { isMuted, offer: offerKeys, shortcut };
})();
