"""Names beyond ASCII in a process with LC_ALL=C, as in many containers and cron jobs."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from tests.projects.processes import finished

MODELS = """
tables:
  - {catalog: dev, schema: silver, name: größe, comment: "Maß 😀", columns: [{name: straße, type: string}]}
"""


def test_tables_beyond_ascii_in_the_c_locale(project: Path) -> None:
    (project / "conf" / "models" / "orders.yml").write_text(MODELS)
    in_the_c_locale = partial(finished, LC_ALL="C")
    synced = in_the_c_locale("sync", "--yes")
    assert (synced.code, synced.stderr) == (0, "created dev.silver.größe (1 statement)\n")
    assert [folder.name for folder in (project / ".delta-engine/warehouse/dev/silver").iterdir()] == ["größe"]
    assert in_the_c_locale("plan").stdout == "local: no changes (1 model)\n"
    checks = json.loads(in_the_c_locale("doctor", "--json").stdout)["checks"]
    (check,) = (check for check in checks if check["subject"] == "file names")
    assert check["found"] == "Spark and Python name files in UTF-8"
