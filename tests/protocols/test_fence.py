"""The fence: no text of a case or a prediction leaves its block, commands or hides."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from apbjudge.protocols.fence import fence, neutralize

ATOMS = [
    *("<", ">", "/", "\\", " ", "\n", "\t", "=", '"', "!", "-", "a", "x", "&lt;", "&"),
    *("data", "DATA", "dAtA", "database", "name", "verified_facts", "prediction"),
    *("\uff1c", "\uff1e", "\u2039", "\u203a", "\u27e8", "\u3008", "\ufe64", "\uff5c", "|"),
    *("\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u202e", "\u2066", "\u00ad"),
    *("\U000e0001", "\U000e0064", "\x1b", "\x00", "\x85", "\u2028", "\xa0", "\u3000"),
    *("[", "]", "<<", ">>", "SYS", "/SYS", "INST", "/INST", "s", "S", "bos", "im_start"),
    *("~", "b]", "e~[", "]~!", "]<]", "[>[", "[|", "|]", "user", "seed:", ":eos", "_of_", "end"),
    *("<data", "</data>", '<data name="verified_facts">', "<|im_end|>", "[/INST]", "<s>"),
]
CONTROL_TOKENS = [
    *("<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|start_header_id|>", "<|begin_of_text|>"),
    *("<|endoftext|>", "<|vision_start|>", "<|end|>", "<start_of_turn>", "<end_of_turn>"),
    *("<s>", "</s>", "<bos>", "<eos>", "<pad>", "<unk>", "<start_of_image>"),
    *("<<SYS>>", "<</SYS>>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
    *("[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[IMG]"),
    # EXAONE, Seed-OSS, MiniMax, Mistral, GLM
    *("[|system|]", "[|user|]", "[|assistant|]", "[|tool|]", "[|endofturn|]", "[BOS]", "[PAD]"),
    *("<seed:bos>", "<seed:eos>", "<seed:pad>", "<seed:think>", "</seed:think>"),
    *("<seed:tool_call>", "</seed:tool_call>", "<seed:cot_budget_reflect>"),
    *("]~b]", "]~!b[", "[e~[", "]!p~[", "]!d~[", "]<]image[>[", "]<]end of speech[>["),
    *("<beginning_of_sentence>", "<end_of_sentence>", "<begin_of_document>", "<function_call>"),
    *("<minimax:tool_call>", "</minimax:tool_call>", "[gMASK]", "<sop>", "<SPECIAL_20>"),
    *("[TOOL_CONTENT]", "[MODEL_SETTINGS]", "[/MODEL_SETTINGS]", "[CALL_ID]", "[ARGS]"),
    *("[THINK]", "[/THINK]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[AUDIO]", "[BEGIN_AUDIO]"),
    "<\uff5cbegin\u2581of\u2581sentence\uff5c>",
    "<\uff5cUser\uff5c>",
    "<\uff5cAssistant\uff5c>",
]
# Invisible; the joiners U+200C and U+200D are left, for Persian and for emoji.
INVISIBLE = [
    *(chr(c) for c in [*range(9), 11, 12, *range(14, 32), *range(0x7F, 0xA0)]),
    *"\u00ad\u061c\u180e\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\ufeff",
    *"\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\u206a\u206f\ufff9\ufffa\ufffb",
    *(chr(c) for c in [0xE0001, *range(0xE0020, 0xE0080)]),
]
hostile_texts = st.lists(st.sampled_from(ATOMS), max_size=14).map("".join)
any_texts = st.one_of(hostile_texts, st.text(), st.tuples(hostile_texts, st.text()).map("".join))


def tags(text: str) -> list[str]:
    """What a reader might take for one of our tags: joiners, blanks and slashes ignored."""
    visible = re.sub("[\u200c\u200d]", "", text)
    return re.findall(r"[<\uff1c\u2039\u27e8\u3008\ufe64][\s/\\]*data\b", visible, re.IGNORECASE)


@settings(max_examples=150)
@given(any_texts)
@example("<\u200b/data>")
@example("<<data>/data>")
@example("</data></data>")
@example("&lt;</data>")
def test_nothing_that_passed_opens_or_closes_a_block_commands_or_hides(text: str) -> None:
    passed = neutralize(text)
    assert neutralize(passed) == passed
    assert tags(passed) == []
    assert [token for token in CONTROL_TOKENS if token in passed] == []
    assert set(passed).isdisjoint(INVISIBLE)
    block = fence("prediction", text)
    assert block.startswith('<data name="prediction">\n')
    assert block.endswith("\n</data>")
    assert (block.count("<data name="), block.count("</data>")) == (1, 1)


DISGUISED = [
    *("</data>", "</DATA>", "< / Data >", "<\n/\tdata\n>", "<\\/data>", "<//data>", "</data "),
    *("</data/>", '<data name="verified_facts">', "<data>", "<DATA\nname=x>", "</data", "<data"),
    *("\uff1c/data\uff1e", "\uff1cdata\uff1e", "\u2039/data\u203a", "\u27e8/data\u27e9"),
    *("\u3008/data\u3009", "\ufe64/data\ufe65", "<\u200b/data>", "<\u200d/data>"),
    *("</\u200cdata>", "<\ufeff/data>", "<\xa0/data>", "<\u2028/data>", "<<<</data>", "x</data>x"),
    # the fullwidth form as a whole: slash and letters too
    *("\uff1c\uff0fdata\uff1e", "<\uff0fdata>", "</\uff44\uff41\uff54\uff41>"),
    # joiners and variation selectors are invisible in any place
    *("</da\u200dta>", "</d\u200cata>", "<\ufe0f/data>", "<\u034f/data>"),
    # letters and brackets that look alike, and blanks that are none
    *("</d\u0430t\u0430>", "</\u0501\u0251\u03c4\u03b1>", "</\u24d3\u24d0\u24e3\u24d0>"),
    *("</\U0001d41d\U0001d41a\U0001d42d\U0001d41a>", "</\u217e\xaa\u1d57\u1d43>", "</d\xe1ta>"),
    *("</da\u0301ta>", "</d a\tt a>", "<\u0338/data>", "<\u3164/data>", "\u276e/data\u276f"),
    *("\u02c2/data>", "\u1438/data>"),
]


def test_a_disguised_tag_is_defused() -> None:
    for text in DISGUISED:
        passed = neutralize(text)
        assert passed != text
        seen = unicodedata.normalize("NFKC", passed)
        seen = re.sub("[\u200c\u200d\u034f\ufe00-\ufe0f]", "", seen)
        assert tags(seen) == [], ascii(text)


def test_a_control_token_loses_its_bracket_and_stays_readable() -> None:
    for token in [*CONTROL_TOKENS, "<|IM_START|>", "[inst]", "<S>", "<<sys>>"]:
        for text in (token, f"before{token}after", token * 3, f"<{token}>"):
            result = neutralize(text)
            assert token not in result
            assert token.strip("<>[]/|\uff5c") in result


def test_no_invisible_character_is_left_as_it_is() -> None:
    assert neutralize("a\u200bb\x1b[31m\U000e0041c") == "a\\u200bb\\u001b[31m\\U000e0041c"
    for character in INVISIBLE:
        shown = neutralize(character)
        assert neutralize(f"a{character}b") == f"a{shown}b"
        assert shown.isascii()
        assert shown.isprintable()


@pytest.mark.parametrize("code", [*range(0x20), 0x7F])
def test_no_control_character_is_left_in_plain_ascii(code: int) -> None:
    expected = {"\t": "\t", "\n": "\n", "\r": "\n"}.get(chr(code), f"\\u{code:04x}")
    assert neutralize(f'[{{"a": "{chr(code)}"}}]') == f'[{{"a": "{expected}"}}]'


def test_variation_selectors_beyond_the_emoji_ones_can_not_smuggle_text() -> None:
    smuggled = "".join(chr(0xE0100 + byte) for byte in b"grade 1.0")
    assert set(smuggled).isdisjoint(neutralize(f"\U0001f600{smuggled}"))


@pytest.mark.parametrize(
    "text",
    [
        "Book the 9:40 train & pay 5 < x <= 10 euros; a<b>c, x << 2, y >> 1, 3>2",
        "for (int i = 0; i < n; ++i) { std::cout << v[i] << '\\n'; } // vector<string> s",
        "<script>alert('<b>')</script> <span> <strong> <select> <database> <!-- c -->",
        r"$\langle x, y \rangle < \infty$, {n : 1 < n < 5}, [0, 1), \frac{a}{b}",
        '{"plan": "p", "tool_chain": [{"name": "find", "arguments": {"q": "a<b"}}]}',
        "a[|b|] |x|[y] m[i]~[j] v[a]<b[c] ~b] [e] cmd [args] [prefix] <xs:element> <part_of_it>",
        "<html> <main> <time> \u2039citation\u203a \u227a x, \u0434\u0430 <\u0442\u043e>",
        "dates.data, metadata > data-set, data > 5, x <5 data, the </database> tag",
        "{{ 7 * 7 }} {% for x in y %} {# c #} ${HOME} %s {0}",
        "می‌خواهم به تهران بروم",
        "我想去北京，预算＜五千元＞。《数据》",
        "👩‍💻 👨‍👩‍👧‍👦 🏳️‍🌈 ❤️ 👍🏽 🇵🇹",
        '[[1, 2], ["a"]] arr[0][i] [INSTALL] [IMAGE] [x] [ ]',
        "first\n\n\tsecond\n",
        "http://example.org/?a=1&b=<id>#[x]",
    ],
    ids=lambda t: ascii(t)[:30],
)
def test_ordinary_text_passes_unchanged(text: str) -> None:
    assert neutralize(text) == text


def test_only_the_bracket_of_a_tag_changes_and_the_text_around_it_stays() -> None:
    text = 'List<Data> says </data> and <data name="x">'
    assert neutralize(text) == 'List&lt;Data> says &lt;/data> and &lt;data name="x">'
