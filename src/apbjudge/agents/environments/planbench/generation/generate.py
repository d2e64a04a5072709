"""Generated benchmarks of typed tools, in the layout of the released one, with their funnel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import orjson

from .....document.display import Shown
from .....document.model import Document
from .....errors import OptionError
from .....jsonl import write_atomically
from .....options import takes
from .....trajectories.planbench.data import DataFolder, PlanbenchTool
from .....trajectories.planbench.data import Records as DatabaseFile
from .....version import VERSION
from ..config import GenerateConfig
from ..paths import catalogue_tools
from .domain import Domain, ValueSource, read_domain, wordings
from .tasks import Reach, choose_tasks, ordered, query_of, starts
from .tools import Funnel, Records, Signature, ToolWriter, draw_records, draw_signatures

GENERATOR = "apbjudge-typed@1"
"""Version of what is drawn from a seed."""
FILES = (
    "datatypes.json",
    "database.json",
    "baseline_tools.json",
    "noisy_tools.json",
    "blocker_tools.json",
    "tasks.json",
    "paths_set_catalog.json",
    "queries.json",
)
MANIFEST = "generated.json"


@dataclass(frozen=True, repr=False)
class GeneratedBenchmark(Shown):
    """A benchmark that was generated.

    Attributes:
        out: Its folder.
        domain: Name of its domain.
        counts: Of datatypes, records, tools by kind, tasks, paths.
        inputs: Executable tools by number of inputs.
        lengths: Tasks by number of inputs and tools of the shortest path.
        funnels: By stage, candidates and why some were refused.
        files: SHA-256 of each file.
    """

    out: Path
    domain: str
    counts: Mapping[str, int]
    inputs: Mapping[int, int]
    lengths: Mapping[tuple[int, int], int]
    funnels: Mapping[str, Funnel]
    files: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "domain": self.domain,
            "counts": {**self.counts},
            "tools_by_inputs": {str(n): count for n, count in self.inputs.items()},
            "tasks_by_length": [
                {"inputs": inputs, "shortest": shortest, "tasks": count}
                for (inputs, shortest), count in self.lengths.items()
            ],
            "funnels": {stage: funnel.to_json() for stage, funnel in self.funnels.items()},
            "files": {**self.files},
        }

    def _printed(self) -> Document:
        from .results_text import generated_document

        return generated_document(self)


@takes(config=GenerateConfig)
def planbench_generate(config: GenerateConfig) -> GeneratedBenchmark:
    """Generates a benchmark of typed tools, tasks and records.

    The same settings and version give the same bytes.

    Args:
        config: The settings; options count more.

    Raises:
        OptionError: If a setting is unusable, or the folder holds something else.
        InputError: If the domain does not allow as many tools or tasks, or a file is unusable.
    """
    _check_folder(config)
    domain, words = read_domain(config.domain), wordings()
    contents, funnels = _contents(config, domain, words)
    config.out.mkdir(parents=True, exist_ok=True)
    files = {
        name: orjson.dumps(contents[name], option=orjson.OPT_INDENT_2) + b"\n" for name in FILES
    }
    digests = {name: sha256(data).hexdigest() for name, data in files.items()}
    result = _result(config, domain, contents, funnels, digests)
    for name, data in files.items():
        write_atomically(config.out / name, data)
    settings = config.model_dump(mode="json", exclude={"out", "overwrite"})
    manifest = {"generator": GENERATOR, "version": VERSION, "settings": settings}
    manifest |= result.to_json()
    write_atomically(
        config.out / MANIFEST, orjson.dumps(manifest, option=orjson.OPT_INDENT_2) + b"\n"
    )
    return result


def _check_folder(config: GenerateConfig) -> None:
    out = config.out
    if not out.exists():
        return
    if not out.is_dir():
        raise OptionError(f"--out: expected a folder, got the file {out}")
    others = sorted(path.name for path in out.iterdir() if path.name not in (*FILES, MANIFEST))
    if others:
        raise OptionError(f"--out: {out} holds other files, such as {others[0]}")
    if (out / MANIFEST).exists() and not config.overwrite:
        raise OptionError(f"--out: {out} holds a generated benchmark; --overwrite replaces it")


def _contents(
    config: GenerateConfig, domain: Domain, words: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Funnel]]:
    """The files' contents; every stage has a seed of its own, so that one changes no other."""

    def rng(stage: str) -> Random:
        return Random(f"{GENERATOR}/{domain.name}/{config.seed}/{stage}")  # noqa: S311 - no secrets

    datatypes = [
        {
            "name": name,
            "category": domain.category_of[name].name,
            "value_type": of.value_type,
            "description": f"{of.about}.".capitalize(),
            "example": str(of.draw(rng(f"example/{name}"))),
            "aliases": [*of.aliases],
        }
        for name, of in domain.datatypes.items()
    ]
    records = _records(config, domain, rng("records"))
    funnels = {"tools": Funnel(), "tasks": Funnel(), "queries": Funnel()}
    signatures = draw_signatures(domain, records, config.tools, rng("tools"), funnels["tools"])
    every_value = (value for record in records.values() for value in record.values())
    writer = ToolWriter(domain, words, ValueSource(rng("values"), [*every_value]), rng("names"))
    baseline, noisy, blockers = _families(writer, signatures)
    tools = {tool["name"]: _tool(tool) for tool in baseline}
    of_paths = catalogue_tools(tools.values())
    reach, every = Reach(of_paths), Reach(tools.values())
    every_start = (start for n in (1, 2) for start in starts(reach, [*domain.datatypes], n))
    chosen, funnels["tasks"] = choose_tasks(
        every_start, config, tools=of_paths, every=every, rng=rng("tasks")
    )
    tasks: list[dict[str, Any]] = []
    queries: list[dict[str, Any]] = []
    catalogue: dict[str, list[dict[str, Any]]] = {}
    draws = rng("queries")
    for i, (start, paths) in enumerate(chosen, 1):
        task_id = f"{domain.name}_task_{i:04}"
        shared = {"input_datatypes": [*start.inputs], "target_datatype": start.target}
        order = ordered(paths[0], tools, start.inputs)
        tasks.append(
            {"task_id": task_id, "num_inputs": len(start.inputs), **shared}
            | {"one_available_path": order, "steps": len(order)}
        )
        catalogue[task_id] = [{"tool_set": sorted(p), "steps": len(p)} for p in paths]
        text, record, funnel = query_of(start, records, domain, words["queries"], draws)
        _add(funnels["queries"], funnel)
        queries.append(
            {"query_id": f"{domain.name}_query_{i:04}", "task_id": task_id, "query_text": text}
            | {"correct_answer": str(record[start.target]), **shared}
            | {"input_values": {name: record[name] for name in start.inputs}}
        )
    values = (datatypes, {"order_cases": records}, baseline, noisy, blockers, tasks, catalogue)
    return dict(zip(FILES, (*values, queries), strict=True)), funnels


def _records(config: GenerateConfig, domain: Domain, rng: Random) -> Records:
    """Records as drawn, or those of a file."""
    if config.database is None:
        return draw_records(domain, config.records, ValueSource(rng))
    file = DataFolder(config.database.parent)
    records = file.read(config.database.name, DatabaseFile).order_cases
    for name, record in records.items():
        for datatype in domain.datatypes:
            if record.get(datatype) is None:
                where = f"order_cases.{name}.{datatype}"
                raise file.inconsistent(config.database.name, where, "a value", None)
    if not records:
        raise file.inconsistent(config.database.name, "order_cases", "records", None)
    return records


def _families(
    writer: ToolWriter, signatures: Sequence[Signature]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    taken = {(frozenset(of.inputs), of.output) for of in signatures}
    baseline: list[dict[str, Any]] = []
    noisy: list[dict[str, Any]] = []
    blockers: list[dict[str, Any]] = []
    for i, signature in enumerate(signatures):
        tool, siblings, replacing = writer.family(i, signature, taken)
        if signature.parts:
            parts = [baseline[part]["name"] for part in signature.parts]
            tool |= {"tool_sequence": parts, "steps": len(parts)}
        baseline.append(tool)
        noisy += siblings
        blockers += replacing
    return baseline, noisy, blockers


def _tool(tool: Mapping[str, Any]) -> PlanbenchTool:
    return PlanbenchTool(
        tool["name"],
        frozenset(tool["input_datatypes"]),
        tool["output_datatype"],
        surface_argument_to_datatype=tool["surface_argument_to_datatype"],
        tool_sequence=tuple(tool.get("tool_sequence", ())),
    )


def _add(total: Funnel, part: Funnel) -> None:
    total.drawn += part.drawn
    total.accepted += part.accepted
    total.rejected += part.rejected
    total.examples = part.examples | total.examples


def _result(
    config: GenerateConfig,
    domain: Domain,
    contents: Mapping[str, Any],
    funnels: Mapping[str, Funnel],
    digests: Mapping[str, str],
) -> GeneratedBenchmark:
    baseline, tasks = contents["baseline_tools.json"], contents["tasks.json"]
    counts = {
        "datatypes": len(contents["datatypes.json"]),
        "records": len(contents["database.json"]["order_cases"]),
        "executable tools": len(baseline),
        "composites": sum("tool_sequence" in tool for tool in baseline),
        "noisy tools": len(contents["noisy_tools.json"]),
        "blockers": len(contents["blocker_tools.json"]),
        "tasks": len(tasks),
        "paths": sum(map(len, contents["paths_set_catalog.json"].values())),
    }
    inputs = Counter(len(tool["input_datatypes"]) for tool in baseline)
    lengths = Counter((task["num_inputs"], task["steps"]) for task in tasks)
    return GeneratedBenchmark(
        config.out,
        domain.name,
        counts,
        dict(sorted(inputs.items())),
        dict(sorted(lengths.items())),
        funnels,
        digests,
    )
