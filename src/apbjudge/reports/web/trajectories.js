// A whole trajectory of an agent: what was measured of it, and its steps one by one. A step's inside is
// made when it is first unfolded, so that trajectories of thousands of steps open at once.
(() => {
  "use strict";
  const apb = (globalThis.apb = globalThis.apb || {});
  const {
    code, count, details, facts, findingNote, findingsOf, foundLine, heading, hidden, named, node,
    section, stepBody, tag, toolMark, toolName, when, words,
  } = apb.parts;

  const UNFOLDED = 8; // a trajectory of at most so many steps is shown unfolded
  const PREVIEW = 160;
  const MEASURES = 8; // rows of a longer table that are shown at once

  const KINDS = {
    retrieve: "searches for tools", answer: "answers", invalid: "✕ no valid action",
  };
  const LETTERS = { P: "progress", N: "no progress" };

  // What a step says in one line -----------------------------------------------------------------

  const letterMark = (letter) => node(letter === "P" ? "span.letter.progress" : "span.letter",
    letter, hidden(`, ${named(LETTERS, letter) || "executed"}`));

  const tagsOf = (view, step) => {
    const execution = step.execution || {};
    const failed = (step.results || []).some((seen) => seen.is_error);
    return [
      when(step.number === view.trajectory.first_error, () => tag("wrong", "✕ first went wrong here")),
      [...step.word || ""].map(letterMark),
      toolMark(execution.mark),
      when(execution.was_executed === false, () => tag("wrong", "✕ not executed")),
      when(step.retrieval && !step.retrieval.tools, () => tag("wrong", "✕ search failed")),
      when(failed, () => tag("wrong", "✕ error")),
      when((step.calls || []).some((call) => call.error), () => tag("wrong", "✕ unreadable call")),
      when(findingsOf(view, step).length, () => tag("noisy", "found by rule")),
    ].flat().filter(Boolean);
  };

  const titleOf = (step) => {
    const names = (step.calls || []).map(toolName);
    const kind = when(named(KINDS, step.kind), () => node("span.kind", KINDS[step.kind]));
    return [kind, ...names].filter(Boolean).flatMap((one, i) => (i ? [", ", one] : [one]));
  };

  const argumentsLine = (given) => Object.entries(given).map(([name, value]) =>
    `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ");

  const previewOf = (step) => {
    const [call] = step.calls || [];
    const said = step.retrieval ? foundLine(step.retrieval) :
      call ? call.raw || argumentsLine(call.arguments || {}) : step.text || step.thought ||
      (step.results || []).map((seen) => seen.text).join(" ");
    return String(said).slice(0, 4 * PREVIEW).replace(/\s+/g, " ").slice(0, PREVIEW);
  };

  // Steps ----------------------------------------------------------------------------------------

  // A step of the list: its node, its button, and show(isOpen).
  const stepItem = (view, step) => {
    const id = `step-${step.number}`;
    const title = [...titleOf(step), ...tagsOf(view, step).flatMap((made) => [" ", made])];
    const body = node("div.step-body", { id, hidden: true });
    const button = node("button.step-toggle",
      { type: "button", "aria-expanded": "false", "aria-controls": id },
      node("span.number", hidden("step "), step.number), " ",
      node("span.source", step.source), " ",
      when(title.length, () => node("span.title", { dir: "auto" }, title)), " ",
      node("span.preview", { dir: "auto" }, previewOf(step)));
    const show = (isOpen) => {
      if (isOpen && !body.firstChild) {
        const made = stepBody(view, step);
        body.append(...(made.length ? made : [node("p.muted.small", "empty")]));
      }
      body.hidden = !isOpen;
      button.setAttribute("aria-expanded", String(isOpen));
    };
    button.addEventListener("click", () => show(body.hidden));
    const isWrong = step.number === view.trajectory.first_error;
    const head = node(`h${Math.min(view.level + 2, 6)}.step-head`, button);
    return { node: node(isWrong ? "li.step.wrong" : "li.step", head, body), button, show };
  };

  const KEYS = {
    ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, Home: -Infinity, End: Infinity,
  };

  // Arrow keys, Home and End go through buttons. Of a row of them that is one stop of the tab key,
  // the button that was used last is the stop.
  const withArrows = (host, buttons, isOneStop) => {
    const stop = (to) => buttons.forEach((one, at) => one.setAttribute("tabindex", at === to ? 0 : -1));
    const numbers = new Map(buttons.map((one, at) => [one, at]));
    if (isOneStop) {
      stop(0);
      host.addEventListener("focusin", ({ target }) => numbers.has(target) && stop(numbers.get(target)));
    }
    host.addEventListener("keydown", (event) => {
      const at = numbers.get(event.target);
      if (at === undefined || !Object.hasOwn(KEYS, event.key)) return;
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      buttons[Math.min(buttons.length - 1, Math.max(0, at + KEYS[event.key]))].focus();
    });
    return host;
  };

  const stepList = (view, items) => {
    const button = (label, isOpen) => {
      const made = node("button", { type: "button" }, label);
      made.addEventListener("click", () => items.forEach((item) => item.show(isOpen)));
      return made;
    };
    const { trajectory } = view;
    return section(view.level + 1, "steps", "Steps", [
      node("p.step-tools", button("Unfold all", true), " ", button("Fold all", false), " ",
        node("span.muted.small", count(items.length, "step", "steps"),
          when(trajectory.n_steps, () => ` of ${trajectory.n_steps}: the log has the others`))),
      withArrows(node("ol.step-list", { role: "list" }, items.map((item) => item.node)),
        items.map((item) => item.button), false),
    ]);
  };

  // The trajectory as a whole --------------------------------------------------------------------

  const number = (value) => (Number.isInteger(value) ? value.toLocaleString("en") :
    String(Number(value.toPrecision(4))));

  // What each judge measured, side by side, the classes first.
  const measured = (view) => {
    const judges = view.data.judgements.filter((said) => said.diagnosis);
    const rows = ["classes", "measures"].flatMap((kind) =>
      [...new Set(judges.flatMap((said) => Object.keys(said.diagnosis[kind] || {})))]
        .map((name) => [kind, name]));
    if (!rows.length) return null;
    const title = judges.length === 1 ? ["Measured"] : judges.map((said) => said.judge || "judge");
    const cell = (said, kind, name) => {
      const value = named(said.diagnosis[kind] || {}, name);
      return value === undefined ? node("td.muted", "–") :
        node("td", { dir: "auto" }, Number.isFinite(value) ? number(value) : value);
    };
    const body = (some, isHidden) => node("tbody", { hidden: isHidden },
      some.map(([kind, name]) => node("tr", node("th", { scope: "row", dir: "auto" }, name),
        judges.map((said) => cell(said, kind, name)))));
    const first = rows.length <= 1.5 * MEASURES ? rows.length : MEASURES;
    const others = body(rows.slice(first), true);
    const more = node("button.more", { type: "button", "aria-expanded": "false" },
      `All ${rows.length} measures`);
    more.addEventListener("click", () => {
      others.hidden = !others.hidden;
      more.setAttribute("aria-expanded", String(!others.hidden));
    });
    const region = { tabindex: 0, role: "region", "aria-label": "Measures" };
    return node("div.box", region, node("table.measures",
      node("thead", node("tr", node("td", hidden("measure")),
        title.map((name) => node("th", { scope: "col", dir: "auto" }, name)))),
      body(rows.slice(0, first)), when(first < rows.length, () => others)),
    when(first < rows.length, () => more));
  };

  const outcomeOf = ({ success, reward }) => {
    const said = success === undefined ? null : success ? "✓ success" : "✕ failure";
    return [said, reward === undefined ? null : `reward ${number(reward)}`].filter(Boolean).join(", ");
  };

  const about = ({ trajectory }) => facts([
    ["outcome in the log", outcomeOf(trajectory) || "not stated"],
    ["scores in the log", when(trajectory.scores, () =>
      Object.entries(trajectory.scores).map(([name, value]) => `${name} ${Number.isFinite(value) ?
        number(value) : value}`).join(", "))],
    ["ended", trajectory.termination], ["setting", trajectory.setting], ["trial", trajectory.trial],
    ["used", when(trajectory.usage, () =>
      Object.entries(trajectory.usage).map(([name, value]) => `${name} ${number(value)}`).join(", "))],
    ["from", trajectory.place],
  ]);

  // One button a letter; it leads to the step of its call.
  const strip = (view, goTo) => {
    const { trajectory } = view;
    const letters = trajectory.steps.flatMap((step) => [...step.word || ""].map((letter) => ({ letter, step })));
    if (!trajectory.word) return null;
    const progress = [...trajectory.word].filter((letter) => letter === "P").length;
    const label = `${count(trajectory.word.length, "executed call", "executed calls")}, ` +
      `${progress} of them progress (P)`;
    if (!letters.length) {
      return [node("p.role", label), node("p.word-text", trajectory.word),
        node("p.muted.small", "Which letter is of which call is not clear from this log.")];
    }
    const buttons = letters.map(({ letter, step }, at) => {
      const [call] = step.calls || [];
      const made = node(letter === "P" ? "button.letter.progress" : "button.letter", {
        type: "button", title: `step ${step.number}`,
        "aria-label": `${letter}, call ${at + 1}, step ${step.number}` +
          `${call ? `, ${call.name}` : ""}: ${named(LETTERS, letter) || "executed"}`,
      }, letter);
      made.addEventListener("click", () => goTo(step.number));
      return made;
    });
    return [node("p.role", label), withArrows(node("div.word",
      { role: "toolbar", "aria-label": `Executed calls: ${label}` }, buttons), buttons, true)];
  };

  const jump = (goTo, to, ...label) => {
    const made = node("button.jump", { type: "button" }, label);
    made.addEventListener("click", () => goTo(to));
    return made;
  };

  const firstError = ({ trajectory }, goTo) => {
    const at = trajectory.first_error;
    const step = trajectory.steps[at - 1];
    if (at === undefined) return null;
    if (!step) return node("p.wrong-line", `✕ First went wrong at step ${at}, which is not on this page.`);
    return node("p.wrong-line", "✕ First went wrong at ",
      jump(goTo, at, `step ${at}`, when(step.calls, () => [": ", titleOf(step)])));
  };

  const findings = (view, goTo) => view.findings.map((found) => {
    const at = found.step;
    if (!view.trajectory || !view.trajectory.steps[at - 1]) return findingNote(view, found, found.where);
    const note = findingNote(view, found);
    note.append(" ", jump(goTo, at, `step ${at}`));
    return note;
  });

  // Which judge the marks at the steps are of, where there are several.
  const whose = (view) => {
    const judges = view.data.judgements.filter((said) => said.diagnosis);
    return when(judges.length > 1, () => node("p.muted.small",
      `The marks at the steps are those of ${judges[0].judge || "the first judge"}.`));
  };

  const remarks = ({ trajectory }) => when(trajectory.remarks, () => details(
    count(trajectory.remarks.length, "remark of the log's reader", "remarks of the log's reader"),
    () => node("ul.remarks.small", trajectory.remarks.map((said) => node("li",
      `${said.count} ${said.name}`, when(said.meaning, () => `: ${said.meaning}`))))));

  const summary = (view, goTo) => {
    const { trajectory, level } = view;
    return section(level + 1, "trajectory", "Trajectory", node("div.trajectory-parts",
      node("div.about-trajectory", [
        about(view),
        when(trajectory.broke, () => node("p.note.suspected", node("strong", "! The environment broke"),
          ": ", trajectory.broke)),
        firstError(view, goTo), findings(view, goTo), strip(view, goTo), whose(view),
        heading(level + 2, "Final answer"),
        trajectory.answer === undefined ? node("p.muted", "The trajectory ends without an answer.") :
          words(trajectory.answer || "(empty)"),
        remarks(view),
        when(trajectory.extra, () => details("Other fields of the log", () => code(trajectory.extra))),
      ]),
      measured(view)));
  };

  // The sections of a trajectory; without its log only what was measured and found.
  const wholeTrajectory = (view) => {
    if (!view.trajectory) {
      return section(view.level + 1, "trajectory", "Trajectory", [findings(view), measured(view)].flat());
    }
    const items = view.trajectory.steps.map((step) => stepItem(view, step));
    const goTo = (at) => {
      const { button, node: made, show } = items[at - 1];
      show(true);
      made.scrollIntoView({ block: "start" });
      button.focus({ preventScroll: true });
    };
    if (items.length <= UNFOLDED) items.forEach((item) => item.show(true));
    else if (items[view.trajectory.first_error - 1]) items[view.trajectory.first_error - 1].show(true);
    return [summary(view, goTo), stepList(view, items)];
  };

  apb.parts = { ...apb.parts, wholeTrajectory };
})();
