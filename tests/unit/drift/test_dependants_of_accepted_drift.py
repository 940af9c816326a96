"""Drift is accepted only if the models that it leaves are valid: dependants are edited too, or named in a refusal."""

from __future__ import annotations

import pytest

from tests.projects.catalog_project import CatalogProject
from tests.projects.commandline import Result

ID = "{name: id, type: bigint, nullable: false}"
PARENT = f"name: customers, columns: [{ID}], primary_key: [id]"
KEY = "foreign_keys: [{columns: [customer], references: customers}]"
WHOLE_KEY = "foreign_keys: [{columns: [customer], references: customers, referenced_columns: [id]}]"
CHILD = "name: orders, columns: [{name: id, type: bigint}, {name: customer, type: bigint}]"
DROP_PARENT = "DROP TABLE `dev`.`silver`.`customers`"
UNDO = "or revert the drift with `delta-engine -e dev drift --revert`."


def refused(project: CatalogProject, options: str = "") -> str:
    """Return the refusal of an acceptance, which has edited and recorded nothing."""
    models, drift = project.models.read_text(), project.run("drift --json").stdout
    done = project.run(f"drift --accept --yes {options}")
    assert done.code == 3, done.stdout
    assert project.models.read_text() == models
    assert '"accepted": null' in drift
    assert '"accepted": {' not in project.run("drift --json").stdout
    return " ".join(done.stderr.split())


def valid(project: CatalogProject) -> None:
    """Check that the models load, and that a sync of them finishes the acceptance."""
    done: Result = project.run("validate")
    assert done.code == 0, done.stderr
    project.sync()
    assert project.drift() == {}


@pytest.mark.parametrize("key", [KEY, WHOLE_KEY])
def test_the_foreign_key_of_a_deleted_parent_goes_with_it(project: CatalogProject, key: str) -> None:
    project.declare(PARENT, f"{CHILD}, {key}")
    project.sync()
    project.by_hand(DROP_PARENT)  # Unity Catalog drops the keys that reference it
    assert project.run("drift --accept --yes").code == 0
    assert "customers" not in project.models.read_text()
    valid(project)


@pytest.mark.parametrize("key", [KEY, WHOLE_KEY])
def test_a_deleted_parent_alone_is_not_accepted(project: CatalogProject, key: str) -> None:
    project.declare(PARENT, f"{CHILD}, {key}")
    project.sync()
    project.by_hand(DROP_PARENT)
    assert refused(project, "-t customers") == (
        "refused: conf/models/tables.yml:3: table dev.silver.orders, column customer: the drift cannot be accepted, "
        "because foreign key (customer) references dev.silver.customers, whose model it would remove. Remove the key "
        "from the model and accept again, or accept the drift of both tables together. more: delta-engine explain "
        "invalid-model"
    )


@pytest.mark.parametrize("key", [KEY, WHOLE_KEY])
def test_a_foreign_key_that_is_no_drift_is_named(project: CatalogProject, key: str) -> None:
    project.declare(PARENT, CHILD)
    project.sync()
    project.declare(PARENT, f"{CHILD}, {key}")  # not synced yet
    project.by_hand(DROP_PARENT)
    assert (
        "references dev.silver.customers, whose model it would remove. Remove the key from the model and accept again."
    ) in refused(project)
    project.declare(PARENT, CHILD)
    assert project.run("drift --accept --yes").code == 0
    valid(project)


def test_a_parent_without_its_primary_key_alone_is_not_accepted(project: CatalogProject) -> None:
    project.declare(PARENT, f"{CHILD}, {KEY}")
    project.sync()
    project.by_hand(
        "ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `fk_dev_silver_orders__customer__customers`",
        "ALTER TABLE `dev`.`silver`.`customers` DROP CONSTRAINT `pk_dev_silver_customers__id`",
    )
    assert (
        "table dev.silver.orders: the drift cannot be accepted, because afterwards foreign key (customer) references "
        "dev.silver.customers, which has no primary key. Correct the model and accept again, "
    ) + UNDO in refused(project, "-t customers")
    assert project.run("drift --accept --yes").code == 0
    valid(project)


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (
            "checks: {positive: amount > 0}",
            "check 'positive' reads columns that the table does not have: amount",
        ),
        ("cluster_by: [amount]", "cluster_by"),
        (KEY.replace("customer]", "amount]"), "amount"),
        ("fill_by: {column: amount, bounds: ['1']}", "amount"),
    ],
)
def test_a_dropped_column_that_the_model_still_names_is_not_accepted(
    project: CatalogProject, edit: str, problem: str
) -> None:
    table = f"name: sales, columns: [{ID}, {{name: amount, type: bigint}}]"
    mapped = f"{table}, properties: {{delta.columnMapping.mode: name}}"
    project.declare(PARENT, mapped)
    project.sync()
    project.declare(PARENT, f"{mapped}, {edit}")
    project.by_hand("ALTER TABLE `dev`.`silver`.`sales` DROP COLUMN `amount`")
    refusal = refused(project)
    assert problem in refusal
    assert "table dev.silver.sales" in refusal
    assert "the drift cannot be accepted, because afterwards " in refusal
    assert f"Correct the model and accept again, {UNDO}" in refusal
    project.declare(PARENT, mapped)
    assert project.run("drift --accept --yes").code == 0
    valid(project)
