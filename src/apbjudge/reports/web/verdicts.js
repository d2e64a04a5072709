// What judges and humans said of an item, side by side and one by one.
(() => {
  "use strict";
  const apb = (globalThis.apb = globalThis.apb || {});
  const {
    code, count, details, facts, heading, hidden, named, node,
    pretty, section, text, when, words, codeName,
  } = apb.parts;

  const REASONS = {
    transport: "the judge could not be reached",
    timeout: "the judge did not answer in time",
    refusal: "the judge declined to answer",
    truncated: "the reply was cut off",
    unparsable: "the reply could not be read",
    inconsistent: "the reply contradicts itself",
    budget: "the budget was used up",
    bad_input: "the row of the input is unusable",
    error: "the judge failed",
    missing: "there is no prediction or trajectory of this case",
    infrastructure: "the trajectory broke, and not by the tested model's fault",
  };

  // Verdict marks --------------------------------------------------------------------------------

  const mark = (correct, otherwise = "not said") => {
    if (correct === true) return node("span.mark.passes", "✓ correct");
    if (correct === false) return node("span.mark.fails", "✕ incorrect");
    return node("span.mark.none", `– ${otherwise}`);
  };
  const isSplit = (human, field = "is_correct") => (human.ties || []).includes(field);
  // Code alone never shows that a plan is correct.
  const verdictMark = ({ kind, is_correct: correct, byCode }) => {
    if (kind === "unscored") return node("span.mark.open", "? not scored");
    return mark(byCode && correct ? null : correct, byCode ? "no provable fault" : undefined);
  };
  const gradeText = (grade) =>
    Number.isFinite(grade) ? grade.toFixed(Number.isInteger(grade * 10) ? 1 : 2) : text(grade);
  const percent = (share) => `${Math.round(share * 100)} %`;

  // Verdicts -------------------------------------------------------------------------------------

  // One column per judge, one for the humans together and, of several, one for each.
  const columns = ({ data, options }) => {
    const judges = options.showJudges ? data.judgements.map((said) =>
      ({ name: said.judge || "judge", said, isJudge: true })) : [];
    const raters = data.labels.map((said) => ({ name: said.rater || "human", said }));
    if (!data.human) return [...judges, ...raters];
    const name = raters.length === 1 ? raters[0].name : "humans";
    const humans = { name, said: data.human, human: data.human };
    return [...judges, humans, ...(raters.length > 1 ? raters : [])];
  };

  const line = (key, name, get, show) => ({ key, name, get, show });

  const fields = (view, all) => {
    const has = (get) => all.some(({ said }) => get(said) !== undefined && get(said) !== null);
    const flag = (name) => (said) => (said.errors || {})[name];
    const names = [...new Set(all.flatMap(({ said }) => Object.keys(said.errors || {})))].sort();
    return [
      line("is_correct", "Verdict", (said) => said.is_correct, (value, said) =>
        verdictMark({ ...said, is_correct: value })),
      line("grade", "Grade", (said) => said.grade, gradeText),
      line("category", "Category", (said) => said.category,
        (number) => `${number} ${named(view.categories, number) || ""}`),
      ...names.map((name) => line(name, codeName(view, name), flag(name), flagMark)),
      line("faulty_steps", "Faulty steps", (said) => (said.faulty_steps || []).join(", ") || null, text),
      line("unsure", "Unsure", (said) => said.unsure || null, () => "? yes"),
    ].filter(({ get, key }) => key === "is_correct" || has(get));
  };

  const flagMark = (set) => (set ? node("span.flag.set", "● yes") : node("span.flag", "○ no"));

  const comparison = (view) => {
    const all = columns(view);
    if (!all.length) return null;
    const head = all.map(({ name, isJudge }) => node("th", { scope: "col", dir: "auto" }, name,
      node("span.sort", isJudge ? "judge" : "human")));
    const lines = fields(view, all).map((field) => node("tr",
      node("th", { scope: "row" }, field.name,
        when(view.options.showDifferences && isDisputed(view, field), () =>
          [" ", node("span.sign", "≠", hidden(" raters differ"))])),
      all.map((column) => tableCell(view, field, column))));
    const region = { tabindex: 0, role: "region", "aria-label": "Verdicts side by side" };
    return node("div.box", region, node("table.verdicts",
      node("thead", node("tr", node("td", hidden("field")), head)), node("tbody", lines)));
  };

  const isDisputed = ({ data }, field) =>
    new Set(data.labels.map(field.get).filter((value) => value !== undefined && value !== null)).size > 1;

  const tableCell = (view, field, { said, isJudge, human: together }) => {
    const value = field.get(said);
    if (value === undefined || value === null) {
      if (together && isSplit(together, field.key)) return node("td.muted", "split");
      return node("td.muted", said.kind === "unscored" ? "not scored" : "–");
    }
    // Code alone proves faults: what it does not prove may be there all the same.
    if (said.byCode && value === false && field.key !== "is_correct") return node("td.muted", "–");
    const human = view.human ? field.get(view.human) : undefined;
    const isOpen = said.byCode && field.key === "is_correct" && value;
    const apart = isJudge && !isOpen && human !== undefined && human !== null && human !== value;
    if (!apart) return node("td", field.show(value, said));
    return node("td.apart", field.show(value, said), " ",
      node("span.sign", "≠", hidden(" humans differ")));
  };

  const overrideLine = (change) => node("li", node("code", text(change.field)),
    `: ${pretty(change.was ?? "nothing")} → ${pretty(change.now ?? "nothing")}`,
    `, because ${change.because}`);

  const source = ({ method, n }) => {
    if (method === "logprobs") return "token probabilities";
    if (!Number.isFinite(n)) return "number of replies not stated";
    return method === "panel" ? count(n, "judge", "judges") : count(n, "reply", "replies");
  };

  const uncertainty = (said) => {
    const name = (field) => (field === "is_correct" ? "correct" : field);
    const shares = Object.entries(said.shares || {})
      .filter(([field, share]) => share > 0 || field === "is_correct")
      .map(([field, share]) => `${name(field)} ${percent(share)}`);
    const grades = Object.entries(said.grades || {})
      .filter(([, share]) => share > 0)
      .map(([grade, share]) => `${grade}: ${percent(share)}`);
    const entropy = (said.entropy || {}).is_correct;
    return facts([
      ["how sure", `${shares.join(", ")} (${source(said)})`],
      ["grades given", when(grades.length, () => grades.join(", "))],
      ["uncertainty about the verdict", when(Number.isFinite(entropy), () =>
        `${entropy.toFixed(2)} bits of 1`)],
    ]);
  };

  const yesNo = (value) => (value === undefined ? undefined : value ? "yes" : "no");

  const tokens = (usage) => (usage.unreported ? "not all reported: " : "") +
    `${usage.prompt_tokens} in, ${usage.completion_tokens} out, ` +
    count(usage.calls, "call", "calls");

  const small = (said) => facts([
    ["decided by", said.decided_by],
    ...Object.entries(said.facts || {})
      .map(([name, value]) => [name, typeof value === "boolean" ? yesNo(value) : value]),
    ["rubric", said.rubric],
    ["price", when(Number.isFinite(said.cost_usd), () => `${said.cost_usd} USD`)],
    ["time", when(Number.isFinite(said.latency_s), () => `${said.latency_s.toFixed(1)} s`)],
    ["tokens", when(said.usage && said.usage.calls, () => tokens(said.usage))],
    ["fingerprint", said.fingerprint],
  ]);

  const unscored = ({ reason, detail }) => node("p.why",
    `Not scored: ${named(REASONS, reason) || reason || "no reason given"}.`,
    when(detail, () => [" ", node("span.muted", text(detail))]));

  const verdictCard = (view, said) => node("section.card",
    heading(view.level + 2, { dir: "auto" }, said.judge || "judge", " ", verdictMark(said)),
    when(said.kind === "unscored", () => unscored(said)),
    when(said.inconsistent, () => node("p.note.suspected", node("strong", "! Inconsistent"),
      ": the last reply contradicts itself.")),
    when(said.overrides, () => node("div.overrides",
      node("p.small.muted", "Changed by a rule:"), node("ul", said.overrides.map(overrideLine)))),
    when(said.reasoning && !(said.byCode && said.is_correct), () => words(said.reasoning)),
    when(said.reply_fields, () => facts(Object.entries(said.reply_fields)
      .map(([name, value]) => [name, typeof value === "boolean" ? yesNo(value) : text(value)]))),
    when(said.uncertainty, () => uncertainty(said.uncertainty)),
    details("Particulars", () => small(said) || node("p.muted", "none")),
    said.raw ? details("Raw reply", () => code(said.raw)) : null);

  const noteOf = (label) => when(label.note, () => node("li",
    node("strong", { dir: "auto" }, label.rater || "human"), ": ",
    node("span.words", { dir: "auto" }, label.note)));

  const verdicts = (view) => {
    const { data, options } = view;
    const notes = data.labels.map(noteOf).filter(Boolean);
    const judges = options.showJudges ? data.judgements : [];
    const last = [...judges].sort((a, b) => Boolean(a.byCode) - Boolean(b.byCode));
    const cards = last.map((said) => verdictCard(view, said));
    const table = comparison(view);
    return section(view.level + 1, "judged", "Verdicts",
      when(table, () => node("div.verdict-parts",
        when(cards.length, () => node("div.cards", cards)), table)),
      when(notes.length, () => node("div.human-notes",
        heading(view.level + 2, "Notes of humans"), node("ul", notes))));
  };

  apb.parts = { ...apb.parts, isSplit, mark, verdictMark, verdicts };
})();
