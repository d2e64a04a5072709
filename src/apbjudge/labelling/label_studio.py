"""Items as tasks of Label Studio, and its annotations as labels.

A task is a JSON object with ``data``, which the labelling configuration shows, and
``annotations``, one a rater. An item has a key that reveals neither its id nor the tested model, so
that raters there are as blind as on the page; reading annotations back needs the predictions.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree as ET

import orjson

from ..errors import InputError, RowError
from ..jsonl import read_small
from ..protocols import Protocol
from ..records import ERROR_CODES, HumanLabel
from ..records.labels import label_of
from ..rubrics import Rubric
from .clicks import is_silent
from .label_log import LabelLog
from .queue import ItemReader, Key, Problem, QueuedItem
from .service import item_view

Json = dict[str, Any]


def export_tasks(
    folder: Path, queue: Sequence[QueuedItem], reader: ItemReader, log: LabelLog
) -> tuple[Path, ...]:
    """Writes the items as tasks, with the labels in the log, and a configuration for each rubric.

    Args:
        folder: The folder of ``RUBRIC.tasks.json`` and ``RUBRIC.config.xml``; created if missing.
        queue: The items.
        reader: Reads the items.
        log: The labels, which become annotations.

    Returns:
        The files.

    Raises:
        InputError: If the predictions have changed or a file can't be written.
    """
    by_rubric: dict[str, list[QueuedItem]] = defaultdict(list)
    for place in queue:
        by_rubric[place.rubric.ref].append(place)
    files: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for ref, places in by_rubric.items():
            name = ref.replace("@", "-").replace("/", "-")
            config, tasks = folder / f"{name}.config.xml", folder / f"{name}.tasks.json"
            config.write_bytes(_config(places[0].rubric, places[0].protocol))
            tasks.write_bytes(orjson.dumps([_task(place, reader, log) for place in places]))
            files += [config, tasks]
    except OSError as error:
        raise InputError(f"{folder}: can't be written: {error.strerror}") from None
    return tuple(files)


def read_annotations(
    path: Path, queue: Sequence[QueuedItem], problem: Problem
) -> Iterator[HumanLabel]:
    """Yields the labels in an export of Label Studio (JSON, not JSON-MIN).

    Cancelled and empty annotations are not labels. The rater is the exported one, else the e-mail
    address of the account, else ``label-studio-`` and the number of the account. Controls that the
    rubric's configuration lacks are not read.

    Args:
        path: The file.
        queue: The items that the tasks are about.
        problem: Called at the end with each complaint about unusable data, and its count.

    Raises:
        InputError: If the file is not such an export, or holds annotations but no label.
    """
    faults: dict[str, list[int]] = defaultdict(list)
    n_read = 0
    for label in _labels(_tasks(path), queue, faults):
        n_read += 1
        yield label
    lines = [
        f"task {tasks[0]}: {text}" + (f" (and {len(tasks) - 1} more)" if len(tasks) > 1 else "")
        for text, tasks in faults.items()
    ]
    if lines and not n_read:
        raise InputError(f"{path}: no label could be read: {'; '.join(lines[:_SHOWN_FAULTS])}")
    for line in lines:
        problem(f"{path}: {line}")


_SHOWN_FAULTS = 3


def _labels(
    tasks: Sequence[Any], queue: Sequence[QueuedItem], faults: Mapping[str, list[int]]
) -> Iterator[HumanLabel]:
    """The labels of tasks; adds to ``faults``, by complaint, the numbers of tasks."""
    places = {_key(place.key): place for place in queue}
    for number, task in enumerate(tasks, start=1):
        try:
            key, annotations = str(task["data"]["item"]), list(task["annotations"])
        except (KeyError, TypeError):
            faults["expected data.item and annotations, got others"].append(number)
            continue
        if key not in places:
            faults["field data.item: expected an item of the predictions"].append(number)
            continue
        for annotation in annotations:
            texts: list[str] = []
            try:
                if annotation["result"] and not annotation.get("was_cancelled"):
                    label = _label(annotation, places[key], texts)
                    if is_silent(label):
                        texts.append("expected an answer that counts, got a note or an unsure mark")
                    if label.note or not is_silent(label):
                        yield label
            except (RowError, KeyError, TypeError, AttributeError) as error:
                named = "expected annotations as Label Studio writes them"
                texts.append(str(error) if isinstance(error, RowError) else named)
            for text in texts:
                faults[text].append(number)


def _tasks(path: Path) -> list[Any]:
    try:
        tasks: Any = orjson.loads(read_small(path))
    except orjson.JSONDecodeError as error:
        raise InputError(f"{path}: expected JSON exported by Label Studio: {error}") from None
    if not isinstance(tasks, list):
        raise InputError(f"{path}: expected a list of tasks, as Label Studio exports with JSON")
    return cast("list[Any]", tasks)


# Tasks --------------------------------------------------------------------------------------------


def _key(key: Key) -> str:
    return hashlib.blake2b(
        "\x00".join(key).encode(errors="surrogatepass"), digest_size=8
    ).hexdigest()


def _task(place: QueuedItem, reader: ItemReader, log: LabelLog) -> Json:
    view = item_view(reader.item(place), place.protocol, place.rubric, reader.roots)
    case, prediction = view["case"], view["prediction"]
    pictures = [file["url"] for file in case["files"] if "url" in file]
    n_steps = max((step["number"] for step in prediction["steps"]), default=0)
    case["files"] = [{k: v for k, v in file.items() if k != "url"} for file in case["files"]]
    rest = {name: value for name, value in case.items() if name in _CASE_PARTS and value}
    labels = (log.history(rater, place.key).label for rater in log.raters)
    return {
        "data": {
            "item": _key(place.key),
            "query": case["query"],
            "case": _text(rest),
            "reference": _chain(case.get("reference") or {}),
            "prediction": _chain(prediction) or prediction["response"],
            "pictures": pictures,
            "steps": [{"value": str(number)} for number in range(1, n_steps + 1)],
        },
        "annotations": [
            _annotation(label, place.rubric) for label in labels if not is_silent(label)
        ],
    }


_CASE_PARTS = ("system", "files", "tools", "trajectory", "condition")


def _text(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _chain(of: Mapping[str, Any]) -> str:
    """A plan's prose and its steps, one paragraph each."""
    lines = [
        f"{step['number']}. {call.get('name', '(calls no tool)')} "
        f"{orjson.dumps(call.get('arguments') or {}).decode()} "
        f"{'' if at else step.get('thought', '')} {call.get('reason', '')}".strip()
        for step in of.get("steps", ())
        for at, call in enumerate(step.get("calls", [{}]))
    ]
    return "\n\n".join(filter(None, (of.get("plan", ""), *lines)))


# Controls -----------------------------------------------------------------------------------------

_ABOUT = "prediction"
"""The object tag that all controls refer to."""

_SHOWN = {
    "query": "Query",
    "case": "The case",
    "reference": "Reference: one valid plan among others",
    _ABOUT: "Prediction",
}
_SHOWN_OF_CASE = {"query": "Query", "case": "The case", _ABOUT: "Reference"}
"""The texts if the case itself is examined: its reference replaces the prediction."""


def _controls(rubric: Rubric) -> Iterator[tuple[str, str, str, list[str]]]:
    """Name, title, kind and choices of each question; the first word of a choice is its value."""
    if rubric.shape == "category":
        named = [f"{one.number} {one.name}" for one in rubric.categories]
        yield "category", "What it does next", "single", named
    else:
        yield "is_correct", "Verdict", "single", ["Correct", "Incorrect"]
    if rubric.shape == "flags":
        codes = [f"{one.code} {one.name}" for one in rubric.criteria]
        yield "errors", "What is wrong, if anything", "multiple", codes
        bands = sorted(rubric.bands, key=lambda band: band.grade)
        grades = [f"{band.grade:g} {band.label}" for band in bands]
        yield "grade", "Grade", "single", grades
    yield "unsure", "Certainty", "single", ["Sure", "Unsure"]


def _config(rubric: Rubric, protocol: Protocol) -> bytes:
    """The labelling configuration of a rubric: the displayed parts, and a control per question."""
    view = ET.Element("View")
    ET.SubElement(view, "Header", value=rubric.task.strip())
    is_case = protocol.examines == "reference"
    for name, title in (_SHOWN_OF_CASE if is_case else _SHOWN).items():
        ET.SubElement(view, "Header", value=title)
        ET.SubElement(view, "Text", name=name, value=f"${name}")
    ET.SubElement(view, "Image", name="pictures", valueList="$pictures")
    for name, title, kind, options in _controls(rubric):
        ET.SubElement(view, "Header", value=title)
        control = ET.SubElement(view, "Choices", name=name, toName=_ABOUT, choice=kind)
        for words in options:
            ET.SubElement(control, "Choice", value=words)
    if rubric.shape != "category":
        steps = {"name": "faulty_steps", "choice": "multiple", "value": "$steps"}
        ET.SubElement(view, "Header", value="Faulty steps")
        ET.SubElement(view, "Choices", steps, toName=_ABOUT)
    ET.SubElement(view, "Header", value="Note")
    ET.SubElement(view, "TextArea", name="note", toName=_ABOUT)
    hidden = ET.SubElement(view, "View", style="display: none")
    ET.SubElement(hidden, "TextArea", name="rater", toName=_ABOUT)
    ET.indent(view)
    return ET.tostring(view, encoding="utf-8") + b"\n"


def _annotation(label: HumanLabel, rubric: Rubric) -> Json:
    grade, is_correct = label.grade, label.is_correct
    values = {
        "is_correct": [] if is_correct is None else ["Correct" if is_correct else "Incorrect"],
        "category": [str(label.category)],
        "errors": [code for code, is_set in (label.errors or {}).items() if is_set],
        "grade": [] if grade is None else [f"{grade:g}"],
        "unsure": ["Unsure"] if label.unsure else [],
    }
    chosen = {
        name: [words for words in options if words.partition(" ")[0] in values[name]]
        for name, _, _, options in _controls(rubric)
    }
    chosen["faulty_steps"] = [str(number) for number in label.faulty_steps]
    written = {"note": [label.note] if label.note else [], "rater": [label.rater]}
    results = [
        {"from_name": name, "to_name": _ABOUT, "type": type_, "value": {field: values}}
        for type_, field, of in (("choices", "choices", chosen), ("textarea", "text", written))
        for name, values in of.items()
        if values
    ]
    return {"result": results, **({} if label.seconds is None else {"lead_time": label.seconds})}


def _label(annotation: Mapping[str, Any], place: QueuedItem, unknown: list[str]) -> HumanLabel:
    """The label of an annotation.

    Adds to ``unknown`` a line about each control that the rubric lacks.

    Raises:
        RowError: If the rubric does not allow a value.
    """
    controls = {name: options for name, _, _, options in _controls(place.rubric)}
    known: Mapping[str, list[str]] = {**controls, "faulty_steps": [], "note": [], "rater": []}
    chosen: dict[str, list[str]] = {}
    for result in annotation["result"]:
        name, value = str(result["from_name"]), result["value"]
        if name not in known:
            near = "".join(f" (did you mean {of}?)" for of in get_close_matches(name, known, 1))
            unknown.append(f"expected controls {', '.join(known)}, got {name!r}{near}")
            continue
        if not {"choices", "text"} & value.keys():
            raise RowError(name, "choices or a text", value)
        text = value.get("text", ())
        words = value.get("choices") or ([text] if isinstance(text, str) else text)
        if name in controls:
            values = [option.partition(" ")[0] for option in controls[name]]
            words = [str(of).partition(" ")[0] for of in words]
            if others := [of for of in words if of not in values]:
                raise RowError(name, f"one of {', '.join(controls[name])}", others[0])
        chosen.setdefault(name, []).extend(map(str, words))
    first = {name: values[0] for name, values in chosen.items() if values}
    account = annotation.get("completed_by")
    if isinstance(account, Mapping):
        account = cast("Json", account).get("email") or cast("Json", account).get("id")
    name = account if isinstance(account, str) else f"label-studio-{account}"
    codes, category = chosen.get("errors", []), first.get("category", "")
    is_correct = {"Correct": True, "Incorrect": False}.get(first.get("is_correct", ""))
    if category.isdecimal():
        is_correct = place.rubric.category_is_correct(int(category))
    errors = None
    if codes or (is_correct and place.rubric.shape == "flags"):
        errors = {code: code in codes for code in place.rubric.codes}
    return label_of(
        {
            "item_id": place.key[0],
            "tested_model": place.key[1],
            "rater": first.get("rater") or name,
            "is_correct": is_correct,
            "grade": first.get("grade"),
            "category": category or None,
            "errors": errors,
            "note": "\n".join(chosen.get("note", [])),
            "unsure": first.get("unsure") == "Unsure",
            "faulty_steps": chosen.get("faulty_steps", []),
            "decided_at": annotation.get("updated_at") or annotation.get("created_at"),
            "seconds": annotation.get("lead_time"),
        },
        place.rubric.codes or ERROR_CODES,
    )
