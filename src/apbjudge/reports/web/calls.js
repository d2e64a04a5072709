// The calls of a prediction beside those of the reference, with the findings at their place.
(() => {
  "use strict";
  const apb = (globalThis.apb = globalThis.apb || {});
  const {
    count, findingNote, named, node, section, stepBody, when, words,
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

  // The calls of some steps one by one, and the steps that call nothing.
  const chainOf = (steps = []) => ({
    calls: steps.flatMap(({ thought, ...step }) => (step.calls || []).map((call, i) =>
      ({ ...step, calls: [call], ...(i ? {} : { thought, isFirst: true }) }))),
    idle: steps.filter((step) => !step.calls),
  });

  const rowsOf = (view) => {
    const ours = view.ours.calls;
    if (!view.reference) return ours.map((_, i) => ({ ours: i, theirs: null, kind: "alone" }));
    return view.prediction.chain || ours.map((_, i) => ({ ours: i, theirs: null, kind: "extra" }));
  };

  // Steps that call nothing stand where they belong among those that do.
  const withIdle = (view) => {
    const left = { ours: [...view.ours.idle], theirs: [...view.theirs.idle] };
    const due = (side, row) => {
      const isPlaced = row && row[side] !== null && !(row.moved && side === "theirs");
      const before = isPlaced ? view[side].calls[row[side]].number : row ? 0 : Infinity;
      return left[side].length && left[side][0].number < before ? left[side].shift() : null;
    };
    const rows = [];
    for (const row of [...rowsOf(view), null]) {
      for (;;) {
        const [ours, theirs] = [due("ours", row), due("theirs", row)];
        if (!ours && !theirs) break;
        rows.push({ kind: "idle", idle: { ours, theirs } });
      }
      if (row) rows.push({ ...row, idle: beside(view, row, left) });
    }
    return rows;
  };

  // Beside a call that the other side lacks stands the other side's step without a call, if any.
  const beside = (view, { kind, ours, theirs }, left) => {
    const take = (side, { number }) =>
      when(left[side].length && left[side][0].number <= number, () => left[side].shift());
    if (kind === "missing") return { ours: take("ours", view.theirs.calls[theirs]) };
    return kind === "extra" ? { theirs: take("theirs", view.ours.calls[ours]) } : {};
  };

  // A pair out of order says from which place of the reference to which of the prediction it moved.
  const kindOf = (pair) => {
    const [sign, label] = named(KINDS, pair.kind) || KINDS.alone;
    if (!pair.moved) return [sign, label];
    return ["↕", `${label}, moved from ${pair.theirs + 1} to ${pair.ours + 1}`];
  };

  const row = (view, pair) => {
    const [sign, label] = kindOf(pair);
    return node(`li.row.${pair.kind}`,
      label ? node("p.kind", node("span.sign", sign), " ", label) : null,
      cell(view, pair, "ours", subject(view)),
      when(view.reference, () => cell(view, pair, "theirs", "Reference")));
  };

  const subject = (view) => (view.isCase ? "Reference" : "Prediction");

  const cell = (view, pair, side, label) => {
    const { stepMark = () => null } = view.options;
    const isOurs = side === "ours";
    const step = pair.idle[side] || view[side].calls[pair[side]];
    if (!step) return node(`div.cell.${side}.empty`);
    const other = view[isOurs ? "theirs" : "ours"].calls[pair[isOurs ? "theirs" : "ours"]];
    return node(`div.cell.${side}`, node("p.side", label), stepBody(view, step, {
      side,
      number: pair[side] + 1,
      mark: isOurs && (step.isFirst || !step.calls) && stepMark(step.number),
      findings: isOurs ? view.findings.filter((found) => found.call === pair.ours) : [],
      other: pair.kind === "arguments" ? other.calls[0] : null,
      isSame: !isOurs && pair.kind === "same",
    }));
  };

  // What the calls cost together; null where a called tool states no cost.
  const costOf = (view, calls) => {
    const costs = calls.map(({ calls: [call] }) => (view.tools.get(call.name) || {}).cost);
    return when(calls.length && costs.every(Number.isFinite), () =>
      costs.reduce((sum, cost) => sum + cost, 0));
  };

  const costLine = (view) => {
    const ours = costOf(view, view.ours.calls);
    const theirs = costOf(view, view.theirs.calls);
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

  const cutShort = ({ ours, prediction }) => when(prediction.n_calls, () => node("p.muted",
    `Only the first ${ours.calls.length} of ${count(prediction.n_calls, "call", "calls")}`,
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
    when(!view.ours.calls.length, () => node("p.muted.small", noCall(view))),
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

  apb.parts = { ...apb.parts, chain, chainOf, generalFindings, plans };
})();
