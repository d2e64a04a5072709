// Owns the questions that can be asked of the list: filters, search and order. Nothing here
// touches what is shown.
(() => {
  "use strict";
  const apb = (globalThis.apb = globalThis.apb || {});
  const {
    distance, flagDistance, flagsOf, gradeDistance, gradeOf, isMarked, isVerdict, judgeOf, pairOf,
    readBlock, reasonOf, verdictsDiffer,
  } = apb;
  const VERDICTS = { c: "correct", x: "incorrect", u: "unscored", "-": "none" };
  const CATEGORIES = ["replacement", "alternative", "retry", "refusal", "other"];

  // Filters ----------------------------------------------------------------------------------
  // ``options`` gives [value, text] pairs (none: the filter is not offered), ``test`` the test of
  // an item's number for a chosen value. ``judge`` is the judge that is looked at.

  function named(column) {
    const names = [...column.names].sort(collate).map((name) => [name, name]);
    return names.length > 1 || column.of.includes(-1) ? names : [];
  }

  function isNamed(column, value) {
    const number = column.names.indexOf(value);
    return number < 0 ? never : (at) => column.of[at] === number;
  }

  // Values come from the address too: they are looked up among our own only.
  function testFor(tests, value, ...opinions) {
    return Object.hasOwn(tests, value) ? tests[value](...opinions) : never;
  }

  const never = () => false;

  const collate = new Intl.Collator("en", { numeric: true }).compare;

  const COMPARED = {
    any: (a, b) => (at) => distance(a, b, at) > 0,
    worse: (a, b) => (at) => a.verdict[at] === "c" && b.verdict[at] === "x",
    better: (a, b) => (at) => a.verdict[at] === "x" && b.verdict[at] === "c",
    grade: (a, b) => (at) => a.verdict[at] === b.verdict[at] && gradeDistance(a, b, at) > 0,
    flags: (a, b) => (at) => flagDistance(a, b, at) > 0,
    lost: (a, b) => (at) => distance(a, b, at) === 1.5,
  };

  const AGAINST_HUMANS = {
    labelled: (human) => (at) => human.verdict[at] !== "-",
    unlabelled: (human) => (at) => human.verdict[at] === "-",
    agrees: (human, judge) => (at) =>
      isVerdict(human.verdict[at]) && human.verdict[at] === judge.verdict[at],
    differs: (human, judge) => (at) =>
      isVerdict(human.verdict[at]) && isVerdict(judge.verdict[at]) &&
      human.verdict[at] !== judge.verdict[at],
    grade: (human, judge) => (at) => gradeDistance(human, judge, at) > 0,
    flags: (human, judge) => (at) => flagDistance(human, judge, at) > 0,
    split: (human) => (at) => isMarked(human, at, "split"),
  };

  const FILTERS = [
    {
      key: "tested",
      label: "Tested model",
      options: (index) => named(index.models),
      test: (index, judge, value) => isNamed(index.models, value),
    },
    {
      key: "protocol",
      label: "Protocol",
      options: (index) => named(index.protocols),
      test: (index, judge, value) => isNamed(index.protocols, value),
    },
    {
      key: "verdict",
      label: "Judge's verdict",
      options: (index) => (index.judges.length ? [
        ["correct", "✓ correct"], ["incorrect", "✕ incorrect"], ["unscored", "? unscored"],
        ["none", "not judged"],
      ] : []),
      test: (index, judge, value) => (at) => VERDICTS[judge.verdict[at]] === value,
    },
    {
      key: "code",
      label: "Error code",
      options: (index) => (index.judges.some((judge) => judge.flags)
        ? [1, 2, 3, 4, 5, 6].map((code) => [`E${code}`, `E${code}`]).concat([["none", "none set"]])
        : []),
      test: (index, judge, value) => (at) => {
        const flags = flagsOf(judge, at);
        return flags !== null && (value === "none" ? !flags.length : flags.includes(value));
      },
    },
    {
      key: "behaviour",
      label: "After a broken tool",
      options: (index) => (index.judges.some((judge) => judge.category)
        ? CATEGORIES.map((name, at) => [String(at + 1), `${at + 1} ${name}`])
        : []),
      test: (index, judge, value) => (at) =>
        Boolean(judge.category) && judge.category[at] === Number(value),
    },
    {
      key: "reason",
      label: "Unscored because",
      options: (index) => [...index.reasons].sort(collate).map((reason) => [reason, reason]),
      test: (index, judge, value) => (at) => reasonOf(index, judge, at) === value,
    },
    {
      key: "human",
      label: "Humans",
      options: (index) => (/[^-]/.test(index.human.verdict) ? [
        ["differs", "verdict differs"], ["agrees", "verdict agrees"],
        ["grade", "grade differs"], ["flags", "flags differ"], ["split", "raters are split"],
        ["labelled", "labelled"], ["unlabelled", "not labelled"],
      ] : []),
      test: (index, judge, value) => testFor(AGAINST_HUMANS, value, index.human, judge),
    },
    {
      key: "change",
      label: "Between judges",
      options: (index) => (index.changes ? [
        ["any", "anything differs"], ["verdict", "verdicts differ"],
        ["worse", "correct → incorrect"], ["better", "incorrect → correct"],
        ["grade", "only the grade differs"], ["flags", "flags differ"],
        ["lost", "only one gave a verdict"],
      ] : []),
      test: (index, judge, value) => {
        if (value === "verdict") return (at) => verdictsDiffer(index, at);
        return index.changes ? testFor(COMPARED, value, ...pairOf(index)) : never;
      },
    },
    {
      key: "doubt",
      label: "Certainty",
      options: (index) => (index.judges.some((judge) => judge.entropy) ? [
        ["0.9", "low: doubt ≥ 0.9 bit"], ["0.7", "doubt ≥ 0.7 bit"], ["0.4", "doubt ≥ 0.4 bit"],
        ["0.01", "any doubt"],
      ] : []),
      test: (index, judge, value) => (at) =>
        Boolean(judge.entropy) && judge.entropy[at] !== null && judge.entropy[at] >= Number(value),
    },
    {
      key: "overridden",
      label: "Overridden by a rule",
      options: (index) => yesNo(index, "overridden"),
      test: (index, judge, value) => (at) => isMarked(judge, at, "overridden") === (value === "yes"),
    },
    {
      key: "inconsistent",
      label: "Contradicts itself",
      options: (index) => yesNo(index, "inconsistent"),
      test: (index, judge, value) => (at) =>
        isMarked(judge, at, "inconsistent") === (value === "yes"),
    },
  ];

  function yesNo(index, mark) {
    const found = index.judges.some((judge) => judge.marks?.some((m, at) => isMarked(judge, at, mark)));
    return found ? [["yes", "yes"], ["no", "no"]] : [];
  }

  function groupFilter(name) {
    return {
      key: `g.${name}`,
      label: name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " "),
      options: (index) => named(index.groups[name]),
      test: (index, judge, value) => isNamed(index.groups[name], value),
    };
  }

  // The filters that these items can be told apart by.
  function filtersOf(index) {
    const all = [...FILTERS, ...Object.keys(index.groups).sort(collate).map(groupFilter)];
    return all.filter((filter) => filter.options(index).length);
  }

  // Search -----------------------------------------------------------------------------------

  function fold(text) {
    return text.normalize("NFKC").toLowerCase();
  }

  async function readTexts(index) {
    const blocks = index.blocks.texts.map((start, at) => readBlock(`texts-${at}`));
    const rows = (await Promise.all(blocks)).flat();
    const queries = new Map();
    index.texts = rows.map(([query, ...said], at) => {
      if (!queries.has(query)) queries.set(query, fold(query));
      const groups = Object.values(index.groups).map((group) => group.names[group.of[at]] ?? "");
      const own = [index.ids[at], index.modelOf(at), index.protocolOf(at) ?? "", ...groups, ...said];
      return { query: queries.get(query), own: fold(own.join("\n")) };
    });
  }

  function wordTest(index, query) {
    const words = fold(query).split(/\s+/u).filter(Boolean);
    return (at) => {
      const { query: asked, own } = index.texts[at];
      return words.every((word) => own.includes(word) || asked.includes(word));
    };
  }

  function needsTexts(index, state) {
    return Boolean(state.q && state.q.trim()) && index.texts === null;
  }

  // Order ------------------------------------------------------------------------------------

  function ranked(index) {
    if (index.ranks) return index.ranks;
    const order = [...Array(index.count).keys()];
    order.sort((a, b) => collate(index.ids[a], index.ids[b]) || collate(index.modelOf(a), index.modelOf(b)));
    index.ranks = new Float64Array(index.count);
    order.forEach((at, rank) => { index.ranks[at] = rank; });
    return index.ranks;
  }

  // Small keys first; NaN last.
  const SORTS = [
    { key: "", label: "as in the file", of: () => null },
    {
      key: "grade",
      label: "lowest grade first",
      of: (index, judge) => (at) => gradeOf(judge, at) ?? NaN,
    },
    {
      key: "doubt",
      label: "least certain first",
      of: (index, judge) => (at) => -(judge.entropy?.[at] ?? NaN),
    },
    {
      key: "human",
      label: "furthest from humans first",
      of: (index, judge) => (at) => -distance(judge, index.human, at),
    },
    {
      key: "change",
      label: "largest change first",
      of: (index) => {
        const pair = pairOf(index);
        return (at) => (pair ? -distance(...pair, at) - (COMPARED.worse(...pair)(at) ? 1e-6 : 0) : NaN);
      },
    },
    { key: "id", label: "by id", of: (index) => (at) => ranked(index)[at] },
  ];

  const OFFERED = {
    grade: (index) => index.judges.some((judge) => judge.grade),
    doubt: (index) => index.judges.some((judge) => judge.entropy),
    human: (index) => index.judges.length > 0 && /[^-]/.test(index.human.verdict),
    change: (index) => Boolean(index.changes),
  };

  function sortsOf(index) {
    return SORTS.filter((sort) => !OFFERED[sort.key] || OFFERED[sort.key](index));
  }

  function ordered(items, keyOfItem) {
    if (!keyOfItem) return items;
    const keys = new Map(items.map((at) => [at, keyOfItem(at)]));
    return items.sort((a, b) => {
      const [one, other] = [keys.get(a), keys.get(b)];
      if (Number.isNaN(one) || Number.isNaN(other)) {
        return Number.isNaN(one) - Number.isNaN(other) || a - b;
      }
      return one - other || a - b;
    });
  }

  // Numbers of the items that a state (key: value, as in the page's address) keeps, in its order.
  // Before it searches, the texts must have been read.
  function chosen(index, state) {
    const judge = judgeOf(index, state);
    const tests = filtersOf(index)
      .filter((filter) => state[filter.key])
      .map((filter) => filter.test(index, judge, state[filter.key]));
    if (state.q && state.q.trim()) tests.push(wordTest(index, state.q));
    const found = [];
    for (let at = 0; at < index.count; at += 1) {
      if (tests.every((test) => test(at))) found.push(at);
    }
    const sort = SORTS.find((one) => one.key === (state.sort || "")) ?? SORTS[0];
    return ordered(found, sort.of(index, judge));
  }

  Object.assign(apb, {
    CATEGORIES, VERDICTS, chosen, filtersOf, needsTexts, readTexts, sortsOf,
  });
})();
