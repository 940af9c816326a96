"""Plan files on real Delta: made, reviewed and applied from files; and everything that happens in between."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.projects.commandline import CommandLine
from tests.projects.processes import started

STALE = "refused: plan.json: the plan is stale. Since it was made:\n"


def edit(project: Path, old: str, new: str) -> None:
    path = project / "conf" / "models" / "orders.yml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_plan_is_made_reviewed_and_applied(
    spark: SparkSession, delta_engine: CommandLine, project: Path, orders: str
) -> None:
    made = delta_engine("-e", "local", "plan", "--out", "plan.json", "--markdown")
    assert (made.code, "Order's" in made.stdout) == (0, False)
    assert made.stdout.startswith(
        "<!-- delta-engine plan --><!-- local -->\n### Plan for `local`\n\n**1 schema to create, "
    )
    assert not (project / ".delta-engine" / "warehouse").exists()
    document = json.loads((project / "plan.json").read_text())
    assert [statement["table"] for statement in document["statements"]] == ["dev.silver.orders"]
    touched = document["touched"]
    assert {*touched} == {"schema.dev.silver", "table.dev.silver.orders"}
    assert {touched["table.dev.silver.orders"][fact] for fact in ("observed", "table_id", "created_at")} == {
        None
    }

    assert delta_engine("-e", "local", "apply", "plan.json", "--yes").code == 0
    edit(project, "comment: Orders table", 'comment: "Orders `table` | <b>"')
    edit(project, "comment: Order total}", "comment: Order total}\n      - {name: extra, type: int}")
    delta_engine("-e", "local", "plan", "--out", "plan.json")
    (touched,) = json.loads((project / "plan.json").read_text())["touched"].values()
    assert touched["table_id"]
    spark.sql(f"INSERT INTO {orders} VALUES (1, now(), 2)")  # data is none of a plan's business
    applied = delta_engine("-e", "local", "apply", "plan.json", "--yes", "--json")
    report = json.loads(applied.stdout)
    assert (applied.code, report["operation"], report["status"]) == (0, "apply", "done")
    sent = [statement["sql"] for statement in report["tables"][0]["statements"]]
    assert sent == [
        statement["sql"] for statement in json.loads((project / "plan.json").read_text())["statements"]
    ]
    assert spark.table(orders).columns[-1] == "extra"
    assert delta_engine("-e", "local", "plan", "--detailed-exitcode").code == 0

    again = delta_engine("-e", "local", "apply", "plan.json", "--yes")
    assert (again.code, "this plan was already applied" in again.stdout) == (0, True)


Fault = Callable[[SparkSession, str, Path], object]


def recreate(spark: SparkSession, orders: str, project: Path) -> None:
    """Make the table anew, as it was: with another id."""
    created = spark.sql(f"SHOW TBLPROPERTIES {orders}").collect()
    fields = spark.table(orders).schema
    shutil.rmtree(project / ".delta-engine" / "warehouse" / "dev" / "silver" / "orders")
    columns = ", ".join(
        f"{field.name} {field.dataType.simpleString()}{'' if field.nullable else ' NOT NULL'} "
        f"COMMENT '{field.metadata['comment']}'"
        for field in fields
    )
    properties = ", ".join(
        f"'{row['key']}' = '{row['value']}'" for row in created if not row["key"].startswith("delta.min")
    )
    spark.sql(
        f"CREATE TABLE {orders} ({columns}) USING delta COMMENT 'Orders table' TBLPROPERTIES ({properties})"
    )


@pytest.mark.parametrize(
    ("fault", "move"),
    [
        (
            lambda spark, orders, _project: spark.sql(f"COMMENT ON TABLE {orders} IS 'by hand'"),
            "table dev.silver.orders was changed\n",
        ),
        (
            lambda _spark, _orders, project: shutil.rmtree(project / ".delta-engine" / "warehouse"),
            "table dev.silver.orders is gone\n",
        ),
        (recreate, "table dev.silver.orders was dropped and created again (id "),
    ],
    ids=["altered", "dropped", "re-created"],
)
def test_a_table_that_moved(
    spark: SparkSession, delta_engine: CommandLine, project: Path, orders: str, fault: Fault, move: str
) -> None:
    delta_engine("-e", "local", "sync", "--yes")
    edit(project, "comment: Order total", "comment: changed")
    assert delta_engine("-e", "local", "plan", "--out", "plan.json").code == 0
    fault(spark, orders, project)
    refused = delta_engine("-e", "local", "apply", "plan.json", "--yes")
    assert refused.code == 3
    assert refused.stderr.startswith(STALE)
    assert f"\n  {move}" in refused.stderr
    assert "Write it again and review it: `delta-engine -e local plan --out plan.json`." in refused.stderr


@pytest.mark.long
def test_an_apply_that_was_killed(
    spark: SparkSession, delta_engine: CommandLine, project: Path, orders: str
) -> None:
    """The plan is stale then, names what is done, and another one goes on from there."""
    text = (project / "conf" / "models" / "orders.yml").read_text()
    names = [f"t{number}" for number in range(12)]
    more = "".join(text.removeprefix("tables:\n").replace("name: orders", f"name: {name}") for name in names)
    (project / "conf" / "models" / "orders.yml").write_text(text + more)
    assert delta_engine("-e", "local", "plan", "--out", "plan.json").code == 0
    apply = started("apply", "plan.json", "--yes")
    assert apply.stderr is not None
    first = apply.stderr.readline()
    apply.send_signal(signal.SIGKILL)
    apply.communicate()
    assert apply.returncode == -signal.SIGKILL
    assert first.startswith("created dev.silver.")
    done = first.split()[1]

    refused = delta_engine("-e", "local", "apply", "plan.json", "--yes")
    assert refused.code == 3
    assert "refused: plan.json: the plan is stale: an apply of it by " in refused.stderr
    assert "did not get through, and what it did is kept. Since it was made:" in refused.stderr
    assert f"\n  table {done} is new\n" in refused.stderr

    assert delta_engine("-e", "local", "plan", "--out", "plan.json").code == 0
    assert delta_engine("-e", "local", "apply", "plan.json", "--yes").code == 0
    assert delta_engine("-e", "local", "plan", "--detailed-exitcode").code == 0
