"""Types of the dicts that are written; the schemas are derived from them."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from ..calibration.changes import Changes
from ..records.judgements import Usage


class QueuedItem(TypedDict):
    """An item that a cascade leaves to humans, most uncertain first.

    Attributes:
        item_id: The item.
        tested_model: Tested model of the response.
        line: 1-based line of its row.
        reason: ``no verdict`` of the last judge asked, ``not asked`` since the budget ended, or
            ``in doubt``: the strong judge is uncertain too.
        entropy: Uncertainty of the last judge that was asked; null without a verdict.
    """

    item_id: str
    tested_model: str
    line: int
    reason: Literal["no verdict", "not asked", "in doubt"]
    entropy: float | None


class ScheduledTurn(TypedDict):
    """A judgement of an audit, in the order of asking.

    Attributes:
        turn: Position in that order, from 0.
        run: Run of the audit, a folder in ``runs/``.
        name: Variant that is judged, as in ``variants.jsonl``.
    """

    turn: int
    run: str
    name: str


class _Recorded(TypedDict):
    """Fields of every record of a command that asks models.

    Attributes:
        id: The record's own id.
        line: 1-based line of its row in the input.
        fingerprint: Hash of the request and the model; it changes with every relevant setting.
        usage: Calls and tokens, repetitions included.
        cost_usd: Price in US dollars; null if the price of a call is unknown.
    """

    id: str
    line: int
    fingerprint: str
    usage: Usage
    cost_usd: float | None


class Failure(_Recorded):
    """A task that did not reach a model, or got no answer.

    Attributes:
        tested_model: The tested model; ``model`` where it writes texts.
        reason: As for an unscored judgement, such as ``timeout``.
        detail: The failure, in a sentence.
        case_id: The case, if it is known.
        task: The task of a benchmark, or the hash of a request for a text.
        plan_sha256: SHA-256 of the text of the plan that was to be carried out.
        seed: For a text to be written, the seed's id.
        kind: For a text to be written, its kind.
        model: For a text to be written, the model.
        attempts: For a text to be written, the replies before the failure.
    """

    tested_model: NotRequired[str]
    reason: str
    detail: str
    case_id: NotRequired[str]
    task: NotRequired[str]
    plan_sha256: NotRequired[str]
    seed: NotRequired[str]
    kind: NotRequired[str]
    model: NotRequired[str]
    attempts: NotRequired[list[Attempt]]


class _Answered(_Recorded):
    """Fields of the answer of a tested model.

    Attributes:
        case_id: The case.
        tested_model: The tested model.
        model_response: Its raw reply; one with native tool calls as a chat message in JSON.
        is_readable: True if a plan or steps can be read in the reply.
        finish_reason: Why the endpoint ended the reply, such as ``stop`` or ``length``.
        refusal: The refusal that the endpoint stated separately from the reply; null without.
        served_model: The model by the endpoint's own name.
        latency_s: Seconds until the answer; null if not measured.
        settings: Sampling settings of the request.
        prompt_set: The prompts.
        format_demanded: True if the prompts demand the benchmark's format, else null.
        messages: The request; pictures by path and SHA-256.
    """

    case_id: str
    tested_model: str
    model_response: str
    is_readable: bool
    finish_reason: str | None
    refusal: str | None
    served_model: str | None
    latency_s: float | None
    settings: dict[str, Any] | None
    prompt_set: str
    format_demanded: bool | None
    messages: list[dict[str, Any]]


@with_config(ConfigDict(extra="allow"))
class Prediction(_Answered):
    """A prediction, and with ``--full`` the fields of its case, as in a line of cases.

    Attributes:
        reasoning_content: The model's reasoning, if the reply itself is empty.
    """

    reasoning_content: NotRequired[str]


class Round(TypedDict):
    """A review of a draft, and the answer after it.

    Attributes:
        critique: The review.
        endorses: True if the review keeps the draft.
        critique_finish_reason: Why the endpoint ended the review.
        critic_served_model: The reviewer by the endpoint's own name.
        model_response: The answer after it; null if the draft was kept.
        finish_reason: Reason why the endpoint ended the answer.
        refusal: The refusal that the endpoint stated separately from the answer.
    """

    critique: str
    endorses: bool | None
    critique_finish_reason: str | None
    critic_served_model: str | None
    model_response: str | None
    finish_reason: str | None
    refusal: str | None


@with_config(ConfigDict(extra="allow"))
class Refined(_Answered):
    """A draft after its review, and with drafts of ``--full`` the fields of its case.

    Attributes:
        method: Method of refinement, such as ``review``.
        mode: The reviewer, ``self`` or ``critic``, or the substitute for a review.
        guide: Guide of the review; null for modes without one.
        draft_sha256: SHA-256 of the draft's text.
        is_unchanged: True if the plan or steps are those of the draft.
        critique: The last review; empty without.
        critic_model: The reviewer; null without one.
        rounds: Every review, and the answer after it.
        review_prompt_set: The prompts of reviews.
        is_oracle: True if the review saw the reference.
    """

    method: str
    mode: str
    guide: str | None
    draft_sha256: str
    is_unchanged: bool
    critique: str
    critic_model: str | None
    rounds: list[Round]
    review_prompt_set: str
    is_oracle: bool


class PlayedCall(TypedDict):
    """A call that was carried out.

    Attributes:
        name: The tool.
        arguments: Its arguments; null if they can't be read.
        content: Its result.
        is_error: True if the result is an error.
    """

    name: str
    arguments: dict[str, Any] | None
    content: Any
    is_error: bool


class PlayedStep(_Recorded):
    """A step-wise prediction that was carried out.

    Attributes:
        case_id: The case.
        tested_model: The tested model.
        task: The task of the benchmark.
        plan_sha256: SHA-256 of the prediction's text.
        result: ``same_state`` as after the reference, ``other_state``, ``error`` of a call,
            ``no_reference`` to compare with, or ``not_executable``.
        detail: The first error, or why nothing was carried out; empty otherwise.
        reference_changes: True if the reference changes the state; null if unknown.
        calls: The calls, in order.
        latency_s: Null, as no model is asked.
    """

    case_id: str
    tested_model: str
    task: str
    plan_sha256: str
    result: Literal["same_state", "other_state", "error", "no_reference", "not_executable"]
    detail: str
    reference_changes: bool | None
    calls: list[PlayedCall]
    latency_s: float | None


class Corrected(TypedDict):
    """Differences between a successful run and the first pass.

    Attributes:
        substep: The first substep at which they differ.
        kinds: All kinds of correction that apply; empty for none.
        later_changed: Later substeps with another action.
        scope: Value of ``--scope`` of the command.
    """

    substep: str
    kinds: list[str]
    later_changed: int
    scope: str


class Branched(_Recorded):
    """A case that a tested model carried out.

    Attributes:
        tested_model: The tested model.
        case_id: The case.
        trial: From 0.
        first_success: True if the first pass is right by the reference.
        success: True if the result is.
        branches: Runs after the first.
        accepted: True if the verifier accepted the last run; null if none was asked.
        correction: Difference between a right result and a wrong first pass; null otherwise.
        memory: With ``--memory``: measures of the case, for inside or outside of the memory.
        votes: For ``self-consistency-plan``: number of runs that agree with the result.
        voters: For ``self-consistency-plan``: number of runs with final outputs.
        attempts: For ``reflexion``: number of runs.
        reflections: For ``reflexion``: the texts between the runs.
        latency_s: Seconds of all calls; null if none was measured.
        requests: Requests for text; one for several samples counts once.
        samples: Replies to them.
        forward_passes: Requests for the probabilities of labels, which generate nothing.
        forward_tokens: Tokens sent with forward passes.
        elapsed_s: Seconds from start to end.
        runs: The first pass and the result, as lines of ``trajectories.jsonl``.
    """

    tested_model: str
    case_id: str
    trial: int
    first_success: bool
    success: bool
    branches: int
    accepted: bool | None
    correction: Corrected | None
    memory: NotRequired[dict[str, int]]
    votes: NotRequired[int]
    voters: NotRequired[int]
    attempts: NotRequired[int]
    reflections: NotRequired[list[str]]
    latency_s: float | None
    requests: int
    samples: int
    forward_passes: int
    forward_tokens: int
    elapsed_s: float
    runs: list[dict[str, Any]]


class Attempt(TypedDict):
    """A reply to a request for a text.

    Attributes:
        fingerprint: Hash of the request and the model.
        reply: The raw reply.
        finish_reason: Why the endpoint ended it.
        refusal: The refusal that the endpoint stated separately from the reply.
        served_model: The model by the endpoint's own name.
        complaints: The rules that it breaks: ``code``, and ``text`` as the model reads it.
    """

    fingerprint: str
    reply: str
    finish_reason: str | None
    refusal: str | None
    served_model: str | None
    complaints: list[dict[str, str]]


class WrittenText(_Recorded):
    """A text that a model wrote or failed to write.

    Attributes:
        kind: Kind of text to be written.
        model: The model.
        seed: For ``build``: the seed's id.
        task: For ``build``: hash of the request.
        value: The text or its parts; null if none was accepted.
        rejected: The rule that the last reply broke; null if a text was accepted.
        complaints: Complaints about the text, in the words that the model got.
        attempts: Every reply.
        latency_s: Seconds of all calls; null if none was measured.
        settings: Sampling settings.
        prompt_set: The prompts.
    """

    kind: str
    model: str
    seed: NotRequired[str]
    task: NotRequired[str]
    value: Any
    rejected: str | None
    complaints: list[str]
    attempts: list[Attempt]
    latency_s: float | None
    settings: dict[str, Any]
    prompt_set: str


class BuildManifest(TypedDict):
    """Record of a run of ``build``.

    Attributes:
        apbjudge: Version.
        command: ``build``.
        config: The settings.
        inputs: SHA-256 of the files of each input.
        writing: Texts by a model: ``models``, ``prompts``, ``texts`` by kind and outcome,
            ``not_asked`` by kind and reason; null if none was asked.
        outputs: SHA-256 of the files.
    """

    apbjudge: str
    command: Literal["build"]
    config: dict[str, Any]
    inputs: dict[str, dict[str, str]]
    writing: dict[str, Any] | None
    outputs: dict[str, str]


class TaskCount(TypedDict):
    """Tasks of a kind.

    Attributes:
        inputs: Number of inputs.
        shortest: Tools of the shortest path.
        tasks: Number of such tasks.
    """

    inputs: int
    shortest: int
    tasks: int


class Generator(TypedDict):
    """The generator of a benchmark, as ``generated.json`` states it.

    Attributes:
        generator: Version of the generator; equal versions and settings give equal bytes.
        version: Version of apbjudge.
        settings: The settings.
        texts: Model, prompts and files of the texts; absent without any.
    """

    generator: str
    version: str
    settings: dict[str, Any]
    texts: NotRequired[dict[str, Any]]


class ReportedJudge(TypedDict):
    """A judge of a report.

    Attributes:
        judge: The judge.
        note: A remark that applies to every figure; null if there is none.
        runs: Folders of its runs.
        rows: Rows.
        scored: Number of rows with a verdict.
        unscored: Number of the other rows, by reason.
    """

    judge: str
    note: str | None
    runs: list[str]
    rows: int
    scored: int
    unscored: dict[str, int]


class TableJson(TypedDict):
    """A table of a report.

    Attributes:
        key: Its name for ``--table``.
        number: Its number in the paper; empty for a table of our own.
        title: Its title.
        heads: Heads of the columns that name the rows.
        columns: Metrics by section: ``key``, ``title``, ``unit``, ``better``, ``bounds``,
            ``section``, ``meaning``.
        rows: Lines: ``judge``, ``heads``, ``counts`` by section, and ``cells`` by section and
            column with the fields of an estimate; ``best`` is true in the best set.
        notes: Remarks.
        counted: Meaning of the second number of counts: rows ``scored``, or ``pairs``.
        level: Confidence level of the intervals, 0 to 1.
        paper: The paper, by its arXiv id.
    """

    key: str
    number: str
    title: str
    heads: list[str]
    columns: list[dict[str, Any]]
    rows: list[dict[str, Any]]
    notes: list[str]
    counted: str
    level: float
    paper: str


class ReportJson(TypedDict):
    """A report.

    Attributes:
        apbjudge: Version.
        judges: The judges.
        judge_settings: Settings of the judges by title; null unless asked for by name.
        tested_models: Settings of the tested models by title; null if no run has any.
        changes: Items on which two runs differ; null unless asked for by name.
        tables: The tables.
    """

    apbjudge: str
    judges: list[ReportedJudge]
    judge_settings: list[dict[str, str]] | None
    tested_models: list[dict[str, str]] | None
    changes: Changes | None
    tables: list[TableJson]


class ReproducedPart(TypedDict):
    """A table or figure of a paper.

    Attributes:
        place: Such as ``Table 1``.
        title: Its title.
        state: ``made``, or the reason why not.
        detail: The data that it needs, the command, or why nothing makes it.
        command: The command that makes it, if ``reproduce`` does not.
        note: A remark on the published figures.
        missing: Models of the paper without a row of ours, and missing rows of the other models.
        figures: Names of our figures.
        compared: Published figures and ours: judge, heads, section and column; ``published`` in
            the unit of the metric, ``printed`` as in the paper, ``is_inside`` of our interval, and
            the fields of an estimate.
        table: Our table; null if none was made.
    """

    place: str
    title: str
    state: str
    detail: str
    command: str
    note: str
    missing: list[str]
    figures: list[str]
    compared: list[dict[str, Any]]
    table: TableJson | None


class ReproducedJson(TypedDict):
    """A paper's tables and figures.

    Attributes:
        paper: Its title.
        arxiv: Its arXiv id.
        note: A remark on it.
        parts: Its tables and figures.
        tested_models: Settings of the tested models by title, a row for each in each run.
        unjudged: Folders of predictions without judgements.
    """

    paper: str
    arxiv: str
    note: str
    parts: list[ReproducedPart]
    tested_models: list[dict[str, str]]
    unjudged: list[str]
