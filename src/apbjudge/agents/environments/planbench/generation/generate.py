"""Generated benchmarks of typed tools, in the layout of the released one, with their funnel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import orjson

from .....document.display import Shown
from .....document.model import Document
from .....errors import InputError, OptionError
from .....jsonl import write_atomically
from .....llm import Client
from .....options import takes
from .....runs.loop import QUIET, Events
from .....trajectories.planbench.data import DataFolder, PlanbenchTool
from .....trajectories.planbench.data import Records as DatabaseFile
from .....version import VERSION
from ....prediction.config import OF_FILES
from ..config import GenerateConfig, TextKind, TextsConfig
from ..paths import catalogue_tools
from .domain import Domain, ValueSource, read_domain, wordings
from .tasks import Reach, choose_tasks, ordered, query_of, starts
from .texts import (
    EXECUTABLE,
    TextTask,
    description_task,
    domain_task,
    filter_task,
    query_task,
    refusal_of,
)
from .tools import Funnel, Records, Signature, ToolWriter, draw_records, draw_signatures
from .writing import WRITING, TextRun, Texts

GENERATOR = "apbjudge-typed@1"
"""Version of the generator: equal versions draw equal data from a seed."""
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
DOMAIN = "domain.json"
"""File of the domain, if it was written for a theme."""


@dataclass(frozen=True, repr=False)
class GeneratedBenchmark(Shown):
    """A benchmark that was generated.

    Attributes:
        out: Its folder.
        domain: Name of its domain.
        counts: Number of datatypes, records, tools by kind, tasks, paths.
        inputs: Number of executable tools by number of inputs.
        lengths: Number of tasks by number of inputs and of tools in the shortest path.
        funnels: By stage, candidates and reasons for refusing some.
        files: SHA-256 of each file.
        writing: By kind of text, the run that asked a model.
    """

    out: Path
    domain: str
    counts: Mapping[str, int]
    inputs: Mapping[int, int]
    lengths: Mapping[tuple[int, int], int]
    funnels: Mapping[str, Funnel]
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    writing: Mapping[TextKind, TextRun] = field(default_factory=dict[TextKind, TextRun])

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


@takes(texts=TextsConfig, config=GenerateConfig, omit=[*OF_FILES])
def planbench_generate(
    config: GenerateConfig,
    *,
    texts: TextsConfig,
    client: Client | None = None,
    events: Events = QUIET,
) -> GeneratedBenchmark:
    """Generates a benchmark of typed tools, tasks and records.

    The same settings, version and answers of a model give the same bytes.

    Args:
        config: The settings; options take precedence.
        texts: Settings of a model that judges candidates and writes texts; options take precedence.
        client: Answers requests in place of the network.
        events: Called back while the model is asked.

    Raises:
        OptionError: If a setting is unusable, or the folder holds something else.
        InputError: If the domain allows too few tools or tasks, a file is unusable, or a model
            returned no domain or no verdict on a candidate.
    """
    has_model = texts.model is not None
    if texts.theme and "domain" in config.model_fields_set:
        raise OptionError("--theme: expected no --domain with it")
    _check_folder(config, has_model=has_model)
    answers = Texts(texts, config.out, client=client, events=events, overwrite=config.overwrite)
    domain = _written_domain(texts.theme, config, answers) or read_domain(config.domain)
    contents, funnels = _contents(config, domain, wordings(), answers)
    answers.note_unused()
    config.out.mkdir(parents=True, exist_ok=True)
    if texts.theme:
        contents[DOMAIN] = domain.model_dump(mode="json", exclude_defaults=True)
    files = {
        name: orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n"
        for name, content in contents.items()
    }
    digests = {name: sha256(data).hexdigest() for name, data in files.items()}
    result = replace(
        _result(config, domain, contents, funnels), files=digests, writing=answers.runs
    )
    for name, data in files.items():
        write_atomically(config.out / name, data)
    settings = config.model_dump(mode="json", exclude={"out", "overwrite"})
    manifest = {"generator": GENERATOR, "version": VERSION, "settings": settings}
    manifest |= {"texts": answers.about} if answers.about else {}
    manifest |= result.to_json()
    write_atomically(
        config.out / MANIFEST, orjson.dumps(manifest, option=orjson.OPT_INDENT_2) + b"\n"
    )
    return result


def _check_folder(config: GenerateConfig, *, has_model: bool) -> None:
    out = config.out
    if not out.exists():
        return
    if not out.is_dir():
        raise OptionError(f"--out: expected a folder, got the file {out}")
    known = (*FILES, MANIFEST, DOMAIN, WRITING)
    names = sorted(path.name for path in out.iterdir())
    if others := [name for name in names if name not in known]:
        raise OptionError(f"--out: {out} holds other files, such as {others[0]}")
    if MANIFEST in names and not config.overwrite and not (has_model and WRITING in names):
        raise OptionError(f"--out: {out} holds a generated benchmark; --overwrite replaces it")


def _written_domain(theme: str, config: GenerateConfig, answers: Texts) -> Domain | None:
    """The domain for a theme; None without a theme.

    Raises:
        OptionError: If there is neither a model nor an answer in a file.
        InputError: If the model's domain breaks a rule.
    """
    if not theme:
        return None
    task = domain_task(theme, config)
    values = answers.answers("domain", [task])
    if task.id not in values:
        raise OptionError("--theme: expected a --model that writes the domain")
    if (value := values[task.id]) is None:
        (reason,) = answers.funnels["domain"].rejected
        place = config.out / WRITING / task.kind
        raise InputError(f"{place}: the model's domain was rejected: {reason}")
    return Domain.model_validate(value)


def _contents(
    config: GenerateConfig, domain: Domain, words: Mapping[str, Any], answers: Texts
) -> tuple[dict[str, Any], dict[str, Funnel]]:
    """The files' contents; each stage has its own seed, so that a change affects no other stage."""

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

    def review(candidates: Sequence[Signature]) -> Collection[str]:
        tasks = [filter_task(each, domain) for each in candidates]
        verdicts = answers.answers("filters", tasks)
        refused = {name for name, value in verdicts.items() if not value or refusal_of(value)}
        pairs = zip(candidates, tasks, strict=True)
        return [str(each) for each, task in pairs if task.id in refused]

    signatures = draw_signatures(
        domain, records, config.tools, rng("tools"), funnels["tools"], review=review
    )
    every_value = [value for record in records.values() for value in record.values()]
    writer = ToolWriter(domain, words, ValueSource(rng("values"), every_value), rng("names"))
    baseline, noisy, blockers = _families(writer, signatures)
    _describe([*baseline, *noisy, *blockers], domain, {str(v) for v in every_value}, answers)
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
    drafts: dict[str, TextTask] = {}
    names = [tool["name"] for tool in (*baseline, *noisy)]
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
        query_id = f"{domain.name}_query_{i:04}"
        drafts[query_id] = query_task(start, text, record, domain, names)
        queries.append(
            {"query_id": query_id, "task_id": task_id, "query_text": text}
            | {"correct_answer": str(record[start.target]), **shared}
            | {"input_values": {name: record[name] for name in start.inputs}}
        )
    written = answers.answers("queries", [*drafts.values()])
    for query in queries:
        if value := written.get(drafts[query["query_id"]].id):
            query["query_text"] = value["query"].strip()
    funnels |= {f"model: {kind}": funnel for kind, funnel in answers.funnels.items()}
    values = (datatypes, {"order_cases": records}, baseline, noisy, blockers, tasks, catalogue)
    return dict(zip(FILES, (*values, queries), strict=True)), funnels


def _records(config: GenerateConfig, domain: Domain, rng: Random) -> Records:
    """Drawn records, or those of a file."""
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


def _describe(
    tools: Iterable[dict[str, Any]], domain: Domain, stated: Collection[str], answers: Texts
) -> None:
    """Replaces descriptions of tools with those of a model or of a user's file."""
    families: dict[str, dict[str, dict[str, Any]]] = {}
    for tool in tools:
        family = families.setdefault(tool.get("baseline_tool_name", tool["name"]), {})
        family[tool.get("noise_type", EXECUTABLE)] = tool
    tasks = {
        task.id: (task, family)
        for family in families.values()
        for task in [description_task(family, domain, stated)]
    }
    written = answers.answers("descriptions", [task for task, _ in tasks.values()])
    for name, value in written.items():
        for label, text in (value or {"descriptions": {}})["descriptions"].items():
            tasks[name][1][label]["description"] = text.strip()


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
    )
