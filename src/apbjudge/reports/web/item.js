// The item view, shared by the report and the labelling page: apb.itemView(data, options) gives an
// <article> made of nothing but text nodes and elements named here. Texts of the data are never
// read as markup, addresses never followed, and invisible characters are shown by their number.
// Needs nodes.js, steps.js, calls.js and verdicts.js, in this order; of trajectories, also
// trajectories.js before this.
(() => {
  "use strict";
  const apb = (globalThis.apb = globalThis.apb || {});
  const {
    code, count, details, facts, heading, node, pretty, section, text, when, words,
    SHORT, chain, chainOf, generalFindings, marksOf, plans, stepBody, isSplit, mark, verdictMark, verdicts,
    wholeTrajectory = () => null,
  } = apb.parts;

  const CODES = {
    E1: "goal", E2: "completeness", E3: "constraint", E4: "logic", E5: "tool use",
    E6: "hallucination",
  };
  const CATEGORIES = {
    1: "uses the replacement", 2: "another sensible tool", 3: "tries the broken tool again",
    4: "gives up", 5: "something else",
  };

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
    if (spec.text) return node("li", details(label, () => code(spec.text), true));
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
      ...Object.entries(said.claims || {}).map(([name, claim]) =>
        [name.replaceAll("_", " "), claim.replaceAll("\n", "; ")]),
    ]));
  };

  const message = (view, step) => node("li",
    node("p.role", { dir: "auto" }, [step.source, step.name].filter(Boolean).join(" · ")),
    stepBody(view, step));

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
    if (listed === null) {
      return when(!view.isTrajectory, () => node("p.muted", "The case does not say which tools there were."));
    }
    const ours = new Set(view.called.map((call) => call.name));
    const theirs = new Set(view.theirs.calls.map(({ calls: [call] }) => call.name));
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
      details(view.isCase ? "Reference as text" : "Reply of the tested model, as it came", () => code(view.prediction.response),
        view.prediction.kind === "text")),
  ]);

  const DEFAULTS = {
    showJudges: true, showModel: true, showCondition: true, showFindings: true, level: 2,
  };

  const MISSING = "The predictions file is not at hand: only what judges and humans said is shown.";
  const NO_LOG = "The log is not at hand: only what was measured and said of the trajectory is shown.";

  const prepare = (data, options) => {
    const chosen = { ...DEFAULTS, ...options };
    const judgements = (data.judgements || []).filter(Boolean);
    const whole = { ...data, judgements, labels: data.labels || [] };
    const own = data.case || {};
    const prediction = data.prediction || {};
    const steps = data.trajectory ?
      data.trajectory.steps.filter((step) => step.source === "agent") : prediction.steps || [];
    return {
      data: whole, options: chosen, level: chosen.level, case: own, prediction,
      trajectory: data.trajectory || null,
      isCase: (data.item || {}).protocol === "case", // its reference stands in the prediction's place
      isTrajectory: Boolean(data.trajectory || judgements.some((said) => said.diagnosis)),
      called: steps.flatMap((step) => step.calls || []),
      ours: chainOf(prediction.steps), theirs: chainOf((own.reference || {}).steps),
      reference: own.reference || null,
      human: data.human || (whole.labels.length === 1 ? whole.labels[0] : null),
      findings: chosen.showFindings ? prediction.findings || [] : [],
      tools: new Map((own.tools || []).map((tool) => [tool.name, tool])),
      codes: { ...CODES, ...chosen.codes }, categories: { ...CATEGORIES, ...chosen.categories },
    };
  };

  // Builds the view of one item.
  //   data: {case, prediction or trajectory, judgements, labels, human, item: {id, model, protocol}}
  //   options: showJudges, showModel, showCondition, showFindings (all true unless given), level of
  //     the first heading, codes and categories (names by code or number),
  //     onFile(file, index) → URL of a picture, stepMark(number) → node beside a step of the
  //     prediction, showDifferences: whether the verdicts' table marks where humans differ
  const itemView = (data, options = {}) => {
    const view = prepare(data, options);
    const known = Boolean(data.prediction && data.prediction.kind);
    // Below a query that is judged the verdicts are in view.
    const most = view.options.showJudges ? SHORT / 5 : SHORT;
    return node("article.item-view",
      head(view),
      when(!(known || view.trajectory) || !data.case, () =>
        node("p.note.suspected", view.isTrajectory ? NO_LOG : MISSING)),
      when(view.case.query, () =>
        section(view.level + 1, "query", "Query", words(view.case.query, "p.words", most))),
      verdicts(view),
      files(view), condition(view), trajectory(view),
      view.isTrajectory ? wholeTrajectory(view) : known ? [plans(view), chain(view)] :
        section(view.level + 1, "chains", "Found by rule", generalFindings(view)),
      material(view));
  };

  apb.itemView = itemView;
})();
