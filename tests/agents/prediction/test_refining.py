"""Refinement with scripted models: what is asked, what becomes of it, and what never leaks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from apbjudge import Events, RefineConfig, TestedModelSpec, predict, refine
from apbjudge.agents.prediction.prompts import CasePromptMaker
from apbjudge.agents.prediction.refine import review_set
from apbjudge.agents.prediction.reviews import Draft, ModelReviewer
from apbjudge.agents.prediction.session import PredictionRun
from apbjudge.agents.prediction.worker import AskedModel
from apbjudge.errors import InputError, OptionError
from apbjudge.llm.base import Completion, Request, ScriptedClient
from apbjudge.records import Row
from tests.support.judging import plan_row, step_row, write_rows
from tests.support.predicting import ALL_EXAMPLES, MODEL, read_lines

KEEP, CHANGE = "It is fine.\n\nVERDICT: KEEP", "Use find_train.\nVERDICT: CHANGE"
GOOD = plan_row("x")["model_response"]
BAD = json.dumps({"plan": "fly", "tool_chain": [{"name": "fly_there"}]})
CRITIC = TestedModelSpec(model="hosted_vllm/critic")


def drafts_in(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """Drafts with all fields of their cases, as of a tested model that is there."""
    return write_rows(folder / "drafts.jsonl", [{**row, "tested_model": MODEL} for row in rows])


def plans(*responses: str) -> list[dict[str, Any]]:
    return [plan_row(f"case-{n}", model_response=text) for n, text in enumerate(responses)]


class Model:
    """Reviews and rewrites; what it was asked stands in ``reviews`` and ``finals``."""

    def __init__(
        self,
        review: Callable[[str], str] = lambda text: CHANGE,
        final: Callable[[str], str | Completion] = lambda draft: GOOD,
    ) -> None:
        self.reviews: list[Request] = []
        self.finals: list[Request] = []
        self._review, self._final = review, final
        self.client = ScriptedClient(self._answer)

    def _answer(self, request: Request) -> str | Completion:
        roles = [message["role"] for message in request.messages]
        last = text_of(request.messages[-1:])
        if "Here is a review" in last or "Reflections on" in last or "final plan" in last:
            self.finals.append(request)
            return self._final(text_of(request.messages[2:3]))
        assert roles in (["system", "user"], ["system", "user", "assistant", "user"])
        self.reviews.append(request)
        return self._review(text_of(request.messages))


def text_of(messages: list[dict[str, Any]]) -> str:
    contents = [message["content"] for message in messages]
    return "\n".join(c if isinstance(c, str) else json.dumps(c) for c in contents)


Answers = Callable[[Request], str | Completion]


def refining(
    folder: Path, rows: list[dict[str, Any]], answer: Model | Answers, **settings: Any
) -> PredictionRun:
    usual: dict[str, Any] = {"mode": "self", "model": TestedModelSpec(model=MODEL)}
    if settings.get("mode") in ("critic", "judge"):
        usual["critic"] = CRITIC
    client = answer.client if isinstance(answer, Model) else ScriptedClient(answer)
    return refine(drafts_in(folder, rows), **{**usual, **settings}, client=client)


def refined(
    folder: Path, rows: list[dict[str, Any]], answer: Model | Answers, **settings: Any
) -> dict[str, dict[str, Any]]:
    run = refining(folder, rows, answer, **settings)
    assert run.failed == 0, run.failures
    return {row["id"]: row for row in run}


def judged(request: Request, *, is_right: bool = False) -> str:
    """The reply of a judge, and a good plan where one is asked for."""
    if request.reply is None:
        return GOOD
    codes = {f"E{n}": n == 6 and not is_right for n in range(1, 7)}
    if "category" in request.reply.model_fields:
        codes = {"category": 0 if is_right else 5}
    values = {"reasoning": "No such tool.", "is_correct": is_right, **codes}
    return json.dumps({**values, "grade": 1.0 if is_right else 0.2})


# The scripted tests -------------------------------------------------------------------------------


@pytest.mark.parametrize("review", [KEEP, ""])
def test_a_review_that_endorses_or_says_nothing_changes_nothing(
    tmp_path: Path, review: str
) -> None:
    model, rows = Model(lambda text: review), plans(GOOD, BAD, "no JSON", "")
    finals = refined(tmp_path, rows, model)
    assert (len(model.reviews), model.finals) == (4, [])
    assert any("(The answer was empty.)" in text_of(each.messages) for each in model.reviews)
    for row in rows:
        final = finals[row["id"]]
        assert final["model_response"] == row["model_response"]
        assert final["draft_sha256"] == sha256(row["model_response"].encode()).hexdigest()
        assert (final["is_unchanged"], final["usage"]["calls"]) == (True, 1)
        assert final["messages"] == []


SECRET = "kestrel-secret"
SECRET_STEP = step_row("x", {SECRET: SECRET})["ground_truth_steps"][0] | {
    "tool_calls": [{"function": {"name": f"{SECRET}_tool", "arguments": {"a": SECRET}}}]
}
HIDDEN: dict[str, Any] = {
    "id": f"{SECRET}-id",
    "extraneous_tool_names": [f"{SECRET}_distractor"],
    **{name: f"{SECRET}-{name}" for name in ("source", "task_category", "stage")},
}
SECRETIVE = {
    "plan": plan_row(
        "x",
        model_response=BAD,
        plan=f"{SECRET}-plan",
        tool_chain=[{"name": f"{SECRET}_tool", "parameter_description": {}}],
        **HIDDEN,
    ),
    "broken": step_row(
        "x",
        {},
        ground_truth_steps=[SECRET_STEP],
        reference_remaining_steps=[SECRET_STEP, SECRET_STEP],
        broken_tool_name=f"{SECRET}_broken",
        replacement_tool={"name": f"{SECRET}_new", "description": SECRET},
        **HIDDEN,
    ),
}
MODES = {
    "self": "ablate@1",
    "critic": "apb@1",
    "static": "apb@1",
    "judge": "ablate@1",
    "oracle": "ablate@1",
}
"""Each with the prompts of its reviews."""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SECRETIVE)
def test_what_a_tested_model_can_not_know_is_in_no_request(
    tmp_path: Path, mode: str, name: str
) -> None:
    seen: list[str] = []

    def answer(request: Request) -> str:
        seen.append(json.dumps(request.messages))
        return CHANGE if request.reply is None and len(seen) == 1 else judged(request)

    how = {"mode": "judge", "with_reference": True} if mode == "oracle" else {"mode": mode}
    (row,) = refining(tmp_path, [SECRETIVE[name]], answer, review_prompts=MODES[mode], **how)
    assert len(seen) == (1 if mode == "static" else 2)
    assert seen[-1].count(json.dumps(row["critique"])[1:-1]) == 1
    assert row["is_oracle"] == (row["method"] == "oracle") == (mode == "oracle")
    assert any(SECRET in text for text in seen) == (mode == "oracle")
    assert (f"{SECRET}_tool" in seen[0]) == (mode == "oracle")  # of the reference


# Prompts ------------------------------------------------------------------------------------------


def reviews_of(case: Mapping[str, Any], prompts: str, guide: Any) -> list[dict[str, Any]]:
    item = Row({**case, "tested_model": MODEL, "model_response": "the draft"}, 1).to_item()
    config = RefineConfig(mode="self", review_prompts=prompts)
    spec = TestedModelSpec(model=MODEL, vision="yes")
    maker = CasePromptMaker.of("neutral@1", (Path("examples"),), spec)
    planner = AskedModel(spec, ScriptedClient(lambda request: ""), sees=True)
    reviewer = ModelReviewer(review_set(config), guide, None)
    draft = Draft(item, maker.make(item), 0, planner)
    return reviewer._messages(draft)  # pyright: ignore[reportPrivateUsage]


def test_with_and_without_codes_ablate_differs_in_the_codes_alone() -> None:
    for case in ALL_EXAMPLES[::15]:
        one, other = (reviews_of(case, "ablate@1", guide) for guide in ("codes", "none"))
        for with_codes, without in zip(one, other, strict=True):
            texts = [text_of([message]) for message in (with_codes, without)]
            lines, kept = (filter(None, text.replace("\\n", "\n").splitlines()) for text in texts)
            of_codes = ("- E", "Look for these errors in particular")
            assert [line for line in lines if not line.startswith(of_codes)] == [*kept]
        assert text_of(one) != text_of(other)


def test_the_final_answer_is_asked_for_in_equal_words_with_codes_and_without(
    tmp_path: Path,
) -> None:
    with_codes, without = Model(), Model()
    rows = [plan_row("a", model_response=BAD), step_row("b", {})]
    for guide, model in (("codes", with_codes), ("none", without)):
        refined(tmp_path, rows, model, guide=guide, review_prompts="ablate@1")
    asked = [[each.messages[-1] for each in model.finals] for model in (with_codes, without)]
    assert asked[0] == asked[1]
    assert len(asked[0]) == 2


def test_apb_warns_with_and_without_codes_as_its_figures_do() -> None:
    for regime in ("Step-wise", "Holistic"):
        case = next(case for case in ALL_EXAMPLES if case["planning_regime"] == regime)
        one, other = (text_of(reviews_of(case, "apb@1", guide)) for guide in ("codes", "none"))
        for text in (one, other):
            assert ("Don't invent preconditions" in text) == (regime == "Step-wise")
            assert ("kept, modified or replaced" in text) == (regime == "Step-wise")
        assert ("E1 " in one, "E1 " in other) == (True, False)


@pytest.mark.parametrize("mode", ["critic", "judge"])
def test_every_picture_is_shown_in_both_calls_with_the_settings_of_who_is_asked(
    tmp_path: Path, mode: str
) -> None:
    """More of them than a judge is shown by default."""
    files = [{"type": "image", "path": f"{n}.png"} for n in range(20)]
    for file in files:
        (tmp_path / file["path"]).write_bytes(b"\x89PNG" + file["path"].encode())
    seen: list[Request] = []

    def answer(request: Request) -> Completion:
        seen.append(request)
        is_review = request.model == CRITIC.model and mode == "critic"
        text = CHANGE if is_review else judged(request)
        served = f"{request.model}-served"
        return Completion(text=text, finish_reason="stop", served_model=served)

    critic = TestedModelSpec(model=CRITIC.model, vision="yes", max_reply_tokens=222)
    model = TestedModelSpec(model=MODEL, vision="yes", max_reply_tokens=111)
    rows = [plan_row("a", model_response=BAD, files=files)]
    (final,) = refining(tmp_path, rows, answer, mode=mode, critic=critic, model=model)
    assert [(each.model, each.max_tokens) for each in seen] == [(CRITIC.model, 222), (MODEL, 111)]
    for request in seen:
        lists = [m["content"] for m in request.messages if isinstance(m["content"], list)]
        assert sum(part["type"] == "image_url" for content in lists for part in content) == 20
    assert "base64" not in json.dumps(final["messages"])
    assert "0.png" in json.dumps(final["messages"])
    assert (final["critic_model"], final["served_model"]) == (CRITIC.model, f"{MODEL}-served")
    served = f"{CRITIC.model}-served" if mode == "critic" else None
    assert final["rounds"][0]["critic_served_model"] == served
    assert final["method"] == ("critic+" if mode == "critic" else "judge")


@pytest.mark.parametrize("mode", ["critic", "judge"])
def test_who_can_not_be_shown_the_pictures_reviews_nothing(tmp_path: Path, mode: str) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    rows = [plan_row("a", model_response=BAD, files=[{"type": "image", "path": "a.png"}])]
    sees = TestedModelSpec(model=MODEL, vision="yes")
    run = refining(tmp_path, rows, lambda request: pytest.fail("asked"), mode=mode, model=sees)
    (failed,) = run.failures
    assert "a model that can see (hosted_vllm/critic" in failed["detail"]


# Code and judges as reviewers ---------------------------------------------------------------------


def test_code_says_only_what_it_proves_with_what_the_model_could_see(tmp_path: Path) -> None:
    """Whether the prompt demanded the form is not known of drafts of another program."""
    excused = {"tool_chain": [{"name": "fly_there"}]}  # the reference calls it too
    rows = [
        plan_row("clean"),
        plan_row("unknown", model_response=BAD, **excused),
        plan_row("distractor", extraneous_tool_names=["find_train"]),
        step_row("schema", {}),
        plan_row("no form", model_response="no JSON"),
        plan_row("demanded", model_response="no JSON", format_demanded=True),
    ]
    model = Model()
    finals = refined(tmp_path, rows, model, mode="static")
    changed = {name for name, final in finals.items() if final["rounds"][0]["critique"]}
    assert changed == {"unknown", "schema", "demanded"}
    assert "no tool named 'fly_there'" in finals["unknown"]["critique"]
    assert "no JSON in the form of plan and tool_chain" in finals["demanded"]["critique"]
    assert [finals[n]["format_demanded"] for n in ("no form", "demanded")] == [None, True]
    assert (len(model.finals), model.reviews) == (3, [])
    assert (finals["clean"]["usage"]["calls"], finals["clean"]["cost_usd"]) == (0, 0.0)


def test_a_judge_as_reviewer_endorses_or_explains(tmp_path: Path) -> None:
    def answer(request: Request) -> str:
        return judged(request, is_right="fly_there" not in text_of(request.messages))

    finals = refined(tmp_path, plans(GOOD, BAD), answer, mode="judge")
    assert finals["case-0"]["is_unchanged"]
    assert finals["case-1"]["model_response"] == GOOD
    assert "E6" in finals["case-1"]["critique"]
    assert "No such tool." in finals["case-1"]["critique"]


def test_code_does_not_prove_for_a_reviewer_that_a_rejected_task_can_be_solved(
    tmp_path: Path,
) -> None:
    """Whether it can is hidden from who reviews: a right rejection must not be talked down."""
    rejection = json.dumps({"status": "REJECT", "reason": "no train goes there"})
    rows = [plan_row("a", model_response=rejection, format_demanded=True)]
    asked: list[Request] = []

    def answer(request: Request) -> str:
        asked.append(request)
        return judged(request, is_right=True)

    for mode in ("static", "judge"):
        (row,) = refining(tmp_path, rows, answer, mode=mode)
        assert row["rounds"][0]["endorses"] is True
        assert row["model_response"] == rejection
    assert len(asked) == 1
    assert 'verified_facts">' not in text_of(asked[0].messages)


def test_what_is_made_of_an_oracles_answer_is_an_oracles_too(tmp_path: Path) -> None:
    cases = write_rows(tmp_path / "cases.jsonl", [plan_row("a")])
    client = ScriptedClient(lambda request: BAD)
    drafts = predict(cases, model=MODEL, out=tmp_path / "drafts", client=client)
    judge = {"mode": "judge", "critic": CRITIC, "client": ScriptedClient(judged)}
    for with_reference in (True, False):
        out = tmp_path / str(with_reference)
        first = refine(drafts, with_reference=with_reference, out=out, **judge)
        (again,) = refine(first, mode="self", client=Model().client)
        assert again["is_oracle"] is with_reference


def test_what_a_review_has_in_common_with_judges_is_said_when_it_runs(tmp_path: Path) -> None:
    texts = {"six error codes", "own measure", "oracle"}
    runs: list[tuple[dict[str, Any], set[str]]] = [
        ({"mode": "self"}, {"six error codes"}),
        ({"mode": "self", "guide": "none"}, set()),
        ({"mode": "judge", "with_reference": True}, {"own measure", "oracle"}),
    ]
    for settings, said in runs:
        notes: list[str] = []
        events = Events(lambda progress: None, notes.append, notes.append)
        refining(tmp_path, plans(BAD), judged, events=events, **settings)
        assert {text for text in texts if any(text in note for note in notes)} == said


# Rounds and answers -------------------------------------------------------------------------------


def test_rounds_end_at_an_endorsement_an_unchanged_answer_or_their_number(
    tmp_path: Path,
) -> None:
    texts = iter([BAD.replace("fly", f"fly{n}") for n in range(9)])
    changing = Model(final=lambda draft: next(texts))
    (final,) = refined(tmp_path, plans(BAD), changing, rounds=3).values()
    assert len(final["rounds"]) == 3
    assert final["usage"]["calls"] == 6
    assert final["model_response"] == final["rounds"][-1]["model_response"]

    same = Model(final=lambda draft: draft)
    (final,) = refined(tmp_path, plans(BAD), same, rounds=5).values()
    assert len(final["rounds"]) == 1

    content = Model(lambda text: CHANGE if "fly_there" in text else KEEP)
    (final,) = refined(tmp_path, plans(BAD), content, rounds=5).values()
    assert [each["endorses"] for each in final["rounds"]] == [False, True]


def test_the_last_line_of_a_review_endorses_objects_or_is_none(tmp_path: Path) -> None:
    for last, endorses in (
        ("VERDICT: KEEP\n\n---\n", True),
        ("- VERDICT: CHANGE", False),
        ("VERDICT: KEEP or CHANGE", None),
        ("VERDICT: KEEP\nBut the order can't work.", None),
    ):
        model = Model(lambda prompt, last=last: f"Its code:\n```\n{{}}\n```\n{last}")
        (final,) = refined(tmp_path, plans(BAD), model).values()
        assert final["rounds"][0]["endorses"] is endorses
        assert final["model_response"] == (BAD if endorses else GOOD)
        assert final["critique"].startswith("Its code:\n```\n{}\n```")
        assert (last.strip() in final["critique"]) == (endorses is None)


def test_an_answer_is_unchanged_if_it_says_the_same_in_another_way(tmp_path: Path) -> None:
    spaced = f"```json\n{json.dumps(json.loads(GOOD), indent=4)}\n```"
    other = json.dumps({**json.loads(GOOD), "plan": "another one"})
    for response, is_unchanged in ((spaced, True), (other, False)):
        model = Model(final=lambda draft, response=response: response)
        (final,) = refined(tmp_path, plans(GOOD), model, rounds=3).values()
        assert final["is_unchanged"] is is_unchanged
        assert (len(final["rounds"]) == 1) == is_unchanged


def test_each_sample_of_a_case_is_refined_with_its_own_seed(tmp_path: Path) -> None:
    rows = [plan_row(name, case_id="case", model_response=BAD) for name in ("case", "case#2")]
    model = Model()
    finals = refined(tmp_path, rows, model, model=TestedModelSpec(model=MODEL, seed=5))
    assert {row["case_id"] for row in finals.values()} == {"case"}
    for requests in (model.reviews, model.finals):
        assert sorted((each.sample, each.settings["seed"]) for each in requests) == [(0, 5), (1, 6)]


def test_a_draft_can_not_pose_as_the_place_of_a_picture(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    files = [{"type": "image", "path": "a.png"}]
    rows = [plan_row("a", model_response="x\0picture\0y", files=files)]
    model = Model()
    spec = TestedModelSpec(model=MODEL, vision="yes")
    (final,) = refined(tmp_path, rows, model, model=spec).values()
    assert final["model_response"] == GOOD
    sent = text_of(model.reviews[0].messages).encode().decode("unicode_escape")
    assert "x\ufffdpicture\ufffdy" in sent


# Input --------------------------------------------------------------------------------------------


def test_drafts_of_a_file_need_their_models_and_odd_ones_are_failures(tmp_path: Path) -> None:
    rows = [*plans(BAD), plan_row("other", model_response=BAD, tested_model="hosted_vllm/other")]
    file = drafts_in(tmp_path, rows[:1])
    with pytest.raises(OptionError, match="--model"):
        refine(file, mode="static")
    both = [{**rows[0], "tested_model": MODEL}, rows[1], {"id": "odd"}]
    run = refine(both, mode="static", model=TestedModelSpec(model=MODEL), client=Model().client)
    assert [row["id"] for row in run] == ["case-0"]
    assert {row["id"]: row["reason"] for row in run.failures} == dict.fromkeys(
        ("other", "odd"), "bad_input"
    )


def test_drafts_of_another_program_are_rewritten_by_their_model_at_any_provider(
    tmp_path: Path,
) -> None:
    """Who made them wrote a name; which provider has the model is for --model to say."""
    rows = [plan_row("a", model_response=BAD, tested_model="Birch-Medium")]
    drafts = write_rows(tmp_path / "own.jsonl", rows)
    model = Model()
    settings: dict[str, Any] = {"mode": "self", "client": model.client}
    (row,) = refine(drafts, model=TestedModelSpec(model="hosted_vllm/birch-medium"), **settings)
    assert (row["tested_model"], row["model_response"]) == ("Birch-Medium", GOOD)
    assert {request.model for request in model.finals} == {"hosted_vllm/birch-medium"}
    two = [
        TestedModelSpec(model=f"{provider}/birch-medium") for provider in ("hosted_vllm", "openai")
    ]
    (failed,) = refine(drafts, model=two, **settings).failures
    assert "one of hosted_vllm/birch-medium, openai/birch-medium" in failed["detail"]


def test_a_case_without_verdict_or_that_a_judge_can_not_be_shown_is_one_failure(
    tmp_path: Path,
) -> None:
    def answer(request: Request) -> str:
        return "not JSON" if "fly_there" in text_of(request.messages) else judged(request)

    rows = [plan_row("odd", model_response=BAD, split="holistic_unsolvable"), *plans(GOOD, BAD)]
    critic = TestedModelSpec(model=CRITIC.model, retries=0)
    settings: dict[str, Any] = {"mode": "judge", "with_reference": True, "critic": critic}
    run = refining(tmp_path, rows, answer, **settings)
    assert [row["id"] for row in run] == ["case-0"]
    failed = {row["id"]: row for row in run.failures}
    assert failed["case-1"]["reason"] == "unparsable"
    assert "drafts.jsonl:1: field unsolvable_type" in failed["odd"]["detail"]


def test_a_run_is_graded_with_the_cases_that_it_names(
    tmp_path: Path, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lean rows alone would be judged without their task, and steps as whole plans."""
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "cases.jsonl", [plan_row("a"), step_row("b", {})])
    predict("cases.jsonl", model=MODEL, out="drafts", client=ScriptedClient(lambda _: GOOD))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for rows in (tmp_path / "drafts", tmp_path / "drafts" / "predictions.jsonl"):
        done = command("grade", rows, "--out", tmp_path / "graded")
        assert done.code == 0, done.err
    table = read_lines(tmp_path / "graded" / "judgements.jsonl")
    assert {row["item_id"]: row["protocol"] for row in table} == {"a": "holistic", "b": "step-wise"}
    (tmp_path / "cases.jsonl").unlink()
    done = command("grade", tmp_path / "drafts", "--out", tmp_path / "again")
    gone = "apbjudge: cases.jsonl: the run's cases are not there; --cases names them\n"
    assert (done.code, done.err) == (2, gone)
    with pytest.raises(InputError, match="--cases names them"):
        refine(tmp_path / "drafts", mode="static")
