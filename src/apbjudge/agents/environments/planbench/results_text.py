"""The paths of PlanBench-XL's tasks, and the blocked tools, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ....document.model import Cell, Document, Heading, Notes, Part, Table
from ....document.numbers import DASH, count
from ....document.text import render_text
from .blocking import BlockPlan
from .paths import PathReport, TaskPaths

_SCOPES = {
    "catalogue": "paths of the catalogue, by the authors' method",
    "complete": "all paths of the catalogue's tools",
    "exhaustive": "all paths of all executable tools",
}
_LISTED = 20


def paths_text(report: PathReport) -> str:
    """Numbers of paths, differences from the catalogue, and a few tasks in full."""
    tasks = report.tasks
    longest = "" if report.longest is None else f", of at most {report.longest} tools"
    n, known = count(len(tasks)), count(sum(len(task.catalogued) for task in tasks))
    n_paths = count(sum(len(task.paths) for task in tasks))
    orders = count(sum(sum(task.orders) for task in tasks))
    head = [
        f"{_SCOPES[report.scope]}{longest}: {count(report.tools)} tools, tasks: {n}",
        f"paths: {n_paths}, orders: {orders}, paths of the catalogue: {known}",
    ]
    lacking = sum(len(task.not_catalogued) for task in tasks)
    if lacking:
        incomplete = count(sum(bool(task.not_catalogued) for task in tasks))
        shorter = count(sum(task.is_shorter for task in tasks))
        head += [
            f"not in the catalogue: {count(lacking)} paths, of {incomplete} tasks",
            f"shorter than all of the catalogue: in {shorter} tasks",
        ]
    if surplus := sum(len(task.only_catalogued) for task in tasks):
        head.append(f"only in the catalogue: {count(surplus)} paths")
    if not lacking and not surplus:
        head.append("no difference from the catalogue")
    parts: list[Part] = [Notes(tuple(head)), _lengths(tasks)]
    if len(tasks) <= _LISTED:
        parts.append(_tasks(tasks))
    if len(tasks) == 1:
        parts += _listing(tasks[0])
    return render_text(Document(tuple(parts)))


def _lengths(tasks: tuple[TaskPaths, ...]) -> Table:
    shortest = Counter(task.shortest for task in tasks)
    paths = Counter(len(path) for task in tasks for path in task.paths)
    lengths = sorted({*paths, *(length for length in shortest if length is not None)})
    rows: list[list[Cell]] = [
        [str(length), count(shortest[length]), count(paths[length])] for length in lengths
    ]
    if shortest[None]:
        rows.append(["no path", count(shortest[None]), DASH])
    return Table.of(("tools", "tasks with this shortest path", "paths"), rows, align="rrr")


def _tasks(tasks: tuple[TaskPaths, ...]) -> Table:
    heads = (
        "task",
        "from",
        "to",
        "shortest",
        "longest",
        "paths",
        "orders",
        "catalogued",
        "lacking",
    )
    rows: list[list[Cell]] = [
        [
            task.task_id,
            ", ".join(task.input_datatypes),
            task.target_datatype,
            count(task.shortest),
            count(task.longest),
            count(len(task.paths)),
            count(sum(task.orders)),
            count(len(task.catalogued)),
            count(len(task.not_catalogued)),
        ]
        for task in tasks
    ]
    return Table.of(heads, rows, align="lllrrrrrr")


def _listing(task: TaskPaths) -> Iterator[Part]:
    yield Heading("Paths")
    lacking = {*task.not_catalogued}
    lines = [
        f"{', '.join(path)}: {count(orders)} {'order' if orders == 1 else 'orders'}"
        f"{', not in the catalogue' if path in lacking else ''}"
        for path, orders in zip(task.paths[:_LISTED], task.orders, strict=False)
    ]
    more = len(task.paths) - len(lines)
    yield Notes((*lines, *([f"and {count(more)} more: --format json"] if more else [])))


def block_plan_text(plan: BlockPlan) -> str:
    """Counts of blocked tools, and the fingerprint by which plans are compared."""
    tasks = plan.tasks.values()
    blocked = sum(len(task.blocked) for task in tasks)
    most = max((task.candidates for task in tasks), default=0)
    cut = sum(task.is_cut for task in tasks)
    head = [
        f"{plan.setting}: {count(len(plan.tasks))} tasks, {count(blocked)} tools blocked",
        f"mean length of the paths that remain: {plan.mean_length:.3f}",
        f"candidates: at most {count(most)} in a task, cut short in {count(cut)}",
        f"fingerprint: {plan.fingerprint[:12]}",
    ]
    if plan.unresolved:
        names = ", ".join(plan.unresolved[:5])
        head.append(f"unresolved, nothing is blocked: {count(len(plan.unresolved))} ({names})")
    parts: list[Part] = [Notes(tuple(head))]
    parts.append(_counted("tools blocked", plan.blocked))
    if len(plan.remaining) <= _LISTED:
        parts.append(_counted("paths that remain", plan.remaining))
    return render_text(Document(tuple(parts)))


def _counted(head: str, tasks: Mapping[int, int]) -> Table:
    rows = [(str(number), count(n)) for number, n in tasks.items()]
    return Table.of((head, "tasks"), rows, align="rr")
