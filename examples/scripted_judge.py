"""A scripted stand-in for a judge model: it answers from the human labels of the examples.

It speaks the OpenAI chat-completions protocol, so that the whole way of a request (litellm,
HTTP, structured replies) can be tried and tested offline. It knows the answers beforehand and
judges nothing: figures made with it say nothing about any model.

    python examples/scripted_judge.py --port 8000
    apbjudge grade examples/holistic.jsonl --judge hosted_vllm/scripted \\
        --api-base http://127.0.0.1:8000/v1

Asked as ``scripted-wavering``, it changes its mind now and then, by the seed it is sent, so that
repeated replies differ. What is no judge's prompt, such as a doctor's, it answers with the
smallest reply that fits the schema. The address is the first line on stdout; port 0 takes a free
one.
"""

from __future__ import annotations

import argparse
import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any

import apbjudge
from apbjudge import Row
from apbjudge.protocols.fence import neutralize

HERE = Path(__file__).parent
STARTER = Path(apbjudge.__file__).parent / "judge" / "starter" / "plans.jsonl"
"""The rows that ``apbjudge init`` writes."""
Key = tuple[str, str]


class UnknownRequestError(ValueError):
    """The request is about no example, or asks for what its label does not say."""


def read_labels(folder: Path) -> dict[Key, dict[str, Any]]:
    """Labels by what a prompt shows of their example: the query and the prediction."""
    by_text: dict[Key, dict[str, Any]] = {}
    files = {path: folder / path.name for path in sorted((folder / "labels").glob("*.jsonl"))}
    files[folder / "start" / "labels.jsonl"] = STARTER
    for name in ("support", "trajectories"):
        files[folder / name / "answer_labels.jsonl"] = folder / name / "answers.jsonl"
    for path, rows in files.items():
        labels = {(v["item_id"], v["tested_model"]): v for v in _lines(path)}
        for number, values in enumerate(_lines(rows), start=1):
            item = Row(values, number).to_item()
            label = labels[item.item_id, item.tested_model]
            key = (neutralize(item.query), neutralize(item.response))
            if by_text.setdefault(key, label) is not label:
                raise ValueError(f"{path.name}:{number}: query and prediction occur twice")
    return by_text | read_case_labels(folder / "asked")


def read_case_labels(folder: Path) -> dict[Key, dict[str, Any]]:
    """Labels of cases themselves, by query and reference; of several raters the first counts."""
    labels: dict[str, dict[str, Any]] = {}
    for values in _lines(folder / "case_labels.jsonl"):
        labels.setdefault(values["item_id"], values)
    items = [Row(v, n).to_reference() for n, v in enumerate(_lines(folder / "cases.jsonl"), 1)]
    return {(neutralize(i.query), neutralize(i.response)): labels[i.item_id] for i in items}


def _lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def answer(request: dict[str, Any], labels: dict[Key, dict[str, Any]]) -> dict[str, Any]:
    """The reply to a chat request, in the schema it asks for.

    Raises:
        UnknownRequestError: If no label can answer it.
    """
    prompt = "\n".join(_texts(request))
    looked_at = _block(prompt, "prediction") or _block(prompt, "reference")
    label = labels.get((_block(prompt, "query"), looked_at))
    if label is None:
        if '<data name="' not in prompt:
            return least(request)
        raise UnknownRequestError("this prompt is about no example")
    values = {"reasoning": label["note"], **label, **label.get("errors", {})}
    wanted = _keys(request) or [k for k in (*_FLAGS, "grade", "category") if k in values]
    if missing := [key for key in wanted if key not in values]:
        raise UnknownRequestError(
            f"the label of {label['item_id']} does not say {', '.join(missing)}"
        )
    asked = [code for code in label.get("errors", {}) if code in wanted]
    if asked and not any(values[code] for code in asked):  # of the codes only some are asked for
        values |= {"is_correct": True, "grade": 1.0}
    if _wavers(request, label):
        values |= _other(values, [*label.get("errors", {})])
    return {key: values[key] for key in dict.fromkeys(["reasoning", *wanted, "is_correct"])}


def _wavers(request: dict[str, Any], label: dict[str, Any]) -> bool:
    """A third of the items are hard; on those every second reply of the wavering judge is wrong."""
    if not request.get("model", "").endswith("-wavering"):
        return False
    item = f"{label['item_id']} {label['tested_model']}"
    is_hard = Random(item).random() < 1 / 3
    return is_hard and Random(f"{item} {request.get('seed')}").random() < 1 / 2


def _other(values: dict[str, Any], codes: list[str]) -> dict[str, Any]:
    """The opposite verdict, consistent in itself."""
    now = not values["is_correct"]
    flags = {code: code in ("E5", "TONE", "UnclearQuery") and not now for code in codes or _FLAGS}
    low = 0.0 if "UnclearQuery" in codes else 0.5 if "TONE" in codes else 0.8
    return {
        "reasoning": "on second thoughts",
        "is_correct": now,
        **flags,
        "grade": 1.0 if now else low,
        "category": 1 if now else 5,
    }


def least(request: dict[str, Any]) -> dict[str, Any]:
    """The smallest reply that fits the schema asked for."""
    schema = (request.get("response_format") or {}).get("json_schema", {}).get("schema", {})
    properties = schema.get("properties", {}).items()
    return {key: rule.get("const", (rule.get("enum") or ["hello"])[0]) for key, rule in properties}


_FLAGS = ("E1", "E2", "E3", "E4", "E5", "E6")


def _texts(request: dict[str, Any]) -> list[str]:
    contents = [message["content"] for message in request["messages"]]
    parts = [part for c in contents for part in ([{"text": c}] if isinstance(c, str) else c)]
    return [part["text"] for part in parts if "text" in part]


def _block(prompt: str, name: str) -> str:
    match = re.search(rf'<data name="{name}">\n(.*?)\n</data>', prompt, re.DOTALL)
    return match[1] if match else ""


def _keys(request: dict[str, Any]) -> list[str]:
    """The keys of the schema asked for; none when the endpoint is asked for plain text."""
    schema = (request.get("response_format") or {}).get("json_schema", {}).get("schema", {})
    return list(schema.get("properties", {}))


class Server(ThreadingHTTPServer):
    """Takes many callers at once."""

    request_queue_size = 256


class Handler(BaseHTTPRequestHandler):
    """Answers ``POST …/chat/completions``."""

    protocol_version = "HTTP/1.1"
    # Head and body leave together and at once; else a caller waits 40 ms for each reply.
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    labels: dict[Key, dict[str, Any]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            if not self.path.endswith("/chat/completions"):
                raise UnknownRequestError(f"no such path: {self.path}")
            request = json.loads(body)
            self._reply(200, _completion(request, self.answer_text(request)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._reply(400, {"error": {"message": str(error), "type": "invalid_request_error"}})

    def answer_text(self, request: dict[str, Any]) -> str:
        """The text of the reply."""
        return json.dumps(answer(request, self.labels), ensure_ascii=False)

    def _reply(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keeps quiet."""


def _completion(request: dict[str, Any], text: str) -> dict[str, Any]:
    n_sent, n_received = sum(map(len, _texts(request))) // 4, len(text) // 4
    usage = {"prompt_tokens": n_sent, "completion_tokens": n_received}
    usage["total_tokens"] = n_sent + n_received
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    head = {"id": "scripted", "object": "chat.completion", "created": 0}
    return {**head, "model": request.get("model", ""), "choices": [choice], "usage": usage}


def serve(port: int, handler: type[Handler]) -> None:
    """Answers until Ctrl-C; the first line on stdout is the address."""
    try:
        server = Server(("127.0.0.1", port), handler)
    except (OSError, OverflowError) as error:
        raise SystemExit(f"--port {port}: expected a free port, got: {error}") from None
    with server:
        print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("stopped")


def main() -> None:
    parser = argparse.ArgumentParser(description="Scripted stand-in for a judge model.")
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free one")
    parser.add_argument("--examples", type=Path, default=HERE, help="folder of the examples")
    options = parser.parse_args()
    Handler.labels = read_labels(options.examples)
    serve(options.port, Handler)


if __name__ == "__main__":
    main()
