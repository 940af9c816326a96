"""What runs on serverless runs over Spark Connect: SQL and DataFrames only, no JVM of one's own."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        find_spec("grpc") is None,
        reason="Spark Connect's packages are not installed: `make test` installs them, and so does scripts/connect.sh",
    ),
]


@pytest.mark.long
def test_a_table_is_synced_over_spark_connect(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.connect.job", str(tmp_path / "warehouse")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "session": "pyspark.sql.connect.session.SparkSession",
        "left": [False, False],
        "columns": {"id": "", "note": "it's `odd`\n🎉", "amount": ""},
        "checks": ["positive"],
        "error": "TABLE_OR_VIEW_NOT_FOUND",
    }
