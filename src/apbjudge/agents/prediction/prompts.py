"""Prompts of tested models: texts of a prompt set, filled with facts that a model may know.

A prompt is made from a ``CaseView`` only: ids, conditions, references and sources of a case can't
reach it. A case that can't be shown whole is a bad case; nothing is cut, sampled or announced as
missing.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from ...errors import RowError
from ...protocols.images import (
    ImagePart,
    content_of,
    cut_video,
    image_part,
    is_image,
    kind_of,
    read_file,
    read_text,
)
from ...protocols.video import check_decoder
from ...records import Item
from ...records.run_folder import mapping
from ...records.tools import Toolset, pretty, tool_lines
from .config import TestedModelSpec
from .prompt_sets import PromptSet, ToolOrder, load_prompt_set

IMAGE_MARK = "<image>"
"""Mark of the place of a picture in a query or a message."""

_EMBEDDED = {"image_url": "image_url", "input_image": "image_url", "image": "source"}
"""Types of content parts with pictures, and the field that has the picture."""

_PLACE = "\0picture\0"
"""Stands for a picture while the text around it is made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseView:
    """All facts of a case that a prompt may contain.

    Attributes:
        query: The task.
        system_prompt: The case's own system prompt; empty without one.
        tools: The tools as JSON with name, description, parameters and cost, in the prompt set's
            order; only their names if there are no definitions; empty without tools.
        has_costs: True if every tool states a cost.
        trajectory: The messages so far as JSON; empty without any.
        k: Number of requested steps, 1 to 3; 0 for a whole plan.
        attachments: The case's files: their paths, text files in full, and the pictures that have
            no place in the query or the messages.
        is_unsolvable: True if the case can't be solved; always false for prompt sets that do not
            show the condition.
    """

    query: str
    system_prompt: str
    tools: str
    has_costs: bool
    trajectory: str
    k: int
    attachments: str
    is_unsolvable: bool


VIEW_NAMES = tuple(field.name for field in fields(CaseView))
"""The values that a prompt set may use."""
PROMPT_PATHS = ("plan.system", "plan.user", "steps.system", "steps.user")


@dataclass(frozen=True, slots=True)
class CasePrompt:
    """The prompt of a tested model for a case.

    Attributes:
        view: The view that it shows.
        system: The system message.
        parts: The user's message: texts, with the pictures in their places.
        images: The case's pictures in order.
    """

    view: CaseView
    system: str
    parts: tuple[str | ImagePart, ...]
    images: tuple[ImagePart, ...]

    def messages(self) -> list[dict[str, Any]]:
        """As chat messages: plain text, or content parts where there are pictures."""
        return [
            {"role": "system", "content": self.system},
            {"role": "user", "content": content_of(self.parts)},
        ]


def logged(messages: Sequence[dict[str, Any]], images: Sequence[ImagePart]) -> list[dict[str, Any]]:
    """Messages for a file, with the path and SHA-256 of each picture in its place."""
    named = {
        image.url: {
            "path": image.path,
            "sha256": sha256(base64.b64decode(image.url.partition(",")[2])).hexdigest(),
            **({} if image.seconds is None else {"seconds": image.seconds}),
        }
        for image in images
    }
    if not named:
        return list(messages)

    def shown(part: dict[str, Any]) -> dict[str, Any]:
        if part["type"] == "text":
            return part
        return {"type": "image_url", "image_url": named[part["image_url"]["url"]]}

    return [
        message
        if isinstance(message["content"], str)
        else {**message, "content": list(map(shown, message["content"]))}
        for message in messages
    ]


class CasePromptMaker:
    """Makes the prompts of a run.

    Args:
        prompts: The prompt set.
        roots: Folders that may contain files.
        max_image_bytes: Largest picture on disk.
        max_text_bytes: Largest text file.
        frames: Number of frames taken from a video; 0 if a case with a video is a bad case.
    """

    def __init__(
        self,
        prompts: PromptSet,
        roots: Sequence[Path],
        *,
        max_image_bytes: int,
        max_text_bytes: int,
        frames: int = 0,
    ) -> None:
        self.prompts = prompts
        self._roots = roots
        self._max_image_bytes = max_image_bytes
        self._max_text_bytes = max_text_bytes
        self._frames = frames

    @classmethod
    def of(cls, prompts: str, roots: Sequence[Path], spec: TestedModelSpec) -> CasePromptMaker:
        """The maker of a prompt set by name, with the limits of a model.

        Raises:
            OptionError: If there is no such set, it can't be used, or no installed reader can cut
                the videos.
        """
        if spec.frames:
            check_decoder()
        loaded = load_prompt_set(prompts, kind="prompts", paths=PROMPT_PATHS, names=VIEW_NAMES)
        return cls(
            loaded,
            roots,
            max_image_bytes=spec.max_image_bytes,
            max_text_bytes=spec.max_text_bytes,
            frames=spec.frames,
        )

    def make(self, case: Item) -> CasePrompt:
        """The prompt of a case; its response, if it has one, is ignored.

        Raises:
            RowError: If the case can't be shown.
            OptionError: If the prompt set can't be used with it.
        """
        if not case.has_task:
            raise RowError("query", "a task, in the query or in earlier messages", case.query)
        images, attachments = self._files(case)
        query, trajectory, is_placed = _with_places(case, len(images))
        if images and not is_placed:
            attachments += "\n" + "\n".join(_PLACE for _ in images)
        view = CaseView(
            query=query,
            system_prompt=case.system_prompt,
            tools=_tools_text(case.tools, case.query, self.prompts.tool_order),
            has_costs=case.tools is not None and case.tools.has_costs,
            trajectory=trajectory,
            k=case.condition.horizon or 0,
            attachments=attachments,
            is_unsolvable=self.prompts.shows_condition
            and case.condition.unsolvable_type is not None,
        )
        form, values = "steps" if view.k else "plan", asdict(view)
        system = self.prompts.render(f"{form}.system", values)
        user = self.prompts.render(f"{form}.user", values)
        return CasePrompt(view, system, placed(user, images), images)

    def _files(self, case: Item) -> tuple[tuple[ImagePart, ...], str]:
        """The case's pictures, and a text with the paths of all files and the full text files."""
        images: list[ImagePart] = []
        names: list[str] = []
        texts: list[str] = []
        for i, file in enumerate(case.files):
            field, roots = f"files[{i}].path", self._roots
            if is_image(file):
                data = read_file(roots, file.path, field, max_bytes=self._max_image_bytes)
                images.append(image_part(file.path, data))
            elif self._frames and kind_of(file) == "video":
                frames = cut_video(roots, file, field, self._frames)
                images += frames
                times = ", ".join(f"{frame.seconds:.2f}" for frame in frames)
                names.append(f"- {file.type}: {file.path} (pictures at {times} seconds)")
                continue
            else:
                text = read_text(roots, file, field, max_bytes=self._max_text_bytes)
                texts.append(f"\n{file.path}:\n{text}")
            names.append(f"- {file.type}: {file.path}")
        listed = "\n".join(["Files:", *names, *texts]) if names else ""
        return tuple(images), listed


def placed(text: str, images: Sequence[ImagePart]) -> tuple[str | ImagePart, ...]:
    """The text with the pictures at their places.

    Raises:
        RowError: If the prompt set does not show every picture once.
    """
    texts = text.split(_PLACE)
    if len(texts) != len(images) + 1:
        expected = f"a prompt set that shows every picture once ({len(images)})"
        raise RowError("files", expected, f"{len(texts) - 1} places")
    parts: list[str | ImagePart] = [texts[0]]
    for image, after in zip(images, texts[1:], strict=True):
        parts += [image, after]
    return tuple(part for part in parts if not isinstance(part, str) or part.strip())


def _with_places(case: Item, n_images: int) -> tuple[str, str, bool]:
    """Query and messages; and True if their marks are the places of the pictures.

    Without pictures the marks stay as they are: a missing picture is not announced.
    """
    query, trajectory = case.query, pretty(case.trajectory) if case.trajectory else ""
    shown = trajectory if case.form == "steps" else ""  # the text for plans does not show it
    if shown:
        _check_embedded(case.trajectory)
    if not n_images:
        return query, trajectory, False
    if "\0" in query + shown or "\\u0000" in shown:
        raise RowError("query", "no NUL character with pictures", query)
    n_marks = query.count(IMAGE_MARK) + shown.count(IMAGE_MARK)
    if not n_marks:
        return query, trajectory, False
    if n_marks != n_images:
        raise RowError("files", f"a picture for each of {n_marks} marks {IMAGE_MARK}", n_images)
    if shown:
        trajectory = trajectory.replace(IMAGE_MARK, _PLACE)
    return query.replace(IMAGE_MARK, _PLACE), trajectory, True


def _check_embedded(messages: Sequence[Mapping[str, Any]]) -> None:
    """Raises RowError for a picture inside a message, which would be sent as text."""
    for i, message in enumerate(messages):
        content = message.get("content")
        parts = cast("list[object]", content) if isinstance(content, list) else []
        for j, part in enumerate(map(mapping, parts)):
            if _EMBEDDED.get(str(part.get("type"))) in part:
                field = f"trajectory_prefix[{i}].content[{j}]"
                expected = f"text; pictures belong in files, with a mark {IMAGE_MARK} here"
                raise RowError(field, expected, part["type"])


def _tools_text(tools: Toolset | None, query: str, order: ToolOrder) -> str:
    if tools is None:
        return ""
    shown: list[dict[str, Any]] = [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "cost": tool.cost,
        }
        for tool in tools.tools
    ]
    named = tools.listed_names.difference(tool.name for tool in tools.tools)
    shown += [{"name": name} for name in sorted(named)]
    if order == "mixed":

        def key(tool: dict[str, Any]) -> tuple[bytes, str]:
            digest = sha256(f"{tool['name']}\0{query}".encode()).digest()
            return digest, pretty(tool)  # orders tools with equal names

        shown.sort(key=key)
    if not tools.tools:
        return "\n".join(tool["name"] for tool in shown)
    stated = [{n: v for n, v in tool.items() if v not in (None, "")} for tool in shown]
    return tool_lines(stated) if stated else ""
