"""Replays gold actions of a domain through the adapter and the package's own evaluators.

A program of its own: the package warns where it is imported, and each episode needs a process.
``python tau2_replays.py OPTIONS NUMBER`` writes a line of JSON for each of the first tasks.
"""

import importlib
import importlib.util
import json
import os
import sys
import time
from pathlib import Path

import apbjudge

HOSTED = Path(apbjudge.__file__).parent / "environments" / "execution" / "hosted"


def load(name):
    spec = importlib.util.spec_from_file_location(f"hosted_{name}", HOSTED / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def in_child(work, *arguments):
    """What ``work`` gives in a process of its own, as JSON."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.write(writing, json.dumps(work(*arguments)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text)


def episode(suite, task, calls, *, says, environments):
    """The rewards of an episode: the adapter's before and after, and the package's."""
    started = time.perf_counter()
    current = suite.begin(task["id"])
    before = current.score()
    messages = importlib.import_module("tau2.data_model.message")
    trajectory = []
    for number, call in enumerate(calls):
        text, is_error = current.call(call["name"], call["arguments"], call["by"])
        current.score()  # which must not change what follows
        by = "user" if call["by"] == "user" else "assistant"
        made = messages.ToolCall(
            id=str(number), name=call["name"], arguments=call["arguments"], requestor=by
        )
        sender = messages.UserMessage if by == "user" else messages.AssistantMessage
        trajectory += [
            sender(role=by, tool_calls=[made]),
            messages.ToolMessage(
                id=str(number), role="tool", content=text, requestor=by, error=is_error
            ),
        ]
    for text in says:
        current.say(text)
        trajectory.append(messages.AssistantMessage(role="assistant", content=text))
    after = current.score()
    seconds = time.perf_counter() - started
    again = current.score()
    parts = package_rewards(suite._tasks[task["id"]], trajectory, environments)
    return {
        "before": before,
        "after": after,
        "is_stable": after == again,
        "package": parts,
        "calls": len(calls),
        "seconds": seconds,
    }


def package_rewards(task, trajectory, environments):
    """The package's rewards of a trajectory; its results must be those of the adapter.

    None where the package has none, as an assertion raises.
    """
    made = iter(environments)
    evaluators = {
        name: getattr(importlib.import_module(f"tau2.evaluator.evaluator_{module}"), name)
        for name, module in (
            ("EnvironmentEvaluator", "env"),
            ("CommunicateEvaluator", "communicate"),
            ("ActionEvaluator", "action"),
        )
    }
    try:
        environment = evaluators["EnvironmentEvaluator"].calculate_reward(
            environment_constructor=lambda **_: next(made), task=task, full_trajectory=trajectory
        )
    except ValueError as error:
        if "not found" not in str(error):
            raise
        return None  # an assertion about something that isn't there
    others = [
        (basis, evaluators[name].calculate_reward(task=task, full_trajectory=trajectory).reward)
        for basis, name in (("COMMUNICATE", "CommunicateEvaluator"), ("ACTION", "ActionEvaluator"))
    ]
    basis = {each.value for each in task.evaluation_criteria.reward_basis}
    parts = [environment.reward, *(reward for name, reward in others if name in basis)]
    total = 1.0
    for part in parts:
        total *= part
    db = environment.db_check.db_match if environment.db_check else None
    return {"reward": total, "environment": environment.reward, "db": db}


def main(options, number):
    started = time.perf_counter()
    suite = load("tau2").suite(options)
    print(json.dumps({"seconds": time.perf_counter() - started, "version": suite.version}))
    module = importlib.import_module(f"tau2.domains.{options['domain']}.environment")
    environments = [
        module.get_environment(solo_mode=suite._environment.solo_mode),
        module.get_environment(),
    ]
    kits = [kit for kit in (environments[1].tools, environments[1].user_tools) if kit]
    types = {name: kit.tool_type(name).value for kit in kits for name in kit.get_tools()}
    for task in suite.tasks()[:number]:
        gold = task["reference"][0]
        facts = suite._tasks[task["id"]].evaluation_criteria.communicate_info or []
        writes = [i for i, call in enumerate(gold) if types[call["name"]] == "write"]
        line = {"id": task["id"], "facts": len(facts), "writes": len(writes)}

        def run(calls, says, task=task):
            return in_child(run_episode, task, calls, says)

        def run_episode(task, calls, says):
            return episode(suite, task, calls, says=says, environments=environments)

        line["gold"] = run(gold, [f"It is {fact}." for fact in facts])
        line["nothing"] = run([], [])
        if writes:
            line["unfinished"] = run(gold[: writes[-1]] + gold[writes[-1] + 1 :], [])
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), int(sys.argv[2]))
