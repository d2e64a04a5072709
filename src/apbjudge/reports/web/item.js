// The item view, shared by the report and the labelling page: apb.itemView(data, options) gives an
// <article> made of nothing but text nodes and elements named here. Texts of the data are never
// read as markup, addresses never followed, and invisible characters are shown by their number.
(() => {
  "use strict";
  const apb = (globalThis.apb = globalThis.apb || {});

  const CODES = {
    E1: "goal", E2: "completeness", E3: "constraint", E4: "logic", E5: "tool use",
    E6: "hallucination",
  };
  const CATEGORIES = {
    1: "uses the replacement", 2: "another sensible tool", 3: "tries the broken tool again",
    4: "gives up", 5: "something else",
  };
  const KINDS = {
    same: ["=", "same call"],
    arguments: ["≠", "other arguments"],
    different: ["⇄", "other tool"],
    extra: ["+", "not in the reference"],
    missing: ["−", "only in the reference"],
    idle: ["○", "no call"],
    alone: ["", ""],
  };
  const REASONS = {
    transport: "the judge could not be reached",
    timeout: "the judge did not answer in time",
    refusal: "the judge declined to answer",
    truncated: "the reply was cut off",
    unparsable: "the reply could not be read",
    inconsistent: "the reply contradicts itself",
    budget: "the budget was used up",
    bad_input: "the row of the input is unusable",
  };
  const MARKS = ["distractor", "broken", "replacement"];
  const SHORT = 1600; // characters of a text that are shown at once

  // Texts and nodes ------------------------------------------------------------------------------

  // Control, direction and other unseen characters; the joiners stay, scripts need them.
  const UNSEEN = /[^\P{C}\n\t\u200c\u200d]|[\u2028\u2029]/gu;
  const numbered = (c) => `\\u{${c.codePointAt(0).toString(16)}}`;
  const text = (value) => String(isPlain(value) ? JSON.stringify(value) : value)
    .replaceAll("\r\n", "\n").replace(UNSEEN, numbered);

  // node("p.note.proven", {title: "…"}, "text", child, null, [more]): attributes stand first if at
  // all, and an object anywhere else is data that should have been a text: it is shown as JSON.
  const node = (kind, ...parts) => {
    const [tag, ...classes] = kind.split(".");
    const made = document.createElement(tag);
    if (classes.length) made.className = classes.join(" ");
    if (isPlain(parts[0])) setAll(made, parts.shift());
    for (const part of parts.flat(Infinity)) add(made, part);
    return made;
  };

  const isPlain = (part) => part && Object.getPrototypeOf(part) === Object.prototype;

  const add = (made, part) => {
    if (part === null || part === undefined || part === false) return;
    made.append(part instanceof Node ? part : text(isPlain(part) ? JSON.stringify(part) : part));
  };

  // No address but a picture's, no style, no handler.
  const ATTRIBUTES = new Set((
    "alt autocomplete checked cols dir disabled for hidden id inputmode lang loading max " +
    "maxlength min name open pattern placeholder required role rows scope spellcheck src step " +
    "tabindex title type value").split(" "));
  const isAllowed = (name) => ATTRIBUTES.has(name) || /^(aria|data)-[a-z-]+$/.test(name);

  const setAll = (made, attributes) => {
    for (const [name, value] of Object.entries(attributes)) {
      if (!isAllowed(name)) throw new TypeError(`no attribute ${name}`);
      if (value !== null && value !== undefined && value !== false) {
        made.setAttribute(name, value === true ? "" : text(value));
      }
    }
  };

  const when = (holds, make) => (holds ? make() : null);
  // Names are looked up among our own only, never among what every object has.
  const named = (names, key) => (Object.hasOwn(names, key) ? names[key] : undefined);
  const hidden = (words) => node("span.unseen", words);
  const heading = (level, ...parts) => node(`h${Math.min(level, 6)}`, ...parts);
  const count = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
  const pretty = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

  // A disclosure whose inside is made when it is first opened.
  const details = (summary, make, open = false) => {
    const made = node("details", node("summary", summary));
    const fill = () => made.childElementCount === 1 && made.append(...[make()].flat());
    made.addEventListener("toggle", () => made.open && fill());
    if (open) {
      fill();
      made.open = true;
    }
    return made;
  };

  // Running text with its line breaks; the end of a long one is behind a disclosure.
  const words = (value, kind = "p.words") => {
    const all = String(value);
    if (all.length <= SHORT) return node(kind, { dir: "auto" }, all);
    const rest = all.length - SHORT;
    return node("div.long",
      node(kind, { dir: "auto" }, `${all.slice(0, SHORT)}…`),
      details(`the other ${count(rest, "character", "characters")}`,
        () => node(kind, { dir: "auto" }, `…${all.slice(SHORT)}`)));
  };

  // What the tested model says of a step, with a word that tells whose it is.
  const aside = (label, value) => when(value, () =>
    node("div.aside", node("span.muted", `${label}: `), words(value, "span.words")));

  const code = (value) => node("pre.code", { dir: "auto", tabindex: 0 }, pretty(value));
  const facts = (pairs) => {
    const said = pairs.filter(([, value]) => value !== null && value !== undefined);
    if (!said.length) return null;
    return node("dl.facts", said.map(([name, value]) => node("div", node("dt", name),
      node("dd", { dir: "auto" }, value))));
  };
  const section = (level, kind, title, ...parts) => {
    const inside = parts.flat().filter(Boolean);
    return inside.length ? node(`section.${kind}`, heading(level, title), inside) : null;
  };

  // Verdict marks --------------------------------------------------------------------------------

  const mark = (correct, otherwise = "not said") => {
    if (correct === true) return node("span.mark.passes", "✓ correct");
    if (correct === false) return node("span.mark.fails", "✕ incorrect");
    return node("span.mark.none", `– ${otherwise}`);
  };
  const isSplit = (human, field = "is_correct") => (human.ties || []).includes(field);
  const verdictMark = ({ kind, is_correct: correct }) =>
    kind === "unscored" ? node("span.mark.open", "? not scored") : mark(correct);
  const gradeText = (grade) =>
    Number.isFinite(grade) ? grade.toFixed(Number.isInteger(grade * 10) ? 1 : 2) : text(grade);
  const percent = (share) => `${Math.round(share * 100)} %`;

  // Head -----------------------------------------------------------------------------------------

  const head = (view) => {
    const { data, options } = view;
    const item = data.item || {};
    const one = (who, itsMark) => node("li", node("span.who", { dir: "auto" }, who), " ", itsMark);
    const marks = options.showJudges ?
      data.judgements.map((said) => one(said.judge || "judge", verdictMark(said))) : [];
    if (options.showJudges && data.human) {
      const otherwise = isSplit(data.human) ? "split" : undefined;
      marks.push(one("humans", mark(data.human.is_correct, otherwise)));
    }
    return node("header.item-head",
      heading(view.level, { dir: "auto" }, item.id || "Item"),
      facts(headFacts(view, item)),
      when(marks.length, () => node("ul.marks", { "aria-label": "Verdicts" }, marks)));
  };

  const SHOWN_BELOW = ["level", "horizon", "unsolvable_type"];

  const headFacts = ({ data, options }, item) => {
    const said = data.case ? data.case.groups || {} : item.groups || {};
    const groups = Object.entries(said).filter(([name]) => !SHOWN_BELOW.includes(name));
    const horizon = data.case && data.case.condition ? data.case.condition.horizon : undefined;
    return [
      ["tested model", options.showModel ? item.model : undefined],
      ["protocol", item.protocol],
      ["asked for", horizon && count(horizon, "step", "steps")],
      ...groups.map(([name, value]) => [name, String(value)]),
    ];
  };

  // The case -------------------------------------------------------------------------------------

  const SAFE_PICTURE = /^data:image\/(png|jpeg|gif|webp|bmp|avif);base64,[A-Za-z0-9+/=]*$/;
  const isSafe = (url) => {
    if (typeof url !== "string") return false;
    if (SAFE_PICTURE.test(url)) return true;
    try {
      const whole = new URL(url, location.href);
      return /^https?:$/.test(whole.protocol) && whole.origin === location.origin;
    } catch {
      return false;
    }
  };

  const file = (view, spec, index) => {
    const url = view.options.onFile ? view.options.onFile(spec, index) : spec.url;
    const name = node("span.file-name", { dir: "auto" }, spec.path);
    const label = [node("span.muted", text(spec.type)), " ", name];
    if (!isSafe(url)) return node("li", label);
    const picture = node("img", { src: url, alt: `${spec.type} ${spec.path}`, loading: "lazy" });
    return node("li", node("figure", picture, node("figcaption", label)));
  };

  const files = (view) => {
    const listed = view.case.files || [];
    if (!listed.length) return null;
    return section(view.level + 1, "files", count(listed.length, "file", "files"),
      node("ul", listed.map((spec, i) => file(view, spec, i))));
  };

  const condition = (view) => {
    const said = view.case.condition || {};
    if (!view.options.showCondition) return null;
    return section(view.level + 1, "condition", "Not told to the tested model", facts([
      ["can't be solved", said.unsolvable_type && text(said.unsolvable_type).replaceAll("_", " ")],
      ["broken tool", said.broken_tool],
      ["its replacement", said.replacement],
      ["distractors", said.extraneous && said.extraneous.join(", ")],
    ]));
  };

  const message = (view, said) => node("li",
    node("p.role", { dir: "auto" }, [said.role, said.name].filter(Boolean).join(" · ")),
    said.text ? words(said.text) : null,
    (said.calls || []).map((call) => callCard(view, call, {})));

  const trajectory = (view) => {
    const listed = view.case.trajectory || [];
    if (!listed.length) return null;
    const size = listed.reduce((sum, said) => sum + (said.text || "").length, 0);
    const isShort = listed.length <= 4 && size < SHORT;
    return section(view.level + 1, "before", "What happened before", [
      details(count(listed.length, "message", "messages"),
        () => node("ol.messages", listed.map((said) => message(view, said))), isShort),
      isShort ? null : node("p.muted.small", "The last of them:"),
      isShort ? null : node("ol.messages", message(view, listed.at(-1))),
    ]);
  };

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

  const callCard = (view, call, { other, side, findings = [], number }) => {
    const here = findings.filter((found) => !isOfKey(found, call));
    return node("div.call",
      aside("Thought", call.thought),
      node("p.call-head",
        number === undefined ? null : node("span.number", `${number} `),
        toolName(call), " ", marksOf(view, call)),
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
      const before = row && row[side] !== null ? calls[side][row[side]].step : row ? 0 : Infinity;
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

  const idleStep = (step) => [
    node("p.call-head", node("span.number", `step ${step.step} `),
      node("span.muted", "calls no tool")),
    aside("Thought", step.thought),
  ];

  // A call on one side only may have its like elsewhere on the other: then it is out of order.
  const elsewhere = (view, pair) => {
    if (pair.kind !== "extra" && pair.kind !== "missing") return "";
    const [own, far] = pair.kind === "extra" ? ["ours", "theirs"] : ["theirs", "ours"];
    const calls = { ours: view.prediction.calls, theirs: (view.reference || {}).calls || [] };
    const name = calls[own][pair[own]].name;
    const like = rowsOf(view).find((row) =>
      row[own] === null && row[far] !== null && calls[far][row[far]].name === name);
    if (!like) return "";
    const who = pair.kind === "extra" ? "reference" : "prediction";
    return `the ${who} has it as ${like[far] + 1}`;
  };

  const row = (view, pair) => {
    const [sign, usual] = named(KINDS, pair.kind) || KINDS.alone;
    const label = elsewhere(view, pair) || usual;
    const ours = ourCell(view, pair);
    const theirs = view.reference ? theirCell(view, pair) : null;
    return node(`li.row.${pair.kind}`,
      label ? node("p.kind", node("span.sign", sign), " ", label) : null, ours, theirs);
  };

  const ourCell = (view, pair) => {
    if (pair.ourIdle) return cell("ours", "Prediction", idleStep(pair.ourIdle));
    if (pair.ours === null || pair.ours === undefined) return node("div.cell.ours.empty");
    const call = view.prediction.calls[pair.ours];
    const other = pair.kind === "arguments" ? view.reference.calls[pair.theirs] : null;
    const findings = view.findings.filter((found) => found.call === pair.ours);
    return cell("ours", "Prediction",
      callCard(view, call, { other, side: "ours", findings, number: pair.ours + 1 }));
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

  const list = (view) => {
    const rows = withIdle(view);
    if (!rows.length) return null;
    return node(view.reference ? "ol.chain.two" : "ol.chain.one", { role: "list" },
      when(view.reference, TITLES), rows.map((pair) => row(view, pair)));
  };

  const cutShort = ({ prediction }) => when(prediction.n_calls, () => node("p.muted",
    `Only the first ${prediction.calls.length} of ${count(prediction.n_calls, "call", "calls")}`,
    " are shown."));

  const chain = (view) => section(view.level + 1, "chains", "Tool calls", [
    when(named(FORMS, view.prediction.kind), () => node("p.form", FORMS[view.prediction.kind])),
    ...generalFindings(view), ...unsaidProblems(view), costLine(view),
    when(view.case.reference === null, () =>
      node("p.muted.small", "The case has no reference.")),
    when(!(view.prediction.calls || []).length, () =>
      node("p.muted.small", "The prediction calls no tool.")),
    list(view), cutShort(view),
  ]);

  const planCell = (label, plan) => node("div.cell", node("p.side", label),
    plan ? words(plan) : node("p.muted", "none"));

  const plans = (view) => {
    const ours = view.prediction.plan;
    const theirs = view.reference && view.reference.plan;
    if (!ours && !theirs) return null;
    const label = view.prediction.kind === "reject" ? "Reason given" : "Prediction";
    return section(view.level + 1, "plans", "Plan in words",
      node(view.reference ? "div.row.plan-row" : "div.plan-row",
        planCell(label, ours), when(view.reference, () => planCell("Reference", theirs))));
  };

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
      line("is_correct", "Verdict", (said) => said.is_correct, mark),
      line("grade", "Grade", (said) => said.grade, gradeText),
      line("category", "Category", (said) => said.category,
        (number) => `${number} ${named(view.categories, number) || ""}`),
      ...names.map((name) => line(name, codeName(view, name), flag(name), flagMark)),
    ].filter(({ get, key }) => key === "is_correct" || has(get));
  };

  const flagMark = (set) => (set ? node("span.flag.set", "● yes") : node("span.flag", "○ no"));

  const comparison = (view) => {
    const all = columns(view);
    if (!all.length) return null;
    const head = all.map(({ name, isJudge }) => node("th", { scope: "col", dir: "auto" }, name,
      node("span.sort", isJudge ? "judge" : "human")));
    const lines = fields(view, all).map((field) => node("tr",
      node("th", { scope: "row" }, field.name),
      all.map((column) => tableCell(view, field, column))));
    const region = { tabindex: 0, role: "region", "aria-label": "Verdicts side by side" };
    return node("div.box", region, node("table.verdicts",
      node("thead", node("tr", node("td", hidden("field")), head)), node("tbody", lines)));
  };

  const tableCell = (view, field, { said, isJudge, human: together }) => {
    const value = field.get(said);
    if (value === undefined || value === null) {
      if (together && isSplit(together, field.key)) return node("td.muted", "split");
      return node("td.muted", said.kind === "unscored" ? "not scored" : "–");
    }
    const human = view.human ? field.get(view.human) : undefined;
    const apart = isJudge && human !== undefined && human !== null && human !== value;
    if (!apart) return node("td", field.show(value));
    return node("td.apart", field.show(value), " ",
      node("span.sign", "≠", hidden(" humans differ")));
  };

  const overrideLine = (change) => node("li", node("code", text(change.field)),
    `: ${pretty(change.was ?? "nothing")} → ${pretty(change.now ?? "nothing")}`,
    `, because ${change.because}`);

  const source = ({ method, n }) => {
    if (method === "logprobs") return "token probabilities";
    return method === "panel" ? count(n, "judge", "judges") : count(n, "reply", "replies");
  };

  const doubt = (said) => {
    const name = (field) => (field === "is_correct" ? "correct" : field);
    const shares = Object.entries(said.shares || {})
      .filter(([field, share]) => share > 0 || field === "is_correct")
      .map(([field, share]) => `${name(field)} ${percent(share)}`);
    const grades = Object.entries(said.grades || {})
      .map(([grade, share]) => `${grade}: ${percent(share)}`);
    const entropy = (said.entropy || {}).is_correct;
    return facts([
      ["how sure", `${shares.join(", ")} (${source(said)})`],
      ["grades given", when(grades.length, () => grades.join(", "))],
      ["entropy of the verdict", when(Number.isFinite(entropy), () =>
        `${entropy.toFixed(2)} bits of 1`)],
    ]);
  };

  const yesNo = (value) => (value === undefined ? undefined : value ? "yes" : "no");

  const tokens = (usage) => `${usage.prompt_tokens} in, ${usage.completion_tokens} out, ` +
    count(usage.calls, "call", "calls");

  const small = (said) => facts([
    ["decided by", said.decided_by], ["cost of the plan", said.plan_cost],
    ["uses a distractor", yesNo(said.uses_distractor)],
    ["calls the reference's tools in its order", yesNo(said.matches_reference)],
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
    said.reasoning ? words(said.reasoning) : null,
    when(said.doubt, () => doubt(said.doubt)),
    details("Particulars", () => small(said) || node("p.muted", "none")),
    said.raw ? details("Raw reply", () => code(said.raw)) : null);

  const noteOf = (label) => when(label.note, () => node("li",
    node("strong", { dir: "auto" }, label.rater || "human"), ": ",
    node("span.words", { dir: "auto" }, label.note)));

  const verdicts = (view) => {
    const { data, options } = view;
    const notes = data.labels.map(noteOf).filter(Boolean);
    const cards = options.showJudges ? data.judgements.map((said) => verdictCard(view, said)) : [];
    const table = comparison(view);
    return section(view.level + 1, "judged", "Verdicts",
      when(table, () => node("div.verdict-parts", table,
        when(cards.length, () => node("div.cards", cards)))),
      when(notes.length, () => node("div.human-notes",
        heading(view.level + 2, "Notes of humans"), node("ul", notes))));
  };

  // Tools ----------------------------------------------------------------------------------------

  const parameterLine = (name, spec, required) => {
    const known = spec && typeof spec === "object" ? spec : {};
    const kind = [known.type, known.enum ? `one of ${JSON.stringify(known.enum)}` : null,
      required.includes(name) ? "required" : null].flat().filter(Boolean).map(pretty).join(", ");
    return node("div", node("dt", { dir: "auto" }, name), node("dd", { dir: "auto" },
      when(kind, () => node("span.muted", kind, " ")),
      when(typeof known.description === "string", () => known.description)));
  };

  const parameters = (spec) => {
    if (spec === undefined || spec === null) return null;
    const properties = typeof spec === "object" ? spec.properties : null;
    if (!properties || typeof properties !== "object") return code(spec);
    const required = Array.isArray(spec.required) ? spec.required : [];
    return [
      node("dl.parameters", Object.keys(properties).map((name) =>
        parameterLine(name, properties[name], required))),
      details("as JSON", () => code(spec)),
    ];
  };

  const toolEntry = (view, tool, use) => node("li",
    node("p.call-head", node("code.name", { dir: "auto" }, tool.name), " ", marksOf(view, tool),
      use ? node("span.tag", use) : null),
    tool.description ? words(tool.description) : null,
    parameters(tool.parameters));

  const tools = (view) => {
    const listed = view.case.tools;
    if (listed === undefined) return null;
    if (listed === null) return node("p.muted", "The case does not say which tools there were.");
    const ours = new Set((view.prediction.calls || []).map((call) => call.name));
    const theirs = new Set(((view.reference || {}).calls || []).map((call) => call.name));
    const rank = (tool) => (ours.has(tool.name) ? 0 : theirs.has(tool.name) ? 1 : 2);
    const use = (tool) => ["called", "called by the reference", ""][rank(tool)];
    const sorted = [...listed].sort((a, b) => rank(a) - rank(b));
    const called = sorted.filter((tool) => ours.has(tool.name)).length;
    return details(`${count(listed.length, "tool", "tools")}, ${called} of them called`,
      () => node("ul.tools", sorted.map((tool) => toolEntry(view, tool, use(tool)))));
  };

  // The whole ------------------------------------------------------------------------------------

  const material = (view) => section(view.level + 1, "material", "Material", [
    tools(view),
    view.case.system ? details("System prompt", () => words(view.case.system)) : null,
    when(view.prediction.response, () =>
      details("Reply of the tested model, as it came", () => code(view.prediction.response))),
  ]);

  const DEFAULTS = {
    showJudges: true, showModel: true, showCondition: true, showFindings: true, level: 2,
  };

  const MISSING = "The predictions file is not at hand: only what judges and humans said is shown.";

  const prepare = (data, options) => {
    const chosen = { ...DEFAULTS, ...options };
    const judgements = (data.judgements || []).filter(Boolean);
    const whole = { ...data, judgements, labels: data.labels || [] };
    const own = data.case || {};
    const prediction = data.prediction || {};
    return {
      data: whole, options: chosen, level: chosen.level, case: own, prediction,
      reference: own.reference || null,
      human: data.human || (whole.labels.length === 1 ? whole.labels[0] : null),
      findings: chosen.showFindings ? prediction.findings || [] : [],
      tools: new Map((own.tools || []).map((tool) => [tool.name, tool])),
      codes: { ...CODES, ...chosen.codes }, categories: { ...CATEGORIES, ...chosen.categories },
    };
  };

  // Builds the view of one item.
  //   data: {case, prediction, judgements, labels, human, item: {id, model, protocol}}
  //   options: showJudges, showModel, showCondition, showFindings (all true unless given), level of
  //     the first heading, codes and categories (names by code or number),
  //     onFile(file, index) → URL of a picture
  const itemView = (data, options = {}) => {
    const view = prepare(data, options);
    const known = Boolean(data.prediction && data.prediction.kind);
    return node("article.item-view",
      head(view),
      when(!known || !data.case, () => node("p.note.suspected", MISSING)),
      when(view.case.query, () =>
        section(view.level + 1, "query", "Query", words(view.case.query))),
      files(view), condition(view), trajectory(view),
      known ? [plans(view), chain(view)] :
        section(view.level + 1, "chains", "Found by code", generalFindings(view)),
      verdicts(view), material(view));
  };

  Object.assign(apb, { itemView, node, text, words, details });
})();
