"""deepeval test run test_deepeval.py: four of these tests fail, one of them without a verdict."""

import pytest
from deepeval import assert_test
from deepeval.test_case import LLMTestCase, ToolCall
from plans import QUERY, RIGHT, TOOL, WRONG

from apbjudge.integrations.deepeval import PlanMetric

METRIC = PlanMetric(protocol="holistic")


def case(reply, tools=(TOOL,), **more):
    return LLMTestCase(input=QUERY, actual_output=reply, metadata={"tools": tools}, **more)


@pytest.mark.parametrize("run_async", [True, False])
@pytest.mark.parametrize("reply", [RIGHT, WRONG])
def test_reply(reply, run_async):
    assert_test(case(reply), [METRIC], run_async=run_async)


@pytest.mark.parametrize("name", ["find_train", "find_plane"])
def test_calls(name):
    called, expected = (
        [ToolCall(name=of, input_parameters={"city": "Porto"})] for of in (name, "find_train")
    )
    metric = PlanMetric(response="tools_called", protocol="holistic")
    assert_test(case("done", tools_called=called, expected_tools=expected), [metric])


def test_tools_that_nobody_can_read():
    assert_test(case(RIGHT, tools=3), [METRIC])
