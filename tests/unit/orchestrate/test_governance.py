"""Functions, policies and a masked table through whole commands, from a fresh project to an imported one."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from tests.builders.governed_project import BODY, FUNCTIONS, POLICIES, UNMASKED, write_governed_models
from tests.projects.catalog_project import CatalogProject, emptied, require_nothing_to_do

CONSENTS = "--allow change_protection --allow drop_function --allow drop_policy"
MASK = "dev.governance.mask_email"
MASK_SQL = "`dev`.`governance`.`mask_email`"
OTHER_BODY = BODY.replace("'hr'", "'people'")
REPLACED = f"CREATE OR REPLACE FUNCTION {MASK_SQL}(`email` string) RETURNS string"


@pytest.fixture
def project(catalog_project: CatalogProject) -> CatalogProject:
    catalog_project.catalog.schemas.pop("dev.governance", None)
    write_governed_models(catalog_project.models.parent)
    return catalog_project


def declare(project: CatalogProject, functions: str = FUNCTIONS, policies: str = POLICIES) -> None:
    write_governed_models(project.models.parent, functions, policies)


def test_one_sync_makes_functions_then_masks_and_policies(project: CatalogProject) -> None:
    project.sync()
    assert sorted(project.catalog.functions) == ["dev.governance.clean_iban", MASK]
    made = [" ".join(sql.split()[:3]) for sql in project.catalog.statements if sql.startswith("CREATE")]
    schema, mask, *users = (
        next(place for place, sql in enumerate(made) if sql.startswith(start))
        for start in ("CREATE SCHEMA", f"CREATE FUNCTION {MASK_SQL}(", "CREATE POLICY", "CREATE TABLE")
    )
    assert schema < mask < min(users)  # the other function is created at the same time, and nothing calls it
    require_nothing_to_do(project)


def test_a_changed_body_needs_consent_and_keeps_what_the_platform_loses(project: CatalogProject) -> None:
    project.sync()
    declare(project, FUNCTIONS.replace(BODY, OTHER_BODY))
    refused = project.run("sync --yes")
    assert refused.code == 3
    assert "would change what readers see of dev.silver.customers.mail" in refused.stderr
    project.sync(CONSENTS)
    assert project.catalog.functions[MASK].body == OTHER_BODY
    assert project.catalog.functions[MASK].grants == {"account users": ("EXECUTE",)}
    require_nothing_to_do(project)


def test_what_is_changed_by_hand_is_drift_and_reverted(project: CatalogProject) -> None:
    project.sync()
    project.by_hand(f"{REPLACED} COMMENT 'x' RETURN email", "DROP POLICY `mask_pii` ON SCHEMA `dev`.`silver`")
    drift = project.drift()
    assert [kind for kind, _ in drift[f"function.{MASK}"]] == [
        "function_body",
        "function_grant",
        "function_comment",
    ]
    assert [kind for kind, _ in drift["policy.schema.dev.silver.mask_pii"]] == ["policy_deleted"]
    reverted = project.run(f"drift --revert --yes {CONSENTS}")
    assert reverted.code == 0, reverted.stderr
    assert project.catalog.functions[MASK].body == BODY
    assert [policy.name for policy in project.catalog.policies] == ["mask_pii"]
    require_nothing_to_do(project)


def test_what_the_platform_spells_otherwise_is_neither_planned_nor_drift(project: CatalogProject) -> None:
    """The catalog shows other texts from the first moment: the record of what it showed is what counts."""
    run = project.catalog.run

    def respelling(sql: str) -> object:
        rows = run(sql)
        if ".routines" not in sql:
            return rows
        return [{**row, "routine_definition": f"({row['routine_definition']})"} for row in rows]

    project.catalog.run = respelling  # type: ignore[method-assign,assignment]
    project.sync()
    require_nothing_to_do(project)
    declare(project, FUNCTIONS.replace(BODY, OTHER_BODY))
    project.sync(CONSENTS)
    require_nothing_to_do(project)


def test_an_undo_brings_back_the_body_of_before(project: CatalogProject) -> None:
    project.sync()
    declare(project, FUNCTIONS.replace(BODY, OTHER_BODY))
    project.sync(CONSENTS)
    undone = project.run(f"undo --yes {CONSENTS}")
    assert undone.code == 0, undone.stderr
    assert project.catalog.functions[MASK].body == BODY


def test_an_undo_of_a_function_alone_leaves_the_rest_of_the_run(project: CatalogProject) -> None:
    project.sync()
    policies = POLICIES.replace("E-mail addresses are for HR", "another")
    declare(project, FUNCTIONS.replace(BODY, OTHER_BODY), policies)
    project.sync(CONSENTS)
    undone = project.run(f"undo --yes -t mask_email {CONSENTS}")
    assert undone.code == 0, undone.stderr
    assert "policy" not in undone.stdout
    assert project.catalog.functions[MASK].body == BODY
    planned = project.run("plan").stdout  # the models have both changes
    assert f"~ function {MASK}" in planned
    assert "policy" not in planned


def test_what_is_no_longer_declared_is_dropped_with_consent_after_what_uses_it(
    project: CatalogProject,
) -> None:
    project.sync()
    project.configure("removed_functions: drop, removed_policies: drop")
    declare(project, "", "")
    refused = project.run("sync --yes")
    assert refused.code == 3, refused.stdout
    assert sorted(project.catalog.functions) == ["dev.governance.clean_iban", MASK]
    write_governed_models(project.models.parent, "", "", UNMASKED)
    project.sync(f"{CONSENTS} --allow drop_column_mask")
    assert (project.catalog.functions, project.catalog.policies) == ({}, [])
    last = project.catalog.statements[-4:]
    assert [" ".join(sql.split()[:2]) for sql in last] == [
        "ALTER TABLE",
        "DROP POLICY",
        "DROP FUNCTION",
        "DROP FUNCTION",
    ]
    require_nothing_to_do(project)


def test_a_project_without_functions_and_policies_asks_nothing_about_them(project: CatalogProject) -> None:
    write_governed_models(project.models.parent, "", "", UNMASKED)
    project.sync()
    require_nothing_to_do(project)
    words = ("routine", "POLIC", "FUNCTION")
    assert not [sql for sql in project.catalog.questions if any(word in sql for word in words)]


def test_functions_and_policies_that_nothing_declares_stay(project: CatalogProject) -> None:
    project.sync()
    declare(project, "", "")
    kept = project.run("plan")
    assert kept.code == 0, kept.stderr
    assert f"function {MASK}" in kept.stdout + kept.stderr


@pytest.mark.parametrize("target", ["dev", "dev.governance"])
def test_what_exists_is_imported_into_an_empty_project_with_nothing_to_plan(
    project: CatalogProject, target: str
) -> None:
    project.sync()
    conf = emptied(project)
    done = project.run(f"import {target} --to conf/models/imported.yml")
    assert done.code == 0, done.stderr
    imported = (conf / "models" / "imported.yml").read_text()
    assert ("name: mask_email" in imported, "name: mask_pii" in imported) == (True, target == "dev")
    require_nothing_to_do(project)
    project.sync()
    require_nothing_to_do(project)


@pytest.mark.parametrize("options", ["--to conf/models/imported.yml", "--to conf/models --per schema"])
def test_a_policy_on_a_schema_without_tables_is_imported_with_its_schema(
    project: CatalogProject, options: str
) -> None:
    project.sync()
    project.by_hand("DROP TABLE `dev`.`silver`.`customers`")
    emptied(project)
    done = project.run(f"import dev {options}")
    assert done.code == 0, done.stderr
    project.config.write_text(project.config.read_text().replace("*.yml", "**/*.yml"))
    require_nothing_to_do(project)


@pytest.mark.parametrize("per", ["schema", "table"])
def test_a_folder_has_functions_and_policies_in_the_files_of_their_schemas(
    project: CatalogProject, per: str
) -> None:
    project.sync()
    conf = emptied(project)
    done = project.run(f"import dev --to conf/models --per {per}")
    assert done.code == 0, done.stderr
    assert "4 models written" in done.stderr
    assert "mask_email" in (conf / "models" / "governance.yml").read_text()
    assert "mask_pii" in (conf / "models" / "silver.yml").read_text()
    again = project.run(f"import dev --to conf/models --per {per}")
    assert again.code == 0, again.stderr
    project.config.write_text(project.config.read_text().replace("*.yml", "**/*.yml"))
    require_nothing_to_do(project)


def test_accepted_drift_goes_into_the_model_and_the_file_of_the_body(project: CatalogProject) -> None:
    project.sync()
    project.by_hand(
        f"{REPLACED} COMMENT 'Shows all' RETURN email",
        "CREATE OR REPLACE FUNCTION `dev`.`governance`.`clean_iban`(`iban` string) RETURNS string LANGUAGE PYTHON "
        "AS $$\nreturn iban\n$$",
        "GRANT EXECUTE ON FUNCTION `dev`.`governance`.`mask_email` TO `account users`",
    )
    accepted = project.run("drift --accept --yes")
    assert accepted.code == 0, accepted.stderr
    models = project.config.parent / "models"
    assert (models / "functions" / "clean_iban.py").read_text().strip() == "return iban"
    assert "comment: Shows all" in (models / "governed.yml").read_text()
    project.sync(CONSENTS)
    require_nothing_to_do(project)


def test_hidden_bodies_are_no_difference_and_a_changed_model_still_is(project: CatalogProject) -> None:
    project.sync()
    project.catalog.hides_bodies = True
    project.catalog.functions = {
        key: replace(function, owner="jo") for key, function in project.catalog.functions.items()
    }
    require_nothing_to_do(project)
    declare(project, FUNCTIONS.replace(BODY, OTHER_BODY))
    planned = project.run(f"plan --detailed-exitcode {CONSENTS}")
    assert planned.code == 2, planned.stderr
    assert "body" in planned.stdout


def test_a_project_that_adopts_what_exists_changes_nothing(project: CatalogProject) -> None:
    project.sync()
    shutil.rmtree(project.config.parent.parent / ".delta-engine")
    statements = len(project.catalog.statements)
    project.sync()
    assert len(project.catalog.statements) == statements
    require_nothing_to_do(project)


ON_TABLE = POLICIES.replace('{schema: "${catalog}.silver"}', '{table: "${catalog}.silver.customers"}')
RENAMED = UNMASKED.replace("name: customers", "name: clients\n    renamed_from: customers")


@pytest.mark.parametrize("removed", ["keep", "drop"])
@pytest.mark.parametrize("policies", [ON_TABLE, ON_TABLE.replace("[hr]", "[hr, people]")])
def test_a_policy_follows_its_renamed_table(project: CatalogProject, policies: str, removed: str) -> None:
    models = project.models.parent
    project.configure(f"removed_policies: {removed}")
    write_governed_models(models, FUNCTIONS, ON_TABLE, UNMASKED)
    project.sync()
    write_governed_models(models, FUNCTIONS, policies.replace("customers", "clients"), RENAMED)
    before = len(project.catalog.statements)
    project.sync(CONSENTS)
    sent = [" ".join(sql.split()[:4]) for sql in project.catalog.statements[before:]]
    replaced = [] if policies == ON_TABLE else ["CREATE OR REPLACE POLICY"]
    assert sent == ["ALTER TABLE `dev`.`silver`.`customers` RENAME", *replaced]
    assert [policy.securable for policy in project.catalog.policies] == ["dev.silver.clients"]
    assert "customers" not in project.run("state list").stdout
    require_nothing_to_do(project)


def test_the_undo_of_a_rename_takes_the_policies_of_the_table_along(project: CatalogProject) -> None:
    models = project.models.parent
    write_governed_models(models, FUNCTIONS, ON_TABLE, UNMASKED)
    project.sync()
    write_governed_models(models, FUNCTIONS, ON_TABLE.replace("customers", "clients"), RENAMED)
    project.sync(CONSENTS)
    before = len(project.catalog.statements)
    undone = project.run(f"undo --yes {CONSENTS}")
    assert undone.code == 0, undone.stderr
    assert project.catalog.statements[before:] == [
        "ALTER TABLE `dev`.`silver`.`clients` RENAME TO `dev`.`silver`.`customers`"
    ]
    write_governed_models(models, FUNCTIONS, ON_TABLE, UNMASKED)
    require_nothing_to_do(project)
