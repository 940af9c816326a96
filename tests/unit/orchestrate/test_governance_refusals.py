"""What commands refuse of functions and policies, and how the user goes on."""

from __future__ import annotations

import pytest

from delta_engine.errors import StatementError
from delta_engine.orchestrate import planning
from tests.cases.documentation import DOCS
from tests.projects.catalog_project import CatalogProject

ID = "{name: id, type: bigint, nullable: false}"
MASK = "dev.governance.mask_email"


def function(name: str = "mask_email", body: str = "upper(email)", **more: str) -> str:
    parts = {
        "schema": "governance",
        "returns": "string",
        "parameters": "[{name: email, type: string}]",
        "body": f'"{body}"',
        **more,
    }
    listed = ", ".join(f"{key}: {value}" for key, value in parts.items())
    return f"  - {{catalog: dev, name: {name}, {listed}}}\n"


def policy(name: str = "mask_pii", **more: str) -> str:
    parts = {
        "on": "{schema: dev.silver}",
        "mask": f"{{function: {MASK}, column: mail}}",
        "match": "{mail: \"has_tag_value('pii', 'email')\"}",
        "to": "[account users]",
        **more,
    }
    listed = ", ".join(f"{key}: {value}" for key, value in parts.items())
    return f"  - {{name: {name}, {listed}}}\n"


def table(mail: str = "tags: {pii: email}", more: str = "") -> str:
    return f"name: orders, columns: [{ID}, {{name: mail, type: string, {mail}}}{more}]"


def declare(project: CatalogProject, *tables: str, functions: str = "", policies: str = "") -> None:
    lists = "schemas:\n  - {catalog: dev, name: governance}\n"
    lists += f"functions:\n{functions}" if functions else ""
    lists += f"policies:\n{policies}" if policies else ""
    project.declare(*tables, schemas=lists)


def refused(project: CatalogProject, command: str = "sync --yes") -> str:
    """Return the refusals of a command; no statement ran."""
    ran = len(project.catalog.statements)
    result = project.run(command)
    assert result.code == 3, result.stdout + result.stderr
    assert len(project.catalog.statements) == ran
    return " ".join(result.stderr.split())


@pytest.fixture
def project(catalog_project: CatalogProject) -> CatalogProject:
    """Return a project whose mask is synced."""
    declare(catalog_project, table(f"mask: {MASK}"), functions=function())
    catalog_project.sync()
    return catalog_project


def test_the_way_out_of_another_signature_works(project: CatalogProject) -> None:
    wider = function(parameters="[{name: email, type: string}, {name: n, type: int, default: '1'}]")
    declare(project, table(f"mask: {MASK}"), functions=wider)
    message = refused(project, "sync --yes --allow change_protection")
    assert f"function {MASK}: its parameters would change from (string) to (string, int)" in message
    assert "it is used by dev.silver.orders.mail" in message
    other = function("mask_mail", body="lower(email)")
    declare(project, table(f"mask: {MASK}"), functions=function() + other)
    project.sync()
    declare(project, table("mask: dev.governance.mask_mail"), functions=function() + other)
    project.sync()
    project.configure("removed_functions: drop")
    declare(project, table("mask: dev.governance.mask_mail"), functions=other)
    assert "or allow it: --allow drop_function:dev.governance.mask_email for one run" in refused(project)
    project.sync("--allow drop_function")
    assert sorted(project.catalog.functions) == ["dev.governance.mask_mail"]


def test_a_function_under_a_mask_is_not_dropped(project: CatalogProject) -> None:
    project.configure("removed_functions: drop")
    declare(project, table(f"mask: {MASK}"))
    message = refused(project, "sync --yes --allow drop_function")
    assert f"function {MASK}: it would be dropped, and it is used by dev.silver.orders.mail" in message
    declare(project, table("comment: x"))
    project.sync("--allow drop_function --allow drop_column_mask")
    assert project.catalog.functions == {}


def test_a_body_and_the_mask_that_uses_it_change_one_after_the_other(project: CatalogProject) -> None:
    outer = function("outer", body="dev.governance.mask_email(email)")
    declare(project, table("mask: dev.governance.outer"), functions=function() + outer)
    project.sync()
    declare(
        project,
        table("mask: dev.governance.outer"),
        functions=function(body="lower(email)")
        + function("outer", body="dev.governance.mask_email(lower(email))"),
    )
    message = refused(project, "sync --yes --allow change_protection")
    assert (
        "change what readers see of it: between their statements, readers may see rows that both" in message
    )
    declare(project, table("mask: dev.governance.outer"), functions=function(body="lower(email)") + outer)
    project.sync("--allow change_protection")


def test_a_mask_becomes_a_policy_when_the_tags_are_there(project: CatalogProject) -> None:
    tagged = f"mask: {MASK}, tags: {{pii: email}}"
    declare(project, table(), functions=function(), policies=policy())
    message = refused(project, "sync --yes --allow drop_column_mask")
    assert (
        "policies see its tags after some minutes, but the mask of mail would change immediately" in message
    )
    declare(project, table(tagged), functions=function(), policies=policy())
    project.sync()
    declare(project, table(), functions=function(), policies=policy())
    project.sync("--allow drop_column_mask")


def test_a_policy_is_dropped_with_consent(project: CatalogProject) -> None:
    tagged = table(f"mask: {MASK}, tags: {{pii: email}}")
    declare(project, tagged, functions=function(), policies=policy())
    project.sync()
    project.configure("removed_policies: drop")
    declare(project, tagged, functions=function())
    message = refused(project)
    assert (
        "it is no longer declared, and would be dropped, and its principals would see what it hides"
        in message
    )
    assert "--allow drop_policy:schema.dev.silver.mask_pii for one run" in message
    project.sync("--allow drop_policy:schema.dev.silver.mask_pii")
    assert project.catalog.policies == []


def test_a_policy_that_hides_less_needs_consent(project: CatalogProject) -> None:
    tagged = table(f"mask: {MASK}, tags: {{pii: email}}")

    def change(**parts: str) -> None:
        declare(project, tagged, functions=function(), policies=policy(**parts))

    change(to="[sales]")
    project.sync()
    change()  # it hides more
    project.sync()
    change(**{"except": "[hr]"})
    message = refused(project)
    assert (
        "policy mask_pii on schema dev.silver: it would no longer hide anything from hr. Allow it" in message
    )
    assert "--allow change_protection:schema.dev.silver.mask_pii for one run" in message
    assert "no longer hides anything from hr" in project.run("plan").stdout
    project.sync("--allow change_protection:schema.dev.silver.mask_pii")
    change(**{"except": "[hr]", "when": "has_tag('open')"})
    assert "its new when may show more to its principals" in refused(project)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"on": "{schema: dev.nowhere}"}, "no model declares schema dev.nowhere"),
        ({"on": "{table: dev.silver.nowhere}"}, "no model declares table dev.silver.nowhere"),
        ({"on": "{catalog: dev}"}, "policy.policies_on does not name catalog dev"),
        ({"to": '["a\\nb"]'}, "a principal that it names, 'a\\nb', has a character that is not allowed"),
        ({"mask": "{function: governance.mask_email, column: mail}"}, "is not the full name of a function"),
    ],
)
def test_policies_are_refused_before_anything_is_read(
    project: CatalogProject, changes: dict[str, str], reason: str
) -> None:
    declare(project, table(f"mask: {MASK}"), functions=function(), policies=policy(**changes))
    assert reason in refused(project, "validate")


def test_a_policy_on_a_catalog_that_the_configuration_names(project: CatalogProject) -> None:
    project.configure("policies_on: [dev]")
    on_catalog = policy(on="{catalog: dev}")
    declare(project, table(f"mask: {MASK}, tags: {{pii: email}}"), functions=function(), policies=on_catalog)
    project.sync()


def test_51_policies_on_a_table_are_refused(project: CatalogProject) -> None:
    policies = "".join(policy(f"p{number}", on="{table: dev.silver.orders}") for number in range(51))
    declare(project, table(f"mask: {MASK}"), functions=function(), policies=policies)
    assert "it is one of 51 policies on table dev.silver.orders, which allows 50" in refused(
        project, "validate"
    )


@pytest.mark.parametrize("selection", ["", "-t mask_email"])
def test_a_selected_function_is_known_to_be_used_by_policies(project: CatalogProject, selection: str) -> None:
    tagged = table(f"mask: {MASK}, tags: {{pii: email}}")
    declare(project, tagged, functions=function(), policies=policy())
    project.sync()
    declare(project, table(), functions=function(), policies=policy())
    project.sync("--allow drop_column_mask")
    declare(project, table(), functions=function(body="lower(email)"), policies=policy())
    message = refused(project, f"sync --yes {selection}")
    assert f"function {MASK}: its new body would change what readers see of " in message
    assert "policy mask_pii on schema dev.silver" in message
    project.sync(f"--allow change_protection {selection}")
    assert project.run("plan --detailed-exitcode").code == 0


@pytest.mark.parametrize("selection", ["", "-t mask_email"])
def test_a_selected_function_is_known_to_be_used_by_masks(project: CatalogProject, selection: str) -> None:
    declare(project, table(f"mask: {MASK}"), functions=function(body="lower(email)"))
    message = refused(project, f"sync --yes {selection}")
    assert (
        f"function {MASK}: its new body would change what readers see of dev.silver.orders.mail. " in message
    )
    project.sync(f"--allow change_protection {selection}")


@pytest.mark.parametrize("selection", ["", "-t orders"])
def test_policies_see_new_tags_of_a_selected_table_too_late(project: CatalogProject, selection: str) -> None:
    declare(project, table("comment: mail"), functions=function(), policies=policy())
    project.sync("--allow drop_column_mask")
    granted = f"{table()}, grants: {{hr: [SELECT]}}"
    declare(project, granted, functions=function(), policies=policy())
    message = refused(project, f"sync --yes {selection}")
    assert (
        "policies see its tags after some minutes, but the grants to hr would change immediately" in message
    )


def test_a_selection_does_not_judge_the_scopes_of_policies(project: CatalogProject) -> None:
    project.models.with_name("more.yml").write_text(
        f"policies:\n{policy(on='{table: dev.silver.others}')}"
        "tables:\n  - {catalog: dev, schema: silver, name: others, columns: [{name: mail, type: string}]}\n"
    )
    assert project.run("validate -t orders").code == 0
    assert project.run("validate").code == 0


def test_two_functions_of_one_name_are_refused_and_a_table_of_that_name_is_not(
    project: CatalogProject,
) -> None:
    declare(project, table(), functions=function() + function("MASK_EMAIL"))
    assert "function dev.governance.MASK_EMAIL: it is declared twice" in refused(project, "validate")
    same = function("orders", schema="silver")
    declare(project, table(f"mask: {MASK}"), functions=function() + same)
    project.sync()
    assert project.run("plan --detailed-exitcode").code == 0


def test_the_chain_of_the_page_is_one_sync(catalog_project: CatalogProject) -> None:
    page = (DOCS / "governance.md").read_text("utf-8")
    models = page.split("```yaml\n# conf/models/governance.yml\n")[1].split("```")[0]
    catalog_project.models.write_text(models)
    catalog_project.sync()
    assert sorted(catalog_project.catalog.functions) == [MASK]
    assert [each.name for each in catalog_project.catalog.policies] == ["mask_pii"]
    assert catalog_project.run("plan --detailed-exitcode").code == 0
    catalog_project.models.write_text(models.replace("'***'", "'###'"))
    message = refused(catalog_project)
    assert (
        "would change what readers see of dev.sales.buyers.mail, dev.sales.leads.mail (policy mask_pii"
        in message
    )
    catalog_project.sync("--allow change_protection")


def test_a_doubtful_body_is_noted(project: CatalogProject) -> None:
    declare(project, table(f"mask: {MASK}"), functions=function(body="upper(email) email email"))
    validated = project.run("validate")
    assert validated.code == 0
    assert "sqlglot does not read its body as SQL, so the platform may refuse it" in validated.stderr


THEIRS = (
    "CREATE POLICY `theirs` ON TABLE `dev`.`silver`.`orders` COLUMN MASK `dev`.`governance`.`other` "
    "TO `account users` FOR TABLES MATCH COLUMNS has_tag_value('pii', 'email') AS mail ON COLUMN mail"
)


SAME_MASK = policy(mask="{function: dev.governance.other, column: mail}")


@pytest.fixture
def shared(catalog_project: CatalogProject) -> CatalogProject:
    """Return a project with a table on which another principal has set a policy."""
    project = catalog_project
    declare(project, table(), functions=function() + function("other", body="lower(email)"))
    project.sync()
    project.by_hand(THEIRS)
    return project


def test_policies_of_others_on_single_tables_meet_those_of_the_plan(shared: CatalogProject) -> None:
    functions = function() + function("other", body="lower(email)")
    declare(shared, table(), functions=functions, policies=policy())
    assert "policy theirs on table dev.silver.orders" in refused(shared)
    declare(shared, table(f"tags: {{pii: email}}, mask: {MASK}"), functions=functions)
    assert "policy theirs on table dev.silver.orders" in refused(shared)
    declare(
        shared,
        table(),
        functions=functions,
        policies=SAME_MASK,
    )
    shared.sync()


def test_plans_that_protect_nothing_do_not_ask_for_them(shared: CatalogProject) -> None:
    functions = function() + function("other", body="lower(email)")
    declare(
        shared,
        table(),
        functions=functions,
        policies=SAME_MASK,
    )
    shared.sync()
    asked = len(shared.catalog.questions)
    declare(
        shared,
        table() + ", comment: x",
        functions=functions,
        policies=SAME_MASK,
    )
    shared.sync()
    assert not [sql for sql in shared.catalog.questions[asked:] if "POLICIES ON TABLE" in sql]


def test_a_revert_reads_policies_of_others_on_tables_that_it_protects(shared: CatalogProject) -> None:
    shared.by_hand("DROP POLICY `theirs` ON TABLE `dev`.`silver`.`orders`")
    functions = function() + function("other", body="lower(email)")
    declare(shared, table(f"tags: {{pii: email}}, mask: {MASK}"), functions=functions)
    shared.sync()
    shared.by_hand("ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `mail` DROP MASK", THEIRS)
    assert "policy theirs on table dev.silver.orders" in refused(shared, "drift --revert --yes")


def test_policies_on_tables_that_are_hidden_are_said(shared: CatalogProject) -> None:
    run = shared.catalog.run

    def hiding(sql: str) -> object:
        if sql.startswith("SHOW POLICIES ON TABLE"):
            raise StatementError("no READ METADATA", sql=sql, error_class="INSUFFICIENT_PERMISSIONS")
        return run(sql)

    shared.catalog.run = hiding  # type: ignore[method-assign,assignment]
    functions = function() + function("other", body="lower(email)")
    declare(shared, table(), functions=functions, policies=policy())
    planned = shared.run("plan")
    assert planned.code == 0, planned.stderr
    assert "policies on single tables cannot be read: " in planned.stdout + planned.stderr


def test_a_plan_says_of_how_many_tables_it_does_not_read_the_policies(
    shared: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "_MOST_ASKED", 1)
    tables = [table(), table().replace("orders", "returns"), table().replace("orders", "refunds")]
    functions = function() + function("other", body="lower(email)")
    declare(shared, *tables, functions=functions)
    shared.sync()
    declare(shared, *tables, functions=functions, policies=policy())
    planned = shared.run("plan")
    assert (
        "policies on 2 further tables that the plan protects were not read" in planned.stdout + planned.stderr
    )
