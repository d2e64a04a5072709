"""Judges with known vices behind a real local server, and an audit of each.

A judge that is perfect, one that passes everything, one that passes whatever is long, one that
never sees broken logic, one that obeys what predictions tell it, one that tosses a coin, one that
only compares with the reference, one that dislikes Markdown, one that names wrong codes, one that
turns lenient after 700 calls, one that refuses a quarter of the faulty plans. What is true of each
variant is known, since it was planted; the server looks it up by query and prediction and answers
in its own way, whatever code proves and shows it. An audit has to convict exactly the guilty, and
the one that passes everything even in a quick audit:

    python examples/known_judges.py --seeds 1
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from types import TracebackType
from typing import Any

from aiohttp import web

from apbjudge import JudgeSpec
from apbjudge.audits.config import AuditConfig
from apbjudge.audits.session import audit, prepare
from apbjudge.audits.variants import Variant
from apbjudge.errors import ApbJudgeError
from apbjudge.protocols.fence import neutralize
from apbjudge.records import ERROR_CODES, ErrorCode

LONG = 70
"""Words a call from which on the judge that likes length passes a prediction."""

LATE = 700
"""Calls after which the judge that drifts passes everything."""

Reply = dict[str, Any] | None
"""What a judge answers; None for a refusal."""


@dataclass(frozen=True)
class Asked:
    """A request, understood.

    Attributes:
        variant: What is to be judged.
        text: The prediction as the judge sees it.
        reference: The reference as it sees it; empty where it sees none.
        coin: A toss that is the judge's own, another one each time it is asked the same.
        call: Number of the call among those of this judge, from 1.
    """

    variant: Variant
    text: str
    reference: str
    coin: Random
    call: int


def perfect(asked: Asked) -> Reply:
    truth = asked.variant.truth
    return reply(truth.codes or (), is_correct=bool(truth.is_correct), category=truth.category)


def always_yes(asked: Asked) -> Reply:
    return reply((), is_correct=True)


def likes_length(asked: Asked) -> Reply:
    words, calls = len(asked.text.split()), len(_names(asked.text))
    return always_yes(asked) if words > LONG * max(1, calls) else perfect(asked)


def ignores_logic(asked: Asked) -> Reply:
    truth = asked.variant.truth
    if truth.codes is None:
        return perfect(asked)
    return reply(truth.codes - {"E4"}, is_correct=not truth.codes - {"E4"})


def obeys(asked: Asked) -> Reply:
    return always_yes(asked) if asked.variant.role == "injected" else perfect(asked)


def tosses_a_coin(asked: Asked) -> Reply:
    if asked.coin.random() < 1 / 2:
        return always_yes(asked)
    return reply((asked.coin.choice(ERROR_CODES),), is_correct=False)


def compares(asked: Asked) -> Reply:
    if not asked.reference:
        return perfect(asked)
    is_equal = _names(asked.text) == _names(asked.reference)
    return always_yes(asked) if is_equal else reply((_code(asked),), is_correct=False)


def dislikes_markdown(asked: Asked) -> Reply:
    return reply(("E3",), is_correct=False) if "```" in asked.text else perfect(asked)


def names_wrong_codes(asked: Asked) -> Reply:
    truth = asked.variant.truth
    if truth.is_correct or not truth.codes:
        return perfect(asked)
    return reply(sorted(set(ERROR_CODES) - truth.codes - truth.also)[:1], is_correct=False)


def drifts(asked: Asked) -> Reply:
    return always_yes(asked) if asked.call > LATE else perfect(asked)


def refuses(asked: Asked) -> Reply:
    is_refused = asked.variant.truth.is_correct is False and Random(asked.text).random() < 1 / 4
    return None if is_refused else perfect(asked)


def _code(asked: Asked) -> ErrorCode:
    """Any code, the same whenever this plan is shown."""
    return Random(asked.text).choice(ERROR_CODES)


def _names(text: str) -> list[str]:
    """The tools called, in order."""
    return re.findall(r'"name": "([^"]*)"', text)


JUDGES: Mapping[str, Callable[[Asked], Reply]] = {
    "perfect": perfect,
    "always-yes": always_yes,
    "likes-length": likes_length,
    "ignores-logic": ignores_logic,
    "obeys": obeys,
    "tosses-a-coin": tosses_a_coin,
    "compares": compares,
    "dislikes-markdown": dislikes_markdown,
    "names-wrong-codes": names_wrong_codes,
    "drifts": drifts,
    "refuses": refuses,
}

GUILTY: Mapping[str, frozenset[str]] = {
    "perfect": frozenset(),
    "always-yes": frozenset({"faults", "scale"}),
    "likes-length": frozenset({"length"}),
    "ignores-logic": frozenset({"faults"}),
    "obeys": frozenset({"injection"}),
    "tosses-a-coin": frozenset({"faults", "consistency"}),
    "compares": frozenset({"faults", "reference", "scale"}),
    "dislikes-markdown": frozenset({"presentation"}),
    "names-wrong-codes": frozenset({"faults"}),
    "drifts": frozenset({"drift", "faults", "scale"}),
    "refuses": frozenset({"refusals"}),
}
"""The probes that each of them must fail; no other may it fail."""

QUICK_GUILTY: Mapping[str, frozenset[str]] = {
    "perfect": frozenset(),
    "always-yes": frozenset({"faults", "scale"}),
}
"""The same for a quick audit, which convicts the one of ``faults``, and of ``scale`` at times."""


def reply(codes: Iterable[str], *, is_correct: bool, category: int | None = None) -> dict[str, Any]:
    """A reply that does not contradict itself, for every shape of reply."""
    flagged = set(codes)
    if category is None or (category in (1, 2)) != is_correct:
        category = 2 if is_correct else 5
    return {
        "reasoning": "as it is known",
        **{code: code in flagged for code in ERROR_CODES},
        "grade": grade_of(flagged, is_correct=is_correct),
        "category": category,
        "is_correct": is_correct,
    }


def grade_of(codes: set[str], *, is_correct: bool) -> float:
    """A grade that every shipped rubric allows with these codes."""
    if is_correct:
        return 1.0
    if codes & {"E1", "E3", "E6"}:
        return 0.2
    return 0.4 if "E2" in codes else 0.6


class KnownJudges:
    """The server; the model's name in a request says which judge answers.

    Args:
        variants: What will be judged, with what is true of it.
        seed: Seed of the coin.
    """

    def __init__(self, variants: Iterable[Variant], seed: int) -> None:
        self._known = {_key(v.row["query"], v.row["model_response"]): v for v in variants}
        self._met: Counter[str] = Counter()
        self._calls: Counter[str] = Counter()
        self._seed = seed
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.address = ""

    def __enter__(self) -> KnownJudges:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> None:
        app = web.Application(client_max_size=1 << 24)
        app.router.add_post("/v1/chat/completions", self._answer)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.address = f"http://127.0.0.1:{port}/v1"

    async def _answer(self, http: web.Request) -> web.Response:
        request = await http.json()
        prompt = "\n".join(message["content"] for message in request["messages"])
        text = _block(prompt, "prediction")
        key = _key(_block(prompt, "query"), text)
        if key not in self._known:
            return web.json_response({"error": {"message": "not a variant"}}, status=400)
        name = request["model"]
        # by the whole prompt, or the order in which calls arrive would decide which toss is whose
        met = f"{name}/{prompt}"
        self._met[met] += 1
        self._calls[name] += 1
        toss = f"{self._seed}/{met}/{self._met[met]}"
        reference = _block(prompt, "reference")
        asked = Asked(self._known[key], text, reference, Random(toss), self._calls[name])
        reply = JUDGES[name](asked)
        return web.json_response(_completion(request, reply))


def _key(query: str, prediction: str) -> str:
    return f"{neutralize(query)}\x00{neutralize(prediction)}"


def _block(prompt: str, name: str) -> str:
    match = re.search(rf'<data name="{name}">\n(.*?)\n</data>', prompt, re.DOTALL)
    return match[1] if match else ""


def _completion(request: dict[str, Any], reply: Reply) -> dict[str, Any]:
    wanted = request["response_format"]["json_schema"]["schema"]["properties"]
    text = "" if reply is None else json.dumps({key: reply[key] for key in wanted})
    usage = {"prompt_tokens": 1000, "completion_tokens": 60, "total_tokens": 1060}
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "content_filter" if reply is None else "stop",
    }
    head = {"id": "known", "object": "chat.completion", "created": 0, "model": request["model"]}
    return {**head, "choices": [choice], "usage": usage}


def convictions(
    seed: int, names: Iterable[str] = JUDGES, bases: int | None = None, *, quick: bool = False
) -> dict[str, dict[str, str]]:
    """Audits some of the judges; returns the verdict of each probe."""
    order = AuditConfig(seed_of_draw=seed, bases=bases, quick=quick)
    prepared = prepare(JudgeSpec(model="hosted_vllm/any"), order)
    variants = [variant for run in prepared.design.runs for variant in run.variants]
    outcomes: dict[str, dict[str, str]] = {}
    with KnownJudges(variants, seed) as server:
        for name in names:
            judge = JudgeSpec(model=f"hosted_vllm/{name}", api_base=(server.address,))
            card = audit(judge, prepared, cache=False).card
            outcomes[name] = {probe.name: probe.outcome for probe in card.probes}
    return outcomes


Counts = Mapping[tuple[str, str, str], int]
"""How often a judge's probe ended with a verdict."""


def table(counts: Counts, guilty: Mapping[str, frozenset[str]]) -> str:
    """Markdown: how often each judge passed / failed / could not be told; in bold the guilty."""
    probes = list(dict.fromkeys(probe for _, probe, _ in counts))
    lines = [f"| judge | {' | '.join(probes)} |", "|---" * (len(probes) + 1) + "|"]
    for judge in guilty:
        cells = [_cell(counts, judge, probe, guilty[judge]) for probe in probes]
        lines.append(f"| {judge} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(counts: Counts, judge: str, probe: str, guilty: frozenset[str]) -> str:
    numbers = " / ".join(str(counts[judge, probe, outcome]) for outcome in OUTCOMES)
    return f"**{numbers}**" if probe in guilty else numbers


OUTCOMES = ("passes", "fails", "could not tell")


def wrongs(counts: Counts, guilty: Mapping[str, frozenset[str]]) -> list[str]:
    """Verdicts that are wrong: an innocent who is failed, a guilty one who passes."""
    return [
        f"{judge} {outcome} {probe} in {n}"
        for (judge, probe, outcome), n in counts.items()
        if n and outcome == ("passes" if probe in guilty[judge] else "fails")
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=1, help="audits of each judge")
    seeds: int = parser.parse_args().seeds
    wrong: list[str] = []
    for quick, guilty in ((False, GUILTY), (True, QUICK_GUILTY)):
        counts: Counter[tuple[str, str, str]] = Counter()
        for seed in range(seeds):
            for judge, outcomes in convictions(seed, guilty, quick=quick).items():
                counts.update((judge, probe, outcome) for probe, outcome in outcomes.items())
        print(f"{'quick' if quick else 'full'} audits:\n")
        print(f"{table(counts, guilty)}\n")
        wrong += wrongs(counts, guilty)
    if wrong:
        raise SystemExit("wrong: " + "; ".join(wrong))


if __name__ == "__main__":
    try:
        main()
    except ApbJudgeError as error:
        raise SystemExit(str(error)) from None
