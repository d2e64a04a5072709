"""Measures 1,000 judge calls against a local server: ours, a bare loop, and other tools.

    python benchmarks/engine.py                              # ours, bare loop, litellm + instructor
    python benchmarks/engine.py --peers                      # also other tools, in their own venvs
    python benchmarks/engine.py --peers --peers-venv DIR     # and keep those venvs
    python benchmarks/engine.py --latency-ms 0 200 --json engine.json
    python benchmarks/engine.py --only ours-direct --cached 10000 --million 50000

Every contestant is a whole process, imports and all, and meets a server of its own that gives one
fixed answer. Contestants alternate, so that a busy minute hits all alike; what counts is CPU
seconds and their ratio to the bare loop in the same run. A run is only counted when every row got
a result and the server saw exactly one request for each. How busy the server was stands in the
last column: far below 100 % it is not what limits.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from peers.tools import PEERS, VERDICT

HERE = Path(__file__).parent
OURS = "from apbjudge.cli.main import main; main()"
LIMIT_S = 1800.0
QUIET = {
    "OPENAI_API_KEY": "none",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LANGSMITH_TRACING": "false",
    "LANGSMITH_TEST_TRACKING": "false",
    "PYTHONDONTWRITEBYTECODE": "",
}
"""Set for everybody: no contestant reaches out to anything but the server, and none compiles its
files again at every start, as it would where the variable is set (2.5 s of CPU for ours)."""


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of a contestant; ``folder`` holds the rows, port 0 is any that is free.

    ``faults`` are further options of the server.
    """

    folder: Path
    calls: int
    concurrency: int
    latency_ms: float = 0
    port: int = 0
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """One process; ``env`` is added to the environment."""

    argv: list[str]
    env: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Contestant:
    """Who is measured.

    Attributes:
        name: As the table has it.
        content: What the server says to it, JSON or text.
        run: Makes the process from the load, the server's address and an empty folder.
        results: The file in that folder with one line a judged row.
    """

    name: str
    content: str
    run: Callable[[Load, str, Path], Run]
    results: str = "results.jsonl"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process took, and what its server saw meanwhile."""

    cpu_s: float
    wall_s: float
    peak_mb: float
    requests: int
    body_kb: float
    server_cpu_s: float


class ContestantError(Exception):
    """A contestant did not do what was asked."""


def ours(transport: str) -> Contestant:
    """apbjudge as a user calls it; its cache is on and empty."""

    def run(load: Load, url: str, out: Path) -> Run:
        argv = [sys.executable, "-c", OURS, "grade", str(load.folder / "ours.jsonl")]
        argv += ["--judge", "hosted_vllm/echo", "--api-base", url, "--transport", transport]
        argv += ["--max-concurrency", str(load.concurrency), "--out", str(out / "run")]
        return Run(argv, {"APBJUDGE_CACHE_DIR": str(out / "cache")})

    return Contestant(f"ours-{transport}", VERDICT, run, "run/judgements.jsonl")


def predict() -> Contestant:
    """apbjudge asking a tested model about the cases of the same rows."""

    def run(load: Load, url: str, out: Path) -> Run:
        argv = [sys.executable, "-c", OURS, "predict", str(load.folder / "ours.jsonl")]
        argv += ["--model", f"hosted_vllm/echo@{url}", "--transport", "direct"]
        argv += ["--max-concurrency", str(load.concurrency), "--out", str(out / "run")]
        return Run(argv, {"APBJUDGE_CACHE_DIR": str(out / "cache")})

    return Contestant("ours-predict", VERDICT, run, "run/predictions.jsonl")


def script(name: str, file: str, content: str, python: str = sys.executable) -> Contestant:
    """A script in ``peers``, with the interpreter that has what it needs."""

    def run(load: Load, url: str, out: Path) -> Run:
        argv = [python, str(HERE / "peers" / file), "--url", url, "--out", str(out)]
        argv += ["--rows", str(load.folder / "texts.jsonl")]
        argv += ["--rubric", str(load.folder / "rubric.txt")]
        return Run([*argv, "--concurrency", str(load.concurrency)])

    return Contestant(name, content, run)


def peer(name: str, venvs: Path) -> Contestant | None:
    """Another tool, in a venv of its own, since their pins do not go together."""
    wanted, python = PEERS[name], venvs / name / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--prefer-binary"]
    if not python.exists():
        venv.create(venvs / name, with_pip=True)
    done = subprocess.run([*install, *wanted.packages], check=False, stderr=subprocess.DEVNULL)
    if done.returncode != 0:
        print(f"{name}: not measured: {' '.join(wanted.packages)} can't be installed")
        return None
    print(f"{name}: {', '.join(wanted.packages)}", flush=True)
    return script(name, wanted.file, wanted.content, str(python))


@contextmanager
def server(content: str, load: Load) -> Generator[tuple[str, Callable[[], dict[str, float]]]]:
    """A server in its own process: its address, and what ends it and says what it saw."""
    argv = [sys.executable, str(HERE / "echo_server.py"), "--content", content]
    process = subprocess.Popen(
        [*argv, "--latency-ms", str(load.latency_ms), "--port", str(load.port), *load.faults],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None

    def end() -> dict[str, float]:
        return json.loads(process.communicate()[0])

    try:
        yield process.stdout.readline().strip(), end
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def spawn(run: Run, log: Path, ends: tuple[int, ...] = (0,)) -> tuple[float, float, float]:
    """Runs a process: CPU seconds (its children included), wall seconds, peak MB.

    ``ends`` are the exit codes that are well.
    """
    start = time.perf_counter()
    with log.open("wb") as file:
        process = subprocess.Popen(
            run.argv,
            stdout=subprocess.DEVNULL,
            stderr=file,
            env={**os.environ, **QUIET, **run.env},
            cwd=log.parent,
        )
        timer = threading.Timer(LIMIT_S, process.kill)
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in ends:
        last = log.read_text(errors="replace").strip().splitlines()[-1:] or ["no message"]
        raise ContestantError(f"exit code {process.returncode}: {last[0].strip(' │')}")
    return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024


def measure(contestant: Contestant, load: Load, out: Path, *, requests: int | None = None) -> Cost:
    """One run in an empty folder; ``requests`` is how many the server must see, one a row."""
    out.mkdir(parents=True, exist_ok=True)
    with server(contestant.content, load) as (url, end):
        cpu, wall, peak = spawn(contestant.run(load, url, out), out / "stderr.txt")
        seen = end()
    expected = load.calls if requests is None else requests
    judged = count_judged(out / contestant.results)
    if judged != load.calls or seen["requests"] != expected:
        raise ContestantError(f"{judged} of {load.calls} rows judged, {seen['requests']} requests")
    body_kb = seen["body_bytes"] / max(1, seen["requests"]) / 1000
    return Cost(cpu, wall, peak, int(seen["requests"]), body_kb, seen["cpu_s"])


def count_judged(path: Path) -> int:
    """Rows with a result; of ours, those with a verdict."""
    with path.open("rb") as file:
        return sum(b'"kind":"unscored"' not in line.replace(b" ", b"") for line in file)


def fresh(contestant: Contestant, load: Load) -> Cost:
    """One run whose files are gone afterwards."""
    with tempfile.TemporaryDirectory(dir=load.folder) as name:
        return measure(contestant, load, Path(name))


def make_rows(folder: Path, calls: int) -> Path:
    """Writes the rows in a process of its own: memory of this one would count for its children."""
    folder.mkdir(parents=True)
    maker = [sys.executable, str(HERE / "peers" / "rows.py"), str(folder)]
    subprocess.run([*maker, "--rows", str(calls)], check=True)
    return folder


def warm(contestants: list[Contestant], folder: Path, concurrency: int) -> list[Contestant]:
    """Those who can do ten calls at all; this also compiles and loads files once, unmeasured."""
    load, able = Load(make_rows(folder, 10), 10, concurrency), list[Contestant]()
    for contestant in contestants:
        try:
            fresh(contestant, load)
            able.append(contestant)
        except (ContestantError, OSError) as error:
            print(f"{contestant.name}: not measured: {error}", flush=True)
    return able


def contest(contestants: list[Contestant], load: Load, repeats: int) -> dict[str, list[Cost]]:
    """Everybody in turn, ``repeats`` times; who fails once is out."""
    costs: dict[str, list[Cost]] = {contestant.name: [] for contestant in contestants}
    for _ in range(repeats):
        for contestant in contestants:
            if contestant.name not in costs:
                continue
            try:
                cost = fresh(contestant, load)
                costs[contestant.name].append(cost)
                print(f"{contestant.name}: {cost.cpu_s:.2f} s of CPU", file=sys.stderr)
            except (ContestantError, OSError) as error:
                del costs[contestant.name]
                print(f"{contestant.name}: failed: {error}", flush=True)
    return costs


def again(contestant: Contestant, load: Load, repeats: int) -> dict[str, list[Cost]]:
    """Runs that find every answer in the cache of a first run, and those that continue in it."""
    costs: list[Cost] = []
    load = replace(load, port=free_port())
    first = load.folder / "cached"
    measure(contestant, load, first)
    for i in range(repeats):
        out = load.folder / f"cached-{i}"
        out.mkdir()
        (out / "cache").symlink_to(first / "cache")
        costs.append(measure(contestant, load, out, requests=0))
    finished = [measure(contestant, load, first, requests=0) for _ in range(repeats)]
    shutil.rmtree(first)
    return {"ours, all cached": costs, "ours, all finished": finished}


def free_port() -> int:
    """A port that is free now: who asks again asks the same address, or nothing is cached."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def middle(values: list[float], form: str = ".2f") -> str:
    """Median with smallest and largest."""
    low, high = min(values), max(values)
    return f"{statistics.median(values):{form}} ({low:{form}}-{high:{form}})"


def table(costs: dict[str, list[Cost]], load: Load, repeats: int) -> str:
    """The figures as text; ``/bare`` and ``server`` are in terms of median CPU seconds."""
    asked = f"{load.calls} judge calls, concurrency {load.concurrency}"
    lines = [
        f"\n{asked}, latency {load.latency_ms:g} ms; median (min-max), n={repeats}",
        f"{'':<20}{'CPU s':<21}{'wall s':<21}{'peak MB':>8}{'/bare':>7}{'body kB':>9}{'server':>8}",
    ]
    medians = {name: statistics.median(c.cpu_s for c in runs) for name, runs in costs.items()}
    for name, runs in costs.items():
        ratio = f"{medians[name] / medians['bare']:.2f}" if "bare" in medians else "-"
        busy = statistics.median(c.server_cpu_s / c.wall_s for c in runs)
        lines.append(
            f"{name:<20}{middle([c.cpu_s for c in runs]):<21}"
            f"{middle([c.wall_s for c in runs]):<21}{max(c.peak_mb for c in runs):>8.0f}"
            f"{ratio:>7}{statistics.median(c.body_kb for c in runs):>9.1f}{busy:>8.1%}"
        )
    return "\n".join([*lines, *against(medians)])


def against(medians: dict[str, float]) -> Iterator[str]:
    """How ours compare with the leanest other tool, and with what one of them is built on."""
    others = {name: cpu for name, cpu in medians.items() if name in PEERS}
    if others and "ours-direct" in medians:
        best = min(others, key=others.__getitem__)
        yield f"ours-direct / {best}: {medians['ours-direct'] / others[best]:.2f}"
    if {"ours-direct", "ours-predict"} <= set(medians):
        yield f"ours-predict / ours-direct: {medians['ours-predict'] / medians['ours-direct']:.2f}"
    if {"ours-litellm", "litellm-instructor"} <= set(medians):
        ratio = medians["ours-litellm"] / medians["litellm-instructor"]
        yield f"ours-litellm / litellm-instructor: {ratio:.2f}"


def main() -> None:
    options = parse()
    report: dict[str, object] = {}
    with tempfile.TemporaryDirectory(prefix="apbjudge-engine-") as name:
        root = Path(name)
        venvs: Path = (options.peers_venv or root / "venvs").resolve()
        able = warm(chosen(options, venvs), root / "warm", options.concurrency)
        rows = make_rows(root / "rows", options.calls)
        for latency in options.latency_ms:
            load = Load(rows, options.calls, options.concurrency, latency)
            costs = contest(able, load, options.repeats)
            print(table(costs, load, options.repeats), flush=True)
            report[f"{latency:g} ms"] = {k: [asdict(c) for c in v] for k, v in costs.items()}
        direct = next((c for c in able if c.name == "ours-direct"), None)
        if direct and options.cached:
            load = Load(
                make_rows(root / "cached", options.cached), options.cached, options.concurrency
            )
            costs = again(direct, load, options.repeats)
            print(table(costs, load, options.repeats), flush=True)
            report |= {name: [asdict(c) for c in runs] for name, runs in costs.items()}
        if direct and options.million:
            load = Load(
                make_rows(root / "million", options.million), options.million, options.concurrency
            )
            runs = [fresh(direct, load)]
            print(table({"ours-direct": runs}, load, 1), flush=True)
            report["million"] = [asdict(c) for c in runs]
    if options.json:
        options.json.write_text(json.dumps(report, indent=1), encoding="utf-8")


def chosen(options: argparse.Namespace, venvs: Path) -> list[Contestant]:
    """The contestants asked for that can be had, in the order of the table."""
    everybody: dict[str, Callable[[], Contestant | None]] = {
        "bare": lambda: script("bare", "bare.py", VERDICT),
        "ours-direct": lambda: ours("direct"),
        "ours-litellm": lambda: ours("litellm"),
        "ours-predict": predict,
        "litellm-instructor": lambda: script("litellm-instructor", "with_instructor.py", VERDICT),
    }
    if options.peers:
        everybody |= {name: partial(peer, name, venvs) for name in PEERS}
    unknown = set(options.only or ()) - set(everybody)
    if unknown:
        raise SystemExit(f"--only: {', '.join(sorted(unknown))}: not among {', '.join(everybody)}")
    asked = [name for name in everybody if not options.only or name in options.only]
    return [contestant for name in asked if (contestant := everybody[name]()) is not None]


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--latency-ms", type=float, nargs="+", default=[0.0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these contestants alone")
    parser.add_argument("--peers", action="store_true", help="install and measure other tools")
    parser.add_argument("--peers-venv", type=Path, help="where their venvs are, or are to be kept")
    parser.add_argument("--cached", type=int, nargs="?", const=10_000, help="rows of a cached run")
    parser.add_argument(
        "--million", type=int, nargs="?", const=1_000_000, help="rows of a large run"
    )
    parser.add_argument("--json", type=Path, help="file for the raw numbers")
    return parser.parse_args()


if __name__ == "__main__":
    main()
