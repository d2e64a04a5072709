"""Measures what an episode costs: its process, its records, and the prompts of a model that acts.

    python benchmarks/execution.py                # 600 episodes
    python benchmarks/execution.py --episodes 3000

It is ``examples/own_benchmarks/storeroom.py``, whose calls take no time. The same gold
calls are made directly in this process, through ``execute`` without a model, and by a scripted
model that is asked for every step. Wall-clock seconds in one run, and the share of each in that of
the others.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "examples"))

from own_benchmarks import storeroom  # noqa: E402

from apbjudge import ScriptedClient, TestedModelSpec, execute  # noqa: E402
from apbjudge.llm.base import Request  # noqa: E402

SUITE = str(ROOT / "examples" / "own_benchmarks" / "storeroom.py")


def directly(trials: int) -> None:
    for _ in range(trials):
        for task, (_, calls) in storeroom.TASKS.items():
            episode = storeroom.Storeroom().begin(task)
            for name, arguments in calls:
                episode.call(name, arguments, "agent")
            episode.say(" ".join(storeroom.SAID.get(task, [])))
            assert episode.score()["reward"] == 1


def without_a_model(trials: int) -> None:
    run = execute(SUITE, mode="gold", trials=trials)
    assert all(row["is_correct"] for row in run.executed)


def by_a_model(trials: int) -> None:
    def reply(request: Request) -> str:
        user = str(request.messages[1]["content"])
        task = next(name for name, (query, _) in storeroom.TASKS.items() if query in user)
        calls, done = storeroom.TASKS[task][1], user.count('"role": "assistant"')
        if done == len(calls):
            return json.dumps({"role": "assistant", "content": "6", "tool_calls": []})
        name, arguments = calls[done]
        call = {"type": "function", "function": {"name": name, "arguments": arguments}}
        return json.dumps({"role": "assistant", "thought": "", "tool_calls": [call]})

    spec = TestedModelSpec(model="m/scripted", temperature=1)
    run = execute(SUITE, model=spec, client=ScriptedClient(reply), cache=False, trials=trials)
    assert all(row["is_correct"] for row in run.executed)


def seconds(work: Callable[[int], Any], trials: int) -> float:
    started = time.perf_counter()
    work(trials)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=600)
    trials = max(1, parser.parse_args().episodes // len(storeroom.TASKS))
    episodes = trials * len(storeroom.TASKS)
    without_a_model(1)  # imports
    works = (directly, without_a_model, by_a_model)
    figures = {work.__name__: seconds(work, trials) for work in works}
    for name, took in figures.items():
        print(f"{name:16} {took:7.2f} s  {1000 * took / episodes:6.2f} ms an episode")
    print(f"by_a_model / without_a_model: {figures['by_a_model'] / figures['without_a_model']:.2f}")


if __name__ == "__main__":
    main()
