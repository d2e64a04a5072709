// Owns the columns of the list: what is known of each item, and how far two opinions are apart.
// Items are known by their number; opinions are those of a judge or of the humans together.
(() => {
  "use strict";
  const apb = (globalThis.apb = globalThis.apb || {});
  const NO_FLAGS = -1;
  const MARKS = { overridden: 1, inconsistent: 2, split: 4 };

  // Columns ----------------------------------------------------------------------------------

  function keyOf(id, model) {
    return JSON.stringify([id, model]);
  }

  function makeIndex(raw) {
    const index = { ...raw, texts: null, ranks: null, places: new Map(), bins: new Map() };
    index.modelOf = (at) => raw.models.names[raw.models.of[at]];
    index.queryOf = (at) => raw.queries?.names[raw.queries.of[at]] ?? "";
    index.protocolOf = (at) => raw.protocols.names[raw.protocols.of[at]] ?? null;
    for (let at = raw.count - 1; at >= 0; at -= 1) {
      index.places.set(keyOf(raw.ids[at], index.modelOf(at)), at);
    }
    return index;
  }

  // The item of an id and a tested model; without one, the first that has this id.
  function placeOf(index, id, model) {
    if (model !== undefined) return index.places.get(keyOf(id, model)) ?? -1;
    return index.ids.indexOf(id);
  }

  function judgeOf(index, state) {
    const nothing = { verdict: "-".repeat(index.count) };
    return index.judges[Math.max(0, index.names.indexOf(state.judge))] ?? nothing;
  }

  function gradeOf(opinions, at) {
    const grade = opinions.grade && opinions.grade[at];
    return grade === undefined ? null : grade;
  }

  // The codes that are set, as the bits of a number; null where they were not asked for.
  function flagBits(opinions, at) {
    const bits = opinions.flags ? opinions.flags[at] : NO_FLAGS;
    return bits === NO_FLAGS ? null : bits;
  }

  function flagsOf(index, opinions, at) {
    const bits = flagBits(opinions, at);
    return bits === null ? null : index.codes.filter((_, number) => bits & (1 << number));
  }

  function isMarked(opinions, at, mark) {
    return Boolean(opinions.marks && opinions.marks[at] & MARKS[mark]);
  }

  function reasonOf(index, opinions, at) {
    const number = opinions.reason ? opinions.reason[at] : -1;
    return number < 0 ? null : index.reasons[number];
  }

  function isVerdict(letter) {
    return letter === "c" || letter === "x";
  }

  function flagDistance(a, b, at) {
    const [one, other] = [flagBits(a, at), flagBits(b, at)];
    if (one === null || other === null) return 0;
    let found = 0;
    for (let apart = one ^ other; apart; apart &= apart - 1) found += 1;
    return found;
  }

  function gradeDistance(a, b, at) {
    const [one, other] = [gradeOf(a, at), gradeOf(b, at)];
    return one === null || other === null ? 0 : Math.abs(one - other);
  }

  // How far two opinions are apart: another verdict weighs more than any grade, a grade more
  // than all flags, and a verdict that only one has lies between. NaN where one says nothing.
  function distance(a, b, at) {
    const [one, other] = [a.verdict[at], b.verdict[at]];
    if (one === "-" || other === "-") return NaN;
    if (isVerdict(one) !== isVerdict(other)) return 1.5;
    if (!isVerdict(one)) return 0;
    return (one === other ? 0 : 2) + gradeDistance(a, b, at) + flagDistance(a, b, at) / 1000;
  }

  function pairOf(index) {
    return index.changes && index.changes.map((judge) => index.judges[judge]);
  }

  function verdictsDiffer(index, at) {
    const said = index.judges.map((judge) => judge.verdict[at]);
    return said.includes("c") && said.includes("x");
  }

  Object.assign(apb, {
    distance, flagBits, flagDistance, flagsOf, gradeDistance, gradeOf, isMarked, isVerdict,
    judgeOf, makeIndex, pairOf, placeOf, reasonOf, verdictsDiffer,
  });
})();
