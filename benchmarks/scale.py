"""Measures a run in parts on an engine: what parts cost, and what each failure costs.

    python benchmarks/scale.py                               # processes of this machine
    python benchmarks/scale.py --engine ray --rows 3000      # tasks of Ray, on this machine
    python benchmarks/scale.py --engine ray --only parts "workers killed"
    python benchmarks/scale.py --engine ray --command predict
    python benchmarks/scale.py --only million                # 1,000,000 rows, judged by rule

The judge is a server that answers after 60 ms. Every run is a command with a plan of its own and an
empty cache, 2 parts at a time. ``calls`` is what the server saw, ``extra`` what it saw beyond one
call a row. ``CPU`` is the CPU seconds of all processes that graded, imports and all, over those of
one ``grade``; ``live`` is the same without what a worker of Ray takes before it begins a task, as
of workers that live on. ``equal`` says whether the records are those of the undisturbed run, each
once, but for times and usage. No figure is a wall time.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
from engine import QUIET, Load, server, spawn
from engine import Run as Process
from peers.rows import prose, row, tool
from peers.tools import VERDICT

import apbjudge

CONCURRENCY, LATENCY_MS = 64, 60
FLUSHED = 4
"""Rows that a process may have an answer of and no record yet."""
UPLOAD_S, UPLOADING_S = 2, 0.5
"""Seconds between uploads to an address, and those that one takes at most."""
STORED = "store/run"
APBJUDGE = [sys.executable, "-m", "apbjudge"]
COMMANDS = {"grade": ("judge", "judgements.jsonl"), "predict": ("model", "predictions.jsonl")}
"""By command its option for the model, and the file of its records."""
TIMES_AND_USAGE = ("latency_s", "latency_ms", "usage", "cost_usd")


@dataclass(frozen=True, slots=True)
class Usage:
    """What processes took: CPU seconds, the largest peak in MB, and how many there were."""

    cpu_s: float
    peak_mb: float
    n_processes: int = 0


class Watch:
    """Samples the processes in which rows are graded, from the moment that one of them begins.

    They are told from all others of the machine by their working directory, which is the bench's.
    """

    def __init__(self, mark: str, folder: Path) -> None:
        self.mark, self.folder = mark, folder
        self._last = dict[int, tuple[float, float]]()

    def sample(self) -> list[int]:
        """Takes the present figures of all of them; returns the ids of those at work."""
        at_work: list[int] = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, ValueError, KeyError):  # it has ended
                pid = int(folder.name)
                is_ours = (folder / "cwd").readlink() == self.folder
                is_at_work = is_ours and self.mark in (folder / "cmdline").read_text()
                if is_at_work or pid in self._last:
                    self._last[pid] = _figures(folder)
                if is_at_work:
                    at_work.append(pid)
        return at_work

    @property
    def usage(self) -> Usage:
        """All figures together."""
        cpu, peak = zip(*self._last.values(), strict=True) if self._last else ((), ())
        return Usage(sum(cpu), max(peak, default=0.0), len(cpu))


def _figures(folder: Path) -> tuple[float, float]:
    """CPU seconds and peak of a process."""
    ticks = (folder / "stat").read_text().rpartition(")")[2].split()[11:13]
    lines = (folder / "status").read_text().splitlines()
    values = dict(line.split(":", 1) for line in lines)
    cpu_s = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    return cpu_s, int(values["VmHWM"].split()[0]) / 1024


def write_rows(path: Path, n: int) -> None:
    """Rows of about 8 kB."""
    rng = random.Random(1)
    with path.open("wb") as file:
        for i in range(n):
            if i % 50 == 0:
                tools = [tool(rng, name) for name in ("tool_a", "tool_b")]
            one = row(rng, i, tools)
            one["query"] += " " + prose(rng, max(0, 7800 - len(orjson.dumps(one))))
            file.write(orjson.dumps(one, option=orjson.OPT_APPEND_NEWLINE))


@dataclass(frozen=True, slots=True)
class Bench:
    """The rows, and the folder for runs."""

    folder: Path
    rows: Path
    n: int
    engine: str
    command: str

    @property
    def file(self) -> str:
        """The file of the records of a run."""
        return COMMANDS[self.command][1]

    def records(self, run: Path) -> list[dict[str, Any]]:
        """The records of a run by line, without times and what calls cost."""
        with (run / self.file).open("rb") as file:
            rows = [json.loads(line) | dict.fromkeys(TIMES_AND_USAGE) for line in file]
        return sorted(rows, key=lambda of: of["line"])

    def argv(self, url: str) -> list[str]:
        """The command in one process, but for where its run goes."""
        asked = [f"--{COMMANDS[self.command][0]}", "hosted_vllm/echo", "--api-base", url]
        limit = ["--max-concurrency", str(CONCURRENCY)]
        return [*APBJUDGE, self.command, str(self.rows), *asked, *limit]

    @property
    def mark(self) -> str:
        """What stands in the command line of a process in which rows are graded."""
        return "ray::_run" if self.engine == "ray" else "from multiprocessing.spawn"

    def env(self, name: str) -> dict[str, str]:
        """The environment of a run, whose cache is its own."""
        return {**os.environ, **QUIET, "APBJUDGE_CACHE_DIR": str(self.folder / f"{name}-cache")}

    @contextmanager
    def scaled(self, name: str, plan: Path) -> Iterator[subprocess.Popen[bytes]]:
        """The command on an engine, with 2 parts at a time."""
        command = [*APBJUDGE, "scale", str(plan), "--engine", self.engine, "--at-once", "2"]
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, env=self.env(name), cwd=self.folder
            )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()

    def whole(self, name: str) -> Path:
        """The folder of a merged run."""
        return self.folder / name / "whole"

    def worked(self, work: str) -> Path:
        """The folder below ``work`` of the run that is uploaded."""
        return self.folder / work / "apbjudge-upload/local:" / STORED

    def n_recorded(self, name: str) -> int:
        """Rows of all parts that have a record."""
        paths = (self.folder / name).glob(f"part-*/{self.file}")
        return sum(path.read_bytes().count(b"\n") for path in paths)

    def run(
        self, name: str, parts: int, disturb: Disturb | None = None, model: str = "hosted_vllm/echo"
    ) -> tuple[Usage, int, int]:
        """Runs a plan to its end, again where it was stopped.

        Args:
            name: Of the run.
            parts: Number of parts.
            disturb: Called when half of the rows are recorded, with the driver and the ids of the
                processes at work, at least one; returns how many of these it ended.
            model: The judge, or the tested model.

        Returns:
            What the processes took, the calls that the server saw, how many were ended.
        """
        n_ended, watch = None, Watch(self.mark, self.folder)
        with server(VERDICT, Load(self.folder, self.n, CONCURRENCY, LATENCY_MS)) as (url, end):
            plan = self.folder / f"{name}.toml"
            options = "" if model == "static" else f'api_base = "{url}"\nmax_concurrency = 64\n'
            plan.write_text(
                f'rows = "{self.rows}"\nout = "{self.folder / name}"\nparts = {parts}\n'
                f'command = "{self.command}"\n[options]\n'
                f'{COMMANDS[self.command][0]} = "{model}"\n{options}'
            )
            code = None
            while code != 0:
                with self.scaled(name, plan) as driver:
                    while driver.poll() is None:
                        at_work = watch.sample()
                        is_due = at_work and self.n_recorded(name) >= self.n / 2
                        if disturb and n_ended is None and is_due:
                            n_ended = disturb(driver, at_work)
                        time.sleep(0.1)
                if (code := driver.returncode) not in (0, 75, -signal.SIGKILL):
                    log = (self.folder / f"{name}.log").read_text(errors="replace")
                    raise SystemExit(f"{name}: exit code {code}: {log[-2000:]}")
                while code and watch.sample():
                    time.sleep(0.2)  # the processes of a driver that was killed end their parts
            calls = int(end()["requests"])
        return watch.usage, calls, n_ended or 0


Disturb = Callable[[subprocess.Popen[bytes], list[int]], int]


def kill_workers(driver: subprocess.Popen[bytes], at_work: list[int]) -> int:
    """SIGKILL of all processes in which rows are graded."""
    n_killed = 0
    for pid in at_work:
        with suppress(ProcessLookupError):  # it has ended since
            os.kill(pid, signal.SIGKILL)
            n_killed += 1
    return n_killed


def kill_driver(driver: subprocess.Popen[bytes], at_work: list[int]) -> int:
    """SIGKILL of the command itself."""
    driver.kill()
    return len(at_work)


def stop_driver(driver: subprocess.Popen[bytes], at_work: list[int]) -> int:
    """SIGTERM of the command itself."""
    driver.terminate()
    return 0


@contextmanager
def two_nodes() -> Iterator[Disturb]:
    """A Ray cluster of two nodes on this machine, and what takes one of them away."""
    from ray.cluster_utils import Cluster  # pyright: ignore

    cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    node = cluster.add_node(num_cpus=1)
    os.environ["RAY_ADDRESS"] = cluster.address

    def remove(driver: subprocess.Popen[bytes], at_work: list[int]) -> int:
        cluster.remove_node(node, allow_graceful=False)
        return 1

    try:
        yield remove
    finally:
        del os.environ["RAY_ADDRESS"]
        cluster.shutdown()


_START_OF_RAY = """
import time, ray
ray.init(include_dashboard=False)
print(ray.get(ray.remote(lambda: time.process_time()).remote()))
"""


def start_of_worker_s(bench: Bench) -> float:
    """CPU seconds of a worker of Ray before it imports any code of ours; 0 of other engines."""
    if bench.engine != "ray":
        return 0.0
    env = bench.env("start") | {"RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, "-c", _START_OF_RAY]
    return float(subprocess.run(command, env=env, capture_output=True, check=True).stdout)


def measured(bench: Bench, only: list[str]) -> bool:
    """Prints a line for each run of the table; True if no record or call is wrong."""
    is_right = True
    one = bench.folder / "one"
    with server(VERDICT, Load(bench.folder, bench.n, CONCURRENCY, LATENCY_MS)) as (url, end):
        argv = [*bench.argv(url), "--out", str(one)]
        cpu_s, _, peak = spawn(Process(argv, bench.env("one")), bench.folder / "one.log")
        calls = int(end()["requests"])
    right, start_s = bench.records(one), start_of_worker_s(bench)
    kb = bench.rows.stat().st_size / bench.n / 1000
    print(f"{bench.command} of {bench.n} rows of {kb:.1f} kB: ", end="")
    print(f"one process {calls} calls, {cpu_s:.2f} CPU s, peak {peak:.0f} MB; {bench.engine}:")
    if start_s:
        print(f"a worker of Ray takes {start_s:.2f} CPU s before it begins a task")
    print(f"{'run':<24}{'parts':>6}{'calls':>7}{'extra':>7}{'bound':>7}", end="")
    print(f"{'CPU':>7}{'live':>7}{'peak MB':>9}  equal", flush=True)

    def line(name: str, parts: int, disturb: Disturb | None = None) -> None:
        nonlocal is_right
        usage, calls, n_ended = bench.run(name, parts, disturb)
        cpu = live = "-"
        if disturb is None:
            cpu = f"{usage.cpu_s / cpu_s:.2f}"
            live = f"{(usage.cpu_s - usage.n_processes * start_s) / cpu_s:.2f}"
        extra, bound = calls - bench.n, n_ended * (CONCURRENCY + FLUSHED)
        print(f"{name:<24}{parts:>6}{calls:>7}{extra:>7}{bound:>7}", end="")
        print(f"{cpu:>7}{live:>7}{usage.peak_mb:>9.0f}", end="")
        is_equal = bench.records(bench.whole(name)) == right
        print(f"  {is_equal}", flush=True)
        is_right = is_right and is_equal and 0 <= extra <= bound

    if "parts" in only:
        for parts in (8, 64):
            line(f"{parts} parts", parts)
        is_right = is_one_summary(bench, one) and is_right
    for name, disturb in DISTURBED.items():
        if name in only:
            line(name, 8, disturb)
    if "disk lost" in only:
        extra, bound = lose_disk(bench)
        is_equal = bench.records(bench.worked("other")) == right
        print(f"{'disk lost':<24}{1:>6}{bench.n + extra:>7}{extra:>7}{bound:>7}", end="")
        print(f"{'-':>7}{'-':>7}{'-':>9}  {is_equal}", flush=True)
        is_right = is_right and is_equal and 0 <= extra <= bound
    if "node lost" in only and bench.engine == "ray":
        with two_nodes() as disturb:
            line("node lost", 8, disturb)
    return is_right


def is_one_summary(bench: Bench, one: Path) -> bool:
    """Compares the summaries of judges' runs, and prints what their parts read of the rows."""
    if bench.command != "grade":
        return True
    summaries = {(bench.whole(f"{n} parts") / "summary.json").read_bytes() for n in (8, 64)}
    is_same = summaries == {(one / "summary.json").read_bytes()}
    print(f"summary.json of 1, 8 and 64 parts byte-identical: {is_same}")
    share = bytes_read(bench, 64) / bench.rows.stat().st_size
    print(f"bytes of the rows that 64 parts read, over their size: {share:.3f}")
    return is_same


def lose_disk(bench: Bench) -> tuple[int, int]:
    """A run to an address, killed at half, that continues without its folder and its reply cache.

    Returns:
        The extra calls; and their bound, the rows recorded since an upload may have begun for the
        last time, those that the killed process had not recorded yet, and its calls in flight.
    """
    counts: list[tuple[float, int]] = []
    with server(VERDICT, Load(bench.folder, bench.n, CONCURRENCY, LATENCY_MS)) as (url, end):
        argv = [*bench.argv(url), "--out", f"local://{STORED}", "--upload-every", str(UPLOAD_S)]
        for work in ("lost", "other"):
            with (bench.folder / f"{work}.log").open("wb") as log:
                process = subprocess.Popen(
                    [*argv, "--work", work],
                    stdout=log,
                    stderr=log,
                    env=bench.env(work),
                    cwd=bench.folder,
                )
                file = bench.worked(work) / bench.file
                while process.poll() is None:
                    n = file.read_bytes().count(b"\n") if file.exists() else 0
                    counts.append((time.monotonic(), n))
                    if work == "lost" and n >= bench.n / 2:
                        process.kill()
                    time.sleep(0.05)
            if work == "lost":
                killed_at, n_then = counts[-1]
                since = killed_at - UPLOAD_S - UPLOADING_S
                n_up = max((n for at, n in counts if at <= since), default=0)
            elif process.returncode:
                raise SystemExit(f"disk lost: exit code {process.returncode}")
        calls = int(end()["requests"])
    return calls - bench.n, n_then - n_up + CONCURRENCY + FLUSHED


def bytes_read(bench: Bench, parts: int) -> int:
    """How much of the rows all parts read, judged by rule in this process."""
    n_bytes, opened = 0, io.open

    class Counted(io.FileIO):
        def readinto(self, buffer: Any) -> int:
            nonlocal n_bytes
            n = super().readinto(buffer) or 0
            n_bytes += n
            return n

    def counted(path: Any, mode: str = "r", buffering: int = -1, *args: Any, **options: Any) -> Any:
        if mode == "rb" and Path(path) == bench.rows:
            size = buffering if buffering > 0 else io.DEFAULT_BUFFER_SIZE
            return io.BufferedReader(Counted(path), size)
        return opened(path, mode, buffering, *args, **options)

    folder = bench.folder / "read"
    apbjudge.shards_split(bench.rows, out=folder, parts=parts)
    io.open = counted
    try:
        for i in range(1, parts + 1):
            apbjudge.grade(bench.rows, shard=f"{folder}/index.json#{i}", out=folder / f"part-{i}")
    finally:
        io.open = opened
    return n_bytes


DISTURBED = {
    "workers killed": kill_workers,
    "driver killed": kill_driver,
    "driver stopped": stop_driver,
}


def million(bench: Bench) -> None:
    """Prints what many rows judged by rule take, in parts and merged."""
    usage, _, _ = bench.run("static", 64, model="static")
    parts = [str(bench.folder / "static" / f"part-{i}") for i in range(1, 65)]
    argv = [*APBJUDGE, "shards", "merge", *parts, "--out", str(bench.folder / "again")]
    cpu_s, _, peak = spawn(Process(argv, bench.env("again")), bench.folder / "again.log")
    print(f"{bench.n} static rows in 64 parts of {usage.n_processes} processes: ", end="")
    print(f"{usage.cpu_s / bench.n * 1e6:.0f} CPU us a row, peak {usage.peak_mb:.0f} MB; ", end="")
    print(f"merge {cpu_s / bench.n * 1e6:.0f} CPU us a row, peak {peak:.0f} MB")


def main() -> None:
    """Reads the options and prints the table."""
    kinds = ["parts", *DISTURBED, "disk lost", "node lost"]
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--engine", choices=["local", "ray"], default="local")
    parser.add_argument("--command", choices=COMMANDS, default="grade")
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--many-rows", type=int, default=1_000_000, help="of million")
    parser.add_argument("--only", nargs="*", choices=[*kinds, "million"], default=kinds)
    options = parser.parse_args()
    is_right = True
    with tempfile.TemporaryDirectory(prefix="apbjudge-scale-") as name:
        folder = Path(name).resolve()
        rows = folder / "rows.jsonl"
        bench = Bench(folder, rows, options.rows, options.engine, options.command)
        if set(options.only) != {"million"}:
            write_rows(bench.rows, bench.n)
            is_right = measured(bench, options.only)
        if "million" in options.only:
            rows = folder / "many.jsonl"
            bench = replace(bench, rows=rows, n=options.many_rows, command="grade")
            write_rows(bench.rows, bench.n)
            million(bench)
    if not is_right:
        raise SystemExit("calls beyond the bound, or records that differ")


if __name__ == "__main__":
    main()
