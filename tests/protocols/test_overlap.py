from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.protocols.overlap import Duplicates, near_duplicates, words
from apbjudge.protocols.prompt_leaks import mentions
from apbjudge.records import Row


def test_a_tool_that_is_called_as_a_word_is_named_only_as_a_tool() -> None:
    named = ("please `search` for it", "the search tool", "research, then search tool")
    assert all(mentions(text, "search") for text in named)
    assert not mentions("search", "search")


def _naive_twins(queries: list[str], kinds: list[int]) -> dict[int, tuple[str, float, bool]]:
    """Every two cases compared, by sets of tuples."""
    listed = [words(query) for query in queries]
    runs = [{tuple(t[i : i + 5]) for i in range(max(0, len(t) - 4))} for t in listed]
    twins: dict[int, tuple[str, float, bool]] = {}
    for later in range(len(queries)):
        similarity = {}
        for earlier in range(later):
            is_equal = listed[later] == listed[earlier]
            is_long = min(len(listed[later]), len(listed[earlier])) >= 8
            if listed[later] and kinds[later] == kinds[earlier] and (is_equal or is_long):
                shared, either = runs[later] & runs[earlier], runs[later] | runs[earlier]
                similarity[earlier] = 1.0 if is_equal else len(shared) / len(either)
        best = max(similarity, key=lambda at: similarity[at], default=0)
        if similarity.get(best, 0.0) >= 0.8:
            twins[later] = str(best), similarity[best], listed[later] == listed[best]
    return twins


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(2, 40), st.sampled_from([0, 1, 9, 60]))
def test_repeated_cases_are_those_of_the_definition(seed: int, n: int, length: int) -> None:
    """Templates, copies and changes by some words, of two kinds, against all pairs."""
    rng = Random(seed)
    template = [f"w{i}" for i in range(length // 2)]
    queries, kinds = list[str](), [rng.randrange(2) for _ in range(n)]
    for _ in range(n):
        text = template + [f"x{rng.randrange(2000)}" for _ in range(length - len(template))]
        if queries and rng.random() < 0.6:
            text = rng.choice(queries).split()
            for _ in range(rng.choice([0, 1, 1, len(text) // 20])):
                text.insert(rng.randrange(len(text) + 1), rng.choice("Éßz"))
        queries.append(" ".join(text))
    duplicates = Duplicates[int]()
    for at, (query, kind) in enumerate(zip(queries, kinds, strict=True)):
        tools = [{"name": f"tool{kind}", "description": ""}]
        row = {"id": str(at), "planning_regime": "Holistic", "query": query, "tools": tools}
        duplicates.add(Row(row, at).to_case(), at)
    assert {at: tuple(twin) for at, twin in duplicates.twins()} == _naive_twins(queries, kinds)
    others, texts = queries[: n // 2], queries[n // 2 :]
    assert [*near_duplicates(texts, others)] == [
        at
        for at, text in enumerate(texts)
        if any(_naive_twins([other, text], [0, 0]) for other in others)
    ]
