from pathlib import Path

_HERE = Path(__file__).parent
RETAIL_DB_PATH = _HERE / "db.json"
RETAIL_POLICY_PATH = _HERE / "policy.md"
RETAIL_TASK_SET_PATH = _HERE / "tasks.json"
