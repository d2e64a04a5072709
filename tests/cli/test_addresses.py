"""Where prompts go: nowhere but to the addresses that were given."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from apbjudge import GradeConfig, OptionError, TestedModelSpec, grade, predict, refine
from apbjudge.agents.cases.asking import ask
from apbjudge.audits import audit
from apbjudge.judge import JudgeSpec
from apbjudge.llm import ModelSpec
from apbjudge.llm.failures import fit_to_show
from apbjudge.llm.model_spec import SERVERS
from tests.support.judging import RIGHT, plan_row
from tests.support.server import Answer, ChatServer, Status
from tests.support.settings_page import config_commands

from .conftest import Command

ROOT = Path(__file__).parents[2] / "examples"
"""Examples with input for every command."""
OTHER = "openai/other@http://127.0.0.1:1/v1"
"""A model before or beside the one without an address; it must not be asked either."""
ROWS, CASES, RUNS = ROOT / "holistic.jsonl", ROOT / "cases.jsonl", ROOT / "trajectories"

ASKING: dict[str, Sequence[object]] = {
    "grade": (ROWS, "--judge", "MODEL"),
    "grade: a panel": (ROWS, "--judge", OTHER, "--judge", "MODEL"),
    "grade: a cascade": (ROWS, "--judge", OTHER, "--samples", 3, "--escalate", "MODEL"),
    "grade: a batch": (ROWS, "--judge", "MODEL", "--batch"),
    "grade: dry": (ROWS, "--judge", "MODEL", "--dry-run"),
    "doctor": ("--judge", OTHER, "--judge", "MODEL"),
    "doctor: a tested model": (CASES, "--model", OTHER, "--model", "MODEL"),
    "audit": (OTHER, "MODEL"),
    "predict": (CASES, "--model", OTHER, "--model", "MODEL"),
    "refine": (ROWS, "--mode", "self", "--model", "MODEL", "--cases", CASES),
    "simulate": (RUNS / "library" / "data", "--model", OTHER, "--model", "MODEL"),
    "execute": (
        ROOT / "own_benchmarks" / "storeroom.py",
        "--model",
        OTHER,
        "--user-model",
        "MODEL",
    ),
    "execute: a critic": (
        *(ROOT / "own_benchmarks" / "storeroom.py", "--mode", "refine", "--model", OTHER),
        *("--review", "critic", "--critic", "MODEL"),
    ),
    "branch": (RUNS / "slate_cases.jsonl", "--model", "MODEL", "--samples", 5),
    "check": (CASES, "--ask", "MODEL"),
    "build": (
        *(RUNS / "town.jsonl", "--split", "all", "--data-root", ROOT, "--out", "built"),
        *("--model", "MODEL"),
    ),
    "batch export": (ROWS, "--judge", "MODEL", "--out", "requests.jsonl"),
    "planbench generate": ("--domain", "clinic", "--model", "MODEL", "--out", "generated"),
}
"""What asks a model, with ``MODEL`` where it is named."""


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hosts that are looked up or connected to, which fails."""
    hosts: list[str] = []

    def look_up(host: object, *_: Any, **__: Any) -> Any:
        hosts.append(host.decode() if isinstance(host, bytes) else str(host))
        raise socket.gaierror(-2, "no such host")

    def connect(_: socket.socket, address: Any) -> None:
        hosts.append(str(address[0]))
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(socket.socket, "connect", connect)
    for name in [*os.environ]:
        if re.search(r"_API_KEY$|_(?:BASE|BASE_URL)$|_proxy$", name, re.IGNORECASE):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-tests")
    return hosts


@pytest.mark.parametrize("name", ASKING)
@pytest.mark.slow
def test_no_command_asks_a_server_of_ones_own_without_its_address(
    apbjudge: Command, reached: list[str], name: str
) -> None:
    command = name.partition(":")[0].split()
    for provider, (variable, _) in SERVERS.items():
        model = f"{provider}/m"
        done = apbjudge(*command, *(model if a == "MODEL" else a for a in ASKING[name]))
        assert (done.code, reached) == (2, []), (provider, done.err)
        if "--batch" in ASKING[name] and "no batches are known of" in done.err:
            continue
        assert f"--api-base, as MODEL@ADDRESS{variable and f' or in {variable}'}," in done.err
        assert done.err.endswith(f"got none for {model}\n")
        assert not list(Path.cwd().rglob("*.jsonl")), "nothing is written either"


def test_every_command_that_takes_an_address_is_in_the_table() -> None:
    commands = {name for name, each in config_commands().items() if "api_base" in each.fields}
    assert {name.partition(":")[0] for name in ASKING} == commands


def test_the_variables_of_litellm_give_the_address(
    apbjudge: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChatServer(lambda seen: Answer(RIGHT)) as server:
        monkeypatch.setenv("HOSTED_VLLM_API_BASE", server.address)
        done = apbjudge("grade", ROOT / "holistic.jsonl", "--judge", "hosted_vllm/m")
        assert done.code == 0
        assert f"note: hosted_vllm/m is asked at {server.address}, from HOSTED_VLLM_API_BASE" in (
            done.err
        )
        assert server.requests
    monkeypatch.setenv("HOSTED_VLLM_API_BASE", "http://ann:hunter2@127.0.0.1:1/v1")
    done = apbjudge("grade", ROOT / "holistic.jsonl", "--judge", "hosted_vllm/m")
    assert done.err.startswith("apbjudge: HOSTED_VLLM_API_BASE: expected an address without user")
    assert (done.code, "hunter2" in done.err) == (2, False)


ROW = plan_row("a")
PYTHON: dict[str, Callable[[str], object]] = {
    "grade": lambda model: grade([ROW], judge=["static", model]),
    "escalate": lambda model: grade([ROW], judge=JudgeSpec(model=OTHER, samples=3), escalate=model),
    "audit": audit,
    "ask": lambda model: ask([ROW], model),
    "predict": lambda model: predict([ROW], model=[TestedModelSpec(model=OTHER), model]),
    "critic": lambda model: refine(str(ROWS), mode="critic", critic=model, model=OTHER),
}


@pytest.mark.parametrize("name", PYTHON)
def test_python_reads_names_as_the_command_line_does(reached: list[str], name: str) -> None:
    for provider in SERVERS:
        with pytest.raises(OptionError, match=f"got none for {provider}/m"):
            PYTHON[name](f"{provider}/m")
    with pytest.raises(OptionError, match="expected an address with its scheme, a/m@http://HOST"):
        PYTHON[name]("a/m@127.0.0.1:8000")
    assert reached == []


def test_addresses_after_a_name_come_first_wherever_a_model_is_named() -> None:
    named = "hosted_vllm/org/m@http://a/v1@https://b:8000"
    addresses = ("http://a/v1", "https://b:8000", "http://c")
    for spec in (
        ModelSpec(model=named, api_base="http://c"),
        GradeConfig(judge=[{"model": named, "api_base": ["http://c"]}]).judge[0],
        GradeConfig(judge="hosted_vllm/org/m@http://a/v1,https://b:8000 , http://c").judge[0],
        GradeConfig(escalate={"model": named, "api_base": "http://c"}).escalate,
    ):
        assert spec is not None
        assert (spec.model, spec.api_base) == ("hosted_vllm/org/m", addresses)
    for name in ("vertex_ai/claude@20240101", "cloudflare/@cf/org/m", "ollama/m@v1:70b", "a/b@1.0"):
        assert (ModelSpec(model=name).model, ModelSpec(model=name).api_base) == (name, ())


@pytest.mark.parametrize("tail", ["ftp://ann:hunter2@h", "127.0.0.1", "gpu7:8000", "[::1]:8000"])
def test_another_text_after_a_name_is_no_part_of_it(tail: str) -> None:
    with pytest.raises(OptionError, match="expected an address with its scheme") as error:
        ModelSpec(model=f"hosted_vllm/m@{tail}")
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "address",
    [
        *("", "A", "http:///v1", "http://[::1/v1", "http://h\n/v1", "ann:hunter2@h"),
        *("http://ann:hunter2@h/v1", "http://h/v1#hunter2", "http://a,http://ann:hunter2@b"),
    ],
)
def test_an_address_is_one_and_holds_no_secret(address: str) -> None:
    for make in (
        lambda: ModelSpec(model="hosted_vllm/m", api_base=address),
        lambda: GradeConfig(judge=[{"model": "hosted_vllm/m", "api_base": address}]),
    ):
        with pytest.raises(OptionError, match=r"^--(api-base|judge): expected an address") as error:
            make()
        assert "hunter2" not in str(error.value)
        assert ("HOSTED_VLLM_API_KEY" in str(error.value)) is ("hunter2" in address)


def test_parameters_hold_no_secret_however_deep() -> None:
    for body in ({"api_key": "x"}, {"a": [{"Authorization": "x"}]}, {"x": {"access_token": "x"}}):
        with pytest.raises(OptionError, match="set the provider's environment variable"):
            ModelSpec(model="a/b", params={"extra_body": body})
    harmless = {"guided_json": {"properties": {"key": {"type": "string"}}}}
    harmless |= {"eos_token": "</s>", "prompt_cache_key": "x", "keywords": "x"}
    assert ModelSpec(model="a/b", params={"extra_body": harmless}).params["extra_body"] == harmless


@pytest.mark.parametrize(
    "text",
    [
        "cannot connect to http://ann:hunter2@proxy:3128/",
        "GET https://g.example/v1beta/models/m:generateContent?key=hunter2&alt=sse failed",
    ],
)
def test_secrets_of_addresses_are_not_shown_in_failures(text: str) -> None:
    shown = fit_to_show(text)
    assert "hunter2" not in shown
    assert "[key]" in shown


@pytest.mark.parametrize(
    ("command", "transport"),
    [
        *(("doctor", "direct"), ("predict", "direct")),
        pytest.param("grade", "litellm", marks=pytest.mark.slow),
    ],
)
def test_an_address_without_its_path_is_said(
    apbjudge: Command, command: str, transport: str
) -> None:
    with ChatServer(lambda seen: Status(404, "Not Found")) as server:
        address = server.address.removesuffix("/v1")
        asked = "--model" if command == "predict" else "--judge"
        rows = CASES if command == "predict" else ROWS
        at = (asked, f"hosted_vllm/m@{address}", "--transport", transport)
        done = apbjudge(command, rows, *at)
    assert done.code == 2
    assert f"the address lacks /v1, try --api-base {address}/v1 (" in done.out + done.err


def test_refine_states_the_addresses_that_a_run_names(apbjudge: Command) -> None:
    """A stranger's run would otherwise send prompts and keys to the stranger in silence."""
    with ChatServer(lambda seen: Answer("No tool helps.")) as server:
        model = f"hosted_vllm/m@{server.address}"
        apbjudge("predict", CASES, "--model", model, "--vision", "yes", "--out", "d")
        done = apbjudge("refine", "d", "--mode", "static", "--out", "r")
    note = f"note: hosted_vllm/m is asked at {server.address}, as the run of the drafts was\n"
    assert note in done.err
