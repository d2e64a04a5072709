// The calls of a prediction beside those of the reference, with the findings at their place.
(() => {
  "use strict";
  const apb = (globalThis.apb = globalThis.apb || {});
  const {
    aside, count, details, hidden, named, node,
    pretty, section, when, words, SHORT,
  } = apb.parts;

  const KINDS = {
    same: ["=", "same call"],
    arguments: ["≠", "other arguments"],
    different: ["⇄", "other tool"],
    extra: ["+", "not in the reference"],
    missing: ["−", "only in the reference"],
    idle: ["○", "no call"],
    alone: ["", ""],
  };
  const MARKS = ["distractor", "broken", "replacement"];

  // Calls ----------------------------------------------------------------------------------------

  const marksOf = (view, call) => {
    const tool = view.tools.get(call.name);
    const marks = tool && view.options.showCondition ? tool.marks || [] : [];
    return [
      ...marks.map((name) => node(MARKS.includes(name) ? `span.tag.${name}` : "span.tag", name)),
      tool && tool.cost !== undefined ? node("span.tag", `cost ${tool.cost}`) : null,
      call.unknown ? node("span.tag.unknown", "✕ no such tool") : null,
    ];
  };

  const toolName = (call) => node("code.name", { dir: "auto" }, call.name || "(no name)");

  const callCard = (view, call, { other, side, findings = [], number, mark }) => {
    const here = findings.filter((found) => !isOfKey(found, call));
    return node("div.call",
      aside("Thought", call.thought),
      node("p.call-head",
        number === undefined ? null : node("span.number", `${number} `),
        toolName(call), " ", marksOf(view, call), mark),
      here.map((found) => findingNote(view, found)),
      inside(view, call, { other, side, findings }),
      aside("Why", call.reason));
  };

  const isOfKey = (found, call) =>
    found.key !== undefined && Object.hasOwn(call.arguments || {}, found.key);

  const inside = (view, call, { other, side, findings }) => {
    if (!call.arguments) return node("p.muted.small", "no arguments given");
    const keys = keysOf(call, other);
    if (!keys.length) return null;
    const list = () => node("dl.arguments", keys.map((key) =>
      argument(view, call, { key, other, side, findings: findings.filter((f) => f.key === key) })));
    const size = keys.reduce((sum, key) => sum + pretty(call.arguments[key]).length, 0);
    if (keys.length <= 14 && size <= 2 * SHORT) return list();
    return details(count(keys.length, "argument", "arguments"), list, findings.length > 0);
  };

  // The other side's order first, so that both lists run alike.
  const keysOf = (call, other) => {
    const own = Object.keys(call.arguments);
    const theirs = Object.keys((other && other.arguments) || {});
    return [...new Set([...theirs.filter((key) => Object.hasOwn(call.arguments, key)), ...own])];
  };

  const argument = (view, call, { key, other, side, findings }) => {
    const value = call.arguments[key];
    const difference = other ? compare(key, value, other.arguments || {}, side) : null;
    const shown = typeof value === "object" && value !== null ?
      node("pre.value", { dir: "auto" }, oneLine(value)) :
      words(pretty(value ?? "null"), "span.words.value");
    const sign = difference &&
      node("span.sign", difference[1], hidden(` ${difference[2]}: `));
    return node(difference ? `div.argument.${difference[0]}` : "div.argument",
      node("dt", { dir: "auto" }, sign, key),
      node("dd", shown, findings.map((found) => findingNote(view, found))));
  };

  // A short list or object on one line, a long one indented.
  const oneLine = (value) => {
    const line = JSON.stringify(value);
    return line.length <= 60 ? line : pretty(value);
  };

  const compare = (key, value, others, side) => {
    if (!Object.hasOwn(others, key)) {
      return side === "ours" ? ["only-ours", "+", "only in the prediction"] :
        ["only-theirs", "−", "only in the reference"];
    }
    return canonical(value) === canonical(others[key]) ? null : ["differs", "≠", "differs"];
  };

  const canonical = (value) => JSON.stringify(value, (_, inner) =>
    inner && typeof inner === "object" && !Array.isArray(inner) ?
      Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner);

  // Findings -------------------------------------------------------------------------------------

  const codeName = (view, name) => [name, named(view.codes, name)].filter(Boolean).join(" ");

  const findingNote = (view, found, place = "") => {
    const proven = found.certainty === "proven";
    const deeper = found.key !== undefined && found.path !== found.key ? found.path : "";
    return node(proven ? "p.note.proven" : "p.note.suspected",
      node("strong", proven ? "✕ Proven" : "? Suspected"),
      found.code ? [" ", node("span.nowrap", codeName(view, found.code))] : null,
      ": ", found.message,
      place || deeper ? [" ", node("span.muted", `(${place || deeper})`)] : null);
  };

  const generalFindings = (view) => view.findings
    .filter((found) => found.call === undefined)
    .map((found) => findingNote(view, found, found.where === "response" ? "" : found.where));

  const unsaidProblems = (view) => {
    if (!view.options.showFindings) return [];
    const told = new Set(view.findings.map((found) => `${found.where}\n${found.message}`));
    return (view.prediction.problems || []).filter((p) => !told.has(`${p.where}\n${p.message}`))
      .map((p) => node("p.note.suspected", node("strong", "! Form"), `: ${p.message} `,
        node("span.muted", `(${p.where})`)));
  };

  // The two chains -------------------------------------------------------------------------------

  const rowsOf = (view) => {
    const ours = view.prediction.calls || [];
    const reference = view.reference;
    if (!reference) return ours.map((_, i) => ({ ours: i, theirs: null, kind: "alone" }));
    return view.prediction.chain || ours.map((_, i) => ({ ours: i, theirs: null, kind: "extra" }));
  };

  // Steps that call nothing stand where they belong among those that do.
  const withIdle = (view) => {
    const reference = view.reference || {};
    const left = { ours: [...(view.prediction.idle || [])], theirs: [...(reference.idle || [])] };
    const calls = { ours: view.prediction.calls || [], theirs: reference.calls || [] };
    const due = (side, row) => {
      const isPlaced = row && row[side] !== null && !(row.moved && side === "theirs");
      const before = isPlaced ? calls[side][row[side]].step : row ? 0 : Infinity;
      return left[side].length && left[side][0].step < before ? left[side].shift() : null;
    };
    const rows = [];
    for (const row of [...rowsOf(view), null]) {
      for (;;) {
        const [ours, theirs] = [due("ours", row), due("theirs", row)];
        if (!ours && !theirs) break;
        rows.push({ kind: "idle", ourIdle: ours, theirIdle: theirs });
      }
      if (row) rows.push(filled(row, left, calls));
    }
    return rows;
  };

  // Beside a call that the other side lacks stands the other side's step without a call, if any.
  const filled = (row, left, calls) => {
    const take = (side, step) =>
      when(left[side].length && left[side][0].step <= step, () => left[side].shift());
    const { kind, ours, theirs } = row;
    if (kind === "missing") return { ...row, ourIdle: take("ours", calls.theirs[theirs].step) };
    if (kind === "extra") return { ...row, theirIdle: take("theirs", calls.ours[ours].step) };
    return row;
  };

  const cell = (side, label, ...parts) =>
    node(`div.cell.${side}`, node("p.side", label), parts.flat());

  const idleStep = (step, mark) => [
    node("p.call-head", node("span.number", `step ${step.step} `),
      node("span.muted", "calls no tool"), mark),
    aside("Thought", step.thought),
  ];

  // A pair out of order says from which place of the reference to which of the prediction it moved.
  const kindOf = (pair) => {
    const [sign, label] = named(KINDS, pair.kind) || KINDS.alone;
    if (!pair.moved) return [sign, label];
    return ["↕", `${label}, moved from ${pair.theirs + 1} to ${pair.ours + 1}`];
  };

  const row = (view, pair) => {
    const [sign, label] = kindOf(pair);
    const ours = ourCell(view, pair);
    const theirs = view.reference ? theirCell(view, pair) : null;
    return node(`li.row.${pair.kind}`,
      label ? node("p.kind", node("span.sign", sign), " ", label) : null, ours, theirs);
  };

  const subject = (view) => (view.isCase ? "Reference" : "Prediction");

  const ourCell = (view, pair) => {
    const markOf = view.options.stepMark || (() => null);
    if (pair.ourIdle) return cell("ours", subject(view), idleStep(pair.ourIdle, markOf(pair.ourIdle.step)));
    if (pair.ours === null || pair.ours === undefined) return node("div.cell.ours.empty");
    const call = view.prediction.calls[pair.ours];
    const isFirst = (view.prediction.calls[pair.ours - 1] || {}).step !== call.step;
    const mark = isFirst && markOf(call.step);
    const other = pair.kind === "arguments" ? view.reference.calls[pair.theirs] : null;
    const findings = view.findings.filter((found) => found.call === pair.ours);
    return cell("ours", subject(view),
      callCard(view, call, { other, side: "ours", findings, number: pair.ours + 1, mark }));
  };

  const theirCell = (view, pair) => {
    if (pair.theirIdle) return cell("theirs", "Reference", idleStep(pair.theirIdle));
    if (pair.theirs === null || pair.theirs === undefined) return node("div.cell.theirs.empty");
    const call = view.reference.calls[pair.theirs];
    const number = pair.theirs + 1;
    if (pair.kind === "same") return cell("theirs", "Reference", sameCall(call, number));
    const other = pair.kind === "arguments" ? view.prediction.calls[pair.ours] : null;
    return cell("theirs", "Reference", callCard(view, call, { other, side: "theirs", number }));
  };

  const sameCall = (call, number) => node("div.call",
    aside("Thought", call.thought),
    node("p.call-head", node("span.number", `${number} `), toolName(call)),
    node("p.muted.small", "the same arguments"),
    aside("Why", call.reason));

  // What the calls cost together; null where a called tool states no cost.
  const costOf = (view, calls) => {
    const costs = calls.map((call) => (view.tools.get(call.name) || {}).cost);
    return when(calls.length && costs.every(Number.isFinite), () =>
      costs.reduce((sum, cost) => sum + cost, 0));
  };

  const costLine = (view) => {
    const ours = costOf(view, view.prediction.calls || []);
    const theirs = costOf(view, (view.reference || {}).calls || []);
    if (ours === null) return null;
    const beside = theirs === null ? "." : `; those of the reference ${theirs}.`;
    return node("p", `The calls cost ${ours} together${beside}`);
  };

  const FORMS = {
    reject: "The tested model declined the task.",
    text: "No plan could be read from the reply; all of it is below.",
  };

  const TITLES = () => node("li.row.titles", { "aria-hidden": "true" },
    node("p", "Prediction"), node("p", "Reference"));

  const COUNTED = {
    same: ["same call", "same calls"], arguments: ["with other arguments", "with other arguments"],
    different: ["other tool", "other tools"],
    extra: ["not in the reference", "not in the reference"],
    missing: ["only in the reference", "only in the reference"],
  };

  // How the two chains compare as a whole, before they are read row by row.
  const comparedLine = (view) => {
    const rows = rowsOf(view);
    if (!view.reference || !rows.length) return null;
    const moved = rows.filter((pair) => pair.moved).length;
    if (rows.every((pair) => pair.kind === "same")) {
      return node("p.agrees", node("span.sign", "✓"), moved
        ? " The same calls as the reference, in another order."
        : " The same calls as the reference, in the same order.");
    }
    const parts = Object.entries(COUNTED)
      .map(([kind, words]) => [rows.filter((pair) => pair.kind === kind).length, words])
      .filter(([many]) => many).map(([many, words]) => count(many, ...words));
    return node("p.muted.small", parts.join(", "), when(moved, () => `; ${moved} moved`));
  };

  const list = (view) => {
    const rows = withIdle(view);
    if (!rows.length) return null;
    return node(view.reference ? "ol.chain.two" : "ol.chain.one", { role: "list" },
      when(view.reference, TITLES), rows.map((pair) => row(view, pair)));
  };

  const cutShort = ({ prediction }) => when(prediction.n_calls, () => node("p.muted",
    `Only the first ${prediction.calls.length} of ${count(prediction.n_calls, "call", "calls")}`,
    " are shown."));

  const noCall = (view) => {
    if (view.prediction.kind !== "text" || view.isCase) return `The ${subject(view).toLowerCase()} calls no tool.`;
    return view.prediction.response.trim() ? "Its calls, if any, were not read." : "The reply is empty.";
  };

  const chain = (view) => section(view.level + 1, "chains", "Tool calls", [
    when(!view.isCase && named(FORMS, view.prediction.kind) && view.prediction.response.trim(), () => node("p.form", FORMS[view.prediction.kind])),
    ...generalFindings(view), ...unsaidProblems(view), costLine(view),
    when(view.isCase ? !view.prediction.response : view.case.reference === null, () =>
      node("p.muted.small", "The case has no reference.")),
    when(!(view.prediction.calls || []).length, () => node("p.muted.small", noCall(view))),
    comparedLine(view), list(view), cutShort(view),
  ]);

  const planCell = (label, plan) => node("div.cell", node("p.side", label),
    plan ? words(plan) : node("p.muted", "none"));

  const plans = (view) => {
    const ours = view.prediction.plan;
    const theirs = view.reference && view.reference.plan;
    if (!ours && !theirs) return null;
    const label = view.prediction.kind === "reject" ? "Reason given" : subject(view);
    return section(view.level + 1, "plans", "Plan in words",
      node(view.reference ? "div.row.plan-row" : "div.plan-row",
        planCell(label, ours), when(view.reference, () => planCell("Reference", theirs))));
  };

  apb.parts = { ...apb.parts, callCard, chain, codeName, findingNote, generalFindings, marksOf, plans, toolName };
})();
