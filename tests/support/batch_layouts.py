"""Servers with the batches of other providers than OpenAI, in their own words.

Scripts answer in the form of OpenAI's output files, as for ``BatchServer``; each server says the
same in its provider's form. ``states`` are OpenAI's too. Written from the providers' pages: none of
them was compared with the service.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tests.support.batch_server import Batch, BatchServer, Line, uploaded

Query = Mapping[str, list[str]]


def now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def jsonl(lines: Any) -> bytes:
    """Lines of JSON; those that are none of an answer stay as they are."""
    return b"".join(
        (line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines
    )


class Layout(BatchServer):
    """A server whose answers are OpenAI's, put into other words by ``line``."""

    def answered(self, batch: Batch) -> list[Any]:
        """The answers to a batch in the provider's words."""
        raw = self.files.get(batch.output or "", b"").splitlines()
        return [self.line(json.loads(line)) for line in raw]

    def line(self, answer: Line) -> Line:
        return answer

    def order(self, lines: list[Line], metadata: dict[str, str] | None = None) -> Batch:
        """A batch of these lines, each with ``custom_id`` and ``body``."""
        file = self.upload(jsonl(lines))["id"]
        return self.create({"input_file_id": file, "metadata": metadata or {}})

    def named(self, name: str) -> Batch:
        """A batch that was asked for once more."""
        batch = next(batch for batch in self.batches if batch.id == name)
        batch.asked += 1
        return batch

    def state(self, batch: Batch) -> str:
        return batch.shown()["status"]


def message(body: Line) -> Line:
    """A chat completion as a message of Anthropic."""
    choice = body["choices"][0]
    reasons = {"stop": "end_turn", "length": "max_tokens"}
    usage = body["usage"]
    return {
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [{"type": "text", "text": choice["message"]["content"]}],
        "stop_reason": reasons[choice["finish_reason"]],
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "output_tokens": usage["completion_tokens"],
        },
    }


class AnthropicServer(Layout):
    """Message Batches."""

    KINDS: Mapping[int, str] = {400: "invalid_request_error", 529: "overloaded_error"}

    def line(self, answer: Line) -> Line:
        response = answer["response"]
        if response is None:
            result: Line = {"type": answer["error"]["code"].removeprefix("batch_")}
        elif response["status_code"] == 200:
            result = {"type": "succeeded", "message": message(response["body"])}
        else:
            kind = self.KINDS.get(response["status_code"], "api_error")
            error = {"type": kind, "message": response["body"]["error"]["message"]}
            result = {"type": "errored", "error": {"type": "error", "error": error}}
        return {"custom_id": answer["custom_id"], "result": result}

    def answer(self, call: str, data: bytes, kind: str, query: Query) -> tuple[int, Any]:
        match call.split("/"):
            case ["POST messages", "batches"]:
                requests = json.loads(data)["requests"]
                lines = [{"custom_id": r["custom_id"], "body": r["params"]} for r in requests]
                return 200, self._shown(self.order(lines), "in_progress")
            case ["GET messages", "batches"]:
                newest = self.batches[::-1]
                after = query.get("after_id", [""])[0]
                start = next((n + 1 for n, b in enumerate(newest) if b.id == after), 0)
                page = newest[start : start + 1]
                shown = [self._shown(batch, "in_progress") for batch in page]
                more = start + 1 < len(newest)
                return 200, {"data": shown, "has_more": more, "last_id": page and page[-1].id}
            case ["GET messages", "batches", name]:
                batch = self.named(name)
                over = self.state(batch) == "completed"
                return 200, self._shown(batch, "ended" if over else "in_progress")
            case ["GET messages", "batches", name, "results"]:
                return 200, jsonl(self.answered(self.named(name)))
            case _:
                return 404, {"error": {"message": f"no such call: {call}"}}

    def _shown(self, batch: Batch, state: str) -> Line:
        names = ("processing", "succeeded", "errored", "canceled", "expired")
        counts = dict.fromkeys(names, 0)
        if state == "ended":
            for line in self.answered(batch):
                counts[line["result"]["type"]] += 1
        counts["processing"] = len(batch.lines) - sum(counts.values()) if state != "ended" else 0
        at = {"created_at": now()}
        return {"id": batch.id, "processing_status": state, "request_counts": counts, **at}


class TogetherServer(Layout):
    """Batches of Together: a wrapped answer to creation, output and error file."""

    def answer(self, call: str, data: bytes, kind: str, query: Query) -> tuple[int, Any]:
        match call.split("/"):
            case ["POST files", "upload"]:
                lines = uploaded(data, kind)
                names = {name for line in lines.splitlines() for name in json.loads(line)}
                assert names == {"custom_id", "body"}
                return 200, self.upload(lines)
            case ["POST batches"]:
                batch = self.create(json.loads(data) | {"metadata": {}})
                return 201, {"job": self._shown(batch, "validating"), "warning": ""}
            case ["GET batches"]:
                return 200, [self._shown(batch, "in_progress") for batch in self.batches]
            case ["GET batches", name]:
                batch = self.named(name)
                return 200, self._shown(batch, self.state(batch))
            case ["GET files", name, "content"]:
                output, failed = name.removesuffix("-errors"), name.endswith("-errors")
                lines = [json.loads(line) for line in self.files[output].splitlines()]
                return 200, jsonl(line for line in lines if self._has_failed(line) == failed)
            case _:
                return 404, {"error": {"message": f"no such call: {call}"}}

    def _has_failed(self, line: Line) -> bool:
        return line["error"] is not None or line["response"]["status_code"] != 200

    def _shown(self, batch: Batch, state: str) -> Line:
        over = state in ("completed", "expired")
        return {
            "id": batch.id,
            "input_file_id": batch.file,
            "status": state.upper(),
            "output_file_id": batch.output if over else None,
            "error_file_id": f"{batch.output}-errors" if over and batch.output else None,
        }


class GeminiServer(Layout):
    """The batches of the Gemini API: resumable uploads, and no results of an expired job."""

    STATES: Mapping[str, str] = {
        "validating": "PENDING",
        "in_progress": "RUNNING",
        "completed": "SUCCEEDED",
        "failed": "FAILED",
        "cancelled": "CANCELLED",
        "expired": "EXPIRED",
    }

    def line(self, answer: Line) -> Line:
        response = answer["response"]
        if response is None or response["status_code"] != 200:
            code = {400: 3, 429: 8}.get(response["status_code"] if response else 0, 14)
            text = response["body"]["error"]["message"] if response else "late"
            return {"custom_id": answer["custom_id"], "error": {"code": code, "message": text}}
        body = response["body"]
        counts = {"promptTokens": 1000, "completionTokens": 400, "totalTokens": 1500}
        return {**answer, "response": {"status_code": 200, "body": {**body, "usage": counts}}}

    def answer(self, call: str, data: bytes, kind: str, query: Query) -> tuple[int, Any]:
        self.headers = {}
        match call.partition(" /")[2].split("/"):
            case ["upload", "v1beta", "files"]:
                self.headers = {"X-Goog-Upload-URL": f"{self.root}/send"}
                return 200, {}
            case ["send"]:
                return 200, {"file": self._file(data)}
            case ["v1beta", "batches"]:
                start = int(query.get("pageToken", ["0"])[0])
                page = [self._shown(b, "in_progress") for b in self.batches[start : start + 1]]
                more = {"nextPageToken": str(start + 1)} if start + 1 < len(self.batches) else {}
                return 200, {"operations": page, **more}
            case ["download", "v1beta", "files", name]:
                batch = next(b for b in self.batches if f"{b.output}:download" == name)
                return 200, jsonl(self.answered(batch))
            case path:
                return self._job(path, data)

    def _file(self, data: bytes) -> Line:
        name = self.upload(data)["id"]
        times = {"createTime": now(), "updateTime": now()}
        file = {"name": f"files/{name}", "uri": f"{self.root}/v1beta/files/{name}", **times}
        return {**file, "displayName": "f", "sizeBytes": str(len(data))}

    def _job(self, path: list[str], data: bytes) -> tuple[int, Any]:
        match path:
            case ["v1beta", "models", model] if model.endswith(":batchGenerateContent"):
                order = json.loads(data)["batch"]
                file = order["input_config"]["file_name"].removeprefix("files/")
                named = {"name": order["display_name"]}
                batch = self.create({"input_file_id": file, "metadata": named})
                return 200, self._shown(batch, "validating")
            case ["v1beta", "batches", name]:
                batch = self.named(name)
                return 200, self._shown(batch, self.state(batch))
            case _:
                return 404, {"error": {"message": f"no such call: {path}"}}

    def _shown(self, batch: Batch, state: str) -> Line:
        output = {"output": {"responsesFile": f"files/{batch.output}"}}
        metadata = {
            "displayName": batch.metadata["name"],
            "inputConfig": {"fileName": f"files/{batch.file}"},
            "createTime": now(),
            "state": f"BATCH_STATE_{self.STATES[state]}",
            **(output if state == "completed" and batch.output else {}),
        }
        return {"name": f"batches/{batch.id}", "metadata": metadata}


class BedrockServer(Layout):
    """Model invocation jobs, and the part of S3 that they need."""

    STATES: Mapping[str, str] = {
        "validating": "Validating",
        "in_progress": "InProgress",
        "completed": "Completed",
        "expired": "Expired",
    }
    ARN = "arn:aws:bedrock:us-east-1:1:model-invocation-job/"

    def line(self, answer: Line) -> Line:
        shown = {"recordId": answer["custom_id"], "modelInput": {}}
        response = answer["response"]
        if response is not None and response["status_code"] == 200:
            return {**shown, "modelOutput": message(response["body"])}
        code = response["status_code"] if response else 500
        text = response["body"]["error"]["message"] if response else "late"
        return {**shown, "error": {"errorCode": code, "errorMessage": text}}

    def answer(self, call: str, data: bytes, kind: str, query: Query) -> tuple[int, Any]:
        method, _, path = call.partition(" /")
        match method, path.split("/"):
            case "PUT", ["bucket", name]:
                lines = [json.loads(line) for line in data.splitlines()]
                named = [{"custom_id": x["recordId"], "body": x["modelInput"]} for x in lines]
                self.files[f"s3://bucket/{name}"] = jsonl(named)
                return 200, b""
            case "POST", ["model-invocation-job"]:
                order = json.loads(data)
                file = order["inputDataConfig"]["s3InputDataConfig"]["s3Uri"]
                batch = self.create({"input_file_id": file, "metadata": {}})
                return 200, {"jobArn": f"{self.ARN}{batch.id}"}
            case "GET", ["model-invocation-jobs"]:
                jobs = [self._shown(batch, "in_progress") for batch in self.batches]
                return 200, {"invocationJobSummaries": jobs}
            case "GET", ["model-invocation-job", name]:
                batch = self.named(name.rpartition("%2F")[2])
                return 200, self._shown(batch, self.state(batch))
            case "GET", ["bucket", "litellm-batch-outputs", "job", name, _]:
                return 200, jsonl(self.answered(self.named(name)))
            case _:
                return 404, {"message": f"no such call: {call}"}

    def _shown(self, batch: Batch, state: str) -> Line:
        output = "s3://bucket/litellm-batch-outputs/job/"
        return {
            "jobArn": f"{self.ARN}{batch.id}",
            "jobName": "job",
            "modelId": "m",
            "roleArn": "arn:aws:iam::1:role/r",
            "status": self.STATES[state],
            "submitTime": now(),
            "inputDataConfig": {"s3InputDataConfig": {"s3Uri": batch.file}},
            "outputDataConfig": {"s3OutputDataConfig": {"s3Uri": output}},
        }
