"""Signatures of the public functions, made by ``python -m tests.support.signatures``."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from pandas import DataFrame

from .agents.cases.build import Build
from .agents.cases.check import CaseReport
from .agents.cases.config import AskConfig, BuildConfig, CheckConfig
from .agents.cases.writing.config import WriteConfig
from .agents.environments.base import Benchmark
from .agents.environments.branching.analysis import EntropyReport
from .agents.environments.branching.config import BranchRunConfig, EntropyConfig
from .agents.environments.branching.run import Branching
from .agents.environments.config import SimulateConfig
from .agents.environments.execution.config import ExecuteConfig
from .agents.environments.execution.execute import ExecutionRun
from .agents.environments.execution.validate import ValidationReport
from .agents.environments.execution.validate_config import ValidateConfig
from .agents.environments.planbench.blocking import BlockPlan
from .agents.environments.planbench.config import (
    BlockPlanConfig,
    DataCheckConfig,
    GenerateConfig,
    PathsConfig,
    TextsConfig,
)
from .agents.environments.planbench.generation.checks import DataCheck
from .agents.environments.planbench.generation.generate import GeneratedBenchmark
from .agents.environments.planbench.paths import PathReport
from .agents.environments.simulate import Simulation
from .agents.prediction.config import PredictConfig, PromptConfig, RefineConfig, TestedModelSpec
from .agents.prediction.session import PredictionRun
from .audits.config import AuditConfig
from .audits.session import Audit, Prepared
from .calibration.config import CalibrationConfig, CompareConfig, LabelPlanConfig
from .calibration.results import Comparison, LabelPlan, ReliabilityReport
from .integrations.config import ExportConfig, ScaleConfig
from .integrations.scores import ScoreExport
from .judge.cascade import CascadeCurve
from .judge.config import CascadeConfig, GradeConfig, InitConfig, JudgeSpec
from .judge.doctor import Checkup
from .judge.project import Project
from .judge.prompt import SentPrompt
from .judge.session import Run
from .labelling.config import LabelConfig
from .labelling.label import Labelled
from .llm.base import Client
from .llm.cache import CacheStats
from .llm.limits import RunsConfig
from .protocols.base import Protocol
from .records.items import Item
from .records.judgements import Verdict
from .reports.config import ReportConfig, ReproduceConfig
from .reports.report import Report
from .reports.reproduce import Reproduction
from .rubrics.rubric import Rubric
from .runs.batch_files import Export, Import
from .runs.loop import Events
from .runs.results import ModelRun
from .trajectories.base import TrajectoryProtocol
from .trajectories.convert import Conversion

_Path = str | PathLike[str]
_Rows = _Path | Iterable[Mapping[str, Any]] | DataFrame

async def agrade(
    rows: _Rows,
    config: GradeConfig | None = None,
    *,
    map: str | Sequence[str] = (),
    data_split: str = "",
    protocol: Protocol | TrajectoryProtocol | str | None = None,
    cases: _Rows | None = None,
    tested_model: str = "",
    rubric: str | None = None,
    data_root: _Path | None = None,
    shard: str | None = None,
    interval: Literal["jeffreys", "jackknife", "bca", "percentile"] = "jeffreys",
    n_resamples: int = 10000,
    bootstrap_seed: int = 20260101,
    max_cost: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_seconds: float | None = None,
    cache: bool | _Path | None = None,
    cache_kind: Literal["sqlite", "segments"] = "sqlite",
    claim: Literal["lock", "file"] = "lock",
    take_over: bool = False,
    out: _Path | None = None,
    work: _Rows | None = None,
    upload_every: float = 60.0,
    overwrite: bool = False,
    missing: Literal["report", "count"] = "report",
    judge: Callable[[Item], Verdict | Mapping[str, Any] | Awaitable[Verdict | Mapping[str, Any]]]
    | JudgeSpec
    | str
    | Sequence[JudgeSpec | str]
    | None = None,
    by: str | Sequence[str] = (),
    panel: Literal["majority", "mean", "dawid-skene"] = "majority",
    escalate: str | JudgeSpec | None = None,
    when: str = "entropy>0.5",
    regrade: bool = False,
    batch: bool = False,
    from_: str = "auto",
    outcomes: _Rows | None = None,
    success: str = "",
    accept_loss: float | None = None,
    grounding: Literal["paper", "released", "answer-only"] = "paper",
    same_text: str | JudgeSpec | None = None,
    api_base: str | Sequence[str] = (),
    api_base_file: _Rows | None = None,
    transport: Literal["auto", "litellm", "direct"] = "auto",
    temperature: float | None = 0.0,
    seed: int | None = 0,
    max_reply_tokens: int = 2048,
    params: dict[str, Any] = ...,
    vision: Literal["auto", "yes", "no"] = "auto",
    max_image_bytes: int = 5242880,
    max_text_bytes: int = 200000,
    frames: int = 0,
    timeout_s: float = 120.0,
    deadline_s: float = 900.0,
    outage_s: float = 300.0,
    retries: int = 4,
    max_concurrency: int = 64,
    concurrency_per_endpoint: int | None = None,
    rpm: float | None = None,
    tpm: float | None = None,
    price_input: float | None = None,
    price_output: float | None = None,
    price_cached: float | None = None,
    max_reasks: int = 2,
    samples: int = 1,
    images: bool = True,
    max_images: int = 16,
    require_files: bool = False,
    logprobs: bool = False,
    blind: bool = False,
    evidence: bool = True,
    lead: bool = True,
    client: Client | None = None,
    events: Events = ...,
) -> Run:
    """Grades predictions while the event loop goes on; see ``grade``.

    Cancelled, it stops: calls in flight are cancelled, what has finished is kept, and the same call
    continues from ``out``. ``grade`` too can be called where a loop runs, as in a notebook, but
    blocks it until it ends, or until a KeyboardInterrupt stops it in the same way.
    """

def audit(
    judge: str | JudgeSpec,
    prepared: Prepared | None = None,
    config: AuditConfig | None = None,
    *,
    api_base: str | Sequence[str] = (),
    api_base_file: _Rows | None = None,
    transport: Literal["auto", "litellm", "direct"] = "auto",
    temperature: float | None = 0.0,
    seed: int | None = 0,
    max_reply_tokens: int = 2048,
    params: dict[str, Any] = ...,
    vision: Literal["auto", "yes", "no"] = "auto",
    max_image_bytes: int = 5242880,
    max_text_bytes: int = 200000,
    frames: int = 0,
    timeout_s: float = 120.0,
    deadline_s: float = 900.0,
    outage_s: float = 300.0,
    retries: int = 4,
    max_concurrency: int = 64,
    concurrency_per_endpoint: int | None = None,
    rpm: float | None = None,
    tpm: float | None = None,
    price_input: float | None = None,
    price_output: float | None = None,
    price_cached: float | None = None,
    max_reasks: int = 2,
    samples: int = 1,
    max_images: int = 16,
    require_files: bool = False,
    logprobs: bool = False,
    evidence: bool = True,
    lead: bool = True,
    shard: str | None = None,
    map: str | Sequence[str] = (),
    data_split: str = "",
    protocol: str = "auto",
    cases: _Rows | None = None,
    tested_model: str = "",
    rubric: str | None = None,
    data_root: _Path | None = None,
    rows: _Rows | None = None,
    labels: _Rows | None = None,
    own: str | Sequence[str] = (),
    quick: bool = False,
    adjudicator: str | None = None,
    bases: int | None = None,
    seed_of_draw: int = 20260101,
    max_cost: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_seconds: float | None = None,
    cache: bool | _Path | None = None,
    cache_kind: Literal["sqlite", "segments"] = "sqlite",
    claim: Literal["lock", "file"] = "lock",
    take_over: bool = False,
    out: _Path | None = None,
    work: _Rows | None = None,
    upload_every: float = 60.0,
    overwrite: bool = False,
    run: RunsConfig | None = None,
    client: Client | None = None,
    events: Events = ...,
) -> Audit:
    """Runs the probes on a judge.

    A second call with the same folder ``out`` continues where the first one stopped; without a
    folder, everything is in memory. Judgements beyond a limit are unscored (``budget``). Repeated
    questions have their own cache, so that they get new replies.

    With ``shard``, it audits a part of the cases. ``shards_merge`` merges the runs of all parts,
    and the same audit without ``shard`` makes the card in the merged folder.

    Args:
        judge: ``static``, a litellm model name, or a JudgeSpec with all settings.
        config: Choice of questions; by default all, on the shipped cases. Options take precedence.
        prepared: Questions from ``prepare``, in place of ``config``.
        run: Folder, cache and limits; options take precedence.
        client: Answers requests in place of the network.
        events: Callbacks that report progress.
        api_base: Addresses of the endpoint's replicas; without it the provider's own address
            (your own server, such as hosted_vllm or ollama, has none).
        api_base_file: Further addresses, one per line, in a file or in the files of a folder;
            read again every 30 s, so that replicas may come and go.
        transport: litellm, direct (an OpenAI-compatible server, without a provider library), or
            auto: direct if the request is exactly the one that litellm would send.
        temperature: Sampling temperature; 1 with several samples; the word default: the
            provider's.
        seed: Sampling seed; sample k sends seed + k; the word default sends none.
        max_reply_tokens: Limit of a reply, in tokens.
        params: Further parameters, passed to litellm unchanged, such as reasoning_effort; no
            API keys: all of them are written to the manifest.
        vision: Whether the model can see; auto asks litellm's model table.
        max_image_bytes: Largest picture on disk, in bytes.
        max_text_bytes: Largest text file of a case, in bytes: a larger one is not shown to a
            judge, and predict refuses the case.
        frames: Frames to show of each video of a case, evenly spaced; 0 shows no videos. Needs
            pip install 'apbjudge[video]'.
        timeout_s: Seconds after which a call counts as hung.
        deadline_s: Seconds after an item's first attempt in which new attempts may start.
        outage_s: Seconds without any answer after which the endpoint counts as dead.
        retries: How often a call is retried after a temporary failure; five times as often
            after 429, half as often after a time-out.
        max_concurrency: Largest number of calls in flight.
        concurrency_per_endpoint: Calls in flight at most to each address; this times the number
            of addresses replaces max_concurrency.
        rpm: Largest number of calls per minute.
        tpm: Largest number of tokens per minute, sent and received.
        price_input: US dollars per million tokens sent; default: litellm's price table.
        price_output: US dollars per million tokens received; default: litellm's price table.
        price_cached: US dollars per million tokens from the endpoint's prefix cache; default:
            price_input.
        max_reasks: How often the judge is asked again after a reply that is empty, malformed,
            off the scale, contradictory or cut off; refusals are not repeated.
        samples: Independent replies per item; the majority decides.
        max_images: Largest number of pictures; longer lists of frames are sampled evenly.
        require_files: Don't judge a row with a file that can't be shown to the judge: a video,
            a PDF, a text that is too long, a picture for a model that can't see.
        logprobs: Request the probabilities of the verdict's tokens.
        evidence: Show proven findings to the judge, and enforce them on its verdict.
        lead: Send the first item of a case ahead, so that the others hit the endpoint's prefix
            cache.
        shard: Only part I of N of the rows, split by case; or part I of the index that shards
            split writes. shards merge merges the parts.
        map: Columns from which fields are read, if their names differ:
            query=question,model_response=choices[0].text. FIELD= alone ignores the field.
        data_split: Split of a data set on disk that has several.
        protocol: holistic, step-wise, tool-extraneous, tool-broken, unsolvable, efficiency, or
            auto: the protocol follows from each row's split or fields. case: the rows are
            cases, and the cases themselves are audited.
        cases: File of cases, joined with the predictions on id.
        tested_model: Name of the tested model for rows and logs without one.
        rubric: name@version of a shipped rubric, or a TOML file; with #E4 only that code.
            Default: the rubric of each protocol.
        data_root: Folder in which paths of pictures are looked up first; the folder of the
            cases or predictions is next.
        rows: Predictions with their cases, as for grade; without it the shipped cases are used.
        labels: Human labels of the rows, JSONL or CSV; or the folder of another judge's run.
        own: Tested model that is the judge itself.
        quick: A hundred replies at most; those that are asked for again come on top. A judge
            that makes no calls is audited whole.
        adjudicator: Rater whose label decides; default: the majority of raters.
        bases: Plans taken as correct, one a case; without it 60, or 8 with --quick.
        seed_of_draw: Seed of every sample of what is asked.
        max_cost: Budget of a session in US dollars.
        max_calls: Calls that a session may make.
        max_tokens: Tokens that a session may send and receive.
        max_seconds: Seconds that a session may take, from its first call.
        cache: Whether replies are cached for later runs, or the folder for them. None caches
            all but those of a client of your own.
        cache_kind: sqlite, or segments: each process appends to a file of its own, which works
            on network disks.
        claim: How other processes are kept out of a run's folder: a lock of the operating
            system, or a file (claim.json), which works on network disks without locks.
        take_over: With --claim file: take over a folder that a dead process on another machine
            claimed; waits for three missed heartbeats, 90 s.
        out: Folder of the run; the same command continues the run in it.
        work: Local folder for a run whose --out is an address such as s3://bucket/run. Default:
            in the user's state folder.
        upload_every: Seconds between uploads to an --out that is an address.
        overwrite: Replace a run with other input or settings in --out; the same run continues
            with or without it.

    Raises:
        OptionError: If an option, the rubric or the judge's access is unusable, or the folder
            holds another audit.
        InputError: If an input file as a whole is unusable.
    """

def batch_export(
    rows: _Rows,
    *,
    map: str | Sequence[str] = (),
    data_split: str = "",
    protocol: str = "auto",
    cases: _Rows | None = None,
    tested_model: str = "",
    rubric: str | None = None,
    data_root: _Path | None = None,
    shard: str | None = None,
    interval: Literal["jeffreys", "jackknife", "bca", "percentile"] = "jeffreys",
    n_resamples: int = 10000,
    bootstrap_seed: int = 20260101,
    max_cost: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_seconds: float | None = None,
    cache: bool | _Path | None = None,
    cache_kind: Literal["sqlite", "segments"] = "sqlite",
    claim: Literal["lock", "file"] = "lock",
    take_over: bool = False,
    out: _Path | None = None,
    work: _Rows | None = None,
    upload_every: float = 60.0,
    overwrite: bool = False,
    missing: Literal["report", "count"] = "report",
    judge: str | JudgeSpec | Sequence[str | JudgeSpec] = ...,
    by: str | Sequence[str] = (),
    panel: Literal["majority", "mean", "dawid-skene"] = "majority",
    escalate: str | JudgeSpec | None = None,
    when: str = "entropy>0.5",
    regrade: bool = False,
    batch: bool = False,
    from_: str = "auto",
    outcomes: _Rows | None = None,
    success: str = "",
    accept_loss: float | None = None,
    grounding: Literal["paper", "released", "answer-only"] = "paper",
    same_text: str | JudgeSpec | None = None,
    api_base: str | Sequence[str] = (),
    api_base_file: _Rows | None = None,
    transport: Literal["auto", "litellm", "direct"] = "auto",
    temperature: float | None = 0.0,
    seed: int | None = None,
    max_reply_tokens: int = 16384,
    params: dict[str, Any] = ...,
    vision: Literal["auto", "yes", "no"] = "auto",
    max_image_bytes: int = 5242880,
    max_text_bytes: int = 200000,
    frames: int = 0,
    timeout_s: float = 600.0,
    deadline_s: float = 3600.0,
    outage_s: float = 300.0,
    retries: int = 4,
    max_concurrency: int = 64,
    concurrency_per_endpoint: int | None = None,
    rpm: float | None = None,
    tpm: float | None = None,
    price_input: float | None = None,
    price_output: float | None = None,
    price_cached: float | None = None,
    max_reasks: int = 2,
    samples: int = 1,
    images: bool = True,
    max_images: int | None = None,
    require_files: bool = False,
    logprobs: bool = False,
    blind: bool = False,
    evidence: bool = True,
    lead: bool = True,
    tools: _Rows | None = None,
    prompts: str = "neutral@1",
    model: str | TestedModelSpec | Sequence[str | TestedModelSpec] = ...,
    preset: str | None = None,
    full: bool = False,
) -> Export:
    """Writes a batch file of every request without a reply in the cache.

    Export, have the file answered, import; the same ``grade``, or ``predict`` if ``model`` is set,
    then has every reply in its cache. The model must have the same settings and address then.

    Args:
        rows: Predictions for a judge, or cases for a tested model.
        map: Columns from which fields are read, if their names differ:
            query=question,model_response=choices[0].text. FIELD= alone ignores the field.
        data_split: Split of a data set on disk that has several.
        protocol: holistic, step-wise, tool-extraneous, tool-broken, unsolvable, efficiency; for
            whole trajectories outcome, planbench-xl, slate; or auto: the protocol follows from
            each row's split or fields; for a log it is outcome. case: the rows are cases, and
            the cases themselves are judged.
        cases: File of cases, joined with the predictions on id; for planbench-xl the folder of
            the benchmark's data.
        tested_model: Name of the tested model for rows and logs without one.
        rubric: name@version of a shipped rubric, or a TOML file; with #E4 only that code.
            Default: the rubric of each protocol.
        data_root: Folder in which paths of files are looked up first; then that of the cases.
        shard: Only part I of N of the rows, split by case; or part I of the index that shards
            split writes. shards merge merges the parts.
        interval: percentile or bca: bootstrap intervals, by case, for every figure. jeffreys or
            jackknife: for coefficients; rates and means then have Wilson intervals, whose
            coverage is better.
        n_resamples: Bootstrap resamples of bca and percentile.
        bootstrap_seed: Seed of the bootstrap; --seed is the judge's.
        max_cost: Budget of a session in US dollars.
        max_calls: Calls that a session may make.
        max_tokens: Tokens that a session may send and receive.
        max_seconds: Seconds that a session may take, from its first call.
        cache: Whether replies are cached for later runs, or the folder for them. None caches
            all but those of a client of your own.
        cache_kind: sqlite, or segments: each process appends to a file of its own, which works
            on network disks.
        claim: How other processes are kept out of a run's folder: a lock of the operating
            system, or a file (claim.json), which works on network disks without locks.
        take_over: With --claim file: take over a folder that a dead process on another machine
            claimed; waits for three missed heartbeats, 90 s.
        out: Folder of the run; the same command continues the run in it.
        work: Local folder for a run whose --out is an address such as s3://bucket/run. Default:
            in the user's state folder.
        upload_every: Seconds between uploads to an --out that is an address.
        overwrite: Replace a run with other input or settings in --out; the same run continues
            with or without it.
        missing: Cases of --cases without a prediction of a tested model: report lists them;
            count treats them as not correct, so that CR is over all cases.
        judge: static (no network; the default), or a litellm model such as openai/gpt-5,
            optionally with its address: MODEL@http://HOST/v1. Repeat it for a panel.
        by: Group results by category, modality, stage, steps, horizon, dataset, finish_reason,
            contradiction_kind; of whole trajectories also outcome (solved, failed) and ending.
        panel: How several judges decide; mean: the mean of their grades.
        escalate: Stronger judge, MODEL or MODEL@ADDRESS, for items on which the first judge is
            uncertain.
        when: Which items are escalated: entropy>0.5, entropy.max>0.5, entropy.E4>0.3, or
            share=0.2 for the most uncertain fifth.
        regrade: Judge predictions that come with published judgements (judge_model, judgement);
            apbjudge report takes such judgements as they are.
        batch: Send all calls through the provider's batch interface: cheaper, within a day.
        from_: Format of a log of trajectories; auto: it follows from the content.
        outcomes: JSONL or CSV file with rewards of trajectories, joined with the log on id.
        success: Score of the log that decides which trajectories succeeded, such as
            'correctness>=0.8': NAME for a true-or-false score, NAME>=X, NAME<=X, or NAME==WORD;
            reward works too. Default: the success that the log states, a score of that name, or
            its only true-or-false score.
        accept_loss: Share of a log's content that may stay unread, such as 25%. Default: 10 %,
            and 2 % if a model judges it or predictions are made from it.
        grounding: Which right answers count under planbench-xl: paper: the target came from a
            trusted tool; released: the same, and no untrusted tool returned it too; answer-
            only: all.
        same_text: Model (MODEL or MODEL@ADDRESS) that decides under slate whether free texts in
            outputs and arguments mean the same; with it, outputs that differ from the recorded
            ones only in wording count too.
        api_base: Addresses of the endpoint's replicas; without it the provider's own address
            (your own server, such as hosted_vllm or ollama, has none).
        api_base_file: Further addresses, one per line, in a file or in the files of a folder;
            read again every 30 s, so that replicas may come and go.
        transport: litellm, direct (an OpenAI-compatible server, without a provider library), or
            auto: direct if the request is exactly the one that litellm would send.
        temperature: Sampling temperature; 1 with several samples; the word default: the
            provider's.
        seed: Sampling seed; sample k sends seed + k - 1; default sends none.
        max_reply_tokens: Limit of a reply, in tokens; a reply cut off there is not asked for
            again.
        params: Further parameters, passed to litellm unchanged, such as reasoning_effort; no
            API keys: all of them are written to the manifest.
        vision: Whether the model can see; auto asks litellm's model table.
        max_image_bytes: Largest picture on disk, in bytes.
        max_text_bytes: Largest text file of a case, in bytes: a larger one is not shown to a
            judge, and predict refuses the case.
        frames: Frames to show of each video of a case, evenly spaced; 0 shows no videos. Needs
            pip install 'apbjudge[video]'.
        timeout_s: Seconds after which a call counts as hung.
        deadline_s: Seconds after a case's first attempt within which the last one begins.
        outage_s: Seconds without any answer after which the endpoint counts as dead.
        retries: How often a call is retried after a temporary failure; five times as often
            after 429, half as often after a time-out.
        max_concurrency: Largest number of calls in flight.
        concurrency_per_endpoint: Calls in flight at most to each address; this times the number
            of addresses replaces max_concurrency.
        rpm: Largest number of calls per minute.
        tpm: Largest number of tokens per minute, sent and received.
        price_input: US dollars per million tokens sent; default: litellm's price table.
        price_output: US dollars per million tokens received; default: litellm's price table.
        price_cached: US dollars per million tokens from the endpoint's prefix cache; default:
            price_input.
        max_reasks: How often the judge is asked again after a reply that is empty, malformed,
            off the scale, contradictory or cut off; refusals are not repeated.
        samples: Predictions per case and model; with several the temperature is 1.
        images: Show pictures to models that can see.
        max_images: Pictures that a case may have at most; one with more is a bad case.
        require_files: Don't judge a row with a file that can't be shown to the judge: a video,
            a PDF, a text that is too long, a picture for a model that can't see.
        logprobs: Request the probabilities of the verdict's tokens.
        blind: Judge without the reference.
        evidence: Show proven findings to the judge, and enforce them on its verdict.
        lead: Send the first item of a case ahead, so that the others hit the endpoint's prefix
            cache.
        tools: File with the tools of cases that state none: a JSON list, or an OpenAPI 3
            description (JSON, YAML), whose operations are tools.
        prompts: neutral@1, apb@1 (shows whether a case is solvable), bound@1 (plans that code
            can run), or a TOML file.
        model: litellm model with provider, optionally with its addresses: MODEL@http://HOST/v1.
            Repeat it for several tested models.
        preset: apb-2026: sampling settings as in the benchmark's paper, for its models.
        full: Write each prediction with all fields of its case, to be graded without --cases.

    Raises:
        OptionError: If a setting is unusable, or there is no ``out``, the file for the requests.
        InputError: If the rows as a whole are unusable.
    """

def batch_import(answers: str | Path, *, cache: Path | None = None) -> Import:
    """Puts the replies of an answered batch file into the reply cache.

    Failed requests are in the next export, or asked by ``grade``.

    Args:
        answers: The file, as ``vllm run-batch`` writes it.
        cache: Folder of the caches; without it that of all runs.

    Raises:
        InputError: If the file can't be read.
    """

def branch(
    cases: str | PathLike[str] | Sequence[Mapping[str, Any]],
    config: BranchRunConfig | None = None,
    *,
    memory: _Rows | None = None,
    memory_of: Literal["successful", "all"] = "successful",
    memory_k: int = 5,
    memory_unit: Literal["substep", "plan"] = "substep",
    scope: Literal["case", "library"] = "case",
    method: Literal[
        "egb", "self-consistency", "react", "direct", "self-consistency-plan", "reflexion"
    ] = "egb",
    verifier: Literal["oracle", "judge", "none"] = "oracle",
    order: Literal["entropy", "random", "position"] = "entropy",
    max_branches: int = 50,
    max_branches_per_step: int = 5,
    max_trajectories: int | None = None,
    branch_seed: int = 0,
    first: int | None = None,
    shard: str | None = None,
    max_cost: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_seconds: float | None = None,
    cache: bool | _Path | None = None,
    cache_kind: Literal["sqlite", "segments"] = "sqlite",
    claim: Literal["lock", "file"] = "lock",
    take_over: bool = False,
    out: _Path | None = None,
    work: _Rows | None = None,
    upload_every: float = 60.0,
    overwrite: bool = False,
    model: str | TestedModelSpec | Sequence[str | TestedModelSpec] = ...,
    judge: str | TestedModelSpec | None = None,
    same_text: str | TestedModelSpec | None = None,
    samples: int = 10,
    labels: Literal["digits", "letters"] | None = None,
    max_candidates: int = 100,
    trials: int = 1,
    sweep: str = "",
    api_base: str | Sequence[str] = (),
    api_base_file: _Rows | None = None,
    transport: Literal["auto", "litellm", "direct"] = "auto",
    temperature: float | None = 0.0,
    seed: int | None = None,
    max_reply_tokens: int = 16384,
    params: dict[str, Any] = ...,
    vision: Literal["auto", "yes", "no"] = "auto",
    max_image_bytes: int = 5242880,
    max_text_bytes: int = 200000,
    frames: int = 0,
    timeout_s: float = 600.0,
    deadline_s: float = 3600.0,
    outage_s: float = 300.0,
    retries: int = 4,
    max_concurrency: int = 64,
    concurrency_per_endpoint: int | None = None,
    rpm: float | None = None,
    tpm: float | None = None,
    price_input: float | None = None,
    price_output: float | None = None,
    price_cached: float | None = None,
    max_images: int | None = None,
    client: Client | None = None,
    events: Events = ...,
) -> Branching:
    """Lets tested models execute given plans, and branches where they are uncertain.

    Section 5 of arXiv:2604.12126; see ``search``. Without ``out`` everything stays in memory.

    Args:
        cases: A JSONL file of SLATE cases, or cases as dicts.
        config: The settings; options take precedence.
        client: Answers requests in place of the network.
        events: Callbacks during the run.
        memory: An earlier run of branch, or its trajectories.jsonl, whose actions are shown at
            similar substeps. The cases of that run are left out.
        memory_of: Results that are remembered: those that are right by the reference, or all.
        memory_k: Substeps or plans that are shown at most; 0 shows none, as a control with the
            same cases.
        memory_unit: Unit of memory: substep or whole plan.
        scope: Recorded calls that may answer: the case's own, or those of all cases with a tool
            of the same interface.
        method: egb: the likeliest choice of each substep, then branches; self-consistency: the
            same without branches; react: one action a substep; direct: the same without seeing
            what calls return; self-consistency-plan: whole runs that vote on the final outputs;
            reflexion: whole runs until one is right, each after a reflection on the one before.
        verifier: What decides that a run is right, so that the search ends: oracle (the
            reference), judge, or none: all branches are run and the first pass is the result.
        order: Which substep is branched first: the one with the highest entropy or, as
            controls, a random one or the first.
        max_branches: Branches of a case at most.
        max_branches_per_step: Branches at one substep at most.
        max_trajectories: Runs of a case at most, the first pass included: 1 never branches.
            Without it 10 for self-consistency-plan, 5 for reflexion.
        branch_seed: Seed of the random order.
        first: Largest number of tasks, in their order; the same command with a larger number,
            or without it, continues with the others.
        shard: Only part I of N of the rows, split by case; or part I of the index that shards
            split writes. shards merge merges the parts.
        max_cost: Budget of a session in US dollars.
        max_calls: Calls that a session may make.
        max_tokens: Tokens that a session may send and receive.
        max_seconds: Seconds that a session may take, from its first call.
        cache: Whether replies are cached for later runs, or the folder for them. None caches
            all but those of a client of your own.
        cache_kind: sqlite, or segments: each process appends to a file of its own, which works
            on network disks.
        claim: How other processes are kept out of a run's folder: a lock of the operating
            system, or a file (claim.json), which works on network disks without locks.
        take_over: With --claim file: take over a folder that a dead process on another machine
            claimed; waits for three missed heartbeats, 90 s.
        out: Folder of the run; the same command continues the run in it.
        work: Local folder for a run whose --out is an address such as s3://bucket/run. Default:
            in the user's state folder.
        upload_every: Seconds between uploads to an --out that is an address.
        overwrite: Replace a run with other input or settings in --out; the same run continues
            with or without it.
        model: litellm model with provider, optionally with its addresses: MODEL@http://HOST/v1.
            Repeat it for several tested models.
        judge: The verifying model for --verifier judge, MODEL or MODEL@ADDRESS.
        same_text: Model (MODEL or MODEL@ADDRESS) that decides whether free texts in arguments
            mean the same; without it only calls that equal a recorded one by rule get its
            output.
        samples: Samples of each choice at temperature 1; 0 takes the probabilities of labels
            instead, if the endpoint reports them.
        labels: Labels of the candidates for --samples 0; default: letters if there are enough,
            else two digits.
        max_candidates: Number of choices shown, including the choice of no tool.
        trials: Runs of each case and model.
        sweep: Values of a setting, each a run in a folder such as OUT/m-5: m=1,5,10,20 for
            --samples, or b=1,3,5,10 for --max-trajectories.
        api_base: Addresses of the endpoint's replicas; without it the provider's own address
            (your own server, such as hosted_vllm or ollama, has none).
        api_base_file: Further addresses, one per line, in a file or in the files of a folder;
            read again every 30 s, so that replicas may come and go.
        transport: litellm, direct (an OpenAI-compatible server, without a provider library), or
            auto: direct if the request is exactly the one that litellm would send.
        temperature: Sampling temperature; 1 with several samples; the word default: the
            provider's.
        seed: Sampling seed; sample k sends seed + k - 1; default sends none.
        max_reply_tokens: Limit of a reply, in tokens; a reply cut off there is not asked for
            again.
        params: Further parameters, passed to litellm unchanged, such as reasoning_effort; no
            API keys: all of them are written to the manifest.
        vision: Whether the model can see; auto asks litellm's model table.
        max_image_bytes: Largest picture on disk, in bytes.
        max_text_bytes: Largest text file of a case, in bytes: a larger one is not shown to a
            judge, and predict refuses the case.
        frames: Frames to show of each video of a case, evenly spaced; 0 shows no videos. Needs
            pip install 'apbjudge[video]'.
        timeout_s: Seconds after which a call counts as hung.
        deadline_s: Seconds after a case's first attempt within which the last one begins.
        outage_s: Seconds without any answer after which the endpoint counts as dead.
        retries: How often a call is retried after a temporary failure; five times as often
            after 429, half as often after a time-out.
        max_concurrency: Largest number of calls in flight.
        concurrency_per_endpoint: Calls in flight at most to each address; this times the number
            of addresses replaces max_concurrency.
        rpm: Largest number of calls per minute.
        tpm: Largest number of tokens per minute, sent and received.
        price_input: US dollars per million tokens sent; default: litellm's price table.
        price_output: US dollars per million tokens received; default: litellm's price table.
        price_cached: US dollars per million tokens from the endpoint's prefix cache; default:
            price_input.
        max_images: Pictures that a case may have at most; one with more is a bad case.

    Raises:
        OptionError: If a setting or a model's access is unusable, or ``out`` holds another run.
        InputError: If the cases are unusable.
    """

def build(
    source: _Rows = ...,
    config: BuildConfig | None = None,
    *,
    map: str | Sequence[str] = (),
    split: str | Sequence[str] = ...,
    out: _Path = ...,
    source_format: Literal["auto", "trajectories", "functions", "queries", "bfcl", "tau2"] = "auto",
    tools: _Rows | None = None,
    outcomes: _Rows | None = None,
    success: str = "",
    any_outcome: bool = False,
    name: str = "",
    licence: str = "",
    data_root: _Path | None = None,
    n: int | None = None,
    levels: str | Sequence[int] = ...,
    horizons: str | Sequence[int] = ...,
    seed_of_draw: int = 20260101,
    overwrite: bool = False,
    max_cost: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_seconds: float | None = None,
    cache: bool | _Path | None = None,
    cache_kind: Literal["sqlite", "segments"] = "sqlite",
    claim: Literal["lock", "file"] = "lock",
    take_over: bool = False,
    model: str | TestedModelSpec | None = None,
    write: str | Sequence[str] = (),
    repairs: int = 2,
    write_prompts: str = "writing@2",
    api_base: str | Sequence[str] = (),
    api_base_file: _Rows | None = None,
    transport: Literal["auto", "litellm", "direct"] = "auto",
    temperature: float | None = 0.0,
    seed: int | None = None,
    max_reply_tokens: int = 16384,
    params: dict[str, Any] = ...,
    timeout_s: float = 600.0,
    deadline_s: float = 3600.0,
    outage_s: float = 300.0,
    retries: int = 4,
    max_concurrency: int = 64,
    concurrency_per_endpoint: int | None = None,
    rpm: float | None = None,
    tpm: float | None = None,
    price_input: float | None = None,
    price_output: float | None = None,
    price_cached: float | None = None,
    writing: WriteConfig | None = None,
    client: Client | None = None,
    events: Events = ...,
) -> Build:
    """Builds cases from one's own data, by rule alone unless a model is named.

    The same source, settings and version give the same bytes, and so do the same texts of a
    model. Memory does not grow with the source, apart from some bytes a seed and a bounded sample
    of tools.

    Args:
        config: The settings; options take precedence.
        writing: The settings of the model that writes what code can't; options take precedence.
        client: Answers requests in place of the network.
        events: Called back while the model is asked.
        map: Columns from which fields are read, if their names differ:
            query=question,model_response=choices[0].text. FIELD= alone ignores the field.
        source: Logs of trajectories (files, packed or not, a folder, a quoted pattern, or -),
            or a file, table or folder with queries, tools and calls.
        split: Splits to build: holistic_planning, holistic_tool_extraneous,
            holistic_unsolvable, step_wise_planning, step_wise_tool_extraneous,
            step_wise_tool_broken, efficiency, or all. Repeat it for several.
        out: Folder for the cases; a new or empty one.
        source_format: Format of the source; auto: it follows from the content.
        tools: File with the tools of sources without them, as for predict.
        outcomes: File with the outcomes of trajectories, for logs that state none.
        success: Score of the log that decides which trajectories succeeded, such as
            'correctness>=0.8': NAME for a true-or-false score, NAME>=X, NAME<=X, or NAME==WORD;
            reward works too. Default: the success that the log states, a score of that name, or
            its only true-or-false score.
        any_outcome: Also use trajectories that failed or whose outcome is unknown.
        name: Name of the data set; default: that of the file.
        licence: Licence of the source, if its rows state none.
        data_root: Folder to which paths of files are relative; default: that of the source.
        n: Largest number of seeds, drawn at random; default: all.
        levels: Numbers of distractors, each 1 to 50.
        horizons: Numbers of steps of step-wise cases, 1 to 3.
        seed_of_draw: Random seed.
        overwrite: Replace the results of an earlier build in --out.
        max_cost: Budget of a session in US dollars.
        max_calls: Calls that a session may make.
        max_tokens: Tokens that a session may send and receive.
        max_seconds: Seconds that a session may take, from its first call.
        cache: Whether replies are cached for later runs, or the folder for them. None caches
            all but those of a client of your own.
        cache_kind: sqlite, or segments: each process appends to a file of its own, which works
            on network disks.
        claim: How other processes are kept out of a run's folder: a lock of the operating
            system, or a file (claim.json), which works on network disks without locks.
        take_over: With --claim file: take over a folder that a dead process on another machine
            claimed; waits for three missed heartbeats, 90 s.
        model: Model (MODEL or MODEL@ADDRESS) that writes what code can't; without it cases are
            built only by rules.
        write: Texts that it writes: query (harder, more natural, same values), plan (prose of
            the solution), distractors (invented tools), private (a query that lacks a value
            nobody can look up), if the splits use them. Only if named: trajectory (a harder
            query with more tools and a longer solution), contradictory and removal (sentences
            that demand a tool, in place of templates).
        repairs: How often the model is asked again, with the broken rules, for a text that
            breaks one.
        write_prompts: writing@2, or a TOML file.
        api_base: Addresses of the endpoint's replicas; without it the provider's own address
            (your own server, such as hosted_vllm or ollama, has none).
        api_base_file: Further addresses, one per line, in a file or in the files of a folder;
            read again every 30 s, so that replicas may come and go.
        transport: litellm, direct (an OpenAI-compatible server, without a provider library), or
            auto: direct if the request is exactly the one that litellm would send.
        temperature: Sampling temperature; 1 with several samples; the word default: the
            provider's.
        seed: Sampling seed; sample k sends seed + k - 1; default sends none.
        max_reply_tokens: Limit of a reply, in tokens; a reply cut off there is not asked for
            again.
        params: Further parameters, passed to litellm unchanged, such as reasoning_effort; no
            API keys: all of them are written to the manifest.
        timeout_s: Seconds after which a call counts as hung.
        deadline_s: Seconds after a case's first attempt within which the last one begins.
        outage_s: Seconds without any answer after which the endpoint counts as dead.
        retries: How often a call is retried after a temporary failure; five times as often
            after 429, half as often after a time-out.
        max_concurrency: Largest number of calls in flight.
        concurrency_per_endpoint: Calls in flight at most to each address; this times the number
            of addresses replaces max_concurrency.
        rpm: Largest number of calls per minute.
        tpm: Largest number of tokens per minute, sent and received.
        price_input: US dollars per million tokens sent; default: litellm's price table.
        price_output: US dollars per million tokens received; default: litellm's price table.
        price_cached: US dollars per million tokens from the endpoint's prefix cache; default:
            price_input.

    Raises:
        OptionError: If a setting is unusable, or ``out`` holds other files.
        InputError: If a file as a whole is unusable, or no case could be built.
    """

def cache_clear(*, warn: Callable[[str], None] = ...) -> int:
    """Removes all replies and properties of endpoints; returns the number of replies."""

def cache_stats(*, warn: Callable[[str], None] = ...) -> CacheStats:
    """Counts the cached replies; calls ``warn`` if the cache can't be used."""

def calibrate(
    judgements: _Rows | Sequence[_Rows] = ...,
    labels: _Rows = ...,
    config: CalibrationConfig | None = None,
    *,
    interval: Literal["jeffreys", "jackknife", "bca", "percentile"] = "jeffreys",
    n_resamples: int = 10000,
    bootstrap_seed: int = 20260101,
    by: str | Sequence[str] = (),
    cluster: str = "case_id",
    unscored: Literal["exclude", "wrong", "bounds"] = "exclude",
    adjudicator: str | None = None,
    unsure: Literal["include", "exclude"] = "include",
    own: str | None = None,
    epsilon: float = 0.2,
    design: str | None = None,
    target: _Rows | None = None,
    item: str | None = None,
    tested_model: str | None = None,
    verdict: str | None = None,
    score: str | None = None,
    class_column: str | None = None,
    scale: str | None = None,
    judges: str | Sequence[str] = (),
    raters: str | Sequence[str] = (),
    label_columns: str | Sequence[str] = (),
    pairwise: bool = False,
    level: float = 0.95,
) -> ReliabilityReport:
    """Calibrates judges against human labels.

    Args:
        config: The settings; options take precedence.
        interval: percentile or bca: bootstrap intervals, by case, for every figure. jeffreys or
            jackknife: for coefficients; rates and means then have Wilson intervals, whose
            coverage is better.
        n_resamples: Bootstrap resamples of bca and percentile.
        bootstrap_seed: Seed of the bootstrap.
        judgements: Files of judgements or folders of runs, one a judge.
        labels: Human labels, JSONL or CSV.
        by: Break down by tested_model, dataset, category, protocol or another field.
        cluster: Field with equal values in rows that were sampled together, or none.
        unscored: What unscored items count as.
        adjudicator: Rater whose label decides; default: the majority of raters.
        unsure: Whether labels marked unsure count like any other.
        own: Tested model that is the judge itself; default: the one with the judge's name.
        epsilon: Allowance for the judge in the alternative annotator test.
        design: How the labelled items were sampled: random, other-population, hand-picked, or a
            file of plan-labels. Rates of the whole run are then corrected.
        target: Run whose rates are corrected with other-population; default: the rows without
            label.
        item: Column that names the item.
        tested_model: Column that names the tested model, if there are several.
        verdict: Column with the verdict, yes or no.
        score: Column with the score; it needs --scale.
        class_column: Column with the class; it needs --scale.
        scale: Scale of scores or classes: 1..5 (whole numbers), 0..1 (any number),
            'bad<ok<good' (ordered levels), refund,exchange,other (classes) or yes/no. A bar
            adds spellings of a name: 'tie|draw'.
        judges: Columns of the judgements, if each judge has its own.
        raters: Columns of the labels, if each rater has their own; for a run of apbjudge with
            yes or no in each.
        label_columns: Columns of the labels, if they have other names:
            item=ticket,verdict=ok,score=stars,class=topic,rater=who,tested_model=system.
        pairwise: Each row says which of two answers is better: the first, the second, or a tie.
        level: Confidence level of intervals.

    Raises:
        InputError: If a file is unusable or no label belongs to a run.
        OptionError: If a setting is unusable.
    """

def cascade(
    cheap: _Rows = ...,
    strong: _Rows = ...,
    config: CascadeConfig | None = None,
    *,
    labels: _Rows | None = None,
    when: str = "entropy>0",
) -> CascadeCurve:
    """Sets cost against agreement for every threshold, from two finished runs on the same rows.

    Goes down to where the strong judge was asked. Without human labels the agreement is with the
    strong judge's verdicts.

    Args:
        config: The settings; options take precedence.
        cheap: Folder of the cheap judge's run.
        strong: Folder of the strong judge's run.
        labels: Human labels, JSONL or CSV, as the reference instead of the strong judge.
        when: Which entropy decides: entropy>0, entropy.max>0, entropy.E4>0.

    Raises:
        InputError: If a file is unusable.
        OptionError: If a setting is unusable.
    """

def check(
    cases: _Rows | None = None,
    config: CheckConfig | None = None,
    *,
    shard: str | None = None,
    map: str | Sequence[str] = (),
    data_split: str = "",
    data_root: _Path | None = None,
    only: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    findings: _Path | None = None,
    max_cost: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_seconds: float | None = None,
    cache: bool | _Path | None = None,
    cache_kind: Literal["sqlite", "segments"] = "sqlite",
    claim: Literal["lock", "file"] = "lock",
    take_over: bool = False,
    ask: str | JudgeSpec | None = None,
    votes: int = 3,
    run: _Path | None = None,
    api_base: str | Sequence[str] = (),
    api_base_file: _Rows | None = None,
    transport: Literal["auto", "litellm", "direct"] = "auto",
    temperature: float | None = 0.0,
    seed: int | None = 0,
    max_reply_tokens: int = 2048,
    params: dict[str, Any] = ...,
    vision: Literal["auto", "yes", "no"] = "auto",
    max_image_bytes: int = 5242880,
    max_text_bytes: int = 200000,
    frames: int = 0,
    timeout_s: float = 120.0,
    deadline_s: float = 900.0,
    outage_s: float = 300.0,
    retries: int = 4,
    max_concurrency: int = 64,
    concurrency_per_endpoint: int | None = None,
    rpm: float | None = None,
    tpm: float | None = None,
    price_input: float | None = None,
    price_output: float | None = None,
    price_cached: float | None = None,
    max_reasks: int = 2,
    images: bool = True,
    max_images: int = 16,
    require_files: bool = False,
    lead: bool = True,
    asking: AskConfig | None = None,
    client: Client | None = None,
    events: Events = ...,
) -> CaseReport:
    """Checks cases by rule, and asks a judge about the rest where one is named (``ask``).

    What is proven is a fault of a case for certain; what is suspected may be one. Memory grows by
    some bytes a case. Of a part of the rows (``shard``) cases are compared with those of the part
    alone; ``shards_merge`` puts the judge's runs of all parts together, and ``run`` takes the merge
    for a check of all rows that asks nobody.

    Args:
        config: The settings; options take precedence.
        cases: Files of cases, or cases as dicts.
        asking: The settings of the judge that is asked; options take precedence.
        client: Answers requests in place of the network.
        events: Called back while the judge is asked.
        shard: Only part I of N of the rows, split by case; or part I of the index that shards
            split writes. shards merge merges the parts.
        map: Columns from which fields are read, if their names differ:
            query=question,model_response=choices[0].text. FIELD= alone ignores the field.
        data_split: Split of a data set on disk that has several.
        data_root: Folder in which paths of files are looked up first; then that of the cases.
        only: Only these checks, by name.
        ignore: All checks but these.
        findings: JSONL file to write, one finding per line.
        max_cost: Budget of a session in US dollars.
        max_calls: Calls that a session may make.
        max_tokens: Tokens that a session may send and receive.
        max_seconds: Seconds that a session may take, from its first call.
        cache: Whether replies are cached for later runs, or the folder for them. None caches
            all but those of a client of your own.
        cache_kind: sqlite, or segments: each process appends to a file of its own, which works
            on network disks.
        claim: How other processes are kept out of a run's folder: a lock of the operating
            system, or a file (claim.json), which works on network disks without locks.
        take_over: With --claim file: take over a folder that a dead process on another machine
            claimed; waits for three missed heartbeats, 90 s.
        ask: litellm model, optionally with addresses after @, that is asked about claims that
            code can't decide.
        votes: Independent replies about a case.
        run: Folder for the judge's run; the same command continues it. Without it everything
            except cached replies is asked again.
        api_base: Addresses of the endpoint's replicas; without it the provider's own address
            (your own server, such as hosted_vllm or ollama, has none).
        api_base_file: Further addresses, one per line, in a file or in the files of a folder;
            read again every 30 s, so that replicas may come and go.
        transport: litellm, direct (an OpenAI-compatible server, without a provider library), or
            auto: direct if the request is exactly the one that litellm would send.
        temperature: Sampling temperature; 1 with several samples; the word default: the
            provider's.
        seed: Sampling seed; sample k sends seed + k; the word default sends none.
        max_reply_tokens: Limit of a reply, in tokens.
        params: Further parameters, passed to litellm unchanged, such as reasoning_effort; no
            API keys: all of them are written to the manifest.
        vision: Whether the model can see; auto asks litellm's model table.
        max_image_bytes: Largest picture on disk, in bytes.
        max_text_bytes: Largest text file of a case, in bytes: a larger one is not shown to a
            judge, and predict refuses the case.
        frames: Frames to show of each video of a case, evenly spaced; 0 shows no videos. Needs
            pip install 'apbjudge[video]'.
        timeout_s: Seconds after which a call counts as hung.
        deadline_s: Seconds after an item's first attempt in which new attempts may start.
        outage_s: Seconds without any answer after which the endpoint counts as dead.
        retries: How often a call is retried after a temporary failure; five times as often
            after 429, half as often after a time-out.
        max_concurrency: Largest number of calls in flight.
        concurrency_per_endpoint: Calls in flight at most to each address; this times the number
            of addresses replaces max_concurrency.
        rpm: Largest number of calls per minute.
        tpm: Largest number of tokens per minute, sent and received.
        price_input: US dollars per million tokens sent; default: litellm's price table.
        price_output: US dollars per million tokens received; default: litellm's price table.
        price_cached: US dollars per million tokens from the endpoint's prefix cache; default:
            price_input.
        max_reasks: How often the judge is asked again after a reply that is empty, malformed,
            off the scale, contradictory or cut off; refusals are not repeated.
        images: Show pictures to models that can see.
        max_images: Largest number of pictures; longer lists of frames are sampled evenly.
        require_files: Don't judge a row with a file that can't be shown to the judge: a video,
            a PDF, a text that is too long, a picture for a model that can't see.
        lead: Send the first item of a case ahead, so that the others hit the endpoint's prefix
            cache.

    Raises:
        OptionError: If a setting is unusable, or there is nothing to check.
        InputError: If a file can't be read or holds no row.
    """

def compare(
    run_a: _Rows = ...,
    run_b: _Rows = ...,
    config: CompareConfig | None = None,
    *,
    interval: Literal["jeffreys", "jackknife", "bca", "percentile"] = "jeffreys",
    n_resamples: int = 10000,
    bootstrap_seed: int = 20260101,
    labels: _Rows | None = None,
    adjudicator: str | None = None,
    tested_models: str | Sequence[str] = (),
    of_settings: str | Sequence[str] = (),
    cluster: str = "case_id",
    judges: str | Sequence[str] = (),
    primary: str | Sequence[str] = (),
    level: float = 0.95,
) -> Comparison:
    """Compares two judges, two tested models or two rubrics on the same items.

    Rows are paired on item and tested model; on the item alone if two tested models are compared:
    two that are named, or the only one of each run if these differ.

    Args:
        config: The settings; options take precedence.
        interval: percentile or bca: bootstrap intervals, by case, for every figure. jeffreys or
            jackknife: for coefficients; rates and means then have Wilson intervals, whose
            coverage is better.
        n_resamples: Bootstrap resamples of bca and percentile.
        bootstrap_seed: Seed of the bootstrap.
        run_a: Folder of a run, its judgements.jsonl, or a file of another tool's judgements.
        run_b: Another run on the same items; the same run for two of its tested models.
        labels: Human labels, JSONL or CSV; agreement with them is compared too.
        adjudicator: Rater whose label decides; default: the majority of raters.
        tested_models: Only rows of this tested model. Two of them: rows of the first in RUN_A
            against rows of the second in RUN_B.
        of_settings: Only rows of trajectories in this setting, such as react; two of them as
            with --tested-model.
        cluster: Field with equal values in rows that were sampled together, or none.
        judges: Judge, or another tool's metric, in files that hold several; two names: one for
            RUN_A, one for RUN_B.
        primary: Metrics chosen before seeing the runs, such as CR,F1: their p-values are
            adjusted by Holm's method, all others by Benjamini and Hochberg's.
        level: Confidence level of intervals.

    Raises:
        InputError: If a file is unusable, or the runs have no item in common.
        OptionError: If a setting is unusable.
    """

def convert(
    source: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    to: Literal["messages", "atif", "jsonl", "cases", "answers"],
    from_: str = "auto",
    outcomes: str | Path | None = None,
    success: str = "",
    tools: str | Path | None = None,
    tested_model: str = "",
    steps: int = 1,
    at: Literal["all", "quartiles"] = "all",
    accept_loss: float | None = None,
    overwrite: bool = False,
) -> Conversion:
    """Writes the trajectories of a log in another format; memory stays at one trajectory.

    The output appears in one step, once all of it is written.

    Args:
        source: The log: a file, a folder, several files, or a path as for ``read_log``.
        out: File for the rows. For ``atif`` also an empty folder, or a new name without a suffix:
            each trajectory is a file in it.
        to: ``messages``: a row with chat messages for each trajectory. ``atif``: a trajectory of
            that format. ``jsonl``: a row of our own format, which loses nothing. ``cases``:
            step-wise predictions, see ``step_rows``. ``answers``: last messages, see
            ``answer_row``.
        from_: Format of the log; ``auto``: as its content shows.
        outcomes: File with the outcomes of trajectories, for logs that state none.
        success: Score that defines success, see ``SuccessRule``.
        tools: For ``cases``: file of tools, see ``read_tool_list``, for logs without any.
        tested_model: Name of the tested model, for trajectories whose log names none.
        steps: For ``cases``: steps in one prediction, 1 to 3.
        at: For ``cases``: the steps of the agent that are predictions.
        accept_loss: Share of the log's content that may stay unread; None for 10 %, or 2 % for
            ``cases`` and ``answers``.
        overwrite: True if an existing file is replaced.

    Raises:
        InputError: If a file is unusable, no trajectory of the log can be read, or too much stays
            unread.
        OptionError: If an option is unusable or has no effect, or something else is at ``out``.
    """

def doctor(
    predictions: _Rows | None = None,
    *,
    map: str | Sequence[str] = (),
    data_split: str = "",
    protocol: str = "auto",
    cases: _Rows | None = None,
    tested_model: str = "",
    rubric: str | None = None,
    data_root: _Path | None = None,
    shard: str | None = None,
    interval: Literal["jeffreys", "jackknife", "bca", "percentile"] = "jeffreys",
    n_resamples: int = 10000,
    bootstrap_seed: int = 20260101,
    max_cost: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_seconds: float | None = None,
    cache: bool | _Path | None = None,
    cache_kind: Literal["sqlite", "segments"] = "sqlite",
    claim: Literal["lock", "file"] = "lock",
    take_over: bool = False,
    out: _Path | None = None,
    work: _Rows | None = None,
    upload_every: float = 60.0,
    overwrite: bool = False,
    missing: Literal["report", "count"] = "report",
    judge: str | JudgeSpec | Sequence[str | JudgeSpec] = ...,
    by: str | Sequence[str] = (),
    panel: Literal["majority", "mean", "dawid-skene"] = "majority",
    escalate: str | JudgeSpec | None = None,
    when: str = "entropy>0.5",
    regrade: bool = False,
    batch: bool = False,
    from_: str = "auto",
    outcomes: _Rows | None = None,
    success: str = "",
    accept_loss: float | None = None,
    grounding: Literal["paper", "released", "answer-only"] = "paper",
    same_text: str | JudgeSpec | None = None,
    api_base: str | Sequence[str] = (),
    api_base_file: _Rows | None = None,
    transport: Literal["auto", "litellm", "direct"] = "auto",
    temperature: float | None = 0.0,
    seed: int | None = None,
    max_reply_tokens: int = 16384,
    params: dict[str, Any] = ...,
    vision: Literal["auto", "yes", "no"] = "auto",
    max_image_bytes: int = 5242880,
    max_text_bytes: int = 200000,
    frames: int = 0,
    timeout_s: float = 600.0,
    deadline_s: float = 3600.0,
    outage_s: float = 300.0,
    retries: int = 4,
    max_concurrency: int = 64,
    concurrency_per_endpoint: int | None = None,
    rpm: float | None = None,
    tpm: float | None = None,
    price_input: float | None = None,
    price_output: float | None = None,
    price_cached: float | None = None,
    max_reasks: int = 2,
    samples: int = 1,
    images: bool = True,
    max_images: int | None = None,
    require_files: bool = False,
    logprobs: bool = False,
    blind: bool = False,
    evidence: bool = True,
    lead: bool = True,
    tools: _Rows | None = None,
    prompts: str = "neutral@1",
    model: str | TestedModelSpec | Sequence[str | TestedModelSpec] = ...,
    preset: str | None = None,
    full: bool = False,
    wait: float | None = None,
    client: Client | None = None,
) -> list[Checkup]:
    """Asks every endpoint of judges, or of tested models, what it can do.

    At most seven tiny calls each; their results are cached for later runs and estimates. An
    endpoint that does not answer within ``wait`` seconds is asked anyway, and does not work.

    Args:
        predictions: Predictions to grade, or cases for a tested model, for the longest prompt.
        client: Answers in place of the network, which is then not used at all.
        map: Columns from which fields are read, if their names differ:
            query=question,model_response=choices[0].text. FIELD= alone ignores the field.
        data_split: Split of a data set on disk that has several.
        protocol: holistic, step-wise, tool-extraneous, tool-broken, unsolvable, efficiency; for
            whole trajectories outcome, planbench-xl, slate; or auto: the protocol follows from
            each row's split or fields; for a log it is outcome. case: the rows are cases, and
            the cases themselves are judged.
        cases: File of cases, joined with the predictions on id; for planbench-xl the folder of
            the benchmark's data.
        tested_model: Name of the tested model for rows and logs without one.
        rubric: name@version of a shipped rubric, or a TOML file; with #E4 only that code.
            Default: the rubric of each protocol.
        data_root: Folder in which paths of files are looked up first; then that of the cases.
        shard: Only part I of N of the rows, split by case; or part I of the index that shards
            split writes. shards merge merges the parts.
        interval: percentile or bca: bootstrap intervals, by case, for every figure. jeffreys or
            jackknife: for coefficients; rates and means then have Wilson intervals, whose
            coverage is better.
        n_resamples: Bootstrap resamples of bca and percentile.
        bootstrap_seed: Seed of the bootstrap; --seed is the judge's.
        max_cost: Budget of a session in US dollars.
        max_calls: Calls that a session may make.
        max_tokens: Tokens that a session may send and receive.
        max_seconds: Seconds that a session may take, from its first call.
        cache: Whether replies are cached for later runs, or the folder for them. None caches
            all but those of a client of your own.
        cache_kind: sqlite, or segments: each process appends to a file of its own, which works
            on network disks.
        claim: How other processes are kept out of a run's folder: a lock of the operating
            system, or a file (claim.json), which works on network disks without locks.
        take_over: With --claim file: take over a folder that a dead process on another machine
            claimed; waits for three missed heartbeats, 90 s.
        out: Folder of the run; the same command continues the run in it.
        work: Local folder for a run whose --out is an address such as s3://bucket/run. Default:
            in the user's state folder.
        upload_every: Seconds between uploads to an --out that is an address.
        overwrite: Replace a run with other input or settings in --out; the same run continues
            with or without it.
        missing: Cases of --cases without a prediction of a tested model: report lists them;
            count treats them as not correct, so that CR is over all cases.
        judge: static (no network; the default), or a litellm model such as openai/gpt-5,
            optionally with its address: MODEL@http://HOST/v1. Repeat it for a panel.
        by: Group results by category, modality, stage, steps, horizon, dataset, finish_reason,
            contradiction_kind; of whole trajectories also outcome (solved, failed) and ending.
        panel: How several judges decide; mean: the mean of their grades.
        escalate: Stronger judge, MODEL or MODEL@ADDRESS, for items on which the first judge is
            uncertain.
        when: Which items are escalated: entropy>0.5, entropy.max>0.5, entropy.E4>0.3, or
            share=0.2 for the most uncertain fifth.
        regrade: Judge predictions that come with published judgements (judge_model, judgement);
            apbjudge report takes such judgements as they are.
        batch: Send all calls through the provider's batch interface: cheaper, within a day.
        from_: Format of a log of trajectories; auto: it follows from the content.
        outcomes: JSONL or CSV file with rewards of trajectories, joined with the log on id.
        success: Score of the log that decides which trajectories succeeded, such as
            'correctness>=0.8': NAME for a true-or-false score, NAME>=X, NAME<=X, or NAME==WORD;
            reward works too. Default: the success that the log states, a score of that name, or
            its only true-or-false score.
        accept_loss: Share of a log's content that may stay unread, such as 25%. Default: 10 %,
            and 2 % if a model judges it or predictions are made from it.
        grounding: Which right answers count under planbench-xl: paper: the target came from a
            trusted tool; released: the same, and no untrusted tool returned it too; answer-
            only: all.
        same_text: Model (MODEL or MODEL@ADDRESS) that decides under slate whether free texts in
            outputs and arguments mean the same; with it, outputs that differ from the recorded
            ones only in wording count too.
        api_base: Addresses of the endpoint's replicas; without it the provider's own address
            (your own server, such as hosted_vllm or ollama, has none).
        api_base_file: Further addresses, one per line, in a file or in the files of a folder;
            read again every 30 s, so that replicas may come and go.
        transport: litellm, direct (an OpenAI-compatible server, without a provider library), or
            auto: direct if the request is exactly the one that litellm would send.
        temperature: Sampling temperature; 1 with several samples; the word default: the
            provider's.
        seed: Sampling seed; sample k sends seed + k - 1; default sends none.
        max_reply_tokens: Limit of a reply, in tokens; a reply cut off there is not asked for
            again.
        params: Further parameters, passed to litellm unchanged, such as reasoning_effort; no
            API keys: all of them are written to the manifest.
        vision: Whether the model can see; auto asks litellm's model table.
        max_image_bytes: Largest picture on disk, in bytes.
        max_text_bytes: Largest text file of a case, in bytes: a larger one is not shown to a
            judge, and predict refuses the case.
        frames: Frames to show of each video of a case, evenly spaced; 0 shows no videos. Needs
            pip install 'apbjudge[video]'.
        timeout_s: Seconds after which a call counts as hung.
        deadline_s: Seconds after a case's first attempt within which the last one begins.
        outage_s: Seconds without any answer after which the endpoint counts as dead.
        retries: How often a call is retried after a temporary failure; five times as often
            after 429, half as often after a time-out.
        max_concurrency: Largest number of calls in flight.
        concurrency_per_endpoint: Calls in flight at most to each address; this times the number
            of addresses replaces max_concurrency.
        rpm: Largest number of calls per minute.
        tpm: Largest number of tokens per minute, sent and received.
        price_input: US dollars per million tokens sent; default: litellm's price table.
        price_output: US dollars per million tokens received; default: litellm's price table.
        price_cached: US dollars per million tokens from the endpoint's prefix cache; default:
            price_input.
        max_reasks: How often the judge is asked again after a reply that is empty, malformed,
            off the scale, contradictory or cut off; refusals are not repeated.
        samples: Predictions per case and model; with several the temperature is 1.
        images: Show pictures to models that can see.
        max_images: Pictures that a case may have at most; one with more is a bad case.
        require_files: Don't judge a row with a file that can't be shown to the judge: a video,
            a PDF, a text that is too long, a picture for a model that can't see.
        logprobs: Request the probabilities of the verdict's tokens.
        blind: Judge without the reference.
        evidence: Show proven findings to the judge, and enforce them on its verdict.
        lead: Send the first item of a case ahead, so that the others hit the endpoint's prefix
            cache.
        tools: File with the tools of cases that state none: a JSON list, or an OpenAPI 3
            description (JSON, YAML), whose operations are tools.
        prompts: neutral@1, apb@1 (shows whether a case is solvable), bound@1 (plans that code
            can run), or a TOML file.
        model: litellm model with provider, optionally with its addresses: MODEL@http://HOST/v1.
            Repeat it for several tested models.
        preset: apb-2026: sampling settings as in the benchmark's paper, for its models.
        full: Write each prediction with all fields of its case, to be graded without --cases.
        wait: Seconds to wait for an endpoint that refuses connections or is loading, before it
            is checked.

    Raises:
        OptionError: If a setting or a model's access is unusable.
        InputError: If the rows as a whole are unusable.
    """

def entropy(
    rows: _Rows = ...,
    config: EntropyConfig | None = None,
    *,
    labels: _Rows | Sequence[_Rows] = (),
    unit: Literal["nats", "bits"] = "nats",
    estimate: Literal["plug-in", "miller-madow"] = "plug-in",
    bins: int = 5,
    binning: Literal["width", "quantiles"] = "width",
) -> EntropyReport:
    """Compares the entropies of a model's choices with its errors.

    Args:
        config: The settings; options take precedence.
        rows: Runs whose steps carry distributions, as branch writes them, or a run of a judge
            with samples or logprobs.
        labels: Human labels, which show where a judge was wrong.
        unit: Unit of entropies.
        estimate: Entropy of samples: plug-in, or corrected for bias.
        bins: Number of bins.
        binning: Bins equally wide, or with about as many choices in each.

    Raises:
        InputError: If the rows or labels are unusable, or no row has a distribution.
        OptionError: If a judge's run comes without labels, or labels with anything else.
    """

def execute(
    benchmark: str,
    config: ExecuteConfig | None = None,
    *,
    shard: str | None = None,
    call_seconds: int = 20,
    sandbox: Literal["auto", "required", "none"] = "auto",
    python: str | None = None,
    cpu_seconds: int = 300,
    memory_mb: int = 4096,
    first: int | None = None,
    max_cost: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_seconds: float | None = None,
    cache: bool | _Path | None = None,
    cache_kind: Literal["sqlite", "segments"] = "sqlite",
    claim: Literal["lock", "file"] = "lock",
    take_over: bool = False,
    out: _Path | None = None,
    work: _Rows | None = None,
    upload_every: float = 60.0,
    overwrite: bool = False,
    model: str | TestedModelSpec | Sequence[str | TestedModelSpec] = (),
    guide: Literal["codes", "none"] = "codes",
    critic: str | TestedModelSpec | None = None,
    options: str | Sequence[str] = (),
    tasks: str | Sequence[str] = (),
    trials: int = 1,
    max_turns: int | None = 60,
    max_episode_tokens: int | None = None,
    max_episode_cost: float | None = None,
    mode: Literal["direct", "plan-first", "refine", "bound", "steps", "gold", "null"]
    | Sequence[Literal["direct", "plan-first", "refine", "bound", "steps", "gold", "null"]] = ...,
    user_model: str | TestedModelSpec | None = None,
    plans: _Rows | None = None,
    cases: _Rows | None = None,
    prompts: str = "neutral@1",
    review: Literal["self", "critic", "static", "judge"] = "self",
    api_base: str | Sequence[str] = (),
    api_base_file: _Rows | None = None,
    transport: Literal["auto", "litellm", "direct"] = "auto",
    temperature: float | None = 0.0,
    seed: int | None = None,
    max_reply_tokens: int = 16384,
    params: dict[str, Any] = ...,
    vision: Literal["auto", "yes", "no"] = "auto",
    max_image_bytes: int = 5242880,
    max_text_bytes: int = 200000,
    frames: int = 0,
    timeout_s: float = 600.0,
    deadline_s: float = 3600.0,
    outage_s: float = 300.0,
    retries: int = 4,
    max_concurrency: int = 64,
    concurrency_per_endpoint: int | None = None,
    rpm: float | None = None,
    tpm: float | None = None,
    price_input: float | None = None,
    price_output: float | None = None,
    price_cached: float | None = None,
    max_images: int | None = None,
    client: Client | None = None,
    events: Events = ...,
) -> ExecutionRun:
    """Lets tested models carry out the tasks of a benchmark, with or without a plan.

    Each episode's tools work in a process of their own with bounded time and memory, held by
    bubblewrap where that can be used: without keys, network and files to write to. The same call
    with the same folder continues where it was interrupted, in the middle of an episode too.

    Args:
        benchmark: Its name, such as ``tau2-telecom``.
        config: The settings; options take precedence.
        client: Answers requests in place of the network.
        events: Callbacks during the run.
        shard: Only part I of N of the rows, split by case; or part I of the index that shards
            split writes. shards merge merges the parts.
        call_seconds: Seconds that a tool's call may take.
        sandbox: Run the benchmark's tools in bubblewrap: auto: if it works here, with a warning
            if not; required: or run nothing; none: never.
        python: Python interpreter with the benchmark's package; default: this one.
        cpu_seconds: CPU seconds that an episode's tools may use.
        memory_mb: Memory that an episode's tools may use, in MiB.
        first: Largest number of tasks, in their order; the same command with a larger number,
            or without it, continues with the others.
        max_cost: Budget of a session in US dollars.
        max_calls: Calls that a session may make.
        max_tokens: Tokens that a session may send and receive.
        max_seconds: Seconds that a session may take, from its first call.
        cache: Whether replies are cached for later runs, or the folder for them. None caches
            all but those of a client of your own.
        cache_kind: sqlite, or segments: each process appends to a file of its own, which works
            on network disks.
        claim: How other processes are kept out of a run's folder: a lock of the operating
            system, or a file (claim.json), which works on network disks without locks.
        take_over: With --claim file: take over a folder that a dead process on another machine
            claimed; waits for three missed heartbeats, 90 s.
        out: Folder of the run; the same command continues the run in it.
        work: Local folder for a run whose --out is an address such as s3://bucket/run. Default:
            in the user's state folder.
        upload_every: Seconds between uploads to an --out that is an address.
        overwrite: Replace a run with other input or settings in --out; the same run continues
            with or without it.
        model: litellm model with provider, optionally with its addresses: MODEL@http://HOST/v1.
            Repeat it for several tested models.
        guide: Guide of a model's review: the six error codes, or none.
        critic: The reviewing model, MODEL or MODEL@ADDRESS.
        options: A setting of the benchmark, such as block_plan=plan.json.
        tasks: Ids of the tasks; default: all.
        trials: Episodes per task and model; with several the temperature is 1.
        max_turns: Replies in an episode at most, those of the user included.
        max_episode_tokens: Tokens, sent and received, at which an episode ends.
        max_episode_cost: US dollars at which an episode ends.
        mode: direct: without a plan; plan-first: with a plan that the model drafts; refine:
            with that draft after a review; bound: the plan itself, without a model that acts;
            steps: step-wise predictions (--plans), each at the state of the messages before it;
            gold: the benchmark's own solution; null: nothing is done.
        user_model: Plays the user where the benchmark has one, MODEL or MODEL@ADDRESS.
        plans: Plans to execute instead of drafts written here: a run of predict or refine, or a
            JSONL file of predictions on the benchmark's cases.
        cases: With --mode steps: the cases that the predictions are joined with; without it
            those that a run of predict names.
        prompts: Prompt set of drafts and steps; as for predict.
        review: Reviewer of drafts; as --mode of refine.
        api_base: Addresses of the endpoint's replicas; without it the provider's own address
            (your own server, such as hosted_vllm or ollama, has none).
        api_base_file: Further addresses, one per line, in a file or in the files of a folder;
            read again every 30 s, so that replicas may come and go.
        transport: litellm, direct (an OpenAI-compatible server, without a provider library), or
            auto: direct if the request is exactly the one that litellm would send.
        temperature: Sampling temperature; 1 with several samples; the word default: the
            provider's.
        seed: Sampling seed; sample k sends seed + k - 1; default sends none.
        max_reply_tokens: Limit of a reply, in tokens; a reply cut off there is not asked for
            again.
        params: Further parameters, passed to litellm unchanged, such as reasoning_effort; no
            API keys: all of them are written to the manifest.
        vision: Whether the model can see; auto asks litellm's model table.
        max_image_bytes: Largest picture on disk, in bytes.
        max_text_bytes: Largest text file of a case, in bytes: a larger one is not shown to a
            judge, and predict refuses the case.
        frames: Frames to show of each video of a case, evenly spaced; 0 shows no videos. Needs
            pip install 'apbjudge[video]'.
        timeout_s: Seconds after which a call counts as hung.
        deadline_s: Seconds after a case's first attempt within which the last one begins.
        outage_s: Seconds without any answer after which the endpoint counts as dead.
        retries: How often a call is retried after a temporary failure; five times as often
            after 429, half as often after a time-out.
        max_concurrency: Largest number of calls in flight.
        concurrency_per_endpoint: Calls in flight at most to each address; this times the number
            of addresses replaces max_concurrency.
        rpm: Largest number of calls per minute.
        tpm: Largest number of tokens per minute, sent and received.
        price_input: US dollars per million tokens sent; default: litellm's price table.
        price_output: US dollars per million tokens received; default: litellm's price table.
        price_cached: US dollars per million tokens from the endpoint's prefix cache; default:
            price_input.
        max_images: Pictures that a case may have at most; one with more is a bad case.

    Raises:
        OptionError: If a setting, the benchmark or a model's access is unusable, its package is not
            installed, or ``out`` holds another run.
        InputError: If the benchmark or the file of plans can't be read.
    """

def export(
    run: _Path = ...,
    config: ExportConfig | None = None,
    *,
    to: Literal["otlp", "langfuse", "phoenix", "langsmith"] = ...,
    out: _Path | None = None,
    overwrite: bool = False,
    url: str | None = None,
    key_env: str | None = None,
    project: str | None = None,
) -> ScoreExport:
    """Writes the verdicts of a run as scores of its traces, and sends them if an address is given.

    Args:
        config: The run, the tool, the file, and the address.
        run: Folder of a run of grade, or its judgements.jsonl.
        to: OpenTelemetry events in OTLP JSON, scores of Langfuse, annotations of Phoenix, or
            feedback of LangSmith.
        out: File to write: one request body per line, as it is sent.
        overwrite: Replace an existing file.
        url: Address of the server, such as http://127.0.0.1:6006; the path of its API is added.
            Without it nothing is sent.
        key_env: Environment variable that holds the server's key; for langfuse PUBLIC:SECRET.
        project: For langsmith: project id of the traces; newer servers require it.

    Returns:
        Counts of the scores that were written and left out.

    Raises:
        InputError: If the run can't be read or has no judgement of a trace, or the server did not
            accept all scores.
        OptionError: If there is neither a file nor an address, the file exists, or there is no key.
    """

def grade(
    rows: _Rows,
    config: GradeConfig | None = None,
    *,
    map: str | Sequence[str] = (),
    data_split: str = "",
    protocol: Protocol | TrajectoryProtocol | str | None = None,
    cases: _Rows | None = None,
    tested_model: str = "",
    rubric: str | None = None,
    data_root: _Path | None = None,
    shard: str | None = None,
    interval: Literal["jeffreys", "jackknife", "bca", "percentile"] = "jeffreys",
    n_resamples: int = 10000,
    bootstrap_seed: int = 20260101,
    max_cost: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_seconds: float | None = None,
    cache: bool | _Path | None = None,
    cache_kind: Literal["sqlite", "segments"] = "sqlite",
    claim: Literal["lock", "file"] = "lock",
    take_over: bool = False,
    out: _Path | None = None,
    work: _Rows | None = None,
    upload_every: float = 60.0,
    overwrite: bool = False,
    missing: Literal["report", "count"] = "report",
    judge: Callable[[Item], Verdict | Mapping[str, Any] | Awaitable[Verdict | Mapping[str, Any]]]
    | JudgeSpec
    | str
    | Sequence[JudgeSpec | str]
    | None = None,
    by: str | Sequence[str] = (),
    panel: Literal["majority", "mean", "dawid-skene"] = "majority",
    escalate: str | JudgeSpec | None = None,
    when: str = "entropy>0.5",
    regrade: bool = False,
    batch: bool = False,
    from_: str = "auto",
    outcomes: _Rows | None = None,
    success: str = "",
    accept_loss: float | None = None,
    grounding: Literal["paper", "released", "answer-only"] = "paper",
    same_text: str | JudgeSpec | None = None,
    api_base: str | Sequence[str] = (),
    api_base_file: _Rows | None = None,
    transport: Literal["auto", "litellm", "direct"] = "auto",
    temperature: float | None = 0.0,
    seed: int | None = 0,
    max_reply_tokens: int = 2048,
    params: dict[str, Any] = ...,
    vision: Literal["auto", "yes", "no"] = "auto",
    max_image_bytes: int = 5242880,
    max_text_bytes: int = 200000,
    frames: int = 0,
    timeout_s: float = 120.0,
    deadline_s: float = 900.0,
    outage_s: float = 300.0,
    retries: int = 4,
    max_concurrency: int = 64,
    concurrency_per_endpoint: int | None = None,
    rpm: float | None = None,
    tpm: float | None = None,
    price_input: float | None = None,
    price_output: float | None = None,
    price_cached: float | None = None,
    max_reasks: int = 2,
    samples: int = 1,
    images: bool = True,
    max_images: int = 16,
    require_files: bool = False,
    logprobs: bool = False,
    blind: bool = False,
    evidence: bool = True,
    lead: bool = True,
    client: Client | None = None,
    events: Events = ...,
) -> Run:
    """Grades predictions.

    Without ``out`` everything stays in memory. Rows that could not be judged are in the run as
    unscored judgements; where nothing could be judged and ``events`` does not watch, a warning
    says why.

    Args:
        rows: A JSONL file, a run of ``predict`` or ``refine`` or its folder, or rows as dicts: the
            published prediction format or plain JSON; for protocols of whole trajectories a log
            (also a list of its files, each a ``Path``) or rows of ``trajectory_row``.
        config: The settings; options take precedence.
        judge: ``static``, litellm models, or a judge of your own (see ``judge.function``).
        protocol: Its name, or a protocol of your own.
        client: Answers requests in place of the network; its replies are cached only if ``cache``
            is set.
        events: Called back while the run goes on.
        map: Columns from which fields are read, if their names differ:
            query=question,model_response=choices[0].text. FIELD= alone ignores the field.
        data_split: Split of a data set on disk that has several.
        cases: File of cases, joined with the predictions on id; for planbench-xl the folder of
            the benchmark's data.
        tested_model: Name of the tested model for rows and logs without one.
        rubric: name@version of a shipped rubric, or a TOML file; with #E4 only that code.
            Default: the rubric of each protocol.
        data_root: Folder in which paths of pictures are looked up first; the folder of the
            cases or predictions is next.
        shard: Only part I of N of the rows, split by case; or part I of the index that shards
            split writes. shards merge merges the parts.
        interval: percentile or bca: bootstrap intervals, by case, for every figure. jeffreys or
            jackknife: for coefficients; rates and means then have Wilson intervals, whose
            coverage is better.
        n_resamples: Bootstrap resamples of bca and percentile.
        bootstrap_seed: Seed of the bootstrap; --seed is the judge's.
        max_cost: Budget of a session in US dollars.
        max_calls: Calls that a session may make.
        max_tokens: Tokens that a session may send and receive.
        max_seconds: Seconds that a session may take, from its first call.
        cache: Whether replies are cached for later runs, or the folder for them. None caches
            all but those of a client of your own.
        cache_kind: sqlite, or segments: each process appends to a file of its own, which works
            on network disks.
        claim: How other processes are kept out of a run's folder: a lock of the operating
            system, or a file (claim.json), which works on network disks without locks.
        take_over: With --claim file: take over a folder that a dead process on another machine
            claimed; waits for three missed heartbeats, 90 s.
        out: Folder of the run; the same command continues the run in it.
        work: Local folder for a run whose --out is an address such as s3://bucket/run. Default:
            in the user's state folder.
        upload_every: Seconds between uploads to an --out that is an address.
        overwrite: Replace a run with other input or settings in --out; the same run continues
            with or without it.
        missing: Cases of --cases without a prediction of a tested model: report lists them;
            count treats them as not correct, so that CR is over all cases.
        by: Group results by category, modality, stage, steps, horizon, dataset, finish_reason,
            contradiction_kind; of whole trajectories also outcome (solved, failed) and ending.
        panel: How several judges decide; mean: the mean of their grades.
        escalate: Stronger judge, MODEL or MODEL@ADDRESS, for items on which the first judge is
            uncertain.
        when: Which items are escalated: entropy>0.5, entropy.max>0.5, entropy.E4>0.3, or
            share=0.2 for the most uncertain fifth.
        regrade: Judge predictions that come with published judgements (judge_model, judgement);
            apbjudge report takes such judgements as they are.
        batch: Send all calls through the provider's batch interface: cheaper, within a day.
        from_: Format of a log of trajectories; auto: it follows from the content.
        outcomes: JSONL or CSV file with rewards of trajectories, joined with the log on id.
        success: Score of the log that decides which trajectories succeeded, such as
            'correctness>=0.8': NAME for a true-or-false score, NAME>=X, NAME<=X, or NAME==WORD;
            reward works too. Default: the success that the log states, a score of that name, or
            its only true-or-false score.
        accept_loss: Share of a log's content that may stay unread, such as 25%. Default: 10 %,
            and 2 % if a model judges it or predictions are made from it.
        grounding: Which right answers count under planbench-xl: paper: the target came from a
            trusted tool; released: the same, and no untrusted tool returned it too; answer-
            only: all.
        same_text: Model (MODEL or MODEL@ADDRESS) that decides under slate whether free texts in
            outputs and arguments mean the same; with it, outputs that differ from the recorded
            ones only in wording count too.
        api_base: Addresses of the endpoint's replicas; without it the provider's own address
            (your own server, such as hosted_vllm or ollama, has none).
        api_base_file: Further addresses, one per line, in a file or in the files of a folder;
            read again every 30 s, so that replicas may come and go.
        transport: litellm, direct (an OpenAI-compatible server, without a provider library), or
            auto: direct if the request is exactly the one that litellm would send.
        temperature: Sampling temperature; 1 with several samples; the word default: the
            provider's.
        seed: Sampling seed; sample k sends seed + k; the word default sends none.
        max_reply_tokens: Limit of a reply, in tokens.
        params: Further parameters, passed to litellm unchanged, such as reasoning_effort; no
            API keys: all of them are written to the manifest.
        vision: Whether the model can see; auto asks litellm's model table.
        max_image_bytes: Largest picture on disk, in bytes.
        max_text_bytes: Largest text file of a case, in bytes: a larger one is not shown to a
            judge, and predict refuses the case.
        frames: Frames to show of each video of a case, evenly spaced; 0 shows no videos. Needs
            pip install 'apbjudge[video]'.
        timeout_s: Seconds after which a call counts as hung.
        deadline_s: Seconds after an item's first attempt in which new attempts may start.
        outage_s: Seconds without any answer after which the endpoint counts as dead.
        retries: How often a call is retried after a temporary failure; five times as often
            after 429, half as often after a time-out.
        max_concurrency: Largest number of calls in flight.
        concurrency_per_endpoint: Calls in flight at most to each address; this times the number
            of addresses replaces max_concurrency.
        rpm: Largest number of calls per minute.
        tpm: Largest number of tokens per minute, sent and received.
        price_input: US dollars per million tokens sent; default: litellm's price table.
        price_output: US dollars per million tokens received; default: litellm's price table.
        price_cached: US dollars per million tokens from the endpoint's prefix cache; default:
            price_input.
        max_reasks: How often the judge is asked again after a reply that is empty, malformed,
            off the scale, contradictory or cut off; refusals are not repeated.
        samples: Independent replies per item; the majority decides.
        images: Show pictures to models that can see.
        max_images: Largest number of pictures; longer lists of frames are sampled evenly.
        require_files: Don't judge a row with a file that can't be shown to the judge: a video,
            a PDF, a text that is too long, a picture for a model that can't see.
        logprobs: Request the probabilities of the verdict's tokens.
        blind: Judge without the reference.
        evidence: Show proven findings to the judge, and enforce them on its verdict.
        lead: Send the first item of a case ahead, so that the others hit the endpoint's prefix
            cache.

    Raises:
        OptionError: If a setting, the rubric or the judge's access is unusable, or ``out`` holds
            another run.
        InputError: If an input file as a whole is unusable.
    """

def init(
    folder: _Rows = ...,
    config: InitConfig | None = None,
    *,
    map: str | Sequence[str] = (),
    data_split: str = "",
    from_: _Rows | None = None,
) -> Project:
    """Writes example rows, a project file and a CI job; no file that is there is changed.

    Args:
        config: The folder, and the rows.
        map: Columns from which fields are read, if their names differ:
            query=question,model_response=choices[0].text. FIELD= alone ignores the field.
        data_split: Split of a data set on disk that has several.
        folder: Folder to write to; default: the working directory.
        from_: Your own rows or log in that folder, instead of example rows.

    Raises:
        InputError: If the rows can't be read.
        OptionError: If they are outside of the folder, or a folder has the name of a file.
    """

def label(
    predictions: _Rows = ...,
    config: LabelConfig | None = None,
    *,
    map: str | Sequence[str] = (),
    data_split: str = "",
    protocol: str = "auto",
    cases: _Rows | None = None,
    tested_model: str = "",
    rubric: str | None = None,
    data_root: _Path | None = None,
    out: _Path = ...,
    rater: str | None = None,
    order: str = "random",
    n: int | None = None,
    seed: int = 20260101,
    run: _Path | None = None,
    adjudicate: _Rows | Sequence[_Rows] = (),
    export_label_studio: _Path | None = None,
    import_label_studio: _Rows | None = None,
    port: int = 0,
    problem: Callable[[str], None] = ...,
    started: Callable[[str], None] = ...,
) -> Labelled:
    """Serves the page on 127.0.0.1 until Ctrl-C, or only imports or exports labels.

    Args:
        config: The settings; options take precedence.
        problem: Called with a line about each row that can't be used; by default it is written to
            standard error.
        started: Called with the address to open, token included; likewise.
        map: Columns from which fields are read, if their names differ:
            query=question,model_response=choices[0].text. FIELD= alone ignores the field.
        data_split: Split of a data set on disk that has several.
        protocol: holistic, step-wise, tool-extraneous, tool-broken, unsolvable, efficiency, or
            auto: the protocol follows from each row's split or fields. case: the rows are
            cases, and the cases themselves are audited.
        cases: File of cases, joined with the predictions on id.
        tested_model: Name of the tested model for rows and logs without one.
        rubric: name@version of a shipped rubric, or a TOML file; with #E4 only that code.
            Default: the rubric of each protocol.
        data_root: Folder in which paths of pictures are looked up first; the folder of the
            cases or predictions is next.
        predictions: Predictions or a log of trajectories, as for grade; also the folder of a
            run of build, whose cases are labelled.
        out: JSONL file of the labels; an existing one is continued.
        rater: The only rater's name; without it the page asks for a name.
        order: Order of the items: random, file, or a plan that plan-labels wrote.
        n: Items to label; without it all.
        seed: Seed of the random order.
        run: Run whose verdict is shown after the rater has saved a label.
        adjudicate: Labels of at least two raters, JSONL or CSV: only items on which they differ
            are shown, with their labels, and items on which all agree are copied. Repeat it for
            several files.
        export_label_studio: Folder that the items are written to as tasks of Label Studio, with
            the labels in --out; no page is served.
        import_label_studio: JSON export of Label Studio whose annotations are added to --out;
            no page is served.
        port: Port on 127.0.0.1; 0 for a free one.

    Raises:
        OptionError: If an option is unusable, or another process writes the labels.
        InputError: If a file is unusable.
    """

def load_rubric(ref: str) -> Rubric:
    """Loads a shipped rubric by ``name@version`` (or by name: its newest version) or a file.

    Args:
        ref: A shipped name, or a path that ends in ``.toml``; either with ``#`` and codes such as
            ``E4`` or ``E4+E5``, for a rubric with these codes only.

    Raises:
        OptionError: If there is no such rubric, or the file is not a valid one.
    """

def plan_labels(
    judgements: _Rows = ...,
    config: LabelPlanConfig | None = None,
    *,
    labels: _Rows | None = None,
    adjudicator: str | None = None,
    n: int = 100,
    half_width: float = 0.03,
    by: str | Sequence[str] = ...,
    anticipated: float | None = None,
    already_random: bool = False,
    cluster: str = "case_id",
    seed: int = 20260101,
    out: _Path | None = None,
) -> LabelPlan:
    """Samples the rows to label next and computes the precision that their labels will give.

    Rows are sampled at random within strata of verdict, uncertainty of the judge and tested model;
    more rows where humans are more likely to disagree. Rows without a verdict are separate strata,
    since nothing predicts their labels.

    Args:
        config: The settings; options take precedence. The file ``out`` may already have the same
            plan, but no other.
        judgements: Folder of a run, or its judgements.jsonl.
        labels: Labels that exist already, JSONL or CSV.
        adjudicator: Rater whose label decides; default: the majority of raters.
        n: Labels to plan.
        half_width: Half the width that a 95 % interval may have.
        by: Fields that strata are made of, such as tested_model,dataset, or none.
        anticipated: Share of verdicts that humans are expected to disagree with; without it the
            share in the labels, or 0.15.
        already_random: The existing labels were sampled by such a plan.
        cluster: Field with equal values in rows that were sampled together, or none.
        seed: Seed of the sample.
        out: File for the plan.

    Raises:
        InputError: If a file is unusable.
        OptionError: If an option is unusable or the file holds another plan.
    """

def planbench_block_plan(
    data: _Rows = ...,
    config: BlockPlanConfig | None = None,
    *,
    setting: Literal[
        "default", "mixed", "explicit", "implicit", "misleading", "longest", "shortest", "base"
    ] = "mixed",
    keep_paths: int | None = None,
    keep_ratio: float | None = None,
    block_ratio: float | None = None,
    max_tools: int = 4,
    max_candidates: int | None = None,
    seed: int = 42,
    out: _Path | None = None,
) -> BlockPlan:
    """Chooses the tools that are blocked in each task.

    Args:
        config: The settings; options take precedence.
        data: Folder of the benchmark's data (queries.json, …).
        setting: default: nothing is blocked; mixed: one path remains, and all three kinds of
            blockers replace a blocked tool; explicit, implicit, misleading: one path remains,
            one kind; longest, shortest: as mixed, with the longest or shortest remaining paths;
            base: 0.6 of the paths remain, kinds at random.
        keep_paths: Number of remaining paths, instead of the setting's.
        keep_ratio: Share of the paths that remain, in place of a number; what the authors'
            files call target_remaining_ratio.
        block_ratio: Share of the paths that are removed (the paper's block ratio): 0.2 is
            --keep-ratio 0.8.
        max_tools: Largest number of blocked tools in a task.
        max_candidates: Largest number of tool sets to try in a task; default: 20000; for base
            5000.
        seed: Seed, together with the id of the task.
        out: File for the plan.

    Raises:
        InputError: If the data is unusable.
        OptionError: If a setting is.
    """

def planbench_check(
    data: _Rows = ..., config: DataCheckConfig | None = None, *, shortest: int = 5
) -> DataCheck:
    """Checks a benchmark's data against the rules of the paper (arXiv:2606.22388, app. B).

    Args:
        config: The settings; options take precedence.
        data: Folder of the benchmark's data (queries.json, …).
        shortest: Smallest length of a task's shortest path, in tools.

    Raises:
        InputError: If the data is unusable.
    """

def planbench_generate(
    config: GenerateConfig | None = None,
    *,
    max_cost: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_seconds: float | None = None,
    cache: bool | _Path | None = None,
    cache_kind: Literal["sqlite", "segments"] = "sqlite",
    claim: Literal["lock", "file"] = "lock",
    take_over: bool = False,
    model: str | TestedModelSpec | None = None,
    write: str | Sequence[str] = (),
    repairs: int = 2,
    theme: str = "",
    generate_prompts: str = "generating@1",
    written: _Rows | Sequence[_Rows] = (),
    api_base: str | Sequence[str] = (),
    api_base_file: _Rows | None = None,
    transport: Literal["auto", "litellm", "direct"] = "auto",
    temperature: float | None = 0.0,
    seed: int = 0,
    max_reply_tokens: int = 16384,
    params: dict[str, Any] = ...,
    timeout_s: float = 600.0,
    deadline_s: float = 3600.0,
    outage_s: float = 300.0,
    retries: int = 4,
    max_concurrency: int = 64,
    concurrency_per_endpoint: int | None = None,
    rpm: float | None = None,
    tpm: float | None = None,
    price_input: float | None = None,
    price_output: float | None = None,
    price_cached: float | None = None,
    out: _Path = ...,
    domain: str = "freight",
    database: _Rows | None = None,
    tools: int = 120,
    records: int = 100,
    tasks: int = 60,
    shortest: int = 5,
    longest: int = 9,
    overwrite: bool = False,
    texts: TextsConfig | None = None,
    client: Client | None = None,
    events: Events = ...,
) -> GeneratedBenchmark:
    """Generates a benchmark of typed tools, tasks and records.

    The same settings, version and answers of a model give the same bytes.

    Args:
        config: The settings; options take precedence.
        texts: Settings of a model that judges candidates and writes texts; options take precedence.
        client: Answers requests in place of the network.
        events: Called back while the model is asked.
        max_cost: Budget of a session in US dollars.
        max_calls: Calls that a session may make.
        max_tokens: Tokens that a session may send and receive.
        max_seconds: Seconds that a session may take, from its first call.
        cache: Whether replies are cached for later runs, or the folder for them. None caches
            all but those of a client of your own.
        cache_kind: sqlite, or segments: each process appends to a file of its own, which works
            on network disks.
        claim: How other processes are kept out of a run's folder: a lock of the operating
            system, or a file (claim.json), which works on network disks without locks.
        take_over: With --claim file: take over a folder that a dead process on another machine
            claimed; waits for three missed heartbeats, 90 s.
        model: Model (MODEL or MODEL@ADDRESS) that judges candidates and writes texts; without
            it rules, templates and word lists do it.
        write: What else the model writes: filters (possible look-ups), descriptions (of tools),
            queries; default: all.
        repairs: How often the model is asked again, with the broken rules, for a text that
            breaks one.
        theme: Subject of a domain that the model writes, in place of --domain.
        generate_prompts: generating@1, or a TOML file.
        written: File of answers, such as written.jsonl of another benchmark; their texts are
            not requested again.
        api_base: Addresses of the endpoint's replicas; without it the provider's own address
            (your own server, such as hosted_vllm or ollama, has none).
        api_base_file: Further addresses, one per line, in a file or in the files of a folder;
            read again every 30 s, so that replicas may come and go.
        transport: litellm, direct (an OpenAI-compatible server, without a provider library), or
            auto: direct if the request is exactly the one that litellm would send.
        temperature: Sampling temperature; 1 with several samples; the word default: the
            provider's.
        seed: Random seed; if set, it is sent to the model too.
        max_reply_tokens: Limit of a reply, in tokens; a reply cut off there is not asked for
            again.
        params: Further parameters, passed to litellm unchanged, such as reasoning_effort; no
            API keys: all of them are written to the manifest.
        timeout_s: Seconds after which a call counts as hung.
        deadline_s: Seconds after a case's first attempt within which the last one begins.
        outage_s: Seconds without any answer after which the endpoint counts as dead.
        retries: How often a call is retried after a temporary failure; five times as often
            after 429, half as often after a time-out.
        max_concurrency: Largest number of calls in flight.
        concurrency_per_endpoint: Calls in flight at most to each address; this times the number
            of addresses replaces max_concurrency.
        rpm: Largest number of calls per minute.
        tpm: Largest number of tokens per minute, sent and received.
        price_input: US dollars per million tokens sent; default: litellm's price table.
        price_output: US dollars per million tokens received; default: litellm's price table.
        price_cached: US dollars per million tokens from the endpoint's prefix cache; default:
            price_input.
        out: Folder for the benchmark's files.
        domain: Domain: clinic, freight, or a TOML or JSON file with datatypes, their values,
            and what leads to what.
        database: File of records in the format of database.json; default: they are drawn.
        tools: Executable tools; each gets 5 noisy ones and 3 blockers.
        records: Records of the database.
        tasks: Tasks, each with one query.
        shortest: Smallest length of a task's shortest path, in tools.
        longest: Largest length of a task's shortest path, in tools.
        overwrite: Replace a generated benchmark in --out.

    Raises:
        OptionError: If a setting is unusable, or the folder holds something else.
        InputError: If the domain allows too few tools or tasks, a file is unusable, or a model
            returned no domain or no verdict on a candidate.
    """

def planbench_paths(
    data: _Rows = ...,
    config: PathsConfig | None = None,
    *,
    scope: Literal["catalogue", "complete", "exhaustive"] = "catalogue",
    task: str | Sequence[str] = (),
    query: str | Sequence[str] = (),
    longest: int | None = None,
) -> PathReport:
    """Enumerates the paths of tasks and compares them with the catalogue.

    Args:
        config: The settings; options take precedence.
        data: Folder of the benchmark's data (queries.json, …).
        scope: catalogue: as the authors' catalogue was made, from tools with one or two inputs
            that are no composites; complete: all paths of the same tools, also those that the
            catalogue lacks; exhaustive: of all executable tools.
        task: Ids of tasks; default: all.
        query: Tasks of these queries, by id.
        longest: Largest number of tools in a path; default: no limit; for exhaustive: the
            length of the task's longest catalogued path.

    Raises:
        InputError: If the data is unusable.
        OptionError: If a setting is, or there is no such task or query.
    """

def predict(
    cases: _Rows,
    config: PredictConfig | None = None,
    *,
    map: str | Sequence[str] = (),
    data_split: str = "",
    tools: _Rows | None = None,
    prompts: str = "neutral@1",
    data_root: _Path | None = None,
    shard: str | None = None,
    max_cost: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_seconds: float | None = None,
    cache: bool | _Path | None = None,
    cache_kind: Literal["sqlite", "segments"] = "sqlite",
    claim: Literal["lock", "file"] = "lock",
    take_over: bool = False,
    out: _Path | None = None,
    work: _Rows | None = None,
    upload_every: float = 60.0,
    overwrite: bool = False,
    model: str | TestedModelSpec | Sequence[str | TestedModelSpec] = ...,
    preset: str | None = None,
    samples: int = 1,
    batch: bool = False,
    full: bool = False,
    api_base: str | Sequence[str] = (),
    api_base_file: _Rows | None = None,
    transport: Literal["auto", "litellm", "direct"] = "auto",
    temperature: float | None = 0.0,
    seed: int | None = None,
    max_reply_tokens: int = 16384,
    params: dict[str, Any] = ...,
    vision: Literal["auto", "yes", "no"] = "auto",
    max_image_bytes: int = 5242880,
    max_text_bytes: int = 200000,
    frames: int = 0,
    timeout_s: float = 600.0,
    deadline_s: float = 3600.0,
    outage_s: float = 300.0,
    retries: int = 4,
    max_concurrency: int = 64,
    concurrency_per_endpoint: int | None = None,
    rpm: float | None = None,
    tpm: float | None = None,
    price_input: float | None = None,
    price_output: float | None = None,
    price_cached: float | None = None,
    max_images: int | None = None,
    client: Client | None = None,
    events: Events = ...,
) -> PredictionRun:
    """Asks tested models for predictions on cases.

    Without ``out`` everything stays in memory. A case without an answer is a failure, which the
    same call with the same folder tries again; every answer is a prediction, even a refusal, a
    reply that was cut off or a reply without any text.

    Args:
        cases: A JSONL file, the result of ``build``, or cases as dicts: rows as for ``grade``,
            without a response.
        config: The settings; options take precedence.
        client: Answers requests in place of the network; its replies are cached only if ``cache``
            is set.
        events: Callbacks during the run.
        map: Columns from which fields are read, if their names differ:
            query=question,model_response=choices[0].text. FIELD= alone ignores the field.
        data_split: Split of a data set on disk that has several.
        tools: File with the tools of cases that state none: a JSON list, or an OpenAPI 3
            description (JSON, YAML), whose operations are tools.
        prompts: neutral@1, apb@1 (shows whether a case is solvable), bound@1 (plans that code
            can run), or a TOML file.
        data_root: Folder in which paths of files are looked up first; then that of the cases.
        shard: Only part I of N of the rows, split by case; or part I of the index that shards
            split writes. shards merge merges the parts.
        max_cost: Budget of a session in US dollars.
        max_calls: Calls that a session may make.
        max_tokens: Tokens that a session may send and receive.
        max_seconds: Seconds that a session may take, from its first call.
        cache: Whether replies are cached for later runs, or the folder for them. None caches
            all but those of a client of your own.
        cache_kind: sqlite, or segments: each process appends to a file of its own, which works
            on network disks.
        claim: How other processes are kept out of a run's folder: a lock of the operating
            system, or a file (claim.json), which works on network disks without locks.
        take_over: With --claim file: take over a folder that a dead process on another machine
            claimed; waits for three missed heartbeats, 90 s.
        out: Folder of the run; the same command continues the run in it.
        work: Local folder for a run whose --out is an address such as s3://bucket/run. Default:
            in the user's state folder.
        upload_every: Seconds between uploads to an --out that is an address.
        overwrite: Replace a run with other input or settings in --out; the same run continues
            with or without it.
        model: litellm model with provider, optionally with its addresses: MODEL@http://HOST/v1.
            Repeat it for several tested models.
        preset: apb-2026: sampling settings as in the benchmark's paper, for its models.
        samples: Predictions per case and model; with several the temperature is 1.
        batch: Send all calls through the provider's batch interface: cheaper, within a day.
        full: Write each prediction with all fields of its case, to be graded without --cases.
        api_base: Addresses of the endpoint's replicas; without it the provider's own address
            (your own server, such as hosted_vllm or ollama, has none).
        api_base_file: Further addresses, one per line, in a file or in the files of a folder;
            read again every 30 s, so that replicas may come and go.
        transport: litellm, direct (an OpenAI-compatible server, without a provider library), or
            auto: direct if the request is exactly the one that litellm would send.
        temperature: Sampling temperature; 1 with several samples; the word default: the
            provider's.
        seed: Sampling seed; sample k sends seed + k - 1; default sends none.
        max_reply_tokens: Limit of a reply, in tokens; a reply cut off there is not asked for
            again.
        params: Further parameters, passed to litellm unchanged, such as reasoning_effort; no
            API keys: all of them are written to the manifest.
        vision: Whether the model can see; auto asks litellm's model table.
        max_image_bytes: Largest picture on disk, in bytes.
        max_text_bytes: Largest text file of a case, in bytes: a larger one is not shown to a
            judge, and predict refuses the case.
        frames: Frames to show of each video of a case, evenly spaced; 0 shows no videos. Needs
            pip install 'apbjudge[video]'.
        timeout_s: Seconds after which a call counts as hung.
        deadline_s: Seconds after a case's first attempt within which the last one begins.
        outage_s: Seconds without any answer after which the endpoint counts as dead.
        retries: How often a call is retried after a temporary failure; five times as often
            after 429, half as often after a time-out.
        max_concurrency: Largest number of calls in flight.
        concurrency_per_endpoint: Calls in flight at most to each address; this times the number
            of addresses replaces max_concurrency.
        rpm: Largest number of calls per minute.
        tpm: Largest number of tokens per minute, sent and received.
        price_input: US dollars per million tokens sent; default: litellm's price table.
        price_output: US dollars per million tokens received; default: litellm's price table.
        price_cached: US dollars per million tokens from the endpoint's prefix cache; default:
            price_input.
        max_images: Pictures that a case may have at most; one with more is a bad case.

    Raises:
        OptionError: If a setting, a prompt set or a model's access is unusable, or ``out`` holds
            another run.
        InputError: If the file of cases as a whole is unusable.
    """

def prompt(
    rows: _Rows,
    config: PromptConfig | None = None,
    *,
    map: str | Sequence[str] = (),
    data_split: str = "",
    tools: _Rows | None = None,
    prompts: str = "neutral@1",
    data_root: _Path | None = None,
    protocol: str = "auto",
    cases: _Rows | None = None,
    tested_model: str = "",
    rubric: str | None = None,
    item_id: str = ...,
    predict: bool = False,
    images: bool = True,
    blind: bool = False,
    evidence: bool = True,
    judge: str | JudgeSpec | None = None,
    events: Events = ...,
) -> list[SentPrompt]:
    """Makes the prompts that a judge would get for an item, one for each of its tested models.

    With ``predict``, the prompt that a tested model would get for a case.

    Args:
        rows: As for ``grade``, for a log its steps; with ``predict`` as for ``predict``.
        config: The settings; options take precedence.
        judge: Settings of the judge's prompt; options take precedence.
        events: Called back with entries of the file of tools that are not tools.
        map: Columns from which fields are read, if their names differ:
            query=question,model_response=choices[0].text. FIELD= alone ignores the field.
        data_split: Split of a data set on disk that has several.
        tools: File with the tools of cases that state none: a JSON list, or an OpenAPI 3
            description (JSON, YAML), whose operations are tools.
        prompts: neutral@1, apb@1 (shows whether a case is solvable), bound@1 (plans that code
            can run), or a TOML file.
        data_root: Folder in which paths of pictures are looked up first; the folder of the
            cases or predictions is next.
        protocol: holistic, step-wise, tool-extraneous, tool-broken, unsolvable, efficiency, or
            auto: the protocol follows from each row's split or fields. case: the rows are
            cases, and the cases themselves are audited.
        cases: File of cases, joined with the predictions on id.
        tested_model: Only this tested model's prediction.
        rubric: name@version of a shipped rubric, or a TOML file; with #E4 only that code.
            Default: the rubric of each protocol.
        item_id: Id of the item.
        predict: Print the prompt of a tested model for the case.
        images: Show pictures to models that can see.
        blind: Judge without the reference.
        evidence: Show proven findings to the judge, and enforce them on its verdict.

    Raises:
        OptionError: If no row has the id.
        InputError: If the row with the id is bad.
    """

def refine(
    drafts: str | PathLike[str] | Sequence[Mapping[str, Any]],
    config: RefineConfig | None = None,
    *,
    shard: str | None = None,
    max_cost: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_seconds: float | None = None,
    cache: bool | _Path | None = None,
    cache_kind: Literal["sqlite", "segments"] = "sqlite",
    claim: Literal["lock", "file"] = "lock",
    take_over: bool = False,
    out: _Path | None = None,
    work: _Rows | None = None,
    upload_every: float = 60.0,
    overwrite: bool = False,
    model: str | TestedModelSpec | Sequence[str | TestedModelSpec] = (),
    guide: Literal["codes", "none"] = "codes",
    critic: str | TestedModelSpec | None = None,
    mode: Literal["self", "critic", "static", "judge"] = ...,
    rounds: int = 1,
    with_reference: bool = False,
    cases: _Rows | None = None,
    prompts: str | None = None,
    review_prompts: str = "ablate@1",
    data_root: _Path | None = None,
    api_base: str | Sequence[str] = (),
    api_base_file: _Rows | None = None,
    transport: Literal["auto", "litellm", "direct"] = "auto",
    temperature: float | None = 0.0,
    seed: int | None = None,
    max_reply_tokens: int = 16384,
    params: dict[str, Any] = ...,
    vision: Literal["auto", "yes", "no"] = "auto",
    max_image_bytes: int = 5242880,
    max_text_bytes: int = 200000,
    frames: int = 0,
    timeout_s: float = 600.0,
    deadline_s: float = 3600.0,
    outage_s: float = 300.0,
    retries: int = 4,
    max_concurrency: int = 64,
    concurrency_per_endpoint: int | None = None,
    rpm: float | None = None,
    tpm: float | None = None,
    price_input: float | None = None,
    price_output: float | None = None,
    price_cached: float | None = None,
    max_images: int | None = None,
    client: Client | None = None,
    events: Events = ...,
) -> PredictionRun:
    """Reviews drafts, and has them rewritten by the tested models that wrote them.

    Without ``out`` everything stays in memory. Each row has the id and the tested model of its
    draft, so that ``report --refined METHOD=RUN`` pairs them once both are graded.

    Args:
        drafts: A run of ``predict``, its folder, a JSONL file of predictions, or these as dicts.
        config: The settings; options take precedence.
        client: Answers requests in place of the network.
        events: Callbacks during the run.
        shard: Only part I of N of the rows, split by case; or part I of the index that shards
            split writes. shards merge merges the parts.
        max_cost: Budget of a session in US dollars.
        max_calls: Calls that a session may make.
        max_tokens: Tokens that a session may send and receive.
        max_seconds: Seconds that a session may take, from its first call.
        cache: Whether replies are cached for later runs, or the folder for them. None caches
            all but those of a client of your own.
        cache_kind: sqlite, or segments: each process appends to a file of its own, which works
            on network disks.
        claim: How other processes are kept out of a run's folder: a lock of the operating
            system, or a file (claim.json), which works on network disks without locks.
        take_over: With --claim file: take over a folder that a dead process on another machine
            claimed; waits for three missed heartbeats, 90 s.
        out: Folder of the run; the same command continues the run in it.
        work: Local folder for a run whose --out is an address such as s3://bucket/run. Default:
            in the user's state folder.
        upload_every: Seconds between uploads to an --out that is an address.
        overwrite: Replace a run with other input or settings in --out; the same run continues
            with or without it.
        model: Tested models with their addresses, as for predict; without it as the run asked
            them. A draft's model may be named without provider.
        guide: Guide of a model's review: the six error codes, or none.
        critic: The reviewing model, MODEL or MODEL@ADDRESS.
        mode: Reviewer: self, the tested model; critic, --critic; static, rules alone, with what
            the model could see; judge, --critic as a blind judge.
        rounds: Reviews at most; they end when a review keeps the answer, or it comes back
            unchanged.
        with_reference: Show the judge the reference and the case's condition: an oracle, whose
            results are reported separately.
        cases: JSONL file of the cases; without it that of the run, or the drafts' own rows.
        prompts: Prompt set of the drafts; without it that of the run.
        review_prompts: ablate@1, whose texts with and without codes differ only in the codes;
            apb@1, close to the paper; or a TOML file.
        data_root: Folder in which paths of files are looked up first, then that of the cases;
            without it that of the run.
        api_base: Addresses of the endpoint's replicas; without it the provider's own address
            (your own server, such as hosted_vllm or ollama, has none).
        api_base_file: Further addresses, one per line, in a file or in the files of a folder;
            read again every 30 s, so that replicas may come and go.
        transport: litellm, direct (an OpenAI-compatible server, without a provider library), or
            auto: direct if the request is exactly the one that litellm would send.
        temperature: Sampling temperature; 1 with several samples; the word default: the
            provider's.
        seed: Sampling seed; sample k sends seed + k - 1; default sends none.
        max_reply_tokens: Limit of a reply, in tokens; a reply cut off there is not asked for
            again.
        params: Further parameters, passed to litellm unchanged, such as reasoning_effort; no
            API keys: all of them are written to the manifest.
        vision: Whether the model can see; auto asks litellm's model table.
        max_image_bytes: Largest picture on disk, in bytes.
        max_text_bytes: Largest text file of a case, in bytes: a larger one is not shown to a
            judge, and predict refuses the case.
        frames: Frames to show of each video of a case, evenly spaced; 0 shows no videos. Needs
            pip install 'apbjudge[video]'.
        timeout_s: Seconds after which a call counts as hung.
        deadline_s: Seconds after a case's first attempt within which the last one begins.
        outage_s: Seconds without any answer after which the endpoint counts as dead.
        retries: How often a call is retried after a temporary failure; five times as often
            after 429, half as often after a time-out.
        max_concurrency: Largest number of calls in flight.
        concurrency_per_endpoint: Calls in flight at most to each address; this times the number
            of addresses replaces max_concurrency.
        rpm: Largest number of calls per minute.
        tpm: Largest number of tokens per minute, sent and received.
        price_input: US dollars per million tokens sent; default: litellm's price table.
        price_output: US dollars per million tokens received; default: litellm's price table.
        price_cached: US dollars per million tokens from the endpoint's prefix cache; default:
            price_input.
        max_images: Pictures that a case may have at most; one with more is a bad case.

    Raises:
        OptionError: If a setting, a prompt set or a model's access is unusable, or ``out`` holds
            another run.
        InputError: If the file of drafts or of cases as a whole is unusable.
    """

def report(
    runs: _Rows | Sequence[_Rows] = ...,
    config: ReportConfig | None = None,
    *,
    interval: Literal["jeffreys", "jackknife", "bca", "percentile"] = "jeffreys",
    n_resamples: int = 10000,
    bootstrap_seed: int = 20260101,
    labels: _Rows | Sequence[_Rows] = (),
    adjudicator: str | None = None,
    design: str | None = None,
    group_steps: str | None = None,
    refined: Sequence[str | tuple[str, _Rows]] = (),
    names: _Rows | None = None,
    tables: str | Sequence[str] = (),
    predictions: _Rows | Sequence[_Rows] = (),
    cases: _Rows | None = None,
    pictures: bool = False,
    data_root: _Path | None = None,
) -> Report:
    """Opens a report on runs.

    Args:
        config: The settings; options take precedence.
        interval: percentile or bca: bootstrap intervals, by case, for every figure. jeffreys or
            jackknife: for coefficients; rates and means then have Wilson intervals, whose
            coverage is better.
        n_resamples: Bootstrap resamples of bca and percentile.
        bootstrap_seed: Seed of the bootstrap.
        labels: Human labels, JSONL or CSV; may be given several times.
        adjudicator: Rater whose label decides; default: the majority of raters.
        design: How the labelled items were sampled: random, other-population, hand-picked, or a
            file of plan-labels. Rates of the whole run are then corrected.
        group_steps: Put whole trajectories whose shortest path has N or more steps into one
            group, such as 8+, in planbench-steps and its figure.
        refined: A run on refined responses, such as Self_R+=runs/x; may be given several times,
            also for the runs of one method.
        names: Display names of tested models in tables, figures and page: a JSON object, a TOML
            table, or CSV with the columns tested_model and name.
        runs: Folders of runs, or their judgements.jsonl; for the table tested-models also runs
            of predict, simulate and others.
        tables: Only these: corrected, overall, extraneous, extraneous-average, extraneous-
            levels-holistic, extraneous-levels-step-wise, refinement, refinement-changes,
            refinement-stages, refinement-oracle, samples, efficiency, judges, diversity, self-
            evaluation, steps, modality, horizon, stage; or changes, from the first run to the
            second; or judge-settings and tested-models, from the manifests of runs.
        predictions: Files of predictions, or logs, if they moved since they were judged, or if
            somebody else made the run.
        cases: JSONL file of cases, joined with the predictions on id.
        pictures: Put pictures of the cases into the page.
        data_root: Folder in which paths of pictures are looked up before those of the runs.

    Raises:
        InputError: If a run or the labels can't be read.
        OptionError: If no run is given, or a setting is unusable.
    """

def reproduce(
    paper: Literal["apb", "planbench-xl", "slate"] = ...,
    folders: _Rows | Sequence[_Rows] = ...,
    config: ReproduceConfig | None = None,
    *,
    interval: Literal["jeffreys", "jackknife", "bca", "percentile"] = "jeffreys",
    n_resamples: int = 10000,
    bootstrap_seed: int = 20260101,
    labels: _Rows | Sequence[_Rows] = (),
    adjudicator: str | None = None,
    design: str | None = None,
    group_steps: str | None = None,
    refined: Sequence[str | tuple[str, _Rows]] = (),
    names: _Rows | None = None,
    only: str | Sequence[str] = (),
) -> Reproduction:
    """Makes the tables and figures of a paper for which folders have the data.

    Args:
        config: The settings; options take precedence.
        interval: percentile or bca: bootstrap intervals, by case, for every figure. jeffreys or
            jackknife: for coefficients; rates and means then have Wilson intervals, whose
            coverage is better.
        n_resamples: Bootstrap resamples of bca and percentile.
        bootstrap_seed: Seed of the bootstrap.
        labels: Human labels, JSONL or CSV; may be given several times.
        adjudicator: Rater whose label decides; default: the majority of raters.
        design: How the labelled items were sampled: random, other-population, hand-picked, or a
            file of plan-labels. Rates of the whole run are then corrected.
        group_steps: Put whole trajectories whose shortest path has N or more steps into one
            group, such as 8+, in planbench-steps and its figure.
        refined: A run on refined responses, such as Self_R+=runs/x; may be given several times,
            also for the runs of one method.
        names: Display names of tested models in tables, figures and page: a JSON object, a TOML
            table, or CSV with the columns tested_model and name.
        paper: The paper: apb, planbench-xl or slate.
        folders: Folders of runs of grade, predict, simulate, branch or execute, files of
            judgements, and a benchmark's data; without any, what each table needs is listed.
        only: Only these tables and figures of the paper, such as 'Table 1'.

    Raises:
        InputError: If a folder has no known kind, or can't be read.
        OptionError: If a setting is unusable.
    """

def rubric_names() -> list[str]:
    """The shipped rubrics, as ``name@version``."""

def scale(
    plan: str | Path,
    config: ScaleConfig | None = None,
    *,
    engine: Literal["local", "ray", "slurm"] = "local",
    at_once: int = 2,
    starts: int = 4,
    tell: Callable[[str], None] = ...,
    grace_s: float = 60.0,
) -> Run | ModelRun[Any] | ExecutionRun | Audit | CaseReport | None:
    """Runs a command in parts on an engine and merges the parts.

    Behind the merge of ``check`` and ``audit`` the command itself follows, on all rows and with the
    merged replies. Limits of cost, calls and tokens in the plan's options are divided among the
    parts, each of which is then started once, and that last command.

    Args:
        plan: A TOML file with ``rows``, ``out``, ``parts``, perhaps ``command`` (``grade``), and a
            table ``options``.
        config: The engine.
        tell: Called with a line for each event.
        grace_s: Seconds that calls in flight have to finish when it is stopped.
        engine: local, processes of this machine; ray, tasks of a Ray cluster; slurm, an array
            of jobs.
        at_once: Parts that run at the same time.
        starts: How often a part is started again after it was paused, was killed, or left rows
            without a result.

    Returns:
        The merged run, in ``whole`` below ``out``, or what the last command makes of it; None where
        there is no such command and the run is there already, or Slurm makes it later.

    Raises:
        InputError: If a file can't be read.
        OptionError: If the plan, an option or the input of a part is unusable.
        PausedError: If parts are not done after all starts.
        ModuleNotFoundError: If the engine is not installed.
    """

def schema(name: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a file that is read or written.

    For a file of lines, it is the schema of one line.

    Args:
        name: One of ``SCHEMAS``, as ``apbjudge schema`` lists them.

    Raises:
        OptionError: If there is no such name.
    """

def shards_merge(
    parts: Sequence[str | Path],
    out: str | Path,
    *,
    rubric: str | None = None,
    partial: bool = False,
    as_: Literal["jsonl", "parquet"] = "jsonl",
    claim: Literal["lock", "file"] = "lock",
) -> Run | ModelRun[Any] | ExecutionRun:
    """Merges runs of parts; the result is the run that all rows in one would have made.

    With ``rubric`` the folders are runs of the same rows by rubrics that each have some of its
    codes; the result has all of them.

    Args:
        parts: One folder for each part, for some that were merged (``partial``), or for each
            rubric, of grade, predict, refine, simulate, execute, branch, audit or check (its
            ``run``), in any order; they stay as they are.
        out: Folder for the whole, which must hold no run yet.
        rubric: The rubric whose codes were judged apart; None for parts.
        partial: Merges some of the parts into a run that is merged with the others later.
        as_: ``parquet`` writes judgements to ``judgements.parquet`` too.
        claim: Way of keeping other processes out of ``out``, ``lock`` or ``file``.

    Returns:
        The run, of an audit its main one. The same command without ``--shard`` continues in the
        folder of a whole one.

    Raises:
        OptionError: If a folder holds no finished run, the runs are of different settings or
            inputs, parts or codes are missing or there twice, or ``out`` holds a run.
        InputError: If a file can't be read or written.
    """

def shards_split(
    rows: str | Path,
    options: Sequence[str] = (),
    *,
    out: str | Path,
    parts: int,
    command: Literal[
        "grade", "predict", "refine", "simulate", "execute", "branch", "audit", "check"
    ] = "grade",
) -> list[str]:
    """Writes the commands that work on rows in parts, and last the one that merges them.

    Behind the merge of ``check`` is the command that checks all rows with the merged answers, and
    behind that of ``audit`` the one that makes the card of all cases. Neither asks again.
    Pieces of the rows are listed in ``index.json``, so that no part reads another's; other formats
    and files at addresses are copied to ``index.rows.jsonl`` first. What can't be cut, such as a
    log, has parts by the case of each row, which read all of it.

    Args:
        rows: Input of the command.
        options: Options of the command, of an audit with its judge.
        out: Folder for the index, the runs of the parts, and the whole.
        parts: Number of parts.
        command: A command that has ``--shard``.

    Returns:
        Lines for a shell; those of the parts may run at the same time. Remarks begin with ``#``.

    Raises:
        OptionError: If the command has no ``--shard``.
        InputError: If the rows can't be read, or the index can't be written.
    """

def simulate(
    benchmark: str | Path | Benchmark,
    config: SimulateConfig | None = None,
    *,
    shard: str | None = None,
    call_seconds: int = 20,
    first: int | None = None,
    max_cost: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_seconds: float | None = None,
    cache: bool | _Path | None = None,
    cache_kind: Literal["sqlite", "segments"] = "sqlite",
    claim: Literal["lock", "file"] = "lock",
    take_over: bool = False,
    out: _Path | None = None,
    work: _Rows | None = None,
    upload_every: float = 60.0,
    overwrite: bool = False,
    model: str | TestedModelSpec | Sequence[str | TestedModelSpec] = ...,
    options: str | Sequence[str] = (),
    tasks: str | Sequence[str] = (),
    trials: int = 1,
    max_turns: int | None = None,
    max_episode_tokens: int | None = None,
    max_episode_cost: float | None = None,
    kind: str | None = None,
    api_base: str | Sequence[str] = (),
    api_base_file: _Rows | None = None,
    transport: Literal["auto", "litellm", "direct"] = "auto",
    temperature: float | None = 0.0,
    seed: int | None = None,
    max_reply_tokens: int = 16384,
    params: dict[str, Any] = ...,
    vision: Literal["auto", "yes", "no"] = "auto",
    max_image_bytes: int = 5242880,
    max_text_bytes: int = 200000,
    frames: int = 0,
    timeout_s: float = 600.0,
    deadline_s: float = 3600.0,
    outage_s: float = 300.0,
    retries: int = 4,
    max_concurrency: int = 64,
    concurrency_per_endpoint: int | None = None,
    rpm: float | None = None,
    tpm: float | None = None,
    price_input: float | None = None,
    price_output: float | None = None,
    price_cached: float | None = None,
    max_images: int | None = None,
    client: Client | None = None,
    events: Events = ...,
) -> Simulation:
    """Lets tested models act in an environment.

    Without ``out`` everything stays in memory. The same call with the same folder resumes where it
    was interrupted, in the middle of an episode too: replies that came are not paid for again.

    Args:
        benchmark: A benchmark, or a file or folder with one.
        config: The settings; options take precedence.
        client: Answers requests in place of the network.
        events: Callbacks during the run.
        shard: Only part I of N of the rows, split by case; or part I of the index that shards
            split writes. shards merge merges the parts.
        call_seconds: Seconds that a tool's call may take.
        first: Largest number of tasks, in their order; the same command with a larger number,
            or without it, continues with the others.
        max_cost: Budget of a session in US dollars.
        max_calls: Calls that a session may make.
        max_tokens: Tokens that a session may send and receive.
        max_seconds: Seconds that a session may take, from its first call.
        cache: Whether replies are cached for later runs, or the folder for them. None caches
            all but those of a client of your own.
        cache_kind: sqlite, or segments: each process appends to a file of its own, which works
            on network disks.
        claim: How other processes are kept out of a run's folder: a lock of the operating
            system, or a file (claim.json), which works on network disks without locks.
        take_over: With --claim file: take over a folder that a dead process on another machine
            claimed; waits for three missed heartbeats, 90 s.
        out: Folder of the run; the same command continues the run in it.
        work: Local folder for a run whose --out is an address such as s3://bucket/run. Default:
            in the user's state folder.
        upload_every: Seconds between uploads to an --out that is an address.
        overwrite: Replace a run with other input or settings in --out; the same run continues
            with or without it.
        model: litellm model with provider, optionally with its addresses: MODEL@http://HOST/v1.
            Repeat it for several tested models.
        options: A setting of the benchmark, such as block_plan=plan.json.
        tasks: Ids of the tasks; default: all.
        trials: Episodes per task and model; with several the temperature is 1.
        max_turns: Largest number of replies in an episode; the environment may have its own
            limit.
        max_episode_tokens: Tokens, sent and received, at which an episode ends.
        max_episode_cost: US dollars at which an episode ends.
        kind: Kind of benchmark, shipped or of an installed package; default by content.
        api_base: Addresses of the endpoint's replicas; without it the provider's own address
            (your own server, such as hosted_vllm or ollama, has none).
        api_base_file: Further addresses, one per line, in a file or in the files of a folder;
            read again every 30 s, so that replicas may come and go.
        transport: litellm, direct (an OpenAI-compatible server, without a provider library), or
            auto: direct if the request is exactly the one that litellm would send.
        temperature: Sampling temperature; 1 with several samples; the word default: the
            provider's.
        seed: Sampling seed; sample k sends seed + k - 1; default sends none.
        max_reply_tokens: Limit of a reply, in tokens; a reply cut off there is not asked for
            again.
        params: Further parameters, passed to litellm unchanged, such as reasoning_effort; no
            API keys: all of them are written to the manifest.
        vision: Whether the model can see; auto asks litellm's model table.
        max_image_bytes: Largest picture on disk, in bytes.
        max_text_bytes: Largest text file of a case, in bytes: a larger one is not shown to a
            judge, and predict refuses the case.
        frames: Frames to show of each video of a case, evenly spaced; 0 shows no videos. Needs
            pip install 'apbjudge[video]'.
        timeout_s: Seconds after which a call counts as hung.
        deadline_s: Seconds after a case's first attempt within which the last one begins.
        outage_s: Seconds without any answer after which the endpoint counts as dead.
        retries: How often a call is retried after a temporary failure; five times as often
            after 429, half as often after a time-out.
        max_concurrency: Largest number of calls in flight.
        concurrency_per_endpoint: Calls in flight at most to each address; this times the number
            of addresses replaces max_concurrency.
        rpm: Largest number of calls per minute.
        tpm: Largest number of tokens per minute, sent and received.
        price_input: US dollars per million tokens sent; default: litellm's price table.
        price_output: US dollars per million tokens received; default: litellm's price table.
        price_cached: US dollars per million tokens from the endpoint's prefix cache; default:
            price_input.
        max_images: Pictures that a case may have at most; one with more is a bad case.

    Raises:
        OptionError: If a setting or a model's access is unusable, or ``out`` holds another run.
        InputError: If the files of the benchmark are missing or contradict each other, or its tasks
            have no ids of their own.
        PluginError: If the code of the benchmark fails before the first episode. What fails in an
            episode is that episode's failure (``infrastructure``).
    """

def validate(
    executed: _Rows | Sequence[_Rows] = ...,
    config: ValidateConfig | None = None,
    *,
    judged: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    detect: float = 0.05,
    correlation: float = 0.0,
    level: float = 0.95,
) -> ValidationReport:
    """Compares verdicts on plans with the outcomes of their execution.

    Args:
        config: The settings; options take precedence.
        executed: Files of executions, or folders of execute whose */executed.jsonl are taken.
        judged: Run of grade over the executed plans; several for several judges. MODE= states
            which mode executed these plans, if the files don't.
        detect: Difference between two modes for which the needed number of tasks is computed.
        correlation: Correlation of two modes' successes on a task, used if only one mode was
            executed.
        level: Confidence level of intervals.

    Raises:
        InputError: If a file is unusable, or a run is about no executed plan.
        OptionError: If a setting is unusable.
    """
