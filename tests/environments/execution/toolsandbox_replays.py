"""Episodes of ToolSandbox through the adapter, and through the package's own loop.

A program of its own, run by the interpreter that has the package, as the process of the
environment runs it: ``PYTHON toolsandbox_replays.py REQUEST`` writes a JSON object, with the tasks
for the options of the request and what came of its episodes, each in a process of its own. A step
of an episode is ``{"name", "arguments"}``, a call; a text, said to the user; or null, for the text
that the scenario's last milestone asks for.
"""

import importlib
import importlib.util
import json
import os
import signal
import sys
from pathlib import Path

HOSTED = Path(__file__).parents[3] / "src/apbjudge/environments/execution/hosted"


def load(name):
    spec = importlib.util.spec_from_file_location(f"hosted_{name}", HOSTED / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def in_child(work, *arguments):
    """What ``work`` gives in a process of its own, as JSON."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        signal.alarm(60)
        try:
            with os.fdopen(writing, "w") as file:
                json.dump(work(*arguments), file)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    os.wait()
    return json.loads(text)


def expected_text(evaluation):
    last = evaluation.milestone_matcher.milestones[-1]
    return last.snapshot_constraints[0].target_dataframe["content"][0]


def through_adapter(suite, task_id, steps):
    episode = suite.begin(task_id)
    before = episode.score()
    answers = []
    for step in steps:
        if isinstance(step, dict):
            answers.append(episode.call(step["name"], step["arguments"], "agent"))
        else:
            text = expected_text(episode._evaluation) if step is None else step
            answers.append(episode.say(text))
    after = episode.score()
    return {"before": before, "answers": answers, "after": after, "again": episode.score()}


def through_package(suite, task_id, steps):
    """The similarity and the turns of the same steps in the package's own loop."""
    contexts = importlib.import_module("tool_sandbox.common.execution_context")
    base = importlib.import_module("tool_sandbox.roles.base_role").BaseRole
    environment = importlib.import_module("tool_sandbox.roles.execution_environment")
    conversion = importlib.import_module("tool_sandbox.common.message_conversion")
    calls = importlib.import_module("openai.types.chat.chat_completion_message_tool_call")
    roles = contexts.RoleType
    scenario = suite._scenario(task_id)
    left = list(steps)

    class Agent(base):
        role_type = roles.AGENT

        def respond(self, ending_index=None):
            step = left.pop(0)
            if not isinstance(step, dict):
                text = expected_text(scenario.evaluation) if step is None else step
                message = conversion.Message(roles.AGENT, roles.USER, text)
                return self.add_messages([message])
            name, identifier = step["name"], f"id_{len(left)}"
            call = calls.ChatCompletionMessageToolCall(
                id=identifier,
                type="function",
                function=calls.Function(name=name, arguments=json.dumps(step["arguments"])),
            )
            source = conversion.openai_tool_call_to_python_code(
                call,
                set(self.get_available_tools()),
                contexts.get_current_context().get_execution_facing_tool_name(name),
            )
            message = conversion.Message(
                roles.AGENT,
                roles.EXECUTION_ENVIRONMENT,
                source,
                openai_tool_call_id=identifier,
                openai_function_name=name,
            )
            return self.add_messages([message])

    class User(base):
        role_type = roles.USER

        def respond(self, ending_index=None):
            end = (roles.USER, roles.EXECUTION_ENVIRONMENT, "end_conversation()")
            self.add_messages([conversion.Message(*end)])

    players = {
        roles.AGENT: Agent(),
        roles.USER: User(),
        roles.EXECUTION_ENVIRONMENT: environment.ExecutionEnvironment(),
    }
    played = scenario.play(players, task_id)
    result = scenario.evaluation.evaluate(played, scenario.max_messages)
    return {"similarity": float(result.similarity), "turns": result.turn_count}


def main(request):
    suite = load("toolsandbox").suite(request["options"])
    tasks = suite.tasks()
    references = {
        task["id"]: [gold for turn in task["reference"] for gold in turn] for task in tasks
    }
    episodes = []
    for task_id, given in request["episodes"]:
        # "reference" stands for the calls of the reference, whatever their number.
        steps = [
            each
            for step in given
            for each in (references[task_id] if step == "reference" else [step])
        ]
        episodes.append(
            in_child(through_adapter, suite, task_id, steps)
            | {"package": in_child(through_package, suite, task_id, steps)}
        )
    is_stable = tasks == suite.tasks()
    return {"version": suite.version, "tasks": tasks, "is_stable": is_stable, "episodes": episodes}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
