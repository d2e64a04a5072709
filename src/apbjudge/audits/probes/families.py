"""Which tested models are a judge's relatives, told from their names."""

from __future__ import annotations

import re
from collections.abc import Collection

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
"""What one vendor trains, by the best known of its series: a pattern of name stems for each."""

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
    """The family of a model: what one vendor trains, by the name of its best known series.

    Args:
        name: A model's name, with or without provider.

    Returns:
        Such as ``gpt``, ``qwen``; for a name without known series its first word, or the whole
        bare name where that word says nothing (``model-a``). A model that was made from another
        counts by what its name begins with: ``DeepSeek-R1-Distill-Qwen-7B`` is ``deepseek``.
    """
    short = bare(name)
    found = [(m.start(), series) for series, stem in _STEMS if (m := stem.search(short))]
    if found:
        return min(found)[1]
    word = re.match(r"[^\W\d_]+", short)
    return word[0] if word and word[0] not in _SAYS_NOTHING else short


def same_model(judge: str, tested: Collection[str]) -> frozenset[str]:
    """The tested models that bear the judge's name, provider and writing apart."""
    return frozenset(name for name in tested if judge and bare(name) == bare(judge))


def relatives(of: Collection[str], tested: Collection[str]) -> frozenset[str]:
    """The tested models of the family of any of some models, those models themselves included."""
    families = {family(name) for name in of if name}
    return frozenset(name for name in tested if family(name) in families)
