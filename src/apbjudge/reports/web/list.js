// Owns the list: thousands of rows of equal height, of which only those in sight are in the page.
(() => {
  "use strict";
  const apb = (globalThis.apb = globalThis.apb || {});
  const SPARE = 6; // rows drawn beyond both ends
  const MOST = 250_000; // rows; browsers draw nothing that is taller than about 17 million pixels

  // A listbox in ``element``. ``options``: ``row(at)`` makes the content of a row and ``label(at)``
  // its name for screen readers, ``choose(at)`` is called when a row is chosen.
  function virtualList(element, options) {
    const inner = document.createElement("div");
    inner.className = "rows";
    inner.setAttribute("role", "presentation");
    element.replaceChildren(inner);
    const list = { element, inner, options, items: [], active: -1, nodes: new Map() };
    element.addEventListener("scroll", () => draw(list));
    element.addEventListener("click", (event) => clicked(list, event));
    new ResizeObserver(() => draw(list)).observe(element);
    return {
      get active() { return list.active; },
      setItems: (items) => setItems(list, items),
      setActive: (position) => setActive(list, position),
      pageRows: () => Math.max(1, Math.floor(element.clientHeight / rowHeight(list)) - 1),
    };
  }

  // Rows are as high as the style sheet says, in the reader's own letter size.
  function rowHeight(list) {
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize) || 16;
    return rem * parseFloat(getComputedStyle(list.element).getPropertyValue("--row") || "3.5");
  }

  function clicked(list, event) {
    const row = event.target.closest("[role=option]");
    if (row) list.options.choose(Number(row.dataset.position));
  }

  function setItems(list, items) {
    list.items = items.length > MOST ? items.slice(0, MOST) : items;
    list.active = -1;
    list.nodes.clear();
    list.element.scrollTop = 0;
    draw(list);
  }

  function setActive(list, position) {
    list.active = position;
    if (position >= 0) scrollTo(list, position);
    draw(list);
  }

  function scrollTo(list, position) {
    const height = rowHeight(list);
    const top = position * height;
    const { scrollTop, clientHeight } = list.element;
    if (top < scrollTop) list.element.scrollTop = top;
    else if (top + height > scrollTop + clientHeight) {
      list.element.scrollTop = top + height - clientHeight;
    }
  }

  function range(list, height) {
    const { scrollTop, clientHeight } = list.element;
    const first = Math.max(0, Math.floor(scrollTop / height) - SPARE);
    const last = Math.ceil((scrollTop + clientHeight) / height) + SPARE;
    return [first, Math.min(list.items.length, last)];
  }

  // The active row stays in the page even when it is out of sight: the list points to it.
  function draw(list) {
    const height = rowHeight(list);
    list.inner.style.height = `${list.items.length * height}px`;
    const [first, last] = range(list, height);
    const wanted = [];
    for (let position = first; position < last; position += 1) wanted.push(position);
    if (list.active >= 0 && list.active < first) wanted.unshift(list.active);
    if (list.active >= last && list.active < list.items.length) wanted.push(list.active);
    const nodes = new Map(wanted.map((at) => [at, list.nodes.get(at) ?? made(list, at, height)]));
    list.nodes = nodes;
    for (const [at, node] of nodes) node.setAttribute("aria-selected", String(at === list.active));
    place(list, [...nodes.values()]);
    point(list);
  }

  function place(list, nodes) {
    const now = list.inner.children;
    const same = now.length === nodes.length && nodes.every((node, at) => now[at] === node);
    if (!same) list.inner.replaceChildren(...nodes);
  }

  function point(list) {
    if (list.nodes.has(list.active)) {
      list.element.setAttribute("aria-activedescendant", `row-${list.active}`);
    } else list.element.removeAttribute("aria-activedescendant");
  }

  function made(list, position, height) {
    const node = document.createElement("div");
    const at = list.items[position];
    node.id = `row-${position}`;
    node.className = "row";
    node.dataset.position = position;
    node.setAttribute("role", "option");
    node.setAttribute("aria-posinset", position + 1);
    node.setAttribute("aria-setsize", list.items.length);
    node.setAttribute("aria-label", list.options.label(at));
    node.style.transform = `translateY(${position * height}px)`;
    node.append(...list.options.row(at));
    return node;
  }

  Object.assign(apb, { LISTED: MOST, virtualList });
})();
