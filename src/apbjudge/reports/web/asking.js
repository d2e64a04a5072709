// Owns the questions that can be asked of the list: filters, search and order. Nothing here
// touches what is shown.
(() => {
  "use strict";
  const apb = (globalThis.apb = globalThis.apb || {});
  const {
    distance, flagBits, flagDistance, gradeDistance, gradeOf, isMarked, isVerdict, judgeOf,
    pairOf, readBlock, verdictsDiffer,
  } = apb;
  const VERDICTS = { c: "correct", x: "incorrect", u: "unscored", "-": "none" };
  const CATEGORIES = ["replacement", "alternative", "retry", "refusal", "other"];

  // Filters ----------------------------------------------------------------------------------
  // ``options`` gives [value, text] pairs (none: the filter is not offered), ``test`` the test of
  // an item's number for a chosen value. ``judge`` is the judge that is looked at. A filter by
  // names has their ``column`` too: the names, and ``of`` each item the number of its own.

  function named(key, label, column) {
    return {
      key,
      label,
      column,
      options: (index) => namesOf(column(index)),
      test: (index, judge, value) => isNamed(column(index, judge), value),
    };
  }

  function namesOf(column) {
    const names = [...column.names].sort(collate).map((name) => [name, name]);
    return names.length > 1 || column.of.includes(-1) ? names : [];
  }

  function isNamed(column, value) {
    const number = column.names.indexOf(value);
    return number < 0 ? never : (at) => column.of[at] === number;
  }

  // Why each item has no verdict; a judge that always has one has no column of its own.
  function reasonsOf(index, judge) {
    return { names: index.reasons, of: judge.reason ?? new Int16Array(index.count).fill(-1) };
  }

  // Codes are the bits of one number; ``none`` stands for those that were asked, with no bit.
  function codeTest(codes, judge, value) {
    const bit = value === "none" ? 0 : 1 << codes.indexOf(value);
    if (value !== "none" && !codes.includes(value)) return never;
    return (at) => {
      const bits = flagBits(judge, at);
      return bits !== null && (bit ? (bits & bit) > 0 : bits === 0);
    };
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
    named("tested", "Tested model", (index) => index.models),
    named("protocol", "Protocol", (index) => index.protocols),
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
        ? [...index.codes.map((code) => [code, code]), ["none", "none set"]]
        : []),
      test: (index, judge, value) => codeTest(index.codes, judge, value),
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
      ...named("reason", "Unscored because", reasonsOf),
      options: (index) => [...index.reasons].sort(collate).map((reason) => [reason, reason]),
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
      key: "uncertainty",
      label: "Certainty",
      options: (index) => (index.judges.some((judge) => judge.entropy) ? [
        ["0.9", "low: uncertainty ≥ 0.9 bit"], ["0.7", "uncertainty ≥ 0.7 bit"], ["0.4", "uncertainty ≥ 0.4 bit"],
        ["0.01", "any uncertainty"],
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
    const label = name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
    return named(`g.${name}`, label, (index) => index.groups[name]);
  }

  // The filters that these items can be told apart by; found once.
  function filtersOf(index) {
    const all = () => [...FILTERS, ...Object.keys(index.groups).sort(collate).map(groupFilter)];
    index.filters ??= all().filter((filter) => filter.options(index).length);
    return index.filters;
  }

  // Search -----------------------------------------------------------------------------------

  function fold(text) {
    return text.normalize("NFKC").toLowerCase();
  }

  // Read once, however often it is asked for meanwhile.
  function readTexts(index) {
    index.reading ??= readAll(index);
    return index.reading;
  }

  async function readAll(index) {
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

  // Looks at each item once, and remembers it until something else is searched for.
  function wordTest(index, query) {
    const words = fold(query).split(/\s+/u).filter(Boolean);
    if (index.search?.query !== query) index.search = { query, found: new Int8Array(index.count) };
    const { found } = index.search;
    return (at) => {
      if (!found[at]) found[at] = hasWords(index.texts[at], words) ? 1 : -1;
      return found[at] > 0;
    };
  }

  function hasWords({ query, own }, words) {
    return words.every((word) => own.includes(word) || query.includes(word));
  }

  function isSearch(state) {
    return Boolean(state.q && state.q.trim());
  }

  function needsTexts(index, state) {
    return isSearch(state) && index.texts === null;
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
      key: "uncertainty",
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
    uncertainty: (index) => index.judges.some((judge) => judge.entropy),
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

  // The tests of a state (key: value, as in the page's address), the slowest last. Nothing is
  // searched before the texts have been read.
  function testsOf(index, state) {
    const judge = judgeOf(index, state);
    const tests = filtersOf(index)
      .filter(({ key }) => state[key])
      .map(({ key, test }) => ({ key, test: test(index, judge, state[key]) }));
    const searched = isSearch(state) && index.texts ? [wordTest(index, state.q)] : [];
    return [...tests, ...searched.map((test) => ({ key: "q", test }))];
  }

  // Numbers of the items that a state keeps, in its order.
  function chosen(index, state) {
    const tests = testsOf(index, state);
    const found = [];
    for (let at = 0; at < index.count; at += 1) {
      if (tests.every(({ test }) => test(at))) found.push(at);
    }
    const sort = SORTS.find((one) => one.key === (state.sort || "")) ?? SORTS[0];
    return ordered(found, sort.of(index, judgeOf(index, state)));
  }

  Object.assign(apb, {
    CATEGORIES, VERDICTS, chosen, filtersOf, needsTexts, readTexts, sortsOf, testsOf,
  });
})();
