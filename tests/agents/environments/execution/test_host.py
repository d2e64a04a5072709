"""What a benchmark's process may not do, and that nothing is lost when a tool does it."""

import ast
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from apbjudge.agents.environments.benchmarks import open_hosted
from apbjudge.agents.environments.execution import host, hosted
from apbjudge.agents.environments.execution.benchmark import HostedBenchmark, HostedEnvironment
from apbjudge.agents.environments.execution.host import StoppedError
from apbjudge.agents.environments.execution.sandbox import Isolation
from apbjudge.errors import InputError, OptionError, PluginError
from tests.support.server import PATIENCE_S

from .conftest import TOY

ROOT = Path(__file__).parents[4]
NARROW = Isolation(call_seconds=PATIENCE_S, cpu_seconds=5, memory_mb=1024)


def begun(benchmark: HostedBenchmark, task: str = "three") -> HostedEnvironment:
    environment = benchmark.environment()
    environment.reset(task)
    return environment


def hurried(environment: HostedEnvironment) -> HostedEnvironment:
    """The same, whose process has a moment for a call; the next process has all the time."""
    child = environment._child
    assert child is not None
    assert child._seconds == NARROW.call_seconds
    child._seconds = 0.2
    return environment


def test_calls_change_the_world_and_its_score(toy: HostedBenchmark) -> None:
    environment = begun(toy)
    assert environment.score().reward == 0
    seen = environment.call("add", {"n": 3})
    assert (seen.content, seen.is_error) == ('{"count": 3, "list": [3]}', False)
    assert environment.score().reward == 1
    assert dict(environment.score().details) == {"count": 3}
    before, other = environment.snapshot(), begun(toy)
    assert other.call("read", {}).content == "0"
    environment.call("add", {"n": 5})
    environment.restore(before)
    assert environment.state() == 3
    environment.close()
    other.close()
    assert {task: toy.null_reward(task) for task in toy.tasks} == {
        "three": 0.0,
        "five": 0.0,
        "none": 1.0,
    }
    case = toy.case("three")
    assert case.query == "Bring the counter to 3."
    assert case.reference is not None
    assert [call.name for call in case.reference.calls] == ["add"]


def test_a_call_that_fits_no_tool_does_not_reach_the_suite(environment: HostedEnvironment) -> None:
    assert "there is no tool '__class__'" in environment.call("__class__", {}).content
    assert "the arguments do not fit: lacks n" in environment.call("add", {}).content
    seen = environment.call("add", {"n": "three; import os"})
    assert (seen.is_error, "the arguments do not fit" in seen.content) == (True, True)
    assert environment.state() == 0
    assert environment.snapshot() == ("three", ())


@pytest.fixture
def environment(toy: HostedBenchmark) -> Iterator[HostedEnvironment]:
    """An episode that has begun."""
    begun_one = begun(toy)
    yield begun_one
    begun_one.close()


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="about Linux")


@pytest.fixture
def held(toy: HostedBenchmark) -> HostedBenchmark:
    """The benchmark in the sandbox."""
    if toy.described["sandbox"] != "bubblewrap":
        pytest.skip(f"bubblewrap can't be used here: {toy.described}")
    return toy


def processes(benchmark: HostedBenchmark) -> list[int]:
    """All processes of a benchmark, from bubblewrap or the host on; those of episodes come last."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
    found = [benchmark._host._process.pid]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for_the_end(pids: list[int]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while any(map(is_there, pids)):
        assert time.monotonic() < deadline, "a process outlives the run"
        os.sched_yield()


@pytest.mark.usefixtures("held")
def test_a_tool_may_not_change_files(environment: HostedEnvironment, tmp_path: Path) -> None:
    path = tmp_path / "precious.txt"
    path.write_text("precious")
    for name, there in (
        ("write", path),
        ("write", tmp_path / "new.txt"),
        ("write", Path(__file__).parent / "new.txt"),
        *(("write", Path(folder, "new.txt")) for folder in ("/", "/tmp", "/dev", "/dev/shm", ".")),
        ("remove", path),
        ("remove", Path(__file__)),
        ("look_at", path),
    ):
        assert environment.call(name, {"path": str(there)}).is_error, (name, there)
    for how in ("fifo", "database"):
        assert environment.call("make", {"how": how, "path": str(tmp_path / "new")}).is_error
    assert [each.name for each in tmp_path.iterdir()] == ["precious.txt"]
    assert path.read_text() == "precious"


@pytest.mark.usefixtures("held")
def test_a_tool_reads_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    with subprocess.Popen(["sleep", "60"]) as other, open_hosted(TOY) as benchmark:
        environment, sibling = begun(benchmark), begun(benchmark)
        assert sibling.state() == 0
        assert environment.call("keys", {}).content == "[]"
        for pid in processes(benchmark):
            assert b"sk-planted" not in Path(f"/proc/{pid}/environ").read_bytes()
        for pid in (os.getpid(), other.pid, "self"):
            assert environment.call("look_at", {"path": f"/proc/{pid}/environ"}).is_error
        names = set(ast.literal_eval(environment.call("environment", {}).content))
        assert names == {"PYTHONHASHSEED", "PWD"}
        environment.close()
        sibling.close()
        other.kill()


def test_files_with_keys_beside_a_suite_are_not_shown(tmp_path: Path) -> None:
    read = "Episode.call = lambda *_: (open(HERE + '/.env').read(), False)"
    program = write_benchmark(tmp_path, f"HERE = {str(tmp_path)!r}\n{read}")
    (tmp_path / ".env").write_text("KEY=sk-planted")
    (tmp_path / "data.txt").write_text("data")
    with open_hosted(program) as benchmark:
        if benchmark.described["sandbox"] == "none":
            pytest.skip("bubblewrap can't be used here")
        environment = begun(benchmark, "a")
        assert environment.call("add", {}).is_error
        environment.close()
    Path(program).write_text(Path(program).read_text().replace("/.env", "/data.txt"))
    with open_hosted(program) as benchmark:
        environment = begun(benchmark, "a")
        assert environment.call("add", {}).content == "data"
        environment.close()


def test_a_tool_may_not_connect(held: HostedBenchmark, tmp_path: Path) -> None:
    name = f"\0apbjudge-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as path,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        path.bind(str(tmp_path / "socket"))
        abstract.bind(name)
        for server in (tcp, path, abstract):
            server.listen()
            address = server.getsockname()
            address = address.decode() if isinstance(address, bytes) else address
            with socket.socket(server.family) as ours:  # which from outside works
                ours.connect(address)
                server.setblocking(True)
                server.accept()[0].close()
                server.setblocking(False)
            environment = begun(held)
            arguments = {"family": int(server.family), "address": address}
            assert environment.call("connect", arguments).is_error
            with pytest.raises(BlockingIOError):
                server.accept()
            environment.close()


def test_episodes_can_not_reach_each_other(held: HostedBenchmark) -> None:
    one, other = begun(held), begun(held)
    one.call("add", {"n": 2})
    child = one._child
    arguments = {"family": int(socket.AF_UNIX), "address": "\0meeting"}
    assert not one.call("listen", {"at": "meeting"}).is_error
    assert not one.call("connect", arguments).is_error
    assert other.call("connect", arguments).is_error
    other.call("kill_all", {})
    assert one.call("read", {}).content == "2"
    assert one._child is child
    one.close()
    other.close()


def test_what_a_suite_starts_ends_with_it(held: HostedBenchmark, tmp_path: Path) -> None:
    daemon = "import os, time\nif os.fork() == 0: os.setsid(); time.sleep(600)\n"
    with open_hosted(write_benchmark(tmp_path, daemon)) as benchmark:
        environment = begun(benchmark, "a")
        environment.score()
        started = processes(benchmark)
        assert len(started) == 6  # bubblewrap twice, host, daemon, keeper, episode
        environment.close()
    wait_for_the_end(started)


@pytest.mark.slow
@on_linux
@pytest.mark.skipif(os.getuid() != 0, reason="these tests run as a user already")
def test_the_same_holds_for_a_user(held: HostedBenchmark) -> None:
    """The attacks above, by ``nobody``, where that user can reach the interpreter and the tests."""
    user: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []}
    with TemporaryDirectory() as home:
        os.chown(home, 65534, 65534)
        variables = {
            "HOME": home,
            "PATH": os.environ["PATH"],
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
        }
        try:
            reach = [sys.executable, "-c", f"import pytest, os; os.stat({__file__!r})"]
            subprocess.run(reach, env=variables, check=True, capture_output=True, **user)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"another user can't reach the interpreter or the tests: {error}")
        names = (
            "may_not or keys or reach_each or starts_ends or stopped_or_killed or parent_is_killed"
        )
        where = ["-n0", "-p", "no:cacheprovider", f"--basetemp={home}/tests"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-rs", *where, "-k", names, __file__],
            cwd=ROOT,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            **user,
        )
    assert done.returncode == 0, done.stdout
    assert "can't be used here" not in done.stdout


@on_linux
@pytest.mark.parametrize(("sandbox", "how"), [("auto", signal.SIGSTOP), ("none", signal.SIGKILL)])
@pytest.mark.slow
def test_a_host_that_is_stopped_or_killed_is_replaced(
    monkeypatch: pytest.MonkeyPatch, sandbox: Any, how: signal.Signals
) -> None:
    monkeypatch.setattr(host, "_GRACE_S", 1)
    limits = Isolation(call_seconds=4, sandbox=sandbox)
    with open_hosted(TOY, isolation=limits) as benchmark:
        environment = begun(benchmark)
        environment.call("add", {"n": 2})
        before = processes(benchmark)
        os.kill(before[-3], how)  # behind it are the keeper and the episode
        other = begun(benchmark, "five")
        other.call("add", {"n": 5})
        assert other.score().reward == 1
        assert before[0] not in processes(benchmark)
        environment.call("add", {"n": 1})
        assert environment.score().reward == 1
        other.close()
        environment.close()
        wait_for_the_end(before)


def test_without_bubblewrap_one_warning_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    monkeypatch.setenv("PATH", str(tmp_path))
    said: list[str] = []
    with open_hosted(TOY, isolation=NARROW, warn=said.append) as benchmark:
        assert benchmark.described["sandbox"] == "none"
        environment = begun(benchmark)
        environment.call("add", {"n": 3})
        names = set(ast.literal_eval(environment.call("environment", {}).content))
        assert names <= {"PYTHONHASHSEED"}
        assert hurried(environment).call("wait", {}).content.startswith("Error: wait was stopped")
        assert environment.call("hog", {"mib": 4096}).is_error
        assert environment.call("write", {"path": str(tmp_path / "new.txt")}).is_error
        assert environment.score().reward == 1
        environment.close()
    assert len(said) == 1
    assert "tools run without a sandbox" in said[0]
    assert "bwrap is not installed" in said[0]
    required = Isolation(sandbox="required")
    with pytest.raises(OptionError, match=r"^--sandbox required: .* bwrap is not installed$"):
        open_hosted(TOY, isolation=required)
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    with pytest.raises(OptionError, match=r"can't be used: bwrap: No permissions$"):
        open_hosted(TOY, isolation=required)


def test_whatever_a_tool_raises_is_an_error_of_its_call(environment: HostedEnvironment) -> None:
    environment.call("add", {"n": 2})
    for call, said in (
        (("fail", {}), "nothing there"),
        (("leave", {"how": "exit"}), "SystemExit"),
        (("leave", {"how": "interrupt"}), "KeyboardInterrupt"),
    ):
        seen = environment.call(*call)
        assert (seen.content, seen.is_error) == (f"Error: {said}", True)
    assert environment.call("read", {}).content == "2"


@on_linux
def test_other_lines_on_the_socket_end_the_call(environment: HostedEnvironment) -> None:
    environment.call("add", {"n": 2})
    for line in ("garbage", '{"result": []}\n1'):
        seen = environment.call("garble", {"line": line})
        assert seen.is_error
        assert seen.content.startswith("Error: garble was stopped")
        assert environment.call("read", {}).content == "2"


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("how", ["fork", "run", "system", "c"])
def test_a_tool_may_not_start_anything(environment: HostedEnvironment, how: str) -> None:
    environment.call("add", {"n": 2})
    assert environment.call("spawn", {"how": how}).is_error
    assert environment.call("read", {}).content == "2"


@pytest.mark.parametrize(
    ("name", "arguments"), [("power", {"a": 9, "b": 9, "c": 9}), ("crash", {})]
)
@pytest.mark.slow
def test_a_tool_that_has_to_be_stopped_is_an_error_and_nothing_is_lost(
    name: str, arguments: dict[str, int]
) -> None:
    with open_hosted(TOY, isolation=NARROW) as benchmark:
        environment = begun(benchmark)
        environment.call("add", {"n": 2})
        seen = hurried(environment).call(name, arguments)
        assert seen.is_error
        assert seen.content.startswith(f"Error: {name} was stopped")
        environment.call("add", {"n": 1})
        assert environment.score().reward == 1
        assert [each[1] for each in environment.snapshot()[1]] == ["add", "add"]
        environment.close()


@on_linux
def test_a_process_that_is_killed_between_calls_is_replaced_unseen() -> None:
    with open_hosted(TOY) as benchmark:  # its own, in which no earlier episode is about to end
        environment = begun(benchmark)
        environment.call("add", {"n": 2})
        *_, keeper, episode = processes(benchmark)
        os.kill(episode, signal.SIGKILL)
        wait_for_the_end([keeper, episode])
        seen = environment.call("add", {"n": 1})
        assert (seen.content, seen.is_error) == ('{"count": 3, "list": [3]}', False)
        environment.close()


def test_a_host_that_does_not_come_back_is_said(tmp_path: Path) -> None:
    program = write_benchmark(tmp_path, "")
    with open_hosted(program) as benchmark:
        benchmark._host._process.kill()
        benchmark._host._process.wait()
        Path(program).write_text("raise RuntimeError('gone')")
        with pytest.raises(StoppedError):
            begun(benchmark, "a").score()


@on_linux
@pytest.mark.parametrize(("sandbox", "call"), [("auto", "ignore_all"), ("none", "read")])
@pytest.mark.slow
def test_nothing_is_left_when_the_parent_is_killed(tmp_path: Path, sandbox: Any, call: str) -> None:
    program = tmp_path / "parent.py"
    program.write_text(
        "import time\n"
        "from apbjudge.agents.environments.execution.sandbox import Isolation\n"
        "from apbjudge.agents.environments.benchmarks import open_hosted\n"
        "from tests.agents.environments.execution.test_host import processes\n"
        f"limits = Isolation(sandbox={sandbox!r})\n"
        f"benchmark = open_hosted({TOY!r}, isolation=limits)\n"
        "child = benchmark._host.episode()\n"
        "child.ask('begin', 'three')\n"
        f'child._socket.sendall(b\'["call", "{call}", {{}}, "agent"]\\n\')\n'
        "child._socket.recv(1)\n"
        "print(*processes(benchmark), flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, str(program)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
    )
    assert parent.stdout is not None
    started = list(map(int, parent.stdout.readline().split()))
    assert len(started) > 2
    assert all(map(is_there, started))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_for_the_end(started)


GOOD = """
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
CALL = {"name": "add", "arguments": {}, "by": "agent"}
class Episode:
    def call(self, name, arguments, by): return "ok", False
    def say(self, text): return {"next": "end"}
    def score(self): return {"reward": 1}
class Mine:
    version = "1"
    def tasks(self): return [task()]
    def begin(self, task): return Episode()
def task(**fields):
    given = {"id": "a", "query": "q", "tools": [TOOL], "reference": [[CALL]]}
    return {name: value for name, value in (given | fields).items() if value != "left out"}
def benchmark(options): return Mine()
"""


def write_benchmark(folder: Path, change: str) -> str:
    program = folder / "mine.py"
    program.write_text(GOOD + change)
    return str(program)


def test_what_can_not_be_loaded_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        OptionError, match=r"^BENCHMARK: expected slate, tau2-airline, .* got 'chess'$"
    ):
        open_hosted("chess")
    with pytest.raises(OptionError, match=r"^--with users: expected user, got this name$"):
        open_hosted(TOY, {"users": "1"})
    with pytest.raises(OptionError, match=r"^python: expected an interpreter, got /no/python"):
        open_hosted(TOY, isolation=Isolation(python="/no/python"))
    with pytest.raises(OptionError, match=r"^BENCHMARK: its package is not installed"):
        open_hosted("toolsandbox", isolation=Isolation(python=sys.executable))
    with pytest.raises(OptionError, match=r"^--with: domain is fixed by the name tau2-retail$"):
        open_hosted("tau2-retail", {"domain": "airline"})
    with pytest.raises(InputError, match=r"^the benchmark can't be loaded: ValueError: bad table$"):
        open_hosted(write_benchmark(tmp_path, "raise ValueError('bad table')"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("raise SystemExit(3)", "the benchmark can't be loaded: SystemExit: 3"),
        ("def task(): return {1: float('nan')}", "can't be loaded: ValueError: Out of range"),
        ("Mine.tasks = lambda self: [task(tools=[{}])]", r"field tools\[0\]"),
        (
            "Mine.tasks = lambda self: [task(reference='add')]",
            "field reference: expected a valid list, got .add.",
        ),
    ],
)
@pytest.mark.slow
def test_a_suite_with_a_fault_is_one_line(tmp_path: Path, change: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        open_hosted(write_benchmark(tmp_path, change))
    assert "\n" not in str(caught.value)


FAULTS = {
    "Episode = lambda: None": "TypeError: NoneType has no method call$",
    "import sys; sys.exit(2)": "SystemExit: 2",
    "Episode.call = lambda *_: ('ok', 'no')": "call of add: expected text and whether it is",
    "Episode.say = lambda *_: {}": "say: field next: expected agent or end, got nothing",
    "Episode.say = lambda *_: {'next': 'agent', 'tools': [{}]}": r"say: field tools\[0\]",
    "del Episode.score": "TypeError: Episode has no method score",
    "Episode.score = lambda self: {'reward': 2}": "field reward: expected a number from 0 to 1",
    "Episode.score = lambda self: {'reward': float('nan')}": "ValueError: Out of range",
}
"""Each is a task, which is begun by making this change in the episode's process."""


def test_an_episode_with_a_fault_is_no_fault_of_the_agent(tmp_path: Path) -> None:
    tasks = f"Mine.tasks = lambda self: [task(id=change) for change in {[*FAULTS]!r}]\n"
    begin = "Mine.begin = lambda self, task: exec(task, globals()) or Episode()\n"
    with open_hosted(write_benchmark(tmp_path, tasks + begin)) as benchmark:
        for change, said in FAULTS.items():
            environment = begun(benchmark, change)
            with pytest.raises(PluginError, match=said):
                play(environment)
            environment.close()


def play(environment: HostedEnvironment) -> None:
    environment.call("add", {})
    environment.say("done")
    environment.score()


# SLATE's cases are read by this package itself; the others run in the environment of a benchmark.
FILES = sorted(
    {*Path(hosted.__file__).parent.glob("*.py")} - {Path(hosted.__file__).parent / "slate.py"}
)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_only_the_standard_library_is_imported(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level
            names = [node.module or ""]
        else:
            continue
        assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names
