"""From cases to predictions: a session, and its counts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...document.display import Shown
from ...errors import OptionError
from ...judge.llm_judge import REFUSED
from ...judge.source import data_roots
from ...llm.resources import Resources
from ...records.own_columns import OF_CASES
from ...records.own_rows import own_rows
from ...records.run_folder import PREDICTIONS, cases_in
from ...runs.loop import Events
from ...runs.results import CallCounts, ModelRun, Tally
from ...runs.shards import Shard, part_of
from ...trajectories.convert import read_tool_list
from .asking import AskingSession, folder_named
from .config import CasesConfig, PredictConfig
from .prompt_sets import PromptSet
from .prompts import CasePromptMaker
from .source import Cases, CaseSource, DraftSource
from .worker import PREDICTION_RECORDS, PredictWorker, Row


class PredictionCounts(CallCounts):
    """Counts of the predictions of one tested model.

    Attributes:
        predicted: Predictions, including all kinds below.
        unreadable: Predictions in which no plan, steps or rejection can be read, empty ones
            included.
        truncated: Predictions cut off at the limit of tokens.
        refused: Predictions in which the model or a filter of its provider declined to answer.
        empty: Predictions without any text.
        only_thinking: Empty predictions with the model's thinking and no reply.
        unchanged: Refined predictions that equal their draft.
        reused: Replies taken from the reply cache, whose tokens and costs are not counted.
        served_models: Number of reports of each name by the endpoint.
    """

    predicted: int = 0
    unreadable: int = 0
    truncated: int = 0
    refused: int = 0
    empty: int = 0
    only_thinking: int = 0
    unchanged: int = 0
    reused: int = 0
    served_models: dict[str, int] = {}

    @staticmethod
    def count(tally: Tally, row: Row) -> None:
        """Counts a prediction."""
        tally.n += Counter(
            predicted=1,
            unreadable=row.get("is_readable") is False,
            truncated=row.get("finish_reason") == "length",
            refused=row.get("finish_reason") in REFUSED or bool(row.get("refusal")),
            unchanged=row.get("is_unchanged") is True,
            empty=not row["model_response"].strip(),
            only_thinking="reasoning_content" in row,
        )
        if row.get("served_model"):
            tally.by["served_models"][row["served_model"]] += 1


@dataclass(frozen=True, slots=True, repr=False)
class PredictionRun(Shown, ModelRun[PredictionCounts]):
    """Finished predictions; accepted wherever a file of them is. See ``ModelRun``."""

    file = PREDICTIONS
    counts_type = PredictionCounts

    def _printed(self) -> str:
        from .results_text import prediction_text

        return prediction_text(self.counts)


def session_of(
    cases: Cases, config: PredictConfig, resources: Resources, events: Events
) -> AskingSession[PredictionRun]:
    """The session of a configuration; without ``out`` its folder is named after all of it."""
    specs = config.specs
    if len({(spec.max_image_bytes, spec.max_text_bytes, spec.frames) for spec in specs}) > 1:
        raise OptionError(
            "--max-image-bytes, --max-text-bytes, --frames: expected the same for all tested models"
        )
    source = case_source(cases, config, config.out, part_of(config), note=events.note)
    source.models, source.samples = [spec.model for spec in specs], config.samples
    maker = CasePromptMaker.of(config.prompts, source.roots, specs[0])
    full = config.full or config.tools is not None  # the judge of the answers needs the tools too
    identity = {
        "command": "predict",
        "models": {spec.model: spec.asked for spec in specs},
        "prompts": [maker.prompts.name, maker.prompts.digest],
        "full": full,
        **source.reading.identity,
    }
    return AskingSession(
        folder=config.out or folder_named(cases, source, specs, identity, "predictions"),
        run=PredictionRun,
        kind=PREDICTION_RECORDS,
        source=source,
        specs=specs,
        resources=resources,
        known_by=identity,
        worker=lambda asked_models: PredictWorker(asked_models, maker, full=full),
        about={**about_cases(source, maker.prompts), "samples": config.samples},
        events=events,
        in_memory=config.out is None,
        overwrite=config.overwrite,
        keeps_replies=False,
    )


def about_cases(source: CaseSource | DraftSource, prompts: PromptSet) -> dict[str, Any]:
    """The fields of a manifest about files and prompts."""
    return {
        "data_root": str(source.data_roots[0]) if source.data_roots else None,
        "prompts": {
            "name": prompts.name,
            "sha256": prompts.digest,
            "shows_condition": prompts.shows_condition,
        },
    }


def case_source(
    cases: Cases,
    config: CasesConfig,
    out: Path | None = None,
    part: Shard | None = None,
    *,
    note: Callable[[str], object],
) -> CaseSource:
    """Cases of a file or in memory, for a run with or without a folder.

    Args:
        cases: The cases.
        config: Settings for reading them.
        out: The run's folder, if there is one.
        part: The part of them to read; None for all.
        note: Called with entries of the file of tools that are not tools.

    Raises:
        InputError: If the columns can't be read.
        OptionError: If the path for files is not a folder.
    """
    rows = cases_in(Path(cases)) if isinstance(cases, str | os.PathLike) else cases
    known = None if part is None else part.reading
    rows, reading = own_rows(rows, config.columns, OF_CASES, split=config.data_split, known=known)
    return CaseSource(
        rows=rows,
        shard=part,
        reading=reading.of_run(out),
        tools=() if config.tools is None else read_tool_list(config.tools, note),
        data_roots=data_roots(config.data_root),
    )
