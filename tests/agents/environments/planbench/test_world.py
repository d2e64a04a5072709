"""The data folder with all that a runtime needs, and the searches in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apbjudge.agents.environments.planbench import EpisodeConfig, load_database
from apbjudge.agents.environments.planbench.search import ToolSearch, read_request
from apbjudge.errors import InputError

from .world import INTERFACES, RECORDS, content, database, write_data


def changed(name: str, at: int, /, **fields: Any) -> dict[str, Any]:
    entries = content(name)
    entries[at].update(fields)
    return {name: entries}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"database": {"order_cases": {"a": {k: 1 for k in RECORDS["monday"] if k != "floor"}}}},
            "database.json: field order_cases.a.floor: expected a value",
        ),
        (
            changed("baseline_tools", 0, output_datatype="colour"),
            "baseline_tools.json: field visitor_of_ticket (interface): expected a datatype",
        ),
        (
            changed("baseline_tools", 0, input_datatypes=["tint", "hue", "shade", "gloss"]),
            "(interface): expected a datatype of datatypes.json, got 'gloss'",
        ),
        (
            {"blocker_tools": content("blocker_tools")[1:]},
            "expected a blocker for visitor_of_ticket with the noise type 'explicit failures'",
        ),
    ],
)
def test_a_bad_folder_is_one_message(tmp_path: Path, files: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        load_database(write_data(tmp_path, **files))
    assert message in str(error.value)
    assert str(error.value).startswith(f"{tmp_path}/")
    assert "\n" not in str(error.value)


def test_records_that_agree_in_the_inputs() -> None:
    museum = database()
    tools = museum.data.baseline
    assert museum.look_up(tools["floor_of_room"], {"room": "R2"}) == (2,)  # two records, one floor
    assert museum.look_up(tools["period_of_artist"], {"artist": "kline"}) == ("late", "early")
    assert museum.look_up(tools["floor_of_room"], {"room": "R9"}) == ()
    where = {"visitor": "V9", "visit": "S5", "room": "R4"}
    assert museum.look_up(tools["badge_of_visit"], where) == ()  # null is no result


def found(request: dict[str, Any], **settings: Any) -> list[str]:
    museum = database()
    asked = read_request(request)
    assert asked is not None
    search = ToolSearch(museum, EpisodeConfig(**settings))
    result = search.search(asked, museum.data.queries["m1"], {})
    return [tool.name for tool in result.tools]


def test_the_whole_interface_has_to_match() -> None:
    def plain(**request: Any) -> list[str]:
        return found(request, noisy=False)

    io, out, inputs = "by_io_info", "by_output_info", "by_inputs"
    of_visit = plain(meta_tool=inputs, input_information=["visit"])
    assert {*of_visit} == {"guide_of_visit", "room_of_visit"}
    both = plain(meta_tool=inputs, input_information=["floor", "exhibit"])
    assert both == ["insurer_of_exhibit_on_floor"]
    assert plain(meta_tool=out, output_information="badge") == ["badge_of_visit"]
    assert plain(meta_tool=io, input_information=["room"], output_information="floor") == [
        "floor_of_room"
    ]
    assert plain(meta_tool=io, input_information=["floor"], output_information="room") == []


@pytest.mark.parametrize("limit", [1, 4, 30])
def test_siblings_fill_the_list_evenly(limit: int) -> None:
    names = found({"meta_tool": "by_inputs", "input_information": ["visit"]}, max_listed=limit)
    assert len(names) == max(2, min(limit, 8))
    assert {"guide_of_visit", "room_of_visit"} <= {*names}
    noisy = [name for name in names if name not in INTERFACES]
    per_tool = [sum(n.startswith(t) for n in noisy) for t in ("guide_of_visit", "room_of_visit")]
    assert max(per_tool) - min(per_tool) <= 1


def test_requests_that_are_none() -> None:
    assert read_request({"meta_tool": "by_magic"}) is None
    assert read_request({"meta_tool": "by_output_info", "output_information": "  "}) is None
    for inputs in ("visit", [], ["a", "b", "c"]):
        assert read_request({"meta_tool": "by_inputs", "input_information": inputs}) is None
