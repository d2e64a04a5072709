// Owns the controls above the list: filters, sort, search, and what is on. They say the same of a
// state as the page's address does.
(() => {
  "use strict";
  const apb = (globalThis.apb = globalThis.apb || {});
  const { facetCounts, filtersOf, node, sortsOf, text } = apb;

  // Controls ---------------------------------------------------------------------------------

  function option([value, words]) {
    const made = node("option", { "data-words": words }, words);
    made.value = value;
    return made;
  }

  function select(key, label, options, change) {
    const made = node("select", { "data-key": key }, options.map(option));
    made.addEventListener("change", () => change({ [key]: made.value }));
    return node("label", node("span", label), made);
  }

  function judgeSelect(index, change) {
    if (index.names.length < 2) return [];
    const options = index.names.map((name, at) => [at ? name : "", name]);
    return [select("judge", "Judge looked at", options, change)];
  }

  function buildFilters(index, change) {
    const filters = filtersOf(index).map((filter) =>
      select(filter.key, filter.label, [["", "all"], ...filter.options(index)], change));
    return [...judgeSelect(index, change), ...filters];
  }

  // Builds the controls; ``change`` is called with what a reader changed of the state.
  function makeForm(index, change) {
    const panel = document.getElementById("filters");
    const sort = document.getElementById("sort");
    panel.replaceChildren(...buildFilters(index, change));
    sort.replaceChildren(...sortsOf(index).map((one) => option([one.key, one.label])));
    sort.addEventListener("change", () => change({ sort: sort.value }));
    const counts = makeCounts(index, panel);
    makeToggle(panel, counts.now);
    return {
      show: (state) => showState(index, state, change),
      count: counts.later,
      typed: makeSearch(change),
    };
  }

  // What is typed is searched with the next picture, and not once per letter. Gives back what is
  // typed and not yet searched, so that a click that comes first does not undo it.
  function makeSearch(change) {
    const box = document.getElementById("q");
    let isDue = false;
    box.addEventListener("input", () => {
      if (isDue) return;
      isDue = true;
      requestAnimationFrame(() => {
        isDue = false;
        change({ q: box.value }, "replace");
      });
    });
    return () => (isDue ? { q: box.value } : {});
  }

  function makeToggle(panel, count) {
    const toggle = document.getElementById("filters-toggle");
    toggle.addEventListener("click", () => {
      panel.hidden = !panel.hidden;
      toggle.setAttribute("aria-expanded", String(!panel.hidden));
      count();
    });
  }

  // Counts -----------------------------------------------------------------------------------

  // Options say how many items they would leave while they can be seen; after a change, once the
  // list has been drawn.
  function makeCounts(index, panel) {
    let [state, timer] = [null, 0];
    const now = () => {
      if (!panel.hidden && state) showCounts(facetCounts(index, state), panel);
    };
    const later = (changed) => {
      state = changed;
      if (panel.hidden) return;
      requestAnimationFrame(() => {
        clearTimeout(timer);
        timer = setTimeout(now);
      });
    };
    return { later, now };
  }

  function showCounts(count, panel) {
    for (const box of panel.querySelectorAll("select:not([data-key=judge])")) {
      for (const one of box.options) setWords(one, countedWords(count, box, one));
    }
  }

  // What taking off a filter would leave is said where one is on: else all is what is listed.
  function countedWords(count, box, { value, dataset }) {
    if (value === "" && box.value === "") return dataset.words;
    return `${dataset.words} (${count(box.dataset.key, value).toLocaleString("en")})`;
  }

  function setWords(one, words) {
    if (one.textContent !== words) one.textContent = words;
  }

  // Showing ----------------------------------------------------------------------------------

  function showState(index, state, change) {
    for (const one of document.querySelectorAll("#filters select")) {
      setValue(one, state[one.dataset.key] ?? "");
    }
    setValue(document.getElementById("sort"), state.sort ?? "");
    const box = document.getElementById("q");
    if (box.value !== (state.q ?? "")) box.value = state.q ?? "";
    showChips(index, state, change);
  }

  // A value that no item has comes with an old link; it is shown, so that it can be taken off.
  function setValue(box, value) {
    if (![...box.options].some((one) => one.value === value)) box.append(option([value, value]));
    box.value = value;
  }

  function showChips(index, state, change) {
    const on = filtersOf(index).filter((filter) => state[filter.key]);
    const chips = on.map((filter) => chip(index, filter, state[filter.key], change));
    if (chips.length > 1) chips.push(clearAll(on, change));
    document.getElementById("chips").replaceChildren(...chips);
    document.getElementById("filters-toggle").textContent =
      on.length ? `Filters (${on.length})` : "Filters";
  }

  function button(kind, label, words, click) {
    const made = node(kind, { type: "button", "aria-label": label }, words);
    made.addEventListener("click", click);
    return made;
  }

  function chip(index, filter, value, change) {
    const words = filter.options(index).find(([one]) => one === value)?.[1] ?? value;
    const said = `${filter.label}: ${words}`;
    return button("button.chip", `Take off the filter ${said}`, `${said} ×`,
      () => change({ [filter.key]: "" }));
  }

  function clearAll(on, change) {
    return button("button.chip.all", null, "Take off all",
      () => change(Object.fromEntries(on.map((filter) => [filter.key, ""]))));
  }

  Object.assign(apb, { makeForm });
})();
