"""The Python blocks of the documentation, run as one program for each page, in an empty folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = ("docs/python.md", "docs/pipeline.md")


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run_in_order(
    page: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text("utf-8")
    names: dict[str, object] = {"__name__": "__main__", "spark": spark}
    blocks_of_page = list(BLOCK.finditer(text))
    assert blocks_of_page
    for block in blocks_of_page:
        line = text.count("\n", 0, block.start(1))
        code = compile("\n" * line + block[1], page, "exec")  # so that an error names the line of the page
        exec(code, names)
    assert (tmp_path / ".delta-engine" / "warehouse").is_dir()


def test_a_session_is_recognized(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from delta_engine import ConfigError, Engine

    assert repr(Engine.on(spark, environment="lab", folder=tmp_path)) == "<Engine lab: oss, tables by path>"
    catalog = Engine.on(
        spark, environment="lab", folder=tmp_path, backend={"type": "oss", "names": "catalog"}
    )
    assert repr(catalog) == "<Engine lab: oss, names as Spark resolves them>"
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "client.4.9")
    with pytest.raises(ConfigError, match="backend databricks needs a state_backend"):
        Engine.on(spark, environment="lab", folder=tmp_path)
