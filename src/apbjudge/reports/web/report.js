// Owns the report page: reads the index, then keeps the address, the controls, the list and the
// chosen item in step. One state says what is shown; every change of it goes through ``show``, and
// whatever has to be waited for asks afterwards whether it is still wanted.
(() => {
  "use strict";
  const apb = globalThis.apb;
  const byId = (id) => document.getElementById(id);
  const page = {
    index: null, readers: null, list: null, form: null, state: {}, items: [], chosen: -1,
    drawn: -1, turn: 0, saying: 0, asked: null, address: apb.makeAddress(),
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

  // Whether the address names an item. Without one, where there is room, the first is shown.
  const isOpen = () => page.state.item !== undefined;

  // ``how`` makes a new entry of the history, "push", or puts the present one right, "replace".
  async function change(changes, how = "push") {
    page.state = { ...page.state, ...page.form?.typed(), view: "items", ...changes };
    page.address[how](page.state);
    await show();
  }

  // Follows the address, as after a click on a link, Back, or a paste.
  async function follow() {
    page.address.forget();
    const state = apb.readAddress(location.hash);
    const asked = Object.keys(state ?? {}).some((key) => key !== "view");
    page.state = { ...state, view: asked ? "items" : state?.view || "overview" };
    await show();
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
    const trouble = apb.needsTexts(page.index, page.state) ? await readTexts() : "";
    if (turn !== page.turn) return;
    showList();
    say(trouble || found());
    choose(isOpen() || isPhone() ? itemOf(page.state) : page.items[0] ?? -1);
  }

  // Gives back why the texts that are searched can't be read; nothing if they can.
  async function readTexts() {
    say("Reading the texts …");
    try {
      await apb.readTexts(page.index);
      return "";
    } catch (error) {
      return `The texts can't be searched: ${error.message}`;
    }
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
    byId("looked-at").textContent = apb.judgesLine(page.index, page.state);
    page.form.count(page.state);
    showEmpty();
  }

  function found() {
    const [found, all] = [page.items.length, page.index.count].map((n) => n.toLocaleString("en"));
    const cut = page.items.length > apb.LISTED ? `; the first ${apb.LISTED} are listed` : "";
    return found === all ? `${all} items` : `${found} of ${all} items${cut}`;
  }

  function say(words) {
    if (byId("count").textContent !== words) byId("count").textContent = words;
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
    document.body.classList.toggle("reading", isOpen());
    showPosition();
    if (page.drawn !== at || at < 0) requestAnimationFrame(() => showItem(at));
  }

  function showPosition() {
    const position = page.list.active;
    const count = page.items.length.toLocaleString("en");
    byId("position").textContent = page.chosen < 0 ? ""
      : position < 0 ? "not on this list" : `${(position + 1).toLocaleString("en")} of ${count}`;
    off(byId("previous"), position === 0 || !page.items.length);
    off(byId("next"), position === page.items.length - 1 || !page.items.length);
    for (const id of ["copy", "by-hand"]) byId(id).hidden = page.chosen < 0 || id === "by-hand";
    byId("told").textContent = "";
  }

  // A button that can't be used keeps the focus: it is only said to be out of use.
  function off(button, isOff) {
    button.setAttribute("aria-disabled", String(isOff));
  }

  // Said aloud after a step, once no other step follows; the list says its own steps.
  function announce() {
    clearTimeout(page.saying);
    page.saying = setTimeout(() => apb.tell(byId("said"), stepSaid()), 100);
  }

  function stepSaid() {
    if (page.list.active < 0) return "";
    return `${byId("position").textContent}: ${apb.itemSaid(page.index, page.state, page.chosen)}`;
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
      return apb.node("p.muted", page.items.length ? "Choose an item on the list." : "");
    }
    const whose = model === undefined ? "" : ` of ${model}`;
    return apb.node("p.notice", `There is no item ${item}${whose} in this report.`);
  }

  async function itemData(at) {
    const { readers, index } = page;
    const data = await readers.items(at);
    const judgements = data.judgements.map((row, judge) => row &&
      { ...row, judge: index.names[judge], byCode: row.judge === "static" });
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

  async function open(position, how) {
    const at = page.items[position];
    return at === undefined ? undefined : change(itemState(at), how);
  }

  function move(steps) {
    if (!page.items.length) return;
    const from = page.list.active < 0 && steps > 0 ? -1 : page.list.active;
    const to = Math.min(page.items.length - 1, Math.max(0, from + steps));
    open(to, isOpen() ? "replace" : "push");
    if (document.activeElement !== byId("list")) announce();
  }

  function read() {
    if (!isOpen()) move(0);
    byId("item").focus();
  }

  function back() {
    if (isPhone() && isOpen() && !page.address.back()) {
      change(itemState(-1), "replace");
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
    if (apb.keys.isMuted(event)) return;
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
    const { chosen } = page;
    const address = location.href.split("#")[0] + apb.writeAddress({ ...page.state, ...itemState(chosen) });
    const isCopied = await copied(address);
    if (chosen !== page.chosen) return;
    if (isCopied) apb.tell(byId("told"), "Link copied");
    else offerLink(address);
  }

  async function copied(address) {
    try {
      await navigator.clipboard.writeText(address);
      return true;
    } catch {
      return false;
    }
  }

  function offerLink(address) {
    byId("by-hand").hidden = false;
    byId("link").value = address;
    byId("link").select();
  }

  // Start ------------------------------------------------------------------------------------

  function wire() {
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
    byId("asking").addEventListener("submit", (event) => event.preventDefault());
    byId("legend").append(...apb.legend());
    apb.keys.offer(byId("single-keys"));
  }

  function makeList() {
    const { index } = page;
    byId("list").classList.toggle("asked", Boolean(index.queries));
    return apb.virtualList(byId("list"), {
      row: (at) => apb.itemRow(index, page.state, at),
      label: (at) => apb.itemLabel(index, page.state, at),
      choose: async (position) => {
        await open(position, "push");
        if (isPhone()) byId("item").focus();
      },
    });
  }

  function makeReaders(blocks) {
    const names = ["items", "cases", "tools"];
    return Object.fromEntries(names.map((name) => [name, apb.makeReader(name, blocks[name])]));
  }

  // What was done while the data were read stands in the state already, but for what was typed.
  async function showFirst() {
    const typed = byId("q").value;
    if (typed && page.state.view === "items") await change({ q: typed }, "replace");
    else await show();
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
    await showFirst();
    performance.mark("apb-list");
    document.documentElement.dataset.ready = "true";
  }

  start().catch((error) => say(`The data of this page can't be read: ${error.message}`));
})();
