"""Statistics of judges and runs: pure functions on arrays, each with an interval that holds.

Names are imported when first used: a run that grades needs few of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agreement import (
        bennett_s,
        cohen_kappa,
        gwet_ac,
        linear_weights,
        observed_agreement,
        phi,
        quadratic_weights,
        specific_agreement,
    )
    from .analyses import Diversity, SelfEvaluation, diversity, self_evaluation
    from .annotators import AltTest, alternative_annotator_test
    from .best import Contender, best_set
    from .classes import Nominal, nominal
    from .coded import Settings
    from .comparison import (
        McNemar,
        PairedTest,
        adjust,
        detectable_difference,
        mcnemar,
        newcombe,
        paired_test,
    )
    from .confusion import Confusion
    from .contrasts import Contrast, independent_difference, part_difference
    from .intervals import Estimate, cluster_bootstrap, modified_wilson, ratio, wilson
    from .krippendorff import coincidences, coincidences_of_table, krippendorff_alpha
    from .measures import calibrate, paper_measures
    from .paired import (
        Difference,
        Flips,
        compare_reliability,
        compare_verdicts,
        flips,
        with_families,
    )
    from .planning import Plan, n_for_difference, n_for_mean, n_for_rate, needed, plan
    from .prevalence import rogan_gladen
    from .raters import BetweenRaters, between_raters, stand_in
    from .ratings import CODES, LEVELS, Ratings, grade_codes, levels_of
    from .rectification import Rectified, rectify
    from .results import Calibration
    from .sample import Sample, Strata
    from .selection import Selection, doubt_strata, select
    from .shares import bounded, counted, counted_ratio, share

_HOMES = {
    "agreement": "bennett_s cohen_kappa gwet_ac observed_agreement "
    "phi quadratic_weights linear_weights specific_agreement",
    "analyses": "Diversity SelfEvaluation diversity self_evaluation",
    "annotators": "AltTest alternative_annotator_test",
    "best": "Contender best_set",
    "coded": "Settings",
    "comparison": "McNemar PairedTest adjust detectable_difference mcnemar newcombe paired_test",
    "confusion": "Confusion",
    "contrasts": "Contrast independent_difference part_difference",
    "intervals": "Estimate cluster_bootstrap modified_wilson ratio wilson",
    "krippendorff": "coincidences coincidences_of_table krippendorff_alpha",
    "measures": "calibrate paper_measures",
    "classes": "Nominal nominal",
    "paired": "Difference Flips compare_reliability compare_verdicts flips with_families",
    "planning": "Plan n_for_difference n_for_mean n_for_rate needed plan",
    "prevalence": "rogan_gladen",
    "raters": "BetweenRaters between_raters stand_in",
    "ratings": "CODES LEVELS Ratings grade_codes levels_of",
    "rectification": "Rectified rectify",
    "results": "Calibration",
    "sample": "Sample Strata",
    "selection": "Selection doubt_strata select",
    "shares": "bounded counted counted_ratio share",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "CODES",
    "LEVELS",
    "AltTest",
    "BetweenRaters",
    "Calibration",
    "Confusion",
    "Contender",
    "Contrast",
    "Difference",
    "Diversity",
    "Estimate",
    "Flips",
    "McNemar",
    "Nominal",
    "PairedTest",
    "Plan",
    "Ratings",
    "Rectified",
    "Sample",
    "Selection",
    "SelfEvaluation",
    "Settings",
    "Strata",
    "adjust",
    "alternative_annotator_test",
    "bennett_s",
    "best_set",
    "between_raters",
    "bounded",
    "calibrate",
    "cluster_bootstrap",
    "cohen_kappa",
    "coincidences",
    "coincidences_of_table",
    "compare_reliability",
    "compare_verdicts",
    "counted",
    "counted_ratio",
    "detectable_difference",
    "diversity",
    "doubt_strata",
    "flips",
    "grade_codes",
    "gwet_ac",
    "independent_difference",
    "krippendorff_alpha",
    "levels_of",
    "linear_weights",
    "mcnemar",
    "modified_wilson",
    "n_for_difference",
    "n_for_mean",
    "n_for_rate",
    "needed",
    "newcombe",
    "nominal",
    "observed_agreement",
    "paired_test",
    "paper_measures",
    "part_difference",
    "phi",
    "plan",
    "quadratic_weights",
    "ratio",
    "rectify",
    "rogan_gladen",
    "select",
    "self_evaluation",
    "share",
    "specific_agreement",
    "stand_in",
    "wilson",
    "with_families",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
