// Counts how many items each option of the filters would leave, given the other filters in force.
// Each filter sorts the items into a few bins, so that all are counted in one pass.
(() => {
  "use strict";
  const apb = (globalThis.apb = globalThis.apb || {});
  const { filtersOf, judgeOf, testsOf } = apb;
  const [NONE, SEVERAL] = [-1, -2];

  // Bins -------------------------------------------------------------------------------------
  // ``of`` gives each item's bin, the first of which is -1; ``holds(bin, value)`` says whether the
  // items of a bin have an option. A column has a bin for each of its names.

  function columnBins({ names, of }) {
    const numbers = new Map(names.map((name, number) => [name, number]));
    return { of, bins: names.length, holds: (bin, value) => bin === numbers.get(value) };
  }

  // Of other filters a bin is the set of options that its items have: one bit for each.
  function optionBins(index, judge, filter) {
    const values = filter.options(index).map(([value]) => value);
    const tests = values.map((value) => filter.test(index, judge, value));
    const of = new Uint16Array(index.count);
    tests.forEach((test, bit) => {
      for (let at = 0; at < index.count; at += 1) if (test(at)) of[at] |= 1 << bit;
    });
    return { of, bins: 1 << tests.length, holds: (bin, value) => (bin >> values.indexOf(value)) & 1 };
  }

  // Made once for each judge that is looked at.
  function binsOf(index, state, filter) {
    const judge = judgeOf(index, state);
    const name = `${filter.key} ${index.judges.indexOf(judge)}`;
    if (!index.bins.has(name)) {
      const column = filter.column && filter.column(index, judge);
      index.bins.set(name, column ? columnBins(column) : optionBins(index, judge, filter));
    }
    return index.bins.get(name);
  }

  // Counting ---------------------------------------------------------------------------------

  // Which test alone an item fails: its number, NONE or SEVERAL.
  function failed(tests, at) {
    let found = NONE;
    for (let number = 0; number < tests.length; number += 1) {
      if (tests[number].test(at)) continue;
      if (found !== NONE) return SEVERAL;
      found = number;
    }
    return found;
  }

  function tallied(index, tests, facets) {
    const alone = tests.map(({ key }) => facets.filter((facet) => facet.key === key));
    for (let at = 0; at < index.count; at += 1) {
      const number = failed(tests, at);
      if (number === SEVERAL) continue;
      for (const { of, tally } of number === NONE ? facets : alone[number]) tally[of[at] + 1] += 1;
    }
    return facets;
  }

  function counted({ bins, holds, tally }, value) {
    let found = 0;
    for (let bin = -1; bin < bins; bin += 1) {
      if (tally[bin + 1] && (value === "" || holds(bin, value))) found += tally[bin + 1];
    }
    return found;
  }

  // Gives back count(key, value): how many items a filter would leave at a value, "" for all.
  function facetCounts(index, state) {
    const facets = filtersOf(index).map((filter) => {
      const bins = binsOf(index, state, filter);
      return { key: filter.key, ...bins, tally: new Uint32Array(bins.bins + 1) };
    });
    tallied(index, testsOf(index, state), facets);
    const byKey = new Map(facets.map((facet) => [facet.key, facet]));
    return (key, value) => counted(byKey.get(key), value);
  }

  Object.assign(apb, { facetCounts });
})();
