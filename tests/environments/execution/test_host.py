"""What a suite's process may not do, and that nothing is lost when a tool does it all the same."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from apbjudge.environments.execution.host import HostedEnvironment, Limits, StoppedError, WorldError
from apbjudge.environments.execution.suites import Suite, open_suite
from apbjudge.errors import InputError, OptionError

QUICK = Limits(seconds=1, cpu_seconds=5, memory_mb=1024)


def begun(suite: Suite, task: str = "three") -> HostedEnvironment:
    environment = suite.environment()
    environment.reset(task)
    return environment


def test_calls_change_the_world_and_its_score(toy: Suite) -> None:
    environment = begun(toy)
    assert environment.score().reward == 0
    seen = environment.call("add", {"n": 3})
    assert (seen.content, seen.is_error) == ('{"count": 3, "list": [3]}', False)
    assert environment.score().reward == 1
    assert dict(environment.score().details) == {"count": 3}
    environment.close()


def test_episodes_know_nothing_of_each_other(toy: Suite) -> None:
    one, other = begun(toy), begun(toy)
    one.call("add", {"n": 2})
    assert other.call("read", {}).content == "0"
    assert one.call("read", {}).content == "2"
    one.close()
    other.close()


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("subtract", {}, "there is no tool 'subtract'"),
        ("__class__", {}, "there is no tool '__class__'"),
        ("add", {}, "the arguments do not fit"),
        ("add", {"n": "three; import os"}, "the arguments do not fit"),
        ("add", {"n": [3]}, "the arguments do not fit"),
    ],
)
def test_a_call_that_fits_no_tool_does_not_reach_the_suite(
    toy: Suite, name: str, arguments: dict[str, object], said: str
) -> None:
    environment = begun(toy)
    seen = environment.call(name, arguments)
    assert seen.is_error
    assert said in seen.content
    assert environment.state() == 0
    assert environment.snapshot() == ("three", ())
    environment.close()


def test_what_a_tool_raises_is_an_observation(toy: Suite) -> None:
    environment = begun(toy)
    seen = environment.call("fail", {})
    assert (seen.content, seen.is_error) == ("Error: nothing there", True)
    environment.close()


def test_a_tool_may_not_write_or_remove_files(toy: Suite, tmp_path: Path) -> None:
    path = tmp_path / "precious.txt"
    path.write_text("precious")
    environment = begun(toy)
    for name, there in (("write", path), ("write", tmp_path / "new.txt"), ("remove", path)):
        seen = environment.call(name, {"path": str(there)})
        assert seen.is_error
        assert "a tool may not" in seen.content
    assert [each.name for each in tmp_path.iterdir()] == ["precious.txt"]
    assert path.read_text() == "precious"
    environment.close()


@pytest.mark.parametrize("how", ["fork", "run", "system", "c"])
def test_a_tool_may_not_start_anything(toy: Suite, how: str) -> None:
    environment = begun(toy)
    environment.call("add", {"n": 2})
    seen = environment.call("spawn", {"how": how})
    assert seen.is_error
    assert "a tool may not do this" in seen.content
    assert environment.call("read", {}).content == "2"
    environment.close()


def test_a_tool_may_not_connect(toy: Suite) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        environment = begun(toy)
        seen = environment.call("connect", {"port": server.getsockname()[1]})
        assert seen.is_error
        assert "a tool may not do this: socket." in seen.content
        environment.close()


def test_the_environment_holds_no_keys(toy: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with open_suite("toy") as suite:
        environment = begun(suite)
        assert environment.call("environment", {}).content == "{'PYTHONHASHSEED': '0'}"
        environment.close()


def test_an_observation_is_capped(toy: Suite) -> None:
    environment = begun(toy)
    content = environment.call("talk", {"n": 1_000_000}).content
    assert content.startswith("x" * 65_536 + "… (934464 more characters)")
    environment.close()


@pytest.mark.parametrize(
    ("name", "arguments"), [("power", {"a": 9, "b": 9, "c": 9}), ("wait", {}), ("crash", {})]
)
def test_a_tool_that_has_to_be_stopped_is_an_error_and_nothing_is_lost(
    toy: Suite, name: str, arguments: dict[str, int]
) -> None:
    with open_suite("toy", limits=QUICK) as suite:
        environment = begun(suite)
        environment.call("add", {"n": 2})
        seen = environment.call(name, arguments)
        assert seen.is_error
        assert seen.content.startswith(f"Error: {name} was stopped")
        environment.call("add", {"n": 1})
        assert environment.score().reward == 1
        assert [each[1] for each in environment.snapshot()[1]] == ["add", "add"]
        environment.close()


def test_memory_is_bounded(toy: Suite) -> None:
    with open_suite("toy", limits=QUICK) as suite:
        environment = begun(suite)
        seen = environment.call("hog", {"mib": 4096})
        assert seen.is_error
        assert environment.call("hog", {"mib": 1}).content == str(1 << 20)
        environment.close()


def test_a_state_is_gone_back_to(toy: Suite) -> None:
    environment = begun(toy)
    environment.call("add", {"n": 2})
    before = environment.snapshot()
    environment.call("add", {"n": 5})
    environment.restore(before)
    assert environment.state() == 2
    environment.close()


def test_doing_nothing_is_worth_something_where_nothing_is_to_be_done(toy: Suite) -> None:
    assert {task: toy.null_reward(task) for task in toy.tasks} == {
        "three": 0.0,
        "five": 0.0,
        "none": 1.0,
    }


def test_tasks_are_cases(toy: Suite) -> None:
    case = toy.case("three")
    assert case.query == "Bring the counter to 3."
    assert case.reference is not None
    assert [call.name for call in case.reference.calls] == ["add"]


def test_an_unknown_suite_option_or_interpreter_is_one_line(toy: Suite) -> None:
    with pytest.raises(OptionError, match=r"^ENV: expected tau2-airline, .* got 'chess'$"):
        open_suite("chess")
    with pytest.raises(OptionError, match=r"^--with users: expected user, got this name$"):
        open_suite("toy", {"users": "1"})
    with pytest.raises(OptionError, match=r"^ENV: .* program, got no file 'no.py'$"):
        open_suite("no.py")
    with pytest.raises(OptionError, match=r"^python: expected an interpreter, got /no/python"):
        open_suite("toy", python="/no/python")
    with pytest.raises(InputError, match=r"RuntimeError: nothing works$"):
        open_suite("toy", {"user": "broken"})
    with pytest.raises(OptionError, match=r"^--with: domain is settled by the name tau2-retail$"):
        open_suite("tau2-retail", {"domain": "airline"})


def test_a_package_that_is_not_there_is_one_line(toy: Suite) -> None:
    with pytest.raises(OptionError, match=r"^ENV: its package is not installed"):
        open_suite("toolsandbox", python=sys.executable)


def test_a_host_that_is_gone_is_said(toy: Suite) -> None:
    environment = begun(toy)
    environment.call("add", {"n": 1})
    host = toy._host
    host.close()
    other = toy.environment()
    other.reset("five")
    with pytest.raises(StoppedError):
        other.score()
    environment.close()


def test_nothing_is_left_when_the_parent_is_killed(toy: Suite, tmp_path: Path) -> None:
    program = tmp_path / "parent.py"
    program.write_text(
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from apbjudge.environments.execution.host import Host\n"
        f"host = Host(Path({str(Path(__file__).parent / 'toy.py')!r}), {{}})\n"
        "child = host.episode()\n"
        "child.ask('begin', 'three')\n"
        "print(child._pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    os.kill(child, 0)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            break
        os.sched_yield()
    else:
        os.kill(child, signal.SIGKILL)
        pytest.fail("the episode outlives its parent")


def test_a_fault_of_the_suite_is_no_fault_of_the_agent(toy: Suite) -> None:
    environment = begun(toy)
    environment._task = "unknown"
    with pytest.raises(WorldError, match="KeyError"):
        environment.score()
    environment.close()
