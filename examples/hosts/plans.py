"""Plans of one task, for the examples here: the second calls a tool that does not exist."""

import json

QUERY = "Which trains go to Porto?"
TOOL = {
    "name": "find_train",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}
CALL = {"name": "find_train", "parameter_description": {"city": "Porto"}}
RIGHT = json.dumps({"plan": "look it up", "tool_chain": [CALL]})
WRONG = json.dumps({"plan": "look it up", "tool_chain": [{**CALL, "name": "find_plane"}]})
