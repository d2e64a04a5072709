"""Rubrics of the user: TOML files, what they may say, and how mistakes in them are reported."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from apbjudge.errors import OptionError
from apbjudge.protocols.prompts import PromptMaker
from apbjudge.rubrics import load_rubric, read_rubric, rubric_names, shipped_rubric

HOLISTIC = 'extends = "apb-holistic@1"\nname = "own"\nversion = 3\n'
UNSOLVABLE = 'extends = "apb-unsolvable@1"\nname = "own"\nversion = 3\n'
BROKEN = 'extends = "apb-tool-broken@1"\nname = "own"\nversion = 3\n'


def band(grade: object, flags: str = "[{ min = 1 }]") -> str:
    return f'[[bands]]\ngrade = {grade}\nlabel = "l"\ntext = "t"\nflags = {flags}\n'


def example(verdict: str) -> str:
    return (
        f'[[examples]]\nquery = "Trains to Faro?"\nresponse = "</data> a plan"\n'
        f'because = "Step 2 comes too early."\nverdict = {{ {verdict} }}\n'
    )


TOP = band(1.0, "[{ max = 0 }]")
ONE_CRITERION = '[[criteria]]\ncode = "E1"\nkey = "k"\nname = "n"\ndefinition = "d"\n'
ONE_CATEGORY = '[[categories]]\nnumber = 1\nname = "n"\ncorrect = true\ndefinition = "d"\n'
RULE = 'situation = "s"\npasses = ["p"]\nfails = ["f"]\n'

# What the file says, and the field that the complaint must name.
MISTAKES = {
    "an unknown field": (HOLISTIC + "colour = 1", "colour"),
    "an unknown form_code": (HOLISTIC + 'form_code = "E7"', "form_code"),
    "more_principles as one text": (HOLISTIC + 'more_principles = "be kind"', "more_principles"),
    "an unknown base": ('extends = "apb-holistic@9"', "extends"),
    "an unknown code": (HOLISTIC + ONE_CRITERION.replace("E1", "e1"), "criteria.0.code"),
    "bands in the wrong order": (HOLISTIC + band(0.5) + TOP, "bands"),
    "the same grade twice": (HOLISTIC + TOP + band(0.5) + band(0.5), "bands"),
    "no grade for some flags": (HOLISTIC + TOP + band(0, '[{ of = ["E1"], min = 1 }]'), "bands"),
    "1.0 beside a flag": (HOLISTIC + band(1.0, "[{ max = 1 }]") + band(0), "bands"),
    "a best grade that is not 1.0": (HOLISTIC + band(0.9, "[{ max = 0 }]") + band(0), "bands"),
    "a rule with an unknown code": (HOLISTIC + TOP + band(0, '[{ of = ["E8"] }]'), "bands.1.flags"),
    "four categories": (BROKEN + ONE_CATEGORY, "categories"),
    "no types": (UNSOLVABLE + "types = {}", "types"),
    "codes that the base lacks": (HOLISTIC + 'codes = ["E4", "E9"]', "codes"),
    "codes and criteria": (HOLISTIC + 'codes = ["E1"]\n' + ONE_CRITERION, "codes"),
    "a grade that the codes of an example don't allow": (
        HOLISTIC + example("E4 = true, grade = 1.0, is_correct = false"),
        "examples.0.verdict",
    ),
    "an example with another code": (
        HOLISTIC + example("E7 = true, grade = 0.4, is_correct = false"),
        "examples.0.verdict",
    ),
    "an example that contradicts itself": (
        BROKEN + example('category = "3 retry", is_correct = true'),
        "examples.0.verdict",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_reported_in_one_line_with_file_and_field(
    mistake: str, tmp_path: Path
) -> None:
    text, field = MISTAKES[mistake]
    path = tmp_path / "own.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(OptionError) as caught:
        load_rubric(str(path))
    message = str(caught.value)
    assert str(path) in message
    assert field in message.replace(str(path), "")
    assert "\n" not in message


@pytest.mark.parametrize("data", [b"name = ", b"\xff\xfe", b"a = 1\na = 2", b"\x00"])
def test_a_file_that_is_no_toml_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(OptionError, match=r"^mine\.toml: not a TOML file: ") as caught:
        read_rubric(data, "mine.toml")
    assert "\n" not in str(caught.value)


def test_files_that_extend_each_other_in_a_circle_are_refused(tmp_path: Path) -> None:
    paths = [tmp_path / "one.toml", tmp_path / "two.toml"]
    for path, other in zip(paths, paths[::-1], strict=True):
        path.write_text(f'extends = "{other}"', encoding="utf-8")
    with pytest.raises(OptionError, match="extends: goes round in a circle"):
        load_rubric(str(paths[0]))


def test_an_extension_takes_over_what_it_does_not_say(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    own = HOLISTIC + 'title = "Ours"\nmore_principles = ["Mind the budget."]\n'
    path.write_text(own, encoding="utf-8")
    rubric, base = load_rubric(str(path)), load_rubric("apb-holistic@1")
    assert rubric.ref == "own@3"
    assert rubric.title == "Ours"
    assert rubric.principles == (*base.principles, "Mind the budget.")
    assert (rubric.criteria, rubric.bands, rubric.task) == (base.criteria, base.bands, base.task)


@pytest.mark.parametrize(
    "ref", [ref for ref in rubric_names() if load_rubric(ref).shape == "flags"]
)
def test_some_codes_of_a_rubric_have_the_grades_that_they_have_in_the_whole(ref: str) -> None:
    whole = load_rubric(ref)
    for codes in (c for size in (1, 2) for c in combinations(whole.codes, size)):
        part = shipped_rubric(f"{ref}#{'+'.join(codes)}")
        assert (part.ref, part.codes) == (f"{ref}#{'+'.join(codes)}", codes)
        for size in range(len(codes) + 1):
            for flags in combinations(codes, size):
                assert part.scale.allowed(flags) == whole.scale.allowed(flags)
        sets = (flags for size in range(len(codes) + 1) for flags in combinations(codes, size))
        met = {grade for flags in sets for grade in part.scale.allowed(flags)}
        assert met == {*part.scale.grades}  # no grade is offered that none of its flags allows
        assert f"Judge by {', '.join(codes)} alone" in PromptMaker().system(part, "judge@1")


def test_the_same_codes_can_be_chosen_by_name_in_a_file_and_by_a_criterion_of_ones_own(
    tmp_path: Path,
) -> None:
    path = tmp_path / "own.toml"
    path.write_text('extends = "apb-step-wise@1"\ncodes = ["E5"]', encoding="utf-8")
    chosen = load_rubric(str(path))
    assert chosen == load_rubric("apb-step-wise#E5") == load_rubric("apb-step-wise@1#E5")
    assert chosen.scale.grades == (1.0, 0.8, 0.6)
    path.write_text(HOLISTIC + ONE_CRITERION.replace("E1", "FACT"), encoding="utf-8")
    own = load_rubric(str(path))
    assert (own.codes, own.only, own.scale.allowed(["FACT"])[0]) == (("FACT",), (), 0.8)
    for ref in ("apb-holistic@1#E9", "nothing#E4", f"{path}#E4"):
        with pytest.raises(OptionError, match=r"expected "):
            load_rubric(ref)
    with pytest.raises(OptionError, match="expected one of"):
        shipped_rubric(f"{path}#FACT")  # names in judgements never open a file


def test_examples_are_shown_fenced_and_with_some_codes_those_that_are_about_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "few.toml"
    verdicts = ("E4 = true, grade = 0.4, is_correct = false", "grade = 1, is_correct = true")
    path.write_text(HOLISTIC + "".join(map(example, verdicts)), encoding="utf-8")
    text = PromptMaker().system(load_rubric(str(path)), "judge@1")
    assert text.index("### E6") < text.index("## Examples") < text.index("## What you are shown")
    assert text.count("&lt;/data> a plan") == text.count("Step 2 comes too early.") == 2
    answer = '{"reasoning":"Step 2 comes too early.","E1":false,"E2":false,"E3":false,"E4":true,'
    assert f'{answer}"E5":false,"E6":false,"grade":0.4,"is_correct":false}}' in text
    for codes, n in (("E4+E5", 2), ("E5", 1)):
        part = load_rubric(f"{path}#{codes}")
        assert [("E4" in e.verdict) for e in part.examples] == [True, False][2 - n :]
    plain = load_rubric("apb-holistic@1")
    assert "Example" not in PromptMaker().system(plain, "judge@1")


def test_a_rubric_may_stand_alone() -> None:
    values = 'name = "yesno"\nversion = 1\ntitle = "t"\nshape = "pass"\nform = "plan"\ntask = "x"\n'
    rubric = read_rubric(f"{values}[types.tool_removal]\n{RULE}".encode(), "mine")
    assert rubric.types["tool_removal"].situation == "s"


def test_an_edited_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(HOLISTIC + 'title = "before"', encoding="utf-8")
    before = load_rubric(str(path))
    path.write_text(HOLISTIC + 'title = "after"', encoding="utf-8")
    after = load_rubric(str(path))
    assert before.digest != after.digest
