"""Self-preference: bias of a judge for its own plans, or for those of its family."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from ...statistics.differences import paired_test
from ...statistics.estimates import Array, Estimate
from ...statistics.sample import Sample
from ..outcomes import ProbeMetric, ProbeTable, amount, amount_with_ends, verdict_text
from ..responses import Response, passed, sample_of
from .base import AuditProbe
from .measures import Value, value_of, within_one

FAVOUR = 0.10
"""Ten points of pass rate are about the distance between neighbours in a table of tested models."""

NO_LABELS = (
    "needs predictions with human labels, or with the verdicts of another judge as baseline "
    "(--labels)"
)
NO_OWN = (
    "no tested model is the judge itself or of its family; if one is, name it (--self TESTED_MODEL)"
)
NO_OTHERS = (
    "all tested models are the judge itself or of its family: there is no other to compare with"
)

_SERIES: tuple[tuple[str, str], ...] = (
    ("claude", r"claude|sonnet|opus|haiku"),
    ("gpt", r"chatgpt|gpt(?!q)|codex|davinci|o[134](?=$|-)"),
    ("gemini", r"gemini|gemma|medgemma|palm(?![a-z])"),
    ("qwen", r"qwen|qwq|qvq"),
    ("llama", r"llama|codellama|vicuna"),
    ("mistral", r"mistral|mixtral|ministral|codestral|pixtral|magistral|devstral|voxtral"),
    ("deepseek", r"deepseek"),
    ("glm", r"chatglm|glm|cogvlm"),
    ("kimi", r"kimi|moonshot"),
    ("grok", r"grok"),
    ("phi", r"phi(?![a-z])"),
    ("command", r"command(?=-[ar])|c4ai|aya(?![a-z])"),
    ("nova", r"nova(?=-(?:pro|lite|micro|premier))|titan(?![a-z])"),
    ("intern", r"internlm|internvl|interns"),
    ("ernie", r"ernie"),
    ("hunyuan", r"hunyuan"),
    ("minimax", r"minimax|abab"),
    ("seed", r"doubao|seed(?=-(?:\d|oss|coder))"),
    ("nemotron", r"nemotron"),
    ("granite", r"granite"),
    ("olmo", r"olmo|molmo|tulu"),
    ("falcon", r"falcon"),
    ("yi", r"yi(?=-)"),
    ("smol", r"smollm|smolvlm"),
)
"""Patterns of name stems for the models of each vendor, by its best known series."""

_STEMS = tuple((name, re.compile(rf"(?<![a-z])(?:{stems})")) for name, stems in _SERIES)

_SAYS_NOTHING = frozenset(
    "a agent ai assistant base baseline chat custom finetuned ft judge large llm lm local medium "
    "mini model my new old our planner run small system test tested the".split()
)


def bare(name: str) -> str:
    """A model's name without provider and endpoint, in lower case and with hyphens.

    Args:
        name: Such as ``openai/GPT-5`` or ``hosted_vllm/Qwen3 32B@http://localhost:8000/v1``.
    """
    last = name.split("@", 1)[0].strip().rstrip("/").rsplit("/", 1)[-1]
    return re.sub(r"[\s_]+", "-", last.casefold())


def family(name: str) -> str:
    """The family of a model: the models of one vendor, under the name of its best known series.

    Args:
        name: A model's name, with or without provider.

    Returns:
        Such as ``gpt``, ``qwen``; for a name without a known series, its first word, or the whole
        bare name if that word is generic (``model-a``). For a model derived from another, the first
        series in its name counts: ``DeepSeek-R1-Distill-Qwen-7B`` is ``deepseek``.
    """
    short = bare(name)
    matches = [(m.start(), series) for series, stem in _STEMS if (m := stem.search(short))]
    if matches:
        return min(matches)[1]
    word = re.match(r"[^\W\d_]+", short)
    return word[0] if word and word[0] not in _SAYS_NOTHING else short


def same_model(judge: str, tested: Collection[str]) -> frozenset[str]:
    """The tested models with the judge's name, ignoring provider, case and separators."""
    return frozenset(name for name in tested if judge and bare(name) == bare(judge))


def relatives(of: Collection[str], tested: Collection[str]) -> frozenset[str]:
    """The tested models in the families of some models, these models included."""
    families = {family(name) for name in of if name}
    return frozenset(name for name in tested if family(name) in families)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Predictions with a known truth.

    Attributes:
        responses: The n judgements.
        models: Shape (n,): their tested models.
        verdicts: Shape (n,): 1.0 if the judge passes the prediction, else 0.0.
        truths: Shape (n,): 1.0 if it is correct, else 0.0.
    """

    responses: Sequence[Response]
    models: np.ndarray
    verdicts: Array
    truths: Array

    def of(self, names: Collection[str]) -> np.ndarray:
        """Mask of the plans of some tested models."""
        return np.isin(self.models, sorted(names))


class Preference(AuditProbe):
    """Compares the judge's bias on its own plans with that on those of others, case by case.

    The judge's own models are those that the user named, or else those with the judge's name. Named
    models that are not among the tested models still determine the family.
    """

    name = "preference"
    title = "Self-preference and family preference"
    question = (
        "Does the judge favour its own plans, or those of its family, over equally good ones?"
    )
    roles = ("prediction",)

    @cached_property
    def rows(self) -> _Rows:
        """Predictions with a known truth."""
        labelled = self.audit.labelled
        return _Rows(
            responses=labelled,
            models=np.array([str(r.variant.row.get("tested_model", "")) for r in labelled]),
            verdicts=passed(labelled),
            truths=np.array([float(bool(r.variant.truth.is_correct)) for r in labelled]),
        )

    @cached_property
    def relations(self) -> Mapping[str, str]:
        """By tested model: own, family or other."""
        tested = frozenset(map(str, self.rows.models))
        own = {*self.audit.own} & tested or same_model(self.audit.judge, tested)
        family = relatives([self.audit.judge, *self.audit.own], tested)
        return {
            name: "own" if name in own else "family" if name in family else "other"
            for name in sorted(tested)
        }

    def models(self, *relations: str) -> list[str]:
        """The tested models with one of some relations."""
        return [name for name, relation in self.relations.items() if relation in relations]

    @cached_property
    def contrasts(self) -> Mapping[str, _Contrast]:
        """The judge's own plans, and those of its family, against those of others."""
        contrasts = {
            f"{name} against others": _Contrast.of(
                self.rows, self.models(name), self.models("other")
            )
            for name in ("own", "family")
        }
        return {name: contrast for name, contrast in contrasts.items() if contrast is not None}

    @cached_property
    def biases(self) -> Mapping[str, Estimate]:
        """By tested model, the mean of verdict less truth on its plans."""
        biases: dict[str, Estimate] = {}
        for model in self.relations:
            part = self.rows.of([model])
            of = [self.rows.responses[i] for i in np.flatnonzero(part).tolist()]
            errors = (self.rows.verdicts - self.rows.truths)[part]
            biases[model] = paired_test(errors, sample_of(of)).estimate
        return biases

    def values(self) -> Iterable[Value | None]:
        """The differences in bias, and the bias on each tested model."""
        yield from (contrast.value(name) for name, contrast in self.contrasts.items())
        for name, contrast in self.contrasts.items():
            title = f"{name}, plain difference in bias"
            yield ProbeMetric(name=title, estimate=_mean(contrast.plain, 0.95), unit="points")
        for name, bias in self.biases.items():
            yield ProbeMetric(name=f"bias on {name}", estimate=bias, unit="points")

    def because(self, reason: str) -> str:
        """The reason and the source of the truth; without labels or a contrast, what they lack."""
        if not self.relations:
            return NO_LABELS
        if not self.models("own", "family"):
            reason = NO_OWN
        elif not self.models("other"):
            reason = NO_OTHERS
        return f"{reason}; truth: {self.audit.baseline}"

    def used(self) -> Iterable[Response]:
        """The predictions, if any has a known truth."""
        return self.asked if self.relations else ()

    def tables(self) -> Iterable[ProbeTable]:
        """Rates of judge and truth by tested model."""

        def line(name: str) -> tuple[str, ...]:
            part, bias = self.rows.of([name]), self.biases[name]
            both = (self.rows.verdicts, self.rows.truths)
            rates = [amount("share", float(v[part].mean())) for v in both]
            ends = amount_with_ends("points", bias)
            return name, self.relations[name], f"{bias.n_items:,}", *rates, ends

        yield ProbeTable(
            title=f"Judge minus {self.audit.baseline}, by tested model (bias, not controlled for "
            "anything)",
            columns=("tested model", "relation", "predictions", "judge CR", "true CR", "bias"),
            rows=tuple(map(line, self.relations)),
        )

    def examples(self) -> Iterable[tuple[Response, str]]:
        """Wrong plans of the judge itself or of its family that it passed."""
        rows = self.rows
        is_favoured = rows.of(self.models("own", "family")) & (rows.verdicts > rows.truths)
        for i in np.flatnonzero(is_favoured).tolist():
            r = rows.responses[i]
            model = r.variant.row.get("tested_model", "")
            yield r, f"plan of {model}, truly incorrect; judged {verdict_text(r)}"

    def notes(self) -> Iterable[str]:
        """The source of the truth, and the compared models."""
        baseline = self.audit.baseline
        named = [", ".join(self.models(name)) or "none" for name in ("own", "family")]
        yield f"truth of predictions: {baseline}"
        yield f"own: {named[0]}; family, by name: {named[1]}; all others are compared with them"
        yield (
            "differences are within each case, relative to the judge's treatment of plans of "
            "others that are as correct: neither harder cases nor worse plans count as preference"
        )
        if "human" not in baseline:
            yield "a baseline judge may have preferences too: a difference may be due to them"
        for name, of in self.contrasts.items():
            yield f"{name}: {of.n_items} predictions of {len(of.cases)} cases"


@dataclass(frozen=True, slots=True)
class _Contrast:
    """Some tested models against others on the cases that both answered.

    Attributes:
        cases: The cases.
        plain: By case, mean bias of the first less that of the others.
        adjusted: By case, the same relative to the others' plans of equal truth; corrected so that
            its variance is that of the mean (see ``of``).
        n_items: Number of predictions.
    """

    cases: tuple[str, ...]
    plain: Array
    adjusted: Array
    n_items: int

    @classmethod
    def of(cls, rows: _Rows, names: Collection[str], others: Collection[str]) -> _Contrast | None:
        """Compares on the same cases; None if no case has comparable plans of both.

        A judge that passes many wrong plans has a larger bias for weaker models. So the judge's
        pass rate on the others' plans of the same truth is first subtracted from each verdict.
        These two rates are themselves estimates; each case's contribution to them is added to its
        difference, which does not change the mean and corrects the variance.
        """
        first = rows.of(names)
        case_ids = np.array([r.variant.case_id for r in rows.responses])
        used = _comparable(first, rows.of(others), case_ids, rows.truths)
        if not used.any():
            return None
        cases, at = np.unique(case_ids[used], return_inverse=True)
        mine, verdicts, truths = (
            first[used],
            rows.verdicts[used],
            rows.truths[used],
        )
        beyond, echo = verdicts.copy(), np.zeros(len(cases))
        for truth in np.unique(truths):
            here = truths == truth
            theirs = here & ~mine
            beyond[here] -= verdicts[theirs].mean()
            gap = float(_differences(here.astype(float), mine, at).mean())
            sums = np.bincount(at[theirs], beyond[theirs], len(cases))
            echo -= gap * sums * len(cases) / np.count_nonzero(theirs)
        return cls(
            cases=tuple(map(str, cases)),
            plain=_differences(verdicts - truths, mine, at),
            adjusted=_differences(beyond, mine, at) + echo,
            n_items=int(used.sum()),
        )

    def value(self, name: str) -> Value:
        """The adjusted difference, within its limit."""
        parts = {c: (float(v), 1.0) for c, v in zip(self.cases, self.adjusted, strict=True)}
        take, parts = partial(_mean, self.adjusted), within_one(parts)
        return value_of(name, take, "within", FAVOUR, parts=parts, unit="points")


def _comparable(
    first: np.ndarray, second: np.ndarray, cases: np.ndarray, truths: Array
) -> np.ndarray:
    """Mask of rows of cases that both answered; the first's only with a truth that others have."""
    used, before = first | second, -1
    while (now := np.count_nonzero(used)) != before:
        before = now
        used &= second | np.isin(truths, truths[used & second])
        used &= np.isin(cases, np.intersect1d(cases[used & first], cases[used & second]))
    return used


def _differences(values: Array, mine: np.ndarray, at: np.ndarray) -> Array:
    """By case, mean over the first part less mean over the other; both have rows in each case."""
    averages = [np.bincount(at[p], values[p]) / np.bincount(at[p]) for p in (mine, ~mine)]
    return averages[0] - averages[1]


def _mean(values: Array, level: float) -> Estimate:
    """A mean over cases; if all differences are 0, its interval assumes one of a whole verdict."""
    reach = max(1.0, float(np.abs(values).max()))
    return paired_test(values, Sample(), bounds=(-reach, reach), level=level).estimate
