// The labelling page: who labels, which item is shown, and keys. Clicks go one after the other, each
// with the revision it was made from; what is shown as said is always what the server has saved.
// What a key means is decided when its turn comes: the page may show less than has been pressed.
(() => {
  "use strict";
  const apb = globalThis.apb;
  const { keys, node, Told } = apb;
  const at = (id) => document.getElementById(id);

  const page = {
    total: 0, order: "", isFixed: false,
    progress: [], // of each item 0 untouched, 1 begun, 2 complete, 3 skipped
    steps: [], // the buttons that mark steps
    sheet: null, form: null, note: null, noteKept: "", hint: null, buttons: {}, rubricOpen: null,
  };

  // Saying ---------------------------------------------------------------------------------------

  const trouble = (text) => {
    at("trouble").textContent = text;
    at("trouble").hidden = !text;
  };

  const say = (text) => apb.tell(at("status"), text);

  // Said aloud and shown, until the next change.
  const hint = (text) => {
    say(text);
    page.hint.textContent = text;
  };

  const desk = apb.makeDesk(trouble);
  const { call, inTurn } = desk;

  // Start ----------------------------------------------------------------------------------------

  const start = async () => {
    desk.takeToken();
    const told = await call("start");
    Object.assign(page, { total: told.total, order: told.order, isFixed: told.rater !== null });
    const name = told.rater ?? sessionStorage.getItem("apbjudge-rater");
    if (name) await begin(name, true);
    else askName();
  };

  const askName = () => {
    const name = localStorage.getItem("apbjudge-rater") || "";
    at("main").replaceChildren(apb.nameForm(name, page.order, (said) =>
      inTurn(() => (page.sheet ? undefined : begin(said)))));
    for (const id of ["progress", "who", "show-help"]) at(id).hidden = true;
    at("name").focus();
  };

  const begin = async (name, isFirst = false) => {
    const { progress } = await call("progress", { rater: name });
    desk.rater = name;
    page.progress = [...progress].map(Number);
    if (!page.isFixed) {
      sessionStorage.setItem("apbjudge-rater", name);
      localStorage.setItem("apbjudge-rater", name);
    }
    trouble("");
    showWho();
    at("show-help").hidden = at("progress").hidden = false;
    open(await call("item", { item: numberInAddress() || nextOpen(page.total) || 1 }));
    if (!isFirst) sayItem();
  };

  const showWho = () => {
    const change = node("button.plain", { type: "button" }, "change");
    change.addEventListener("click", () => inTurn(async () => {
      await saveNote();
      sessionStorage.removeItem("apbjudge-rater");
      page.sheet = null;
      askName();
    }));
    at("who").replaceChildren(node("span.muted", "labelled by "), node("b", { dir: "auto" }, desk.rater),
      ...(page.isFixed ? [] : [" ", change]));
    at("who").hidden = false;
  };

  // Progress and ways ----------------------------------------------------------------------------

  const showProgress = () => {
    const done = page.progress.filter((state) => state === 2).length;
    const begun = page.progress.filter((state) => state === 1).length;
    const skipped = page.progress.filter((state) => state === 3).length;
    const words = [`${done} of ${page.total} labelled`, ...(begun ? [`${begun} begun`] : []),
      ...(skipped ? [`${skipped} skipped`] : []),
      ...(done === page.total ? ["all done"] : [])].join(", ");
    at("progress-words").textContent = words;
    Object.assign(at("progress-bar"), { max: page.total, value: done });
    document.title = `${done}/${page.total} Labelling`;
  };

  const noteProgress = (sheet) => {
    page.progress[sheet.number - 1] = statusOf(sheet.label);
    showProgress();
  };

  const hasAnswers = (label) =>
    [label.is_correct, label.grade, label.errors, label.category].some((value) => value !== null);

  const statusOf = (label) => {
    if (label.skipped) return 3;
    if (!label.missing.length) return 2;
    return label.note || label.unsure || hasAnswers(label) ? 1 : 0;
  };

  const numberInAddress = () => {
    const number = Number(/^#(\d{1,9})$/.exec(location.hash)?.[1]);
    return number >= 1 && number <= page.total ? number : null;
  };

  // The first item after a number, round the end, that is not complete, skipped ones last; null
  // when all are complete.
  const nextOpen = (number) => {
    const numbers = page.progress.map((_, step) => ((number + step) % page.total) + 1);
    const state = (one) => page.progress[one - 1];
    return numbers.find((one) => state(one) < 2) ?? numbers.find((one) => state(one) === 3) ?? null;
  };

  // Goes to the item whose number is given when the turn comes; 0 or null for none.
  const go = (numberOf) => {
    page.note?.blur(); // what is typed is saved first
    return inTurn(async () => {
      const number = page.sheet && numberOf();
      if (!number || number > page.total || number === page.sheet.number) return;
      await saveNote();
      await load(number, numberOf === numberInAddress);
    });
  };

  const step = (steps) => go(() => page.sheet.number + steps);

  const skip = () => {
    page.note?.blur();
    return inTurn(async () => {
      const { sheet } = page;
      await saveNote();
      if (page.progress[sheet.number - 1] === 2 || hasAnswers(sheet.label)) {
        return hint("This item has a label: undo its clicks to skip it, or go to the next item.");
      }
      await changeNow("skip", {}, sheet);
      const next = nextOpen(sheet.number);
      if (next === sheet.number) return hint("Skipped. All other items are labelled.");
      await load(next);
    });
  };

  const goOn = () => go(() => {
    const next = nextOpen(page.sheet.number);
    if (!next) hint(`All ${page.total} items are labelled.`);
    if (next === page.sheet.number) hint("All other items are labelled.");
    return next;
  });

  // An item --------------------------------------------------------------------------------------

  // ``isFollowing``: the address asked for it, and may ask for another one by now.
  const load = async (number, isFollowing) => {
    const sheet = await call("item", { item: number });
    while (isNoteDirty() && !isWriting()) await saveNote();
    if (isFollowing && numberInAddress() !== number) return;
    if (isWriting()) return stay();
    open(sheet);
    sayItem();
  };

  const isWriting = () => document.activeElement === page.note;

  // Else letters of the note would be lost, and those that follow would be keys on the next item.
  const stay = () => {
    putInAddress(page.sheet.number);
    hint("Still here: a note is being written.");
  };

  const open = (sheet) => {
    page.sheet = sheet;
    putInAddress(sheet.number);
    trouble("");
    build(sheet);
    scrollTo(0, 0);
    at("item").focus({ preventScroll: true });
  };

  const sayItem = () => say(`Item ${page.sheet.number} of ${page.total}. ${page.form.sentence(page.sheet.label)}`);

  const putInAddress = (number) => {
    if (numberInAddress() === number) return;
    history[location.hash ? "pushState" : "replaceState"](null, "", `#${number}`);
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
    showNote(sheet.label.note);
  };

  const showItem = () => {
    const { sheet } = page;
    const own = sheet.verdict ? [{ ...sheet.label, note: "", rater: desk.rater }] : [];
    page.steps = [];
    const stepMark = (number) => {
      const step = apb.stepChoice(number);
      step.button.addEventListener("click", () => click(step));
      page.steps.push(step);
      return step.button;
    };
    const names = Object.fromEntries(sheet.asks.criteria.map((one) => [one.code, one.name]));
    at("item").replaceChildren(unshown(sheet.case), apb.itemView({
      case: sheet.case, prediction: sheet.prediction, labels: sheet.raters || own,
      judgements: sheet.verdict ? [sheet.verdict] : [],
      item: { id: `Item ${sheet.number} of ${page.total}`, protocol: sheet.asks.protocol },
    }, { showJudges: Boolean(sheet.verdict), showModel: false, showFindings: false, level: 2, codes: names,
      showDifferences: Boolean(sheet.raters), stepMark: sheet.asks.shape === "category" ? null : stepMark }));
  };

  const unshown = (item) => {
    const lines = item.files.filter((file) => file.problem)
      .map((file) => `! ${file.path} can't be shown: ${file.problem}`);
    if (item.left_out) lines.push(`! ${item.left_out} pictures are left out, evenly spaced; a judge is shown the same ones as you`);
    return lines.length ? node("ul.unshown", lines.map((line) => node("li", line))) : "";
  };

  const show = (label) => {
    page.form.show(label);
    for (const one of page.steps) one.button.setAttribute("aria-pressed", String(one.isOn(label)));
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
    const button = node(kind, { type: "button", ...keys.shortcut(key) }, node("span.label", name),
      node("kbd", { "aria-hidden": "true" }, key));
    button.addEventListener("click", () => button.getAttribute("aria-disabled") === "true" || act());
    return button;
  };

  const ways = () => {
    page.buttons = {
      previous: way("Previous", "p", () => step(-1)),
      undo: way("Undo", "u", undo),
      skip: way("Skip", "s", skip),
      judge: way("Judge's verdict", "v", judge, "button.way.judge"),
      open: way("Next unlabelled", "g", goOn),
      next: way("Next", "n", () => step(1), "button.way.primary"),
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

  const changeNow = async (name, said, sheet) => {
    try {
      take(sheet, await call(name, { item: sheet.number, revision: sheet.label.revision, ...said }));
      trouble("");
    } catch (error) {
      if (error.status !== 409) throw error;
      take(sheet, error.label);
      throw new Told(`Not done: this label was changed in another tab. What is shown now is what is saved there; ` +
        `do it again if you still mean it.${otherNote(sheet)}`);
    }
  };

  const isShown = (sheet) => page.sheet?.number === sheet.number;

  // What the server has saved goes into the sheet that it was said of, and into the one that shows
  // the same item by now. A note that is being written is left alone.
  const take = (sheet, label) => {
    const isNoteOurs = isNoteDirty();
    for (const one of isShown(sheet) ? [sheet, page.sheet] : [sheet]) {
      Object.assign(one, { label, verdict: label.verdict ?? one.verdict });
    }
    noteProgress(sheet);
    if (!isShown(sheet)) return;
    if (page.sheet.verdict) showItem(); // before the steps' state is shown
    show(label);
    if (!isNoteOurs) showNote(label.note);
  };

  const click = (choice) => {
    const { sheet } = page;
    inTurn(async () => {
      const made = typeof choice.click === "function" ? choice.click(sheet.label) : choice.click;
      await changeNow("click", { click: made }, sheet);
      const back = choice.isOn(sheet.label) ? "" : " taken back";
      if (isShown(sheet)) say(`${choice.name}${back}. ${page.form.sentence(sheet.label)}`);
    });
  };

  const undo = () => {
    const { sheet } = page;
    inTurn(async () => {
      if (!sheet.label.can_undo) return isShown(sheet) && hint("Nothing to undo on this item.");
      await changeNow("undo", {}, sheet);
      if (isShown(sheet)) say(`Undone. ${page.form.sentence(sheet.label)}`);
    });
  };

  const judge = () => {
    const { sheet } = page;
    inTurn(async () => {
      const { label, verdict } = sheet;
      if (sheet !== page.sheet) return;
      if (label.judge === "hidden") return hint("The judge's verdict is shown once your own label is complete.");
      if (label.judge !== "ready" || verdict) return;
      await changeNow("judge", {}, sheet);
      at("item").querySelector(".judged")?.scrollIntoView({ block: "center" });
      say("The judge's verdict is shown below the item.");
    });
  };

  // The note -------------------------------------------------------------------------------------

  const noteField = () => {
    const field = node("textarea", { id: "note", rows: 2, maxlength: 4000 });
    field.addEventListener("change", () => inTurn(saveNote));
    return field;
  };

  const showNote = (text) => {
    page.note.value = text;
    page.noteKept = page.note.value;
  };

  // Compared with what the field said when it was saved: the server trims in its own way, and a
  // field changes line ends, so the saved text itself may differ for ever.
  const isNoteDirty = () =>
    Boolean(page.sheet && page.note) && page.note.value.trim() !== page.noteKept.trim();

  const otherNote = (sheet) => {
    const isOther = isShown(sheet) && !["", page.note.value.trim()].includes(sheet.label.note);
    return isOther && isNoteDirty() ? ` The note saved there: ${sheet.label.note}` : "";
  };

  // Saves what stands in the note, if it is new. Half a pair of surrogates can't be written to a file.
  const saveNote = async () => {
    if (!isNoteDirty()) return;
    const text = page.note.value;
    await changeNow("click", { click: { set: "note", to: text.toWellFormed?.() ?? text } }, page.sheet);
    page.noteKept = text;
    say("Note saved.");
  };

  // Keys -----------------------------------------------------------------------------------------

  const KEYS = [
    [["n", "j", "enter"], "next item", () => step(1)],
    [["p", "k"], "previous item", () => step(-1)],
    [["g", "/"], "next unlabelled item", goOn],
    [["s"], "skip: no label, comes again at the end", skip],
    [["f"], "to the next step that can be marked as faulty (Enter marks it)", () => toStep()],
    [["u"], "undo the last click on this item", undo],
    [["o"], "write a note (Escape leaves it)", () => page.note.focus()],
    [["v"], "the judge's verdict, once your label is complete", judge],
    [["?"], "these keys", () => showHelp()],
  ];

  const toStep = () => {
    const buttons = page.steps.map((one) => one.button);
    if (!buttons.length) return hint("Nothing here can be marked.");
    buttons[(buttons.indexOf(document.activeElement) + 1) % buttons.length].focus();
  };

  const onKey = (event) => {
    const key = event.key.toLowerCase();
    const { target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || !page.sheet || at("help").open) return;
    if (target.matches("input, textarea, select")) {
      if (key === "escape") target.blur();
      return;
    }
    if (key === "enter" && target.closest("button, summary, a, [contenteditable]")) return;
    if (keys.isMuted(event)) return;
    const choice = page.form.keys.get(key);
    const other = KEYS.find(([names]) => names.includes(key));
    if (!choice && !other) return;
    event.preventDefault();
    if (event.repeat) return;
    if (choice) click(choice);
    else other[2]();
  };

  const showHelp = () => {
    const entries = [
      ...[...page.form.keys].map(([key, choice]) => [[key], choice.name]),
      ...KEYS.filter(([names]) => names[0] !== "v" || page.sheet.label.judge !== "none"),
    ];
    at("help-keys").replaceChildren(...entries.map(([names, meaning]) => node("div",
      node("dt", names.map((key) => [node(key.length === 1 ? "kbd.single" : "kbd", key), " "])),
      node("dd", meaning))));
    at("help").showModal();
  };

  document.addEventListener("keydown", onKey);
  at("show-help").addEventListener("click", showHelp);
  addEventListener("popstate", () => {
    if (desk.takeToken()) return location.reload();
    if (page.sheet) go(numberInAddress);
  });
  addEventListener("beforeunload", (event) => {
    if (desk.unsaved || isNoteDirty()) event.preventDefault();
  });
  // A phone may end a page that is out of sight. After trouble only the rater knows what to save.
  document.addEventListener("visibilitychange", () =>
    document.hidden && isWriting() && at("trouble").hidden && inTurn(saveNote));
  keys.offer(at("single-keys"));
  inTurn(start);
})();
