"""Holds our PlanBench-XL environment against what the authors' data and runtime give.

    python examples/planbench_replays.py DATA_FOLDER

DATA_FOLDER is the retail folder of the released data (commit a0dacc2), which is not shipped here.
Paths, candidates and fingerprints of block plans are those of the authors' files and code; the
figures of the three replays were measured with their released runtime and evaluator. Exits with 1
where something differs. On another folder, such as ``examples/own_benchmarks/museum``, it prints
what comes out and compares nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from apbjudge.agents.environments.planbench import (
    BlockPlan,
    EpisodeConfig,
    PlanBenchDatabase,
    PlanBenchDialogue,
    PlanBenchRules,
    load_database,
    planbench_block_plan,
    planbench_paths,
)
from apbjudge.llm.base import Completion
from apbjudge.trajectories import Evaluation, EvaluatorSettings
from apbjudge.trajectories.planbench import PLANBENCH
from apbjudge.trajectories.planbench.data import PlanbenchTool, Query

RELEASED = 327
"""Queries of the released data."""
PATHS = 4313
CANDIDATES = 12_951
FINGERPRINTS = {
    "mixed": "cce6aaaf57ce",
    "longest": "dbed59ab5192",
    "shortest": "ea93b6ae8489",
}


class Expected(NamedTuple):
    """What a replay gives: right answers by two readings, and figures."""

    paper: int
    released: int
    turns: float
    edt: float
    egt_recall: float
    searches: int
    calls: int
    noisy: int


REPLAYS = {
    "a known path": Expected(327, 327, 12.6942, 5.8471, 0.56958, 1912, 1912, 0),
    "each stale sibling first": Expected(327, 216, 18.5413, 5.8471, 0.56958, 1912, 3824, 1912),
    "shortest path left, mixed": Expected(327, 327, 13.4709, 6.2355, 0.60690, 2039, 2039, 0),
}


def record_of(database: PlanBenchDatabase, query: Query) -> Mapping[str, Any]:
    """The record that a query speaks of: the right answer, and most of its inputs in the text."""

    def likeness(record: Mapping[str, Any]) -> tuple[bool, int]:
        right = same(record[query.target_datatype], query.correct_answer)
        known = [record.get(name) for name in query.input_datatypes]
        return right, sum(value is not None and str(value) in query.query_text for value in known)

    return max(database.records.values(), key=likeness)


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal as text or as numbers."""
    try:
        return str(one) == str(other) or float(one) == float(other)
    except (TypeError, ValueError):
        return False


def in_order(
    database: PlanBenchDatabase, names: Sequence[str], query: Query
) -> list[PlanbenchTool]:
    """The tools of a path in an order that works."""
    left, held, ordered = (
        [database.data.baseline[name] for name in names],
        {*query.input_datatypes},
        [],
    )
    while left:
        tool = next(tool for tool in left if tool.input_datatypes <= held)
        left.remove(tool)
        held.add(tool.output_datatype)
        ordered.append(tool)
    return ordered


def actions(
    database: PlanBenchDatabase, query: Query, path: Sequence[PlanbenchTool], *, stale: bool
) -> Iterator[str]:
    """What the agent writes: for each tool a search and a call, and then the answer."""
    record = record_of(database, query)
    for tool in path:
        search = {
            "meta_tool": "by_io_info",
            "input_information": sorted(tool.input_datatypes),
            "output_information": tool.output_datatype,
        }
        yield f"<retrieve_tools>{json.dumps(search)}</retrieve_tools>"
        siblings = database.siblings.get(tool.name, ())
        for called in [*(s for s in siblings if stale and s.noise_type == "stale"), tool]:
            arguments = {
                name: record[datatype]
                for name, datatype in called.surface_argument_to_datatype.items()
            }
            call = {"name": called.name, "arguments": arguments}
            yield f"<tool_call>{json.dumps(call)}</tool_call>"
    yield f"<final_answer>{query.correct_answer}</final_answer>"


def replay(
    folder: Path,
    database: PlanBenchDatabase,
    choose: Callable[[Query], Sequence[str]],
    *,
    plan: BlockPlan | None = None,
    stale: bool = False,
) -> list[Evaluation]:
    """Plays all queries and evaluates them."""
    rules = PlanBenchRules(database, EpisodeConfig(), plan)
    evaluator = PLANBENCH.evaluator(EvaluatorSettings(cases=folder))
    found: list[Evaluation] = []
    for query_id, query in database.data.queries.items():
        dialogue = PlanBenchDialogue(rules, query_id)
        for text in actions(database, query, in_order(database, choose(query), query), stale=stale):
            dialogue.answer(Completion(text=text, finish_reason="stop"))
        found.append(evaluator.evaluate(dialogue.trajectory()))
    return found


def result_of(found: Sequence[Evaluation]) -> Expected:
    """The figures of a replay."""

    def total(name: str) -> float:
        return sum(each.measures[name] for each in found)

    return Expected(
        int(total("correct (paper)")),
        int(total("correct (released)")),
        round(total("turns") / len(found), 4),
        round(total("EDT") / len(found), 4),
        round(total("EGT recall") / len(found), 5),
        int(total("searches")),
        int(total("calls")),
        int(total("noisy calls")),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data_folder", type=Path)
    folder: Path = parser.parse_args().data_folder
    database = load_database(folder)
    is_released, differ = len(database.data.queries) == RELEASED, 0

    def show(what: str, ours: object, theirs: object) -> None:
        nonlocal differ
        differ += is_released and ours != theirs
        print(f"{what:40} {ours}" + (f"  {theirs}" if is_released and ours != theirs else ""))

    started = time.perf_counter()
    found_paths = planbench_paths(data=folder)
    show("paths", sum(len(task.paths) for task in found_paths.tasks), PATHS)
    print(f"{'seconds for them':40} {time.perf_counter() - started:.1f}")
    plans = {
        setting: planbench_block_plan(data=folder, setting=setting) for setting in FINGERPRINTS
    }
    for setting, plan in plans.items():
        show(f"block plan, {setting}", plan.fingerprint[:12], FINGERPRINTS[setting])
    most = max(task.candidates for task in plans["mixed"].tasks.values())
    show("candidates of a task at most", most, CANDIDATES)

    def known(query: Query) -> Sequence[str]:
        return database.data.tasks[query.task_id].one_available_path

    def left(query: Query) -> Sequence[str]:
        blocked = plans["mixed"].tasks[query.task_id].blocked.keys()
        open_ = [p.tools for p in database.data.paths[query.task_id] if p.tools.isdisjoint(blocked)]
        return sorted(min(open_, key=len))

    started = time.perf_counter()
    replays = {
        "a known path": replay(folder, database, known),
        "each stale sibling first": replay(folder, database, known, stale=True),
        "shortest path left, mixed": replay(folder, database, left, plan=plans["mixed"]),
    }
    seconds = time.perf_counter() - started
    for name, found in replays.items():
        ours = result_of(found)
        for field, value in ours._asdict().items():
            show(f"{name}: {field}", value, getattr(REPLAYS[name], field))
    print(f"{'seconds for the replays, evaluated':40} {seconds:.1f}")
    print(f"{differ} differences" if is_released else "no released data: nothing was compared")
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
