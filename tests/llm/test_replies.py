"""Structured replies: the schema that is asked for, and every way a text can be read."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.errors import ReplyError
from apbjudge.llm.replies import read_reply
from apbjudge.rubrics import Reply, load_rubric, published_form, reply_model

FLAGS = reply_model(load_rubric("apb-holistic@1"))
PASS = reply_model(load_rubric("apb-unsolvable@1"))
CATEGORY = reply_model(load_rubric("apb-tool-broken@1"))
SHAPES = [FLAGS, PASS, CATEGORY]
CODES = ("E1", "E2", "E3", "E4", "E5", "E6")

REASONS = st.text(max_size=80)
VERDICTS = st.one_of(
    st.fixed_dictionaries(
        {
            "reasoning": REASONS,
            **{code: st.booleans() for code in CODES},
            "grade": st.sampled_from([0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
            "is_correct": st.booleans(),
        }
    ),
    st.fixed_dictionaries({"reasoning": REASONS, "is_correct": st.booleans()}),
    st.fixed_dictionaries(
        {"reasoning": REASONS, "category": st.integers(1, 5), "is_correct": st.booleans()}
    ),
)
PROSE = st.text(st.characters(blacklist_characters="{}[]", blacklist_categories=["Cs"]))


def shape_of(verdict: dict[str, Any]) -> type[Reply]:
    return next(shape for shape in SHAPES if set(shape.model_fields) == set(verdict))


@given(verdict=VERDICTS, before=PROSE, after=PROSE, indent=st.sampled_from([None, 2]))
@settings(deadline=None, max_examples=60)
def test_a_verdict_amid_prose_is_read_as_it_was_written(
    verdict: dict[str, Any], before: str, after: str, indent: int | None
) -> None:
    text = json.dumps(verdict, indent=indent, ensure_ascii=False)
    assert read_reply(before + text + after, shape_of(verdict)).reply.model_dump() == verdict


@given(verdict=VERDICTS, data=st.data())
@settings(deadline=None, max_examples=60)
def test_a_verdict_that_lacks_a_key_is_refused(
    verdict: dict[str, Any], data: st.DataObject
) -> None:
    key = data.draw(st.sampled_from(sorted(verdict)))
    rest = {name: value for name, value in verdict.items() if name != key}
    with pytest.raises(ReplyError, match=key):
        read_reply(json.dumps(rest), shape_of(verdict))


@given(text=st.text(st.sampled_from('{}[]",:.0123456789 \n\\trueflsn"E1graiscot_`')) | st.text())
@settings(deadline=None, max_examples=150)
def test_any_text_is_a_verdict_or_an_error_of_ours(text: str) -> None:
    with pytest.raises(ReplyError) as raised:
        read_reply(text, PASS)
    assert 0 < len(str(raised.value)) <= 500
    assert raised.value.raw == text


@pytest.mark.parametrize("number", [True, 3.5, 0, 6])
def test_a_category_is_a_whole_number_from_one_to_five(number: Any) -> None:
    reply = {"reasoning": "r", "category": number, "is_correct": False}
    with pytest.raises(ReplyError, match="category"):
        read_reply(json.dumps(reply), CATEGORY)


SAID = {"reasoning": "it's fine", **dict.fromkeys(CODES, False), "grade": 1.0, "is_correct": True}
DENIED = {**SAID, "E3": True, "grade": 0.6, "is_correct": False}
YES, NO = json.dumps(SAID), json.dumps(DENIED)


def changed(**values: Any) -> str:
    return json.dumps(SAID | values)


UNAMBIGUOUS = {
    # as it was asked for, or with something around it
    "alone": YES,
    "in a fence": f"```json\n{YES}\n```",
    "a whole number": changed(grade=1),
    "amid prose": f"My verdict {{in short}}, it's this:\n{YES}\nSee [1, 2] and step [3].",
    "after its thinking": f"<think>{NO}</think>\n{YES}",
    "beside an object about something else": f'The call {{"city": "Porto"}} is right. {YES}',
    # said twice
    "twice the same": f"{YES}\n{YES}",
    "a list of two that agree": f"[{YES}, {YES}]",
    "a key twice with one value": YES.replace('"E1": false', '"E1": false, "E1": false'),
    # syntax
    "a comma at the end": YES.replace("true}", "true,\n}"),
    "a raw line break": YES.replace("it's fine", "it's\nfine"),
    "a backslash that escapes nothing": YES.replace("it's fine", r"it\_s \(fine\)"),
    "a dict of Python": str(SAID),
    "comments": YES.replace("{", "{ // the verdict\n", 1).replace(', "E1"', ', /* ok */ "E1"'),
    # types
    "a grade in quotes": changed(grade="1.0"),
    "a boolean as Python spells it": changed(E1="False", is_correct="True"),
    "booleans as 0 and 1": changed(**dict.fromkeys(CODES, 0), is_correct=1),
    # wrappings
    "JSON in a string": json.dumps(YES),
}
AMBIGUOUS = {
    # two verdicts
    "a verdict beside its opposite": f"{NO}\n{YES}",
    "a list of two that differ": f"[{YES}, {NO}]",
    "another grade": f"{DENIED}\n{ {**DENIED, 'grade': 0.8} }",
    "a draft that lacks the last key": NO.replace(', "is_correct": false', "") + YES,
    "a last word that is cut off": f"{YES}\nOr rather: {NO[:-6]}",
    "in a list with a string that holds another": json.dumps([SAID, NO]),
    # a key twice
    "is_correct twice": YES.replace('"is_correct"', '"is_correct": false, "is_correct"'),
    "a key twice in another spelling": NO.replace("{", '{"is_corr\\u0065ct": true, ', 1),
    # cut off
    "cut off in a word": YES[:-3],
    "cut off within its thinking": f"<think>Perhaps {YES}",
    # what spells nothing
    "keys without quotes": "{reasoning: 'r', is_correct: true}",
    "no": changed(is_correct="NO"),
    "a comma for the point": changed(grade="1,0"),
    "a number broken in two": NO.replace("0.6", "0\n.6"),
    "a comment that sets a key": YES.replace("}", '// "is_correct": false\n}'),
    "a quote within a reason": YES.replace("it's fine", 'it says "no"'),
    "prose": "The plan is correct, grade 1.0.",
}


def test_what_can_only_mean_one_thing_is_read_and_nothing_else() -> None:
    exact = list(UNAMBIGUOUS)[:9]
    for name, text in UNAMBIGUOUS.items():
        reading = read_reply(text, FLAGS)
        assert reading.reply.model_dump() | {"reasoning": ""} == SAID | {"reasoning": ""}, name
        assert reading.is_lenient == (name not in exact), name
    for name, text in AMBIGUOUS.items():
        with pytest.raises(ReplyError) as raised:
            read_reply(text, FLAGS)
        assert raised.value.reason == "unparsable", name


@given(verdict=VERDICTS, data=st.data())
@settings(deadline=None, max_examples=200)
def test_no_damage_makes_another_verdict_of_one(
    verdict: dict[str, Any], data: st.DataObject
) -> None:
    """What is cut off, and punctuation that is lost or added, may make a reply unreadable."""
    text = data.draw(st.sampled_from([json.dumps(verdict), str(verdict), json.dumps([verdict])]))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        lost = not text[at].isalnum() and data.draw(st.booleans())
        text = text[:at] + data.draw(st.sampled_from(MARKS)) + text[at + lost :]
    text = text[: data.draw(st.just(len(text)) | st.integers(0, len(text)))]
    try:
        said = read_reply(text, shape_of(verdict)).reply.model_dump()
    except ReplyError:
        return
    assert {**said, "reasoning": ""} == {**verdict, "reasoning": ""}


MARKS = ["", "", '"', "'", ",", ":", "{", "}", "[", "]", "\\", "\n", " ", "//", "#", "/*", "*/"]


SIZE = 1_000_000
HUGE = {
    "brackets": lambda: "{" * SIZE,
    "levels": lambda: '[{"a":' * (SIZE // 6),
    "quotes": lambda: "{" + "'\"" * (SIZE // 2),
    "comments": lambda: "{" + "/*" * (SIZE // 2),
    "a key ever again": lambda: "{" + '"is_correct": true, ' * 10_000 + YES[1:],
    "open quotes": lambda: ("{'" + "x" * 998) * (SIZE // 1000),
}


@pytest.mark.parametrize("name", HUGE)
@pytest.mark.slow
def test_a_huge_reply_takes_linear_time(name: str) -> None:
    text = HUGE[name]()
    began = time.process_time()
    with suppress(ReplyError):
        read_reply(text, FLAGS)
    assert time.process_time() - began < 20  # what takes the square of it takes an hour


# The paper's form ---------------------------------------------------------------------------------

STEPS, PLANS = load_rubric("apb-step-wise@1"), load_rubric("apb-holistic@1")
PAPERS = {of.key: of.code in ("E2", "E5") for of in STEPS.criteria} | {
    "score": 0.4,
    "reasoning": "r",
    "is_correct": "NO",
}
LISTED = {"is_correct": False, "grade": 0.4, "reasoning": "r"}
FAULTY = {"reasoning": "r", **{code: code in ("E2", "E5") for code in CODES}}
FAULTY |= {"grade": 0.4, "is_correct": False}
NUMBERS = {code: int(code in ("E2", "E5")) for code in CODES}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(PAPERS),
        f"Here: {json.dumps({'judgement': PAPERS})}",
        json.dumps(LISTED | {"error_list": NUMBERS}),
        json.dumps({**LISTED, "is_correct": "no ", "error_list": NUMBERS | {"E6": "0"}}),
        json.dumps(LISTED | {"error_list": {key: PAPERS[key] for key in list(PAPERS)[:6]}}),
        json.dumps(PAPERS | FAULTY),  # both, and they agree
    ],
)
def test_a_reply_under_the_keys_of_the_papers_prompts_is_read(text: str) -> None:
    reading = read_reply(text, reply_model(STEPS), form=published_form(STEPS))
    assert (reading.reply.model_dump(), reading.is_lenient) == (FAULTY, True)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"E2_PREMATURE_CONCLUSION": "YES"}, "E2"),  # the code holds, or the point is in order
        ({"is_correct": "partly"}, "is_correct"),
        ({"score": 0.5}, "grade"),
        ({"E1": True}, "E1: stands twice, with different values"),
        ({"grade": 1.0}, "grade: stands twice, with different values"),
        ({"error_list": {"E2": 0}}, "E2: stands twice, with different values"),
    ],
)
def test_nothing_is_guessed_of_the_papers_form(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ReplyError, match=complaint):
        read_reply(json.dumps(PAPERS | changes), reply_model(STEPS), form=published_form(STEPS))
    both = json.dumps(FAULTY | {"E1_GOAL_MISALIGNMENT": True})
    with pytest.raises(ReplyError, match="E1: stands twice"):
        read_reply(both, reply_model(STEPS), form=published_form(STEPS))
    cut_off = f'{json.dumps(PAPERS)} {{"E1_GOAL_MISALIGNMENT": true, '
    with pytest.raises(ReplyError, match="a second verdict, besides a readable one"):
        read_reply(cut_off, reply_model(STEPS), form=published_form(STEPS))


def test_words_for_correctness_are_read_under_every_shape_and_keys_of_others_are_not() -> None:
    for rubric in ("apb-unsolvable@1", "apb-tool-broken@1"):
        shape = load_rubric(rubric)
        reply = {"reasoning": "r", "category": 3, "is_correct": "YES"}
        read = read_reply(json.dumps(reply), reply_model(shape), form=published_form(shape))
        assert read.reply.model_dump()["is_correct"] is True
    with pytest.raises(ReplyError, match="E2"):  # the other protocol's key
        read_reply(json.dumps(PAPERS), FLAGS, form=published_form(PLANS))
    beside = f'It returns {{"score": 3}}. {YES}'
    assert read_reply(beside, FLAGS, form=published_form(PLANS)).reply.model_dump() == SAID
    own = load_rubric("case-plan@1")
    assert published_form(own).names == ()
