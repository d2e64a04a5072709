"""Rewards for training a tested model with TRL or verl: by proofs, and optionally by a judge.

For the effect of a judge's known error on training, see ``docs/integrations-hosts.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from ..config import STATIC
from ..errors import JudgeError
from ..judge.config import InputConfig
from .judging import Result, results_of, row_of

Reward = Callable[..., list[float | None]]
"""Function of ``prompts``, ``completions`` and the columns of the data set, by name."""

_NOT_COLUMNS = ("completion_ids", "environments")
"""Lists that TRL passes in addition to the columns."""
_OF_ROWS = InputConfig.model_fields.keys()
"""Options of ``grade`` that affect how rows are read, and so proofs."""


def reward(
    prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
) -> list[float | None]:
    """A reward for TRL by proofs alone: 0 if a fault is proven, else 1; None for a bad row.

    Args:
        prompts: Texts or chat messages.
        completions: Replies, as texts or chat messages.
        **columns: The data set's columns, whose names are fields of rows; other arguments of TRL
            are not read.
    """
    return _rewards(prompts, completions, columns, {})


def reward_by(judge: Any = STATIC, **options: Any) -> Reward:
    """A reward for TRL by a judge: 1 for correct, 0 for incorrect; None without a verdict.

    Proofs come first: a reply with a proven fault gets 0, and the judge is not asked about it. The
    other replies of a batch are judged in one call of ``grade``.

    Args:
        judge: As ``grade`` takes it.
        **options: Options of ``grade``.
    """

    def reward_by_judge(
        prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> list[float | None]:
        return _rewards(prompts, completions, columns, {"judge": judge, **options})

    return reward_by_judge


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: object,
    extra_info: Mapping[str, Any] | None = None,
    *,
    unscored: float | None = None,
    **options: Any,
) -> dict[str, Any]:
    """A score for verl of one reply: ``score``, 1 or 0 as in ``reward_by``, and error ``codes``.

    Args:
        data_source: Name of the data set.
        solution_str: The reply.
        ground_truth: The reference: the text of a plan, or a list of calls, also as JSON.
        extra_info: Fields of the row, such as ``query`` and ``tools_json``.
        unscored: Score if there is no verdict, since verl has no value for that.
        **options: Options of ``grade``.

    Raises:
        JudgeError: If there is no verdict, and ``unscored`` is None.
    """
    [score] = compute_scores(
        [data_source], [solution_str], [ground_truth], [extra_info], unscored=unscored, **options
    )
    return score


def compute_scores(
    data_sources: Sequence[str],
    solution_strs: Sequence[str],
    ground_truths: Sequence[object],
    extra_infos: Sequence[Mapping[str, Any] | None],
    *,
    unscored: float | None = None,
    **options: Any,
) -> list[dict[str, Any]]:
    """Scores for verl's batch reward manager, judged in one call; see ``compute_score``."""
    examples = zip(data_sources, solution_strs, ground_truths, extra_infos, strict=True)
    rows = [
        row_of(reply, {"source": source, "ground_truth": truth, **(extra or {})}, number=number)
        for number, (source, reply, truth, extra) in enumerate(examples, 1)
    ]
    scores: list[dict[str, Any]] = []
    for result in _proven_or_judged(rows, options):
        score = unscored if result.is_correct is None else float(result.is_correct)
        if score is None:
            raise JudgeError(f"{result.reason} (unscored=… states a score for such replies)")
        scores.append({"score": score, "codes": result.metadata.get("codes", "")})
    return scores


def _rewards(
    prompts: Sequence[Any],
    completions: Sequence[Any],
    columns: Mapping[str, Any],
    options: Mapping[str, Any],
) -> list[float | None]:
    of_rows = {
        name: cast("list[Any]", values)
        for name, values in columns.items()
        if isinstance(values, list) and name not in _NOT_COLUMNS
    }
    rows = [
        row_of(reply, {name: of[i] for name, of in of_rows.items()}, query=prompt, number=i + 1)
        for i, (prompt, reply) in enumerate(zip(prompts, completions, strict=True))
    ]
    results = _proven_or_judged(rows, options)
    return [None if of.is_correct is None else float(of.is_correct) for of in results]


def _proven_or_judged(rows: Sequence[dict[str, Any]], options: Mapping[str, Any]) -> list[Result]:
    """The results of rows: by proofs, and by the judge if nothing is proven."""
    by_proof = {name: value for name, value in options.items() if name in _OF_ROWS}
    results = results_of(rows, **by_proof)
    if options.get("judge", STATIC) == STATIC:
        return results
    places = [place for place, result in enumerate(results) if result.is_correct]
    judged = results_of([rows[place] for place in places], **options)
    for place, result in zip(places, judged, strict=True):
        results[place] = result
    return results
