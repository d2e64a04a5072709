// Owns the report page: reads the index, then keeps the address, the controls, the list and the
// chosen item in step. One state says what is shown; every change of it goes through ``show``.
(() => {
  "use strict";
  const apb = globalThis.apb;
  const byId = (id) => document.getElementById(id);
  const page = {
    index: null, readers: null, list: null, form: null, state: {}, items: [], chosen: -1,
    drawn: -1, turn: 0, timer: 0, due: null, asked: null,
  };
  const isPhone = () => matchMedia("(max-width: 44rem)").matches;

  // State and address ------------------------------------------------------------------------

  function itemState(at) {
    if (at < 0) return { item: undefined, model: undefined, at: undefined };
    const { index } = page;
    const [id, model] = [index.ids[at], index.modelOf(at)];
    return { item: id, model, at: apb.placeOf(index, id, model) === at ? undefined : String(at) };
  }

  function itemOf(state) {
    if (state.item === undefined) return -1;
    const at = Number(state.at ?? NaN);
    if (page.index.ids[at] === state.item) return at;
    return apb.placeOf(page.index, state.item, state.model);
  }

  // A new entry of the history, or, a little later, the present one anew: browsers bear only so
  // many changes in a row, and a key that is held down makes many.
  function remember(how) {
    if (how === "push") {
      settle();
      history.pushState({ opened: true }, "", apb.writeAddress(page.state));
      return;
    }
    page.due = apb.writeAddress(page.state);
    clearTimeout(page.timer);
    page.timer = setTimeout(settle, 200);
  }

  function settle() {
    if (page.due !== null) history.replaceState(history.state, "", page.due);
    forget();
  }

  async function change(changes, how = "push") {
    page.state = { ...page.state, view: "items", ...changes };
    remember(how);
    await show();
  }

  // What is due was meant for an entry of the history that has been left.
  function forget() {
    clearTimeout(page.timer);
    page.due = null;
  }

  // Follows the address, as after a click on a link, Back, or a paste.
  async function follow() {
    forget();
    const state = apb.readAddress(location.hash);
    if (state === null) {
      page.state = { view: "overview" };
      return showView("overview");
    }
    const asked = Object.keys(state).some((key) => key !== "view");
    page.state = { ...state, view: asked ? "items" : state.view || "overview" };
    await show();
    return undefined;
  }

  // Showing ----------------------------------------------------------------------------------

  function showView(name) {
    const isItems = name === "items";
    byId("overview").hidden = isItems;
    byId("items").hidden = !isItems;
    document.body.classList.toggle("browsing", isItems);
    mark(byId("to-overview"), !isItems);
    mark(byId("to-items"), isItems);
  }

  function mark(link, isCurrent) {
    if (isCurrent) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }

  async function show() {
    const turn = (page.turn += 1);
    showView(page.state.view);
    if (!page.index || page.state.view !== "items") return;
    page.form.show(page.state);
    byId("changes").setAttribute("aria-pressed", String(Boolean(page.state.change)));
    if (apb.needsTexts(page.index, page.state)) {
      say("Reading the texts …");
      await apb.readTexts(page.index);
      if (turn !== page.turn) return;
    }
    showList();
    choose(itemOf(page.state));
  }

  const asking = () => {
    const { view, item, model, at, ...asked } = page.state;
    return JSON.stringify(asked);
  };

  function showList() {
    const asked = asking();
    if (page.asked === asked) return;
    page.asked = asked;
    page.items = apb.chosen(page.index, page.state);
    page.list.setItems(page.items);
    const [found, all] = [page.items.length, page.index.count].map((n) => n.toLocaleString("en"));
    const cut = page.items.length > apb.LISTED ? `; the first ${apb.LISTED} are listed` : "";
    say(found === all ? `${all} items` : `${found} of ${all} items${cut}`);
    showEmpty();
  }

  function say(words) {
    byId("count").textContent = words;
  }

  function showEmpty() {
    const empty = byId("empty");
    empty.hidden = page.items.length > 0;
    byId("list").hidden = !empty.hidden;
    empty.textContent = whyEmpty();
  }

  function whyEmpty() {
    const { q, view, item, model, at, sort, judge, ...filters } = page.state;
    const on = Object.values(filters).filter(Boolean).length;
    if (!page.index.count) return "There are no judged items in this report.";
    if (q && on) return "No item has these words and passes these filters. Take one of them off.";
    if (q) return "No item has all of these words in its id, names, query or reasons.";
    return on > 1 ? "No item passes all of these filters. Take one of them off." : "No item is like that.";
  }

  // The chosen item --------------------------------------------------------------------------

  function choose(at) {
    page.chosen = at;
    page.list.setActive(at < 0 ? -1 : page.items.indexOf(at));
    document.body.classList.toggle("reading", at >= 0 || page.state.item !== undefined);
    showPosition();
    if (page.drawn !== at || at < 0) requestAnimationFrame(() => showItem(at));
  }

  function showPosition() {
    const position = page.list.active;
    const count = page.items.length.toLocaleString("en");
    byId("position").textContent = page.chosen < 0 ? ""
      : position < 0 ? "not on this list" : `${(position + 1).toLocaleString("en")} of ${count}`;
    byId("previous").disabled = position === 0 || !page.items.length;
    byId("next").disabled = position === page.items.length - 1 || !page.items.length;
    for (const id of ["copy", "by-hand"]) byId(id).hidden = page.chosen < 0 || id === "by-hand";
    byId("told").textContent = "";
  }

  async function showItem(at) {
    if (at !== page.chosen) return;
    page.drawn = at;
    const view = byId("view");
    if (at < 0) return view.replaceChildren(nothingChosen());
    let made;
    try {
      const data = await itemData(at);
      made = apb.itemView(data, { level: 2, codes: codesOf(data) });
    } catch (error) {
      made = apb.node("p.notice", `This item can't be shown: ${error.message}`);
    }
    if (at !== page.chosen) return undefined;
    view.replaceChildren(made);
    byId("item").scrollTop = 0;
    view.dataset.item = page.index.ids[at];
    return undefined;
  }

  function nothingChosen() {
    const { item, model } = page.state;
    delete byId("view").dataset.item;
    if (item === undefined) {
      return apb.node("p.muted", page.items.length ? "Choose an item on the list, or press j." : "");
    }
    const whose = model === undefined ? "" : ` of ${model}`;
    return apb.node("p.notice", `There is no item ${item}${whose} in this report.`);
  }

  async function itemData(at) {
    const { readers, index } = page;
    const data = await readers.items(at);
    const judgements = data.judgements.map((row, judge) => row && { ...row, judge: index.names[judge] });
    return { ...data, judgements, case: data.case === undefined ? null : await caseOf(data.case) };
  }

  async function caseOf(number) {
    const found = await page.readers.cases(number);
    const tools = found.tools === undefined ? null : await page.readers.tools(found.tools);
    return { ...found, tools };
  }

  function codesOf(data) {
    const rubric = data.judgements.find(Boolean)?.rubric;
    return page.index.blocks.codes[rubric] ?? {};
  }

  // Moving -----------------------------------------------------------------------------------

  function open(position, how) {
    const at = page.items[position];
    if (at === undefined) return;
    change(itemState(at), how);
  }

  function move(steps) {
    if (!page.items.length) return;
    const from = page.list.active < 0 && steps > 0 ? -1 : page.list.active;
    const to = Math.min(page.items.length - 1, Math.max(0, from + steps));
    open(to, page.chosen < 0 ? "push" : "replace");
  }

  function read() {
    if (page.chosen < 0) move(1);
    byId("item").focus();
  }

  // Settled first: a change of the address that comes while the browser goes back stops it.
  function back() {
    if (isPhone() && page.state.item !== undefined) {
      settle();
      if (history.state && history.state.opened) history.back();
      else change(itemState(-1), "replace");
    }
    if (byId("list").hidden) document.activeElement.blur();
    else byId("list").focus();
  }

  const KEYS = {
    j: () => move(1),
    k: () => move(-1),
    o: read,
    "/": () => byId("q").focus(),
    "?": () => byId("help").showModal(),
    Escape: back,
  };
  const LIST_KEYS = {
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    PageDown: () => move(page.list.pageRows()),
    PageUp: () => move(-page.list.pageRows()),
    Home: () => move(-page.items.length),
    End: () => move(page.items.length),
    Enter: read,
  };

  function pressed(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || byId("help").open) return;
    if (page.state.view !== "items" || !page.index) return;
    const isTyping = event.target.matches("input, select, textarea");
    if (isTyping && event.key !== "Escape") return;
    const onList = event.target === byId("list") || event.target === document.body;
    const keys = onList ? { ...KEYS, ...LIST_KEYS } : KEYS;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (!Object.hasOwn(keys, key)) return;
    event.preventDefault();
    keys[key]();
  }

  // The link for keyboards: past all that stands before the list.
  async function skip(event) {
    event.preventDefault();
    await change({});
    byId("list").focus();
  }

  async function copyLink() {
    const address = location.href.split("#")[0] + apb.writeAddress(page.state);
    try {
      await navigator.clipboard.writeText(address);
      byId("told").textContent = "Link copied";
    } catch {
      byId("by-hand").hidden = false;
      byId("link").value = address;
      byId("link").select();
    }
  }

  // Start ------------------------------------------------------------------------------------

  function wire() {
    addEventListener("popstate", forget);
    addEventListener("hashchange", follow);
    document.addEventListener("keydown", pressed);
    document.querySelector(".skip").addEventListener("click", skip);
    byId("previous").addEventListener("click", () => move(-1));
    byId("next").addEventListener("click", () => move(1));
    byId("back").addEventListener("click", back);
    byId("copy").addEventListener("click", copyLink);
    byId("help-open").addEventListener("click", () => byId("help").showModal());
    byId("changes").addEventListener("click", () =>
      change({ change: page.state.change ? "" : "any", sort: page.state.change ? "" : "change" }));
    byId("legend").append(...apb.legend());
  }

  function makeList() {
    const { index } = page;
    return apb.virtualList(byId("list"), {
      row: (at) => apb.itemRow(index, page.state, at),
      label: (at) => apb.itemLabel(index, page.state, at),
      choose: (position) => {
        open(position, "push");
        if (isPhone()) byId("item").focus();
      },
    });
  }

  function makeReaders(blocks) {
    const names = ["items", "cases", "tools"];
    return Object.fromEntries(names.map((name) => [name, apb.makeReader(name, blocks[name])]));
  }

  async function start() {
    byId("needs-script").hidden = true;
    showView("overview");
    if (typeof DecompressionStream === "undefined") {
      say("This browser is too old to read the data of this page: it lacks DecompressionStream. " +
        "Any browser of 2023 or later has it.");
      return;
    }
    wire();
    const first = follow();
    page.index = apb.makeIndex(await apb.readBlock("index"));
    await first;
    page.readers = makeReaders(page.index.blocks);
    page.list = makeList();
    page.form = apb.makeForm(page.index, change);
    byId("changes").hidden = !page.index.changes;
    byId("letters").textContent = apb.text(apb.judgeLetters(page.index));
    await follow();
    performance.mark("apb-list");
    document.documentElement.dataset.ready = "true";
  }

  start().catch((error) => say(`The data of this page can't be read: ${error.message}`));
})();
