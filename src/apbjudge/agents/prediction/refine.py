"""From drafts to final answers: each draft is reviewed, and rewritten by its own model.

Refinement as in the Agent Planning Benchmark, arXiv:2606.04874, section 5.3 and appendix C.7: two
calls a round, drafts are never requested again, and the tested model always writes the final
answer. A final answer counts as it is, even if it is cut off or can't be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

from ...errors import InputError, OptionError, RowError, visible
from ...judge.config import JudgeSpec
from ...judge.llm_judge import LLMJudge
from ...judge.source import data_roots
from ...llm import Client
from ...llm.model_spec import ModelSpec
from ...llm.resources import Resources
from ...memory import Rows, path_of
from ...options import takes
from ...records import Item
from ...records.own_runs import is_own, named_path
from ...records.responses import read_response
from ...records.run_folder import PREDICTIONS, cases_of, mapping, read_manifest
from ...runs.loop import QUIET, Events, Job
from ...runs.shards import part_of
from .asking import AskingSession, carry_out_alone, folder_named, resources_of
from .config import RefineConfig, TestedModelSpec
from .prompt_sets import PromptSet, load_prompt_set
from .prompts import VIEW_NAMES, CasePromptMaker, logged
from .reviews import (
    REVIEW_NAMES,
    REVIEW_PATHS,
    Draft,
    JudgeReviewer,
    ModelReviewer,
    Review,
    Reviewer,
    StaticReviewer,
)
from .session import PredictionRun, about_cases
from .source import DraftSource, RefineTask
from .worker import (
    PREDICTION_RECORDS,
    Account,
    AskedModel,
    AskingWorker,
    account_of,
    attempted,
    failure,
    own_fields,
    response_of,
)
from .worker import Row as JsonRow

_NO_LIMIT = 10**6
"""A number of pictures that no case reaches, so that the reviewing judge sees all of them."""

Drafts = str | PathLike[str] | Rows
"""A folder or a file of predictions, or a run of ``predict``."""


@dataclass(slots=True)
class _Account(Account):
    """Usage and cost of the calls of a row, and the record of each round."""

    rounds: list[JsonRow] = field(default_factory=list[JsonRow])


class RefineWorker(AskingWorker):
    """Turns a draft into a final answer."""

    def __init__(
        self,
        asked_models: Sequence[AskedModel],
        prompts: CasePromptMaker,
        reviewer: Reviewer,
        review_prompts: PromptSet,
        config: RefineConfig,
    ) -> None:
        self._asked_models = {asked_model.spec.model: asked_model for asked_model in asked_models}
        self._prompts = prompts
        self._reviewer = reviewer
        self._review_prompts = review_prompts
        self._config = config

    def job(self, row: RefineTask) -> Job[JsonRow]:
        """The job of a draft; raises RowError if its case can't be shown."""
        item = row.item
        asked_model = self._tested_model_of(item.tested_model)
        prompt = self._prompts.make(item)
        asked_model.check(prompt)
        draft = Draft(item, prompt, row.sample, asked_model)
        self._reviewer.check(draft)
        fields = {
            "id": item.item_id,
            "case_id": item.case_id,
            "tested_model": item.tested_model,
            "line": item.line,
            "fingerprint": asked_model.fingerprint(prompt.messages(), row.sample, item.response),
        }
        account = _Account()
        return Job(
            fields,
            lambda: attempted(fields, account, self._refine(draft, fields, row, account)),
        )

    def _tested_model_of(self, tested_model: str) -> AskedModel:
        """The tested model of that name, or the only one of that name at any provider."""
        if (asked_model := self._asked_models.get(tested_model)) is not None:
            return asked_model
        bare = {
            name: name.rpartition("/")[2].casefold() for name in (tested_model, *self._asked_models)
        }
        same = [name for name in self._asked_models if bare[name] == bare[tested_model]]
        if len(same) != 1:
            expected = f"one of {', '.join(same or self._asked_models)} (--model names more)"
            raise RowError("tested_model", expected, tested_model)
        return self._asked_models[same[0]]

    async def _refine(
        self, draft: Draft, fields: JsonRow, task: RefineTask, account: _Account
    ) -> JsonRow:
        first, last = draft.item, JsonRow()
        for _ in range(self._config.rounds):
            review = await self._reviewer.review(draft)
            account.add(review)
            if review.failure is not None:
                return failure(fields, *review.failure, account.usage)
            account.rounds.append(_round_of(review))
            if review.endorses or not review.text:
                break
            last, item = await self._final(draft, review, account)
            is_same = is_unchanged(draft.item, item)
            draft = replace(draft, item=item)
            if is_same:
                break
        row = self._row(first, draft, fields, account, last)
        own = {} if task.case is None else own_fields(task.case)
        return own | row | {"is_oracle": self._config.with_reference or task.is_oracle}

    async def _final(self, draft: Draft, review: Review, account: _Account) -> tuple[JsonRow, Item]:
        """Requests the final answer of a round."""
        view = draft.prompt.view
        asked = self._review_prompts.render(
            f"{'steps' if view.k else 'plan'}.final",
            {
                **asdict(view),
                "draft": draft.text,
                "critique": review.text,
                "is_critique_above": self._reviewer.continues(draft),
                "guide": self._config.guide,
            },
        )
        messages = [
            *self._reviewer.continued(draft, review.text),
            {"role": "user", "content": asked},
        ]
        asked_model = draft.asked_model
        request = asked_model.request(messages, draft.sample, draft.item.case_id)
        completion = await asked_model.ask(request)
        account.add(completion)
        response = response_of(completion)
        row = {
            **account_of(completion),
            "settings": {"max_tokens": request.max_tokens, **request.settings},
            "messages": logged(messages, draft.prompt.images),
        }
        account.rounds[-1] |= {
            "model_response": response,
            "finish_reason": completion.finish_reason,
            "refusal": completion.refusal,
        }
        item = draft.item
        prediction = read_response(response, item.form, item.condition.horizon)
        return row, item.model_copy(update={"response": response, "prediction": prediction})

    def _row(
        self, first: Item, draft: Draft, fields: JsonRow, account: _Account, last: JsonRow
    ) -> JsonRow:
        config, final = self._config, draft.item
        return {
            "id": fields["id"],
            "case_id": fields["case_id"],
            "tested_model": fields["tested_model"],
            "model_response": final.response,
            "method": config.method,
            "mode": config.mode,
            "guide": config.guide if config.mode in ("self", "critic") else None,
            "draft_sha256": sha256(first.response.encode()).hexdigest(),
            "is_unchanged": is_unchanged(first, final),
            "is_readable": final.prediction.kind != "text",
            "critique": account.rounds[-1]["critique"] if account.rounds else "",
            "critic_model": self._reviewer.model,
            "rounds": account.rounds,
            "finish_reason": last.get("finish_reason"),
            "refusal": last.get("refusal"),
            "served_model": last.get("served_model"),
            **account.to_json(),
            "settings": last.get("settings"),
            "prompt_set": self._prompts.prompts.name,
            "review_prompt_set": self._review_prompts.name,
            "format_demanded": final.format_demanded or None,
            "line": fields["line"],
            "fingerprint": fields["fingerprint"],
            "messages": last.get("messages", []),
        }


def _round_of(review: Review) -> JsonRow:
    return {
        "critique": review.text,
        "endorses": review.endorses,
        "critique_finish_reason": review.finish_reason,
        "critic_served_model": review.served_model,
        "model_response": None,
        "finish_reason": None,
        "refusal": None,
    }


def is_unchanged(before: Item, after: Item) -> bool:
    """True if two answers are equal: as parsed if both can be parsed, else as text."""
    if before.response.strip() == after.response.strip():
        return True
    first, second = before.prediction, after.prediction
    if "text" in (first.kind, second.kind):
        return False
    return first == second


# Session ------------------------------------------------------------------------------------------


@takes(config=RefineConfig)
def refine(
    drafts: Drafts,
    config: RefineConfig,
    *,
    client: Client | None = None,
    events: Events = QUIET,
) -> PredictionRun:
    """Reviews drafts, and has them rewritten by the tested models that wrote them.

    Without ``out`` everything stays in memory. Each row has the id and the tested model of its
    draft, so that ``report --refined METHOD=RUN`` pairs them once both are graded.

    Args:
        drafts: A run of ``predict``, its folder, a JSONL file of predictions, or these as dicts.
        config: The settings; options take precedence.
        client: Answers requests in place of the network.
        events: Callbacks during the run.

    Raises:
        OptionError: If a setting, a prompt set or a model's access is unusable, or ``out`` holds
            another run.
        InputError: If the file of drafts or of cases as a whole is unusable.
    """
    resources = resources_of(config, client, events)
    return carry_out_alone(refine_session(drafts, config, resources, events))


@dataclass(frozen=True, slots=True)
class _Origin:
    """The origin of drafts.

    Attributes:
        rows: The file of drafts.
        cases: The file of their cases; None if the rows have all fields.
        manifest: The run's manifest; empty without a run.
    """

    rows: Path
    cases: Path | None
    manifest: Mapping[str, Any]

    @classmethod
    def of(cls, drafts: Drafts, cases: Path | None) -> _Origin:
        """The origin of drafts, from their run or file.

        Raises:
            InputError: If there are no drafts, or the cases of the run were moved.
        """
        path = path_of(drafts, "drafts")
        rows = path / PREDICTIONS if path.is_dir() else path
        if not rows.exists():
            raise InputError(f"{rows}: can't be read: No such file or directory")
        return cls(rows, cases or cases_of(rows), read_manifest(rows.parent))

    def _named(self, stated: object, option: str) -> Path | None:
        return named_path(self.rows.parent, self.manifest, stated, option)

    @property
    def home(self) -> Path:
        """Base folder of relative paths in the cases."""
        file = self.cases
        with suppress(InputError):  # a missing file of a case is reported for its row
            stated = self.manifest.get("cases", self.manifest.get("input"))
            file = file or self._named(stated, "--cases")
        return (file or self.rows).parent

    @property
    def data_root(self) -> Path | None:
        """The run's folder for files; None if it does not exist any more."""
        stated = self._named(self.manifest.get("data_root"), "--data-root")
        return stated if stated is not None and stated.is_dir() else None

    @property
    def specs(self) -> tuple[TestedModelSpec, ...]:
        """The tested models as the run asked them.

        Raises:
            OptionError: If an untrusted manifest states an address for prompts and keys.
        """
        models = mapping(self.manifest.get("models"))
        specs = tuple(
            TestedModelSpec(**mapping(mapping(of).get("settings"))) for of in models.values()
        )
        for spec in specs if not is_own(self.manifest) else ():
            if spec.api_base or spec.api_base_file is not None or spec.params:
                raise OptionError(
                    f"--model: {visible(str(self.rows))} is of a run that was not made by you on "
                    f"this machine, and it names addresses or parameters of {visible(spec.model)}: "
                    "expected --model MODEL@ADDRESS, got nothing"
                )
        return specs

    @property
    def prompts(self) -> str:
        """The prompt set of the run."""
        stated = str(mapping(self.manifest.get("prompts")).get("name") or "neutral@1")
        return str(self._named(stated, "--prompts")) if stated.endswith(".toml") else stated


def refine_session(
    drafts: Drafts, config: RefineConfig, resources: Resources, events: Events
) -> AskingSession[PredictionRun]:
    """The session of a configuration; without ``out`` its folder is named after all of it.

    Raises:
        OptionError: If a setting or a prompt set is unusable, or no tested model is known.
        InputError: If the cases do not exist.
    """
    origin = _Origin.of(drafts, config.cases)
    specs = config.model or origin.specs
    if not specs:
        raise OptionError("--model: expected the tested models of the drafts, got nothing")
    for spec in () if config.model else specs:
        if where := ", ".join([*spec.api_base, *filter(None, [str(spec.api_base_file or "")])]):
            events.note(f"note: {spec.model} is asked at {where}, as the run of the drafts was")
    source = DraftSource(
        rows=origin.rows,
        cases=origin.cases,
        data_roots=data_roots(config.data_root or origin.data_root),
        home=origin.home,
        shard=part_of(config),
    )
    maker = CasePromptMaker.of(config.prompts or origin.prompts, source.roots, specs[0])
    texts, critic = review_set(config), config.critic
    if config.with_reference:
        events.note("note: oracle: the judge sees the reference; report shows its results apart")
    if config.mode == "judge":
        events.note(
            "note: the drafts are reviewed by a judge: graded by the same judge, they are improved "
            "against their own measure"
        )
    elif config.mode != "static" and config.guide == "codes":
        events.note(
            "note: the review goes by the six error codes that judges flag: a judge with these "
            "codes may favour its results"
        )

    def worker(asked_models: Sequence[AskedModel]) -> RefineWorker:
        tested, other = asked_models[: len(specs)], asked_models[len(specs) :]
        reviewer = _reviewer(config, texts, other[0] if other else None, source.roots)
        return RefineWorker(tested, maker, reviewer, texts, config)

    identity = {
        "command": "refine",
        "method": config.method,
        "rounds": config.rounds,
        "critic": critic.asked if critic is not None else None,
        "models": {spec.model: spec.asked for spec in specs},
        "prompts": [maker.prompts.name, maker.prompts.digest],
        "review_prompts": [texts.name, texts.digest],
    }
    return AskingSession(
        folder=config.out or folder_named(drafts, source, specs, identity, config.method),
        run=PredictionRun,
        kind=PREDICTION_RECORDS,
        source=source,
        specs=specs,
        helpers={} if critic is None else {"--critic": critic},
        resources=resources,
        known_by=identity,
        worker=worker,
        about={
            **about_cases(source, maker.prompts),
            "cases": None if origin.cases is None else str(origin.cases),
            "method": config.method,
        },
        events=events,
        in_memory=config.out is None,
        overwrite=config.overwrite,
    )


def _reviewer(
    config: RefineConfig, texts: PromptSet, critic: AskedModel | None, roots: Sequence[Path]
) -> Reviewer:
    """The reviewer of a configuration."""
    if config.mode == "static":
        return StaticReviewer()
    if config.mode != "judge" or critic is None:
        return ModelReviewer(texts, config.guide, critic)
    settings: dict[str, Any] = critic.spec.model_dump(include={*ModelSpec.model_fields})
    spec = JudgeSpec(**settings, blind=not config.with_reference, max_images=_NO_LIMIT)
    judge = LLMJudge(spec, critic.client, roots=roots, sees=critic.sees)
    judge.option = critic.option
    return JudgeReviewer(judge, critic, is_oracle=config.with_reference)


def review_set(config: RefineConfig) -> PromptSet:
    """The texts of reviews; raises OptionError if they can't be used."""
    names = (*VIEW_NAMES, *REVIEW_NAMES)
    return load_prompt_set(
        config.review_prompts, kind="review_prompts", paths=REVIEW_PATHS, names=names
    )
