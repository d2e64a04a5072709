// Owns what a row of the list says: verdicts with a symbol and a word, grade, flags, humans.
(() => {
  "use strict";
  const apb = (globalThis.apb = globalThis.apb || {});
  const { flagsOf, gradeOf, isMarked, isVerdict, judgeOf, node, reasonOf, text } = apb;
  const SYMBOLS = { c: "✓", x: "✕", u: "?", "-": "·" };
  const KINDS = { c: "passes", x: "fails", u: "open", "-": "none" };
  const LEGEND = [
    ["✓", "correct", "passes"], ["✕", "incorrect", "fails"],
    ["?", "no verdict, and why", "open"], ["·", "not judged by this judge", "none"],
    ["–", "no fault that code could prove", "none"], ["0.6", "grade, 0 to 1", ""], ["E5", "error code that is set", ""],
    ["differs", "the verdict is not the humans'", "fails"], ["↺", "a rule changed the verdict", "open"],
    ["⚡", "the judge contradicted itself", "open"], ["≈", "uncertainty of at least 0.7 bit", "open"],
  ];

  function gradeText(grade) {
    return grade === null ? "" : String(Math.round(grade * 100) / 100);
  }

  function mark(index, opinions, at) {
    const letter = opinions.verdict[at];
    const byCode = opinions === index.judges[index.names.indexOf("static")];
    if (byCode && letter === "c") return node("span.said.none", "–");
    const said = letter === "u" ? reasonOf(index, opinions, at) ?? "split"
      : gradeText(gradeOf(opinions, at));
    return node(`span.said.${KINDS[letter]}`, `${SYMBOLS[letter]} ${said}`);
  }

  // Two judges stand below each other, A and B; of more, the one that is looked at and a count.
  function verdicts(index, state, at) {
    if (index.judges.length !== 2) return [mark(index, judgeOf(index, state), at)];
    return index.judges.map((judge, number) =>
      node("span.lettered", node("span.letter", "AB"[number]), " ", mark(index, judge, at)));
  }

  // Whose codes and signs the list shows, and which of two is A and which B; of one, nothing.
  function judgesLine(index, state) {
    const { names } = index;
    if (names.length < 2) return "";
    const looked = Math.max(0, names.indexOf(state.judge));
    if (names.length > 2) return text(`Looked at: ${names[looked]}, one of ${names.length} judges`);
    const [own, other] = looked ? "BA" : "AB";
    return text(`Looked at: ${own} ${names[looked]} · beside it: ${other} ${names[1 - looked]}`);
  }

  function others(index) {
    if (index.judges.length <= 2) return () => [];
    return (at) => {
      const said = index.judges.map((judge) => judge.verdict[at]);
      const correct = said.filter((letter) => letter === "c").length;
      return [node("span.said.none", `${correct} of ${said.length} ✓`)];
    };
  }

  function signs(index, state, at) {
    const judge = judgeOf(index, state);
    const found = [];
    const who = whoDiffers(index, judge, at);
    if (who) found.push([who, "fails"]);
    if (isMarked(judge, at, "overridden")) found.push(["↺", "open"]);
    if (isMarked(judge, at, "inconsistent")) found.push(["⚡", "open"]);
    if (judge.entropy && judge.entropy[at] >= 0.7) found.push(["≈", "open"]);
    return found.map(([sign, kind]) => node(`span.sign.${kind}`, sign));
  }

  // Who is not of the humans' opinion: both of two judges are shown, so it is said which.
  function whoDiffers(index, judge, at) {
    if (index.judges.length !== 2) return differs(judge, index.human, at) ? "differs" : "";
    const letters = [..."AB"].filter((_, number) => differs(index.judges[number], index.human, at));
    return ["", `${letters[0]} differs`, "A B differ"][letters.length];
  }

  function differs(judge, human, at) {
    const [one, other] = [judge.verdict[at], human.verdict[at]];
    return isVerdict(one) && isVerdict(other) && one !== other;
  }

  function humanPart(index, at) {
    if (index.human.verdict[at] === "-") return [];
    return [node("span.human", "human ", mark(index, index.human, at))];
  }

  // The content of the row of item ``at``.
  function itemRow(index, state, at) {
    const judge = judgeOf(index, state);
    const who = [index.modelOf(at), index.protocolOf(at)].filter(Boolean).join(" · ");
    const flags = flagsOf(index, judge, at) ?? [];
    return [
      node("span.verdicts", ...verdicts(index, state, at), ...others(index)(at)),
      node("span.names", node("span.id", index.ids[at]), node("span.who", who)),
      node("span.extras",
        node("span.flags", ...signs(index, state, at), flags.join(" ")),
        ...humanPart(index, at)),
      ...(index.queries ? [node("span.query", index.queryOf(at))] : []),
    ];
  }

  function told(index, opinions, at) {
    const letter = opinions.verdict[at];
    if (letter === "-") return "not judged";
    if (letter === "u") return `no verdict, ${reasonOf(index, opinions, at) ?? "split"}`;
    const grade = gradeOf(opinions, at);
    return apb.VERDICTS[letter] + (grade === null ? "" : `, grade ${gradeText(grade)}`);
  }

  // What a judge said, with its name where there are several.
  function toldBy(index, judge, at) {
    const name = index.judges.length > 1 ? `${index.names[index.judges.indexOf(judge)]}: ` : "";
    return name + told(index, judge, at);
  }

  // The same as the row in words.
  function itemLabel(index, state, at) {
    const judge = judgeOf(index, state);
    const parts = [index.ids[at], index.queryOf(at), index.modelOf(at), index.protocolOf(at)];
    parts.push(...index.judges.map((one) => toldBy(index, one, at)), ...(flagsOf(index, judge, at) ?? []));
    if (index.human.verdict[at] !== "-") parts.push(`human: ${told(index, index.human, at)}`);
    if (isMarked(judge, at, "overridden")) parts.push("overridden by a rule");
    if (isMarked(judge, at, "inconsistent")) parts.push("contradicted itself");
    return text(parts.filter(Boolean).join("; "));
  }

  // What is said of it aloud after a step: whose it is and how it was judged.
  function itemSaid(index, state, at) {
    const said = toldBy(index, judgeOf(index, state), at);
    return text(`${index.ids[at]}, ${index.modelOf(at)}, ${said}`);
  }

  function legend() {
    return LEGEND.flatMap(([sign, meaning, kind]) => [
      node("dt", node(`span.said.${kind}`, sign)), node("dd", meaning),
    ]);
  }

  Object.assign(apb, { itemLabel, itemRow, itemSaid, judgesLine, legend });
})();
