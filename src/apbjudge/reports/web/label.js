// The labelling page: who labels, which item is shown, keys, and the calls to the local server.
// Clicks go one after the other, each with the revision it was made from; what is shown as said is
// always what the server has saved.
(() => {
  "use strict";
  const apb = globalThis.apb;
  const { node } = apb;
  const at = (id) => document.getElementById(id);

  const page = {
    token: "", rater: "", total: 0, order: "", isFixed: false,
    progress: [], // of each item 0 untouched, 1 begun, 2 complete
    sheet: null, form: null, note: null, hint: null, buttons: {}, unsaved: 0, failures: 0, rubricOpen: null,
  };

  // Calls ----------------------------------------------------------------------------------------

  // A failure that the user is told of in these words.
  class Told extends Error {}

  class Refused extends Told {
    constructor(status, answer) {
      super(`Not done: ${answer.error || `the server answers ${status}`}.`);
      this.status = status;
      this.label = answer.label;
    }
  }

  const call = async (name, said = {}) => {
    const response = await fetch(`/api/${name}`, {
      method: "POST", cache: "no-store", credentials: "omit",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${page.token}` },
      body: JSON.stringify({ rater: page.rater, ...said }),
    }).catch(() => {
      throw new Told("Not saved: the server does not answer. Start apbjudge label again and open the address it prints.");
    });
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new Refused(response.status, answer);
    return answer;
  };

  // One job at a time, in the order of the clicks. After one that failed, those that were waiting
  // are dropped: they were made from a page that showed something else.
  let turn = Promise.resolve();
  const inTurn = (job) => {
    const { failures } = page;
    page.unsaved += 1;
    turn = turn.then(() => (failures === page.failures ? job() : undefined))
      .catch(complain).finally(() => (page.unsaved -= 1));
    return turn;
  };

  const complain = (error) => {
    page.failures += 1;
    const isOld = error instanceof Refused && error.status === 401;
    trouble(isOld ? "This tab does not know the server's token. Open the address that apbjudge label has printed."
      : error instanceof Told ? error.message : `Not done: ${error.message}`);
    if (!(error instanceof Told)) throw error;
  };

  const trouble = (text) => {
    at("trouble").textContent = text;
    at("trouble").hidden = !text;
  };

  const say = (text) => (at("status").textContent = text);

  // Said aloud and shown, until the next change.
  const hint = (text) => {
    say(text);
    page.hint.textContent = text;
  };

  // Start ----------------------------------------------------------------------------------------

  // The token comes behind # and stays in this tab, out of the address and of the history. Gives
  // back whether there was one.
  const takeToken = () => {
    const found = /^#token=([\w-]+)$/.exec(location.hash);
    if (found) {
      sessionStorage.setItem("apbjudge-token", found[1]);
      history.replaceState(null, "", location.pathname);
    }
    page.token = sessionStorage.getItem("apbjudge-token") || "";
    return found !== null;
  };

  const start = async () => {
    takeToken();
    const told = await call("start");
    Object.assign(page, { total: told.total, order: told.order, isFixed: told.rater !== null });
    const name = told.rater ?? sessionStorage.getItem("apbjudge-rater");
    if (name) await begin(name);
    else askName();
  };

  const askName = () => {
    const input = node("input", { id: "name", autocomplete: "off", maxlength: 80, required: true,
      value: localStorage.getItem("apbjudge-rater") || "" });
    const form = node("form.sheet.ask",
      node("h2", "Who is labelling?"),
      node("p.muted", "The name stands beside your labels. Under the same name you go on where you stopped; " +
        "others neither see your labels nor change them."),
      node("label", { for: "name" }, "Your name"), input,
      node("button.primary", "Begin"),
      node("p.muted.small", `To label: ${page.order}.`));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const name = input.value.trim();
      if (name) inTurn(() => begin(name));
    });
    at("main").replaceChildren(form);
    for (const id of ["progress", "who", "show-help"]) at(id).hidden = true;
    input.focus();
  };

  const begin = async (name) => {
    const { progress } = await call("progress", { rater: name });
    Object.assign(page, { rater: name, progress: [...progress].map(Number) });
    if (!page.isFixed) {
      sessionStorage.setItem("apbjudge-rater", name);
      localStorage.setItem("apbjudge-rater", name);
    }
    trouble("");
    showWho();
    at("show-help").hidden = at("progress").hidden = false;
    await load(numberInAddress() || nextOpen(page.total) || 1);
  };

  const showWho = () => {
    const change = node("button.plain", { type: "button" }, "change");
    change.addEventListener("click", () => inTurn(async () => {
      await saveNote();
      sessionStorage.removeItem("apbjudge-rater");
      page.sheet = null;
      askName();
    }));
    at("who").replaceChildren(node("span.muted", "labelled by "), node("b", { dir: "auto" }, page.rater),
      ...(page.isFixed ? [] : [" ", change]));
    at("who").hidden = false;
  };

  // Progress and ways ----------------------------------------------------------------------------

  const showProgress = () => {
    const done = page.progress.filter((state) => state === 2).length;
    const begun = page.progress.filter((state) => state === 1).length;
    const words = [`${done} of ${page.total} labelled`, ...(begun ? [`${begun} begun`] : []),
      ...(done === page.total ? ["all done"] : [])].join(", ");
    at("progress-words").textContent = words;
    Object.assign(at("progress-bar"), { max: page.total, value: done });
    document.title = `${done}/${page.total} Labelling`;
  };

  const noteProgress = (sheet) => {
    page.progress[sheet.number - 1] = statusOf(sheet.label);
    showProgress();
  };

  const statusOf = (label) => {
    if (!label.missing.length) return 2;
    const said = [label.is_correct, label.grade, label.errors, label.category];
    return label.note || said.some((value) => value !== null) ? 1 : 0;
  };

  const numberInAddress = () => {
    const number = Number(/^#(\d{1,9})$/.exec(location.hash)?.[1]);
    return number >= 1 && number <= page.total ? number : null;
  };

  // The first item after a number, round the end, that is not complete; null when all are.
  const nextOpen = (number) => {
    for (let step = 0; step < page.total; step += 1) {
      const index = (number + step) % page.total;
      if (page.progress[index] !== 2) return index + 1;
    }
    return null;
  };

  const go = (number) => inTurn(async () => {
    if (!page.sheet || number < 1 || number > page.total) return;
    await saveNote();
    await load(number);
  });

  const goOn = () => {
    const next = nextOpen(page.sheet.number);
    if (next) go(next);
    else hint(`All ${page.total} items are labelled.`);
  };

  // An item --------------------------------------------------------------------------------------

  const load = async (number) => {
    const sheet = await call("item", { item: number });
    page.sheet = sheet;
    if (numberInAddress() !== number) {
      history[location.hash ? "pushState" : "replaceState"](null, "", `#${number}`);
    }
    trouble("");
    build(sheet);
    scrollTo(0, 0);
    at("item").focus({ preventScroll: true });
    say(`Item ${number} of ${page.total}. ${page.form.sentence(sheet.label)}`);
  };

  const build = (sheet) => {
    page.form = apb.labelForm(sheet.asks, click);
    const item = node("div.sheet", { id: "item", tabindex: -1 });
    const rubric = apb.details("The rubric", page.form.rubric, page.rubricOpen ?? matchMedia("(min-width: 64rem)").matches);
    rubric.addEventListener("toggle", () => (page.rubricOpen = rubric.open));
    page.note = noteField();
    page.hint = node("p.hint");
    const label = node("section.sheet.panel", { "aria-label": "Your label" },
      foldButton(), page.form.node, page.hint, ways());
    const more = node("div.sheet.more", node("label", { for: "note" }, "Note"), page.note, node("div.rubric", rubric),
      node("p.muted.small", `To label: ${page.order}.`));
    at("main").replaceChildren(item, node("div.beside", label, more));
    showItem();
    show(sheet.label);
    noteProgress(sheet);
    page.note.value = sheet.label.note;
  };

  const showItem = () => {
    const { sheet } = page;
    const own = sheet.verdict ? [{ ...sheet.label, note: "", rater: page.rater }] : [];
    const names = Object.fromEntries(sheet.asks.criteria.map((one) => [one.code, one.name]));
    at("item").replaceChildren(unshown(sheet.case.files), apb.itemView({
      case: sheet.case, prediction: sheet.prediction, labels: own,
      judgements: sheet.verdict ? [sheet.verdict] : [],
      item: { id: `Item ${sheet.number} of ${page.total}`, protocol: sheet.asks.protocol },
    }, { showModel: false, showFindings: false, level: 2, codes: names }));
  };

  const unshown = (files) => {
    const bad = files.filter((file) => file.problem);
    return bad.length ? node("ul.unshown", bad.map((file) => node("li", `! A picture can't be shown: ${file.problem}`))) : "";
  };

  const show = (label) => {
    page.form.show(label);
    page.hint.textContent = "";
    const { undo, previous, next, judge } = page.buttons;
    off(undo, !label.can_undo);
    off(previous, page.sheet.number === 1);
    off(next, page.sheet.number === page.total);
    judge.hidden = label.judge === "none";
    off(judge, label.judge !== "ready" || Boolean(page.sheet.verdict));
  };

  // A button that can't be used keeps the focus: it is only said to be out of use.
  const off = (button, isOff) => button.setAttribute("aria-disabled", String(isOff));

  const way = (name, key, act, kind = "button.way") => {
    const button = node(kind, { type: "button", "aria-keyshortcuts": key }, node("span.label", name),
      node("kbd", { "aria-hidden": "true" }, key));
    button.addEventListener("click", () => button.getAttribute("aria-disabled") === "true" || act());
    return button;
  };

  const ways = () => {
    page.buttons = {
      previous: way("Previous", "p", () => go(page.sheet.number - 1)),
      undo: way("Undo", "u", undo),
      judge: way("Judge's verdict", "v", judge, "button.way.judge"),
      open: way("Next unlabelled", "g", goOn),
      next: way("Next", "n", () => go(page.sheet.number + 1), "button.way.primary"),
    };
    return node("nav.ways", { "aria-label": "Items" }, Object.values(page.buttons));
  };

  const foldButton = () => {
    const button = node("button.fold.plain", { type: "button", "aria-expanded": "true" }, "Fold");
    button.addEventListener("click", () => {
      const folded = button.parentElement.classList.toggle("folded");
      button.setAttribute("aria-expanded", String(!folded));
      button.textContent = folded ? "Unfold" : "Fold";
    });
    return button;
  };

  // Changes --------------------------------------------------------------------------------------

  const change = (name, said, sheet) => inTurn(() => changeNow(name, said, sheet));

  const changeNow = async (name, said, sheet) => {
    try {
      sheet.label = await call(name, { item: sheet.number, revision: sheet.label.revision, ...said });
    } catch (error) {
      if (error.status !== 409) throw error;
      sheet.label = error.label;
      showChange(sheet);
      throw new Told("Not done: this label was changed in another tab. What is shown now is what is saved there; " +
        "do it again if you still mean it.");
    }
    trouble("");
    if (sheet.label.verdict) sheet.verdict = sheet.label.verdict;
    showChange(sheet);
  };

  const showChange = (sheet) => {
    noteProgress(sheet);
    if (sheet !== page.sheet) return;
    show(sheet.label);
    if (sheet.verdict) showItem();
  };

  const click = async (what, name) => {
    const { sheet } = page;
    await change("click", { click: what }, sheet);
    if (sheet === page.sheet && at("trouble").hidden) say(`${name}. ${page.form.sentence(sheet.label)}`);
  };

  const undo = async () => {
    const { sheet } = page;
    if (!sheet.label.can_undo && !page.unsaved) return hint("Nothing to undo on this item.");
    await change("undo", {}, sheet);
    if (sheet !== page.sheet || !at("trouble").hidden) return;
    page.note.value = sheet.label.note;
    say(`Undone. ${page.form.sentence(sheet.label)}`);
  };

  const judge = () => {
    const { sheet } = page;
    if (sheet.label.judge === "hidden") return hint("The judge's verdict is shown once your own label is complete.");
    if (sheet.label.judge === "ready" && !sheet.verdict) {
      change("judge", {}, sheet).then(() => at("item").querySelector(".judged")?.scrollIntoView({ block: "center" }));
    }
  };

  const noteField = () => {
    const field = node("textarea", { id: "note", rows: 2, maxlength: 4000 });
    field.addEventListener("change", () => inTurn(saveNote));
    return field;
  };

  // Saves what stands in the note, if that is something else than what is saved.
  const saveNote = async () => {
    const { sheet, note } = page;
    if (!sheet || !note || note.value.trim() === sheet.label.note) return;
    await changeNow("click", { click: { set: "note", to: note.value } }, sheet);
    say("Note saved.");
  };

  // Keys -----------------------------------------------------------------------------------------

  const KEYS = [
    [["n", "j", "enter"], "next item", () => go(page.sheet.number + 1)],
    [["p", "k"], "previous item", () => go(page.sheet.number - 1)],
    [["g", "/"], "next unlabelled item", goOn],
    [["u"], "undo the last click on this item", undo],
    [["o"], "write a note (Escape leaves it)", () => page.note.focus()],
    [["v"], "the judge's verdict, once your label is complete", judge],
    [["?"], "these keys", () => showHelp()],
  ];

  const onKey = (event) => {
    const key = event.key.toLowerCase();
    const { target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || !page.sheet || at("help").open) return;
    if (target.matches("input, textarea, select")) {
      if (key === "escape") target.blur();
      return;
    }
    if (key === "enter" && target.closest("button, summary, a, [contenteditable]")) return;
    const choice = page.form.keys.get(key);
    const other = KEYS.find(([keys]) => keys.includes(key));
    if (!choice && !other) return;
    event.preventDefault();
    if (event.repeat) return;
    if (choice) click(choice.click, choice.name);
    else other[2]();
  };

  const showHelp = () => {
    const entries = [
      ...[...page.form.keys].map(([key, choice]) => [[key], choice.name]),
      ...KEYS.filter(([keys]) => keys[0] !== "v" || page.sheet.label.judge !== "none"),
    ];
    at("help-keys").replaceChildren(...entries.map(([keys, name]) => node("div",
      node("dt", keys.map((key) => [node("kbd", key), " "])), node("dd", name))));
    at("help").showModal();
  };

  document.addEventListener("keydown", onKey);
  at("show-help").addEventListener("click", showHelp);
  addEventListener("popstate", () => {
    if (takeToken()) return location.reload();
    const number = numberInAddress();
    if (number && page.sheet && number !== page.sheet.number) go(number);
  });
  addEventListener("beforeunload", (event) => {
    const isDirty = page.sheet && page.note && page.note.value.trim() !== page.sheet.label.note;
    if (page.unsaved || isDirty) event.preventDefault();
  });
  inTurn(start);
})();
