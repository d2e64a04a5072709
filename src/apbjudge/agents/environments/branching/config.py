"""The settings of entropy-guided branching, and of the analysis that it rests on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from ....config import Config, Option, PartConfig
from ....llm.limits import RunsConfig
from ...prediction.config import OneModel, TestedConfig, TestedModelSpec
from ..config import FirstTasks
from ..slate.config import SlateConfig
from .distributions import MOST_LABELS, LabelKind

MethodName = Literal[
    "egb", "self-consistency", "react", "direct", "self-consistency-plan", "reflexion"
]
_SWEPT: Mapping[str, tuple[str, Sequence[MethodName]]] = {
    "m": ("samples", ("egb", "self-consistency")),
    "b": ("max_trajectories", ("egb", "self-consistency-plan", "reflexion")),
}
"""By the paper's letter, the setting that a sweep varies, and the methods that have it."""
Order = Literal["entropy", "random", "position"]
VerifierKind = Literal["oracle", "judge", "none"]


class BranchConfig(Config):
    """Settings of running and branching a case; see ``search``."""

    groups: ClassVar[Mapping[str, str]] = {
        "Branching": "order max_branches max_branches_per_step max_trajectories branch_seed"
    }

    method: MethodName = Field(
        default="egb",
        description="egb: the likeliest choice of each substep, then branches; self-consistency: "
        "the same without branches; react: one action a substep; direct: the same without seeing "
        "what calls return; self-consistency-plan: whole runs that vote on the final outputs; "
        "reflexion: whole runs until one is right, each after a reflection on the one before.",
    )
    verifier: VerifierKind = Field(
        default="oracle",
        description="What decides that a run is right, so that the search ends: oracle (the "
        "reference), judge, or none: all branches are run and the first pass is the result.",
    )
    order: Order = Field(
        default="entropy",
        description="Which substep is branched first: the one with the highest entropy or, as "
        "controls, a random one or the first.",
    )
    max_branches: int = Field(default=50, ge=0, description="Branches of a case at most.")
    max_branches_per_step: int = Field(
        default=5, ge=0, description="Branches at one substep at most."
    )
    max_trajectories: int | None = Field(
        default=None,
        ge=1,
        description="Runs of a case at most, the first pass included: 1 never branches. Without "
        "it 10 for self-consistency-plan, 5 for reflexion.",
    )
    branch_seed: int = Field(default=0, ge=0, description="Seed of the random order.")

    @property
    def most_runs(self) -> int:
        """Largest number of whole runs of a case; 1 unless the method has several.

        The defaults are the paper's: 10 votes (appendix B.3), and 5 attempts of Reflexion, the only
        number that agrees with both its calls (table 5) and success rates (table 4).
        """
        most = {"self-consistency-plan": 10, "reflexion": 5}.get(self.method)
        return 1 if most is None else self.max_trajectories or most

    @property
    def budget(self) -> int:
        """Largest number of branches of a case, by both limits; 0 unless the method is ``egb``."""
        if self.method != "egb":
            return 0
        if self.max_trajectories is None:
            return self.max_branches
        return min(self.max_branches, self.max_trajectories - 1)


class MemoryConfig(Config):
    """Settings of the memory of earlier runs; see ``memory``."""

    groups: ClassVar[Mapping[str, str]] = {"Memory": "memory memory_of memory_k memory_unit"}

    memory: Path | None = Field(
        default=None,
        description="An earlier run of branch, or its trajectories.jsonl, whose actions are shown "
        "at similar substeps. The cases of that run are left out.",
    )
    memory_of: Literal["successful", "all"] = Field(
        default="successful",
        description="Results that are remembered: those that are right by the reference, or all.",
    )
    memory_k: int = Field(
        default=5,
        ge=0,
        description="Substeps or plans that are shown at most; 0 shows none, as a control with the "
        "same cases.",
    )
    memory_unit: Literal["substep", "plan"] = Field(
        default="substep", description="Unit of memory: substep or whole plan."
    )


class BranchRunConfig(
    TestedConfig, PartConfig, FirstTasks, BranchConfig, SlateConfig, MemoryConfig
):
    """Models that carry out plans, the measure of uncertainty, and the folder for results."""

    groups: ClassVar[Mapping[str, str]] = {
        **BranchConfig.groups,
        "Agent": "first samples labels max_candidates scope trials sweep",
        **MemoryConfig.groups,
        **TestedConfig.groups,
        "Run": f"{RunsConfig.groups['Run']} shard",
    }

    judge: OneModel = Field(
        default=None,
        description="The verifying model for --verifier judge, MODEL or MODEL@ADDRESS.",
    )
    same_text: OneModel = Field(
        default=None,
        description="Model (MODEL or MODEL@ADDRESS) that decides whether free texts in arguments "
        "mean the same; without it only calls that equal a recorded one by rule get its output.",
    )
    samples: int = Field(
        default=10,
        ge=0,
        le=1000,
        description="Samples of each choice at temperature 1; 0 takes the probabilities of labels "
        "instead, if the endpoint reports them.",
    )
    labels: LabelKind | None = Field(
        default=None,
        description="Labels of the candidates for --samples 0; default: letters if there are "
        "enough, else two digits.",
    )
    max_candidates: int = Field(
        default=100,
        ge=2,
        le=100,
        description="Number of choices shown, including the choice of no tool.",
    )
    trials: int = Field(default=1, ge=1, le=1000, description="Runs of each case and model.")

    sweep: str = Field(
        default="",
        description="Values of a setting, each a run in a folder such as OUT/m-5: m=1,5,10,20 for "
        "--samples, or b=1,3,5,10 for --max-trajectories.",
    )

    @property
    def helpers(self) -> dict[str, TestedModelSpec]:
        """The models that are asked in addition to tested ones, by the options that name them."""
        named = {"--judge": self.judge, "--same-text": self.same_text}
        return {option: spec for option, spec in named.items() if spec is not None}

    @property
    def swept(self) -> tuple[BranchRunConfig, ...]:
        """The configurations of the runs: one for each value of a sweep.

        Raises:
            OptionError: If a value is unusable.
        """
        if not self.sweep:
            return (self,)
        letter, _, values = self.sweep.partition("=")
        numbers = values.split(",")
        configs: list[BranchRunConfig] = []
        for number in numbers:
            own: dict[str, Any] = {"sweep": f"{letter}={number}", _SWEPT[letter][0]: int(number)}
            if len(numbers) > 1 and self.out is not None:
                own["out"] = self.out / f"{letter}-{number}"
            stated = {name: getattr(self, name) for name in self.model_fields_set}
            configs.append(BranchRunConfig.of({**stated, **own}))
        return tuple(configs)

    @model_validator(mode="after")
    def _fits(self) -> BranchRunConfig:
        if (self.verifier == "judge") != (self.judge is not None):
            expected = "a model" if self.verifier == "judge" else "none"
            raise ValueError(f"--judge: expected {expected} with --verifier {self.verifier}")
        if self.judge is not None and self.method == "self-consistency-plan":
            raise ValueError(f"--verifier judge: --method {self.method} asks no verifier")
        if self.verifier == "none" and self.method == "reflexion":
            raise ValueError("--verifier none: --method reflexion reflects on what one refuses")
        if self.sweep:
            match = re.fullmatch(r"([mb])=[1-9]\d{0,3}(,[1-9]\d{0,3})*", self.sweep)
            methods = () if match is None else _SWEPT[match[1]][1]
            if self.method not in methods:
                usable = [letter for letter, (_, of) in _SWEPT.items() if self.method in of]
                expected = " or ".join(f"{letter}=1,5" for letter in usable) or "none"
                raise ValueError(
                    f"--sweep: expected {expected} with --method {self.method}, got {self.sweep!r}"
                )
        most = MOST_LABELS[self.labels or "digits"]
        if self.samples == 0 and self.max_candidates > most:
            raise ValueError(f"--max-candidates: expected at most {most} {self.labels}")
        return self


class EntropyConfig(Config):
    """Settings of comparing entropies with errors; see ``analysis``."""

    rows: Annotated[Path, Option(is_argument=True, is_log=True)] = Field(
        description="Runs whose steps carry distributions, as branch writes them, or a run of a "
        "judge with samples or logprobs."
    )
    labels: tuple[Path, ...] = Field(
        default=(), description="Human labels, which show where a judge was wrong."
    )
    unit: Literal["nats", "bits"] = Field(default="nats", description="Unit of entropies.")
    estimate: Literal["plug-in", "miller-madow"] = Field(
        default="plug-in",
        description="Entropy of samples: plug-in, or corrected for bias.",
    )
    bins: int = Field(default=5, ge=1, le=100, description="Number of bins.")
    binning: Literal["width", "quantiles"] = Field(
        default="width", description="Bins equally wide, or with about as many choices in each."
    )
