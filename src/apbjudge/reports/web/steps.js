// A step, whoever took it: its thought and text, its calls with what they were given and what
// answered them, what was found by rule, and what a log says besides. Predictions, references,
// earlier messages and the steps of logs are shown by it.
(() => {
  "use strict";
  const apb = (globalThis.apb = globalThis.apb || {});
  const {
    aside, code, count, details, facts, hidden, named, node, pretty, when, words, SHORT,
  } = apb.parts;

  const CLIP = { characters: 900, lines: 12 };
  const MARKS = ["distractor", "broken", "replacement"];
  const TOOL_MARKS = { blocked: "⊘ blocked tool", noisy: "⚠ noisy tool" };
  const REJECTIONS = {
    untrusted_input_rejected: "an input comes from an untrusted tool",
    missing_required_input: "a required input is not known yet",
  };
  const PROVENANCE = {
    trusted: "trusted", untrusted: "untrusted: from a noisy or blocked tool", none: "no value",
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

  const callCard = (view, call, { other, side, findings = [], number, mark, thought, isSame }) => {
    const here = findings.filter((found) => !isOfKey(found, call));
    return node("div.call",
      aside("Thought", thought),
      node("p.call-head",
        number === undefined ? null : node("span.number", `${number} `),
        toolName(call), " ", isSame ? null : [marksOf(view, call), mark]),
      here.map((found) => findingNote(view, found)),
      isSame ? node("p.muted.small", "the same arguments") :
        call.raw === undefined ? argumentList(view, call, { other, side, findings }) : clipped(call.raw),
      aside("Why", call.reason));
  };

  const isOfKey = (found, call) =>
    found.key !== undefined && Object.hasOwn(call.arguments || {}, found.key);

  const argumentList = (view, call, { other, side, findings }) => {
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

  // Long texts -----------------------------------------------------------------------------------

  // Where a text is clipped; its length where it is short enough. Never inside a pair of units.
  const clipAt = (value) => {
    let at = 0;
    for (let lines = 0; lines < CLIP.lines && at !== -1; lines += 1) at = value.indexOf("\n", at + 1);
    const end = Math.min(at === -1 ? value.length : at, CLIP.characters);
    if (value.length <= 1.25 * end) return value.length;
    return /[\ud800-\udbff]/.test(value[end - 1]) ? end - 1 : end;
  };

  const clipped = (value) => {
    const end = clipAt(value);
    const shown = node("pre.answer-text", { dir: "auto" }, value.slice(0, end));
    if (end === value.length) return shown;
    const button = node("button.more", { type: "button", "aria-expanded": "false" });
    const show = (isWhole) => {
      shown.replaceChildren(apb.text(isWhole ? value : `${value.slice(0, end)}…`));
      button.setAttribute("aria-expanded", String(isWhole));
      button.textContent = isWhole ? "Show less" :
        `Show all ${count(value.length, "character", "characters")}`;
    };
    button.addEventListener("click", () => show(button.getAttribute("aria-expanded") === "false"));
    show(false);
    return [shown, button];
  };

  // Marks and answers ----------------------------------------------------------------------------

  const tag = (kind, ...said) => node(`span.tag.${kind}`, said);
  const toolMark = (mark) => when(named(TOOL_MARKS, mark), () => tag(mark, TOOL_MARKS[mark]));

  const findingsOf = (view, { number }) =>
    view.findings.filter((found) => number !== undefined && found.step === number);

  const foundLine = ({ tools }) => {
    if (!tools) return "";
    const marked = (mark) => tools.filter((tool) => tool.mark === mark).length;
    const [blocked, noisy] = [marked("blocked"), marked("noisy")];
    return [count(tools.length, "tool", "tools") + " returned",
      blocked ? `${blocked} blocked` : "", noisy ? `${noisy} noisy` : ""].filter(Boolean).join(", ");
  };

  const answer = (seen) => node(seen.is_error ? "div.observation.failed" : "div.observation",
    node("p.role", seen.name ? ["Answer of ", node("code", { dir: "auto" }, seen.name)] : "Answer",
      when(seen.is_error, () => tag("wrong", "✕ marked as an error"))),
    seen.text ? clipped(seen.text) : node("p.muted.small", "empty"));

  // A call with what answers it. Where a log has the step, it says how the call went besides.
  const callItem = (view, step, call, index, options) => {
    const seen = (step.results || []).filter((one) => one.call === index);
    const isSearch = step.retrieval && step.retrieval.tools;
    return node("li",
      callCard(view, call, { ...options, thought: options.side && step.thought }),
      when(call.error, () =>
        node("p.note.suspected", node("strong", "! Unreadable arguments"), `: ${call.error}`)),
      when(seen.length, () => (isSearch ?
        details("The answer as the agent got it", () => seen.map(answer)) : seen.map(answer))),
      when(view.trajectory && !seen.length && !step.execution && !step.retrieval, () =>
        node("p.muted.small", "Nothing answers this call.")));
  };

  const foundTool = (tool) => node("li",
    toolName(tool), toolMark(tool.mark), " ",
    when(tool.inputs || tool.output, () => node("span.muted", { dir: "auto" },
      `${(tool.inputs || []).join(", ")} → ${tool.output || "nothing"}`)),
    when(tool.tool_type, () => node("span.muted", `, ${tool.tool_type}`)));

  const retrieval = (found) => node("div.found",
    facts([
      ["searched by", [when(found.by_inputs, () => "inputs"), when(found.by_output, () => "output")]
        .filter(Boolean).join(" and ") || undefined],
      ["inputs taken as", found.inputs && found.inputs.join(", ")],
      ["output taken as", found.outputs && found.outputs.join(", ")],
    ]),
    node("p.role", found.tools ? foundLine(found) : "The search failed."),
    when(found.tools && found.tools.length, () => node("ul", found.tools.map(foundTool))));

  const execution = (done) => facts([
    ["executed", done.was_executed ? "yes" : "no"],
    ["rejected", when(done.rejection, () => {
      const why = named(REJECTIONS, done.rejection);
      return why ? `${why} (${done.rejection})` : done.rejection;
    })],
    ["the tool reports", when(typeof done.success === "boolean", () =>
      (done.success ? "success" : "✕ failure"))],
    ["value", when(done.was_executed, () => [
      when(done.output_datatype, () => `${done.output_datatype} = `),
      done.output_value === undefined ? "nothing" : words(done.output_value, "span.words", CLIP.characters)])],
    ["provenance", when(done.was_executed, () => named(PROVENANCE, done.provenance) || done.provenance)],
    ["kind of tool", when(done.tool_type, () => [done.tool_type, toolMark(done.mark)])],
  ]);

  // The inside of a step, whatever it is of. Options for one of two chains beside each other: its
  // side, the number and the mark of its call, the findings in it, the call on the other side, and
  // isSame: whether that is the same.
  const stepBody = (view, step, options = {}) => {
    const loose = (step.results || []).filter((seen) => seen.call === undefined);
    const isIdle = options.side && !step.calls;
    return [
      when(isIdle, () => node("p.call-head", node("span.number", `step ${step.number} `),
        node("span.muted", "calls no tool"), options.mark)),
      findingsOf(view, step).map((found) => findingNote(view, found)),
      when(isIdle || !options.side, () => aside("Thought", step.thought)),
      when(step.text, () => words(step.text)),
      when(step.calls, () => node("ul.calls",
        step.calls.map((call, index) => callItem(view, step, call, index, options)))),
      when(step.retrieval, () => retrieval(step.retrieval)),
      when(step.execution, () => execution(step.execution)),
      loose.map(answer),
      when(step.extra, () => details("Other fields of the log", () => code(step.extra))),
    ].flat().filter(Boolean);
  };

  apb.parts = {
    ...apb.parts, codeName, findingNote, findingsOf, foundLine, marksOf, stepBody, tag, toolMark, toolName,
  };
})();
