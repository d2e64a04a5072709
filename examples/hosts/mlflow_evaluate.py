"""python mlflow_evaluate.py: feedback on three plans, in a local store of MLflow."""

import mlflow
from plans import CALL, QUERY, RIGHT, TOOL, WRONG

from apbjudge.integrations.mlflow import plan_scorer


def evaluated(store="sqlite:///mlflow.db"):
    mlflow.set_tracking_uri(store)
    mlflow.set_experiment("plans")
    data = [
        {
            "inputs": {"query": QUERY, "tools": tools},
            "outputs": reply,
            "expectations": {"tool_chain": [CALL]},
        }
        for reply, tools in ((RIGHT, [TOOL]), (WRONG, [TOOL]), (RIGHT, 3))
    ]
    return mlflow.genai.evaluate(data=data, scorers=[plan_scorer(protocol="holistic")])


if __name__ == "__main__":
    print(evaluated().metrics)
