"""Names beyond ASCII in a process with LC_ALL=C, as in many containers and cron jobs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

MODELS = """
tables:
  - {catalog: dev, schema: silver, name: größe, comment: "Maß 😀", columns: [{name: straße, type: string}]}
"""


def test_tables_beyond_ascii_in_the_c_locale(project: Path) -> None:
    (project / "conf" / "models" / "orders.yml").write_text(MODELS)
    synced = in_the_c_locale("sync", "--yes")
    assert (synced.returncode, synced.stderr) == (0, "created dev.silver.größe (1 statement)\n")
    assert [folder.name for folder in (project / ".delta-engine/warehouse/dev/silver").iterdir()] == ["größe"]
    assert in_the_c_locale("plan").stdout == "local: no changes (1 model)\n"
    checks = json.loads(in_the_c_locale("doctor", "--json").stdout)["checks"]
    (check,) = (check for check in checks if check["subject"] == "file names")
    assert check["found"] == "Spark and Python name files in UTF-8"


def in_the_c_locale(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "delta_engine", "-e", "local", *arguments],
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )
