"""Names of tools mean nothing: renaming all of them, with ``ends``, changes no fact."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from apbjudge.judge.source import JudgeTask
from apbjudge.protocols import protocol_of
from apbjudge.records import UNSOLVABLE_TYPES
from tests.support.rows import STRING, plan, read, step, tool

LISTED = ["Qx0q", "Qx1q", "Qx2q"]
NAMES = [*LISTED, "Qx3q"]
"""The last one is in no list."""
NEW_NAMES = (
    "Finish finish ask_user end handoff get_user_details return_items give-up web.search "
    "api/v2/book Übersetze step respond create_task human x"
).split()
VALUES: list[Any] = [
    *("x", "", 5, None, "TBD", "PREVIOUS_RESULT", "${step_2.id}", "result of step 2", "#E2"),
    *("$Qx0q.id", "$Qx1q", "{{Qx1q.id}}", "<Qx2q.items[0]>", "${Qx3q['id']}", "of Qx1q, step 3"),
]
TEXTS = ["", "Go on.", "1. Qx0q\n2. Qx1q", "1. Look.\n2. Tell.", "1. Qx1q.\n2. Qx0q, Qx1q!"]
REJECTS: Any = {"status": "REJECT", "reason": "no"}

arguments = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from(VALUES), max_size=2)
calls = st.lists(st.tuples(st.sampled_from(NAMES), arguments), max_size=3)
plans = st.builds(lambda made, text: plan(*made, text=text), calls, st.sampled_from(TEXTS))
steps = st.lists(st.builds(lambda made: step(*made), calls), min_size=1, max_size=2)


def _reply(draw: st.DrawFn, replies: st.SearchStrategy[Any]) -> str:
    parts = draw(st.lists(replies | st.just(REJECTS), min_size=1, max_size=2))
    between = draw(st.sampled_from(["\n", "\nor rather\n", "\nREJECT, but\n"]))
    return between.join(map(json.dumps, parts))


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    """Cases of every protocol, with replies that have every kind of fault."""
    form = draw(st.sampled_from(["Holistic", "Step-wise"]))
    is_plan = form == "Holistic"
    tools = [tool(name, {"a": STRING, "b": {"type": "integer"}}, ("a",)) for name in LISTED]
    if draw(st.booleans()):
        tools = [each | {"cost": at} for at, each in enumerate(tools)]
    reference: Any = draw(plans) if is_plan else draw(steps)
    some = st.lists(st.sampled_from(NAMES), unique=True, max_size=2)
    condition = draw(
        st.sampled_from(
            [
                {},
                {"extraneous_tool_names": draw(some)},
                {"unsolvable_type": draw(st.sampled_from(UNSOLVABLE_TYPES))} if is_plan else {},
                {} if is_plan else {"broken_tool_name": "Qx0q", "replacement_tool": "Qx1q"},
            ]
        )
    )
    stated = draw(st.sampled_from([{}, {"ends": draw(some)}]))
    solution = reference if is_plan else {"ground_truth_steps": reference}
    return {
        "id": "a",
        "tested_model": "m",
        "planning_regime": form,
        "query": "Do it.",
        "tools": tools,
        "trajectory_prefix": [] if is_plan else draw(steps),
        "prediction_horizon": None if is_plan else draw(st.sampled_from([1, 2])),
        "model_response": _reply(draw, plans if is_plan else steps | steps.map(lambda s: s[0])),
        **(solution if draw(st.booleans()) else {}),
        **condition,
        **stated,
    }


def _facts(row: Mapping[str, Any]) -> Any:
    """All that is known by rule: findings with certainty and place, category, and the rest."""
    item = read(row)
    protocol = protocol_of(item)
    rubric = protocol.rubric_for(item)
    found = protocol.find(item, rubric)
    facts = JudgeTask(item, protocol, rubric, found, b"", 0).common()
    shown = [(f.code, f.rule, f.certainty, f.where) for f in found]
    others = "plan_cost excess_cost uses_distractor matches_reference over_refusal".split()
    return protocol.category_of(item), shown, {name: facts[name] for name in others}


def _renamed(row: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """A row with other names everywhere, in calls as in prose."""
    longest = sorted(map(re.escape, names), key=len, reverse=True)
    whole = re.compile(rf"(?<![\w-])(?:{'|'.join(longest)})(?![\w-])")
    return json.loads(whole.sub(lambda match: names[match.group()], json.dumps(row)))


@given(row=rows(), new=st.permutations(NEW_NAMES))
def test_other_names_change_no_fact(row: dict[str, Any], new: list[str]) -> None:
    assert _facts(_renamed(row, dict(zip(NAMES, new, strict=False)))) == _facts(row)
