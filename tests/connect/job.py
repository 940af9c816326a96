"""What runs on serverless, over Spark Connect: one process, one server of its own, results as JSON on stdout.

A process that has a classic session cannot have one of Connect: hence apart from the tests that look at it.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from delta_engine.backends.local_jars import delta_jars
from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.errors import StatementError
from delta_engine.models import CheckConstraint, Column, Table
from delta_engine.orchestrate.backend import embedded_backend
from tests.builders.engines import engine_over

SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
FIRST = Table(
    "dev",
    "silver",
    "orders",
    [Column("id", "bigint", is_nullable=False), Column("note", "string", comment="it's `odd`\n🎉")],
    "Orders",
    {"team": "retail"},
    ["id"],
)
SECOND = replace(
    FIRST,
    columns=(*FIRST.columns, Column("amount", "decimal(10,2)")),
    comment="All orders",
    checks=(CheckConstraint("positive", "amount > 0"),),
)


def main(warehouse: Path) -> None:
    """Sync two versions of a table, and say what is left to do after each, and what an error is."""
    builder = SparkSession.builder.remote("local[2]").config("spark.jars", ",".join(map(str, delta_jars())))
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    (warehouse / "dev" / "silver").mkdir(parents=True)
    backend = embedded_backend(spark, warehouse)
    engine = engine_over(backend)
    left = []
    for model in (FIRST, SECOND):
        engine.sync_tables([model])
        left.append(bool(engine.plan_tables([model])))
    table = backend.reader.snapshot([SECOND]).table(SECOND.qualified_name)
    try:
        error = ""
        SparkSqlRunner(spark).run("SELECT * FROM nothing")
    except StatementError as refusal:
        error = str(refusal.error_class)
    columns = {column.name: column.comment for column in table.columns}
    checks = [check.name for check in table.checks]
    print(
        json.dumps(
            {
                "session": f"{type(spark).__module__}.{type(spark).__name__}",
                "left": left,
                "columns": columns,
                "checks": checks,
                "error": error,
            }
        )
    )
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
