"""Rules of a project's own, the list of all rules, and what backends refuse."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from delta_engine.aspects import COLUMN_FACETS, TABLE_FACETS
from delta_engine.aspects.facet import Facet
from delta_engine.backends.capabilities import (
    DATABRICKS,
    NEEDED_TO_CREATE,
    OPEN_SOURCE,
    OPEN_SOURCE_CATALOG,
    Capabilities,
    Feature,
)
from delta_engine.errors import InvalidModelError
from delta_engine.models import Column, ColumnMask, RowFilter, Securable, Table
from delta_engine.validation.capability_rules import (
    SupportedFeatures,
    declared_features,
    models_without,
    without_features,
)
from tests.builders.models import orders
from tests.cases.documented_models import WHOLE_COLUMN, WHOLE_TABLE
from tests.conftest import CONFIG
from tests.projects.commandline import CommandLine
from tests.unit.validation.rule_cases.subjects import function, model, policy

DOCS = Path(__file__).parents[3] / "docs"

RULES = '''
from delta_engine import InvalidModelError, UnsafePlanError


class NoFloatMoney:
    """Money is a decimal.

    Floats lose cents.
    """

    def check(self, models):
        for model in models:
            for column in model.columns:
                if column.name == "amount":
                    yield InvalidModelError("money is a decimal", table=str(model.qualified_name))


class NothingOnFridays:
    """Nothing is changed on Fridays."""

    def check(self, plan, policy):
        yield UnsafePlanError("it is Friday")


class Broken:
    def check(self, models):
        raise KeyError("oops")


class Odd:
    def check(self, models):
        return ["a text"]


class NoRule:
    pass
'''


@pytest.fixture
def rules(project: Path, request: pytest.FixtureRequest) -> str:
    """Give the project a module of rules, and return its name: one per test, for Python keeps modules."""
    name = f"rules_of_{request.node.name.split('[')[0]}"
    (project / f"{name}.py").write_text(RULES)
    return name


def use(project: Path, *references: str) -> None:
    """Configure rules."""
    listed = ", ".join(references)
    text = CONFIG.replace("policy: {create_schemas: true}", f"policy: {{rules: [{listed}]}}")
    (project / "conf" / "local.yml").write_text(text)


def test_a_rule_for_models_refuses(project: Path, rules: str, delta_engine: CommandLine) -> None:
    use(project, f'"{rules}:NoFloatMoney"')
    result = delta_engine("-e", "local", "validate")
    assert result.code == 3
    assert "table dev.silver.orders: money is a decimal." in result.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Broken", "conf/local.yml:5: rule '{m}:Broken' failed: KeyError: 'oops'. A rule is a class with"),
        ("Odd", "rule '{m}:Odd' failed: TypeError: it yields str, not InvalidModelError."),
        ("NoRule", "conf/local.yml:5: '{m}:NoRule' is not a rule. A rule is a class with check(models)"),
        ("Missing", "loading the rule '{m}:Missing' failed: AttributeError: module"),
    ],
)
def test_invalid_rules(project: Path, rules: str, delta_engine: CommandLine, name: str, message: str) -> None:
    use(project, f'"{rules}:{name}"')
    result = delta_engine("-e", "local", "validate")
    assert result.code == 3
    assert message.format(m=rules) in result.stderr.replace("\n", " ")


def test_all_rules_are_listed(project: Path, rules: str, delta_engine: CommandLine) -> None:
    use(project, f'"{rules}:NoFloatMoney"', f'"{rules}:NothingOnFridays"')
    lines = delta_engine("-e", "local", "rules").stdout.splitlines()
    assert lines[0] == "models:"
    assert "  TablesHaveColumns: A table needs at least one column." in lines
    assert f"  {rules}:NoFloatMoney: Money is a decimal." in lines
    assert lines.index(f"  {rules}:NothingOnFridays: Nothing is changed on Fridays.") > lines.index("plans:")
    assert all(line.endswith((":", ".")) for line in lines)


def test_the_engine_s_own_rules_need_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine
) -> None:
    monkeypatch.chdir(tmp_path)
    document = json.loads(delta_engine("rules", "--json").stdout)
    assert document["format"] == "delta-engine/rules"
    assert {
        "name": "TablesHaveColumns",
        "judges": "models",
        "text": "A table needs at least one column.",
    } in (document["rules"])


EVERYTHING = replace(WHOLE_TABLE, columns=(WHOLE_COLUMN,))


def test_what_a_platform_refuses_is_refused_with_its_reason() -> None:
    refusals = list(SupportedFeatures(OPEN_SOURCE).check([EVERYTHING]))
    facets: list[Facet[Any, Any, Any]] = [*TABLE_FACETS, *COLUMN_FACETS]
    needing = [facet for facet in facets if facet.feature]
    at_creation = [feature for feature, _ in declared_features(EVERYTHING) if feature in NEEDED_TO_CREATE]
    assert len(refusals) + len(at_creation) == len(list(declared_features(EVERYTHING))) == len(needing)
    assert all(isinstance(refusal, InvalidModelError) for refusal in refusals)
    assert str(refusals[-1]).endswith(
        "table dev.silver.orders, column mail: column masks cannot be declared for the backend oss: only Unity "
        "Catalog on Databricks has them. Remove it from the model, or exclude it from this environment: "
        "backend.leave_out: "
        "[column_masks]."
    )
    assert list(SupportedFeatures(DATABRICKS).check([EVERYTHING])) == []


def test_values_of_properties_that_a_platform_refuses() -> None:
    model = orders(properties={"delta.isolationLevel": "WriteSerializable", "delta.APPENDONLY": "true"})
    (refusal,) = SupportedFeatures(OPEN_SOURCE).check([model])
    assert str(refusal).endswith(
        "property 'delta.isolationLevel' is 'WriteSerializable', which the backend oss does not accept. Remove it, "
        "or take the value from a variable of the environment."
    )
    assert list(SupportedFeatures(DATABRICKS).check([model])) == []


def test_properties_that_only_databricks_knows() -> None:
    model = orders(properties={"delta.TargetFileSize": "100mb"})
    (refusal,) = SupportedFeatures(OPEN_SOURCE).check([model])
    assert str(refusal).endswith(
        "property 'delta.TargetFileSize' is unknown to the backend oss. Remove it, or declare it in "
        "defaults.table_properties "
        "of other environments."
    )
    assert list(SupportedFeatures(DATABRICKS).check([model])) == []


PARTS = ("catalog", "schema", "table")


@pytest.mark.parametrize("part", PARTS)
def test_a_name_is_as_long_as_its_place_allows(part: str) -> None:
    """Folders of tables by path have names of 255 bytes; Unity Catalog counts characters."""
    names = [["ä" * 127 + rest if named == part else "b" for named in PARTS] for rest in ("b", "ä" * 3)]
    fitting, too_long = (
        Table(catalog, schema, table, columns=orders().columns) for catalog, schema, table in names
    )
    (refusal,) = SupportedFeatures(OPEN_SOURCE).check([fitting, too_long])
    assert refusal.reason == (
        f"{part} name {'ä' * 130!r} has 260 bytes in UTF-8. Names of folders, which the platform makes of it, "
        "have at most 255"
    )
    for counting_characters in (DATABRICKS, OPEN_SOURCE_CATALOG):
        assert list(SupportedFeatures(counting_characters).check([too_long])) == []


def test_an_environment_does_without_what_its_backend_lacks(project: Path, delta_engine: CommandLine) -> None:
    orders = project / "conf" / "models" / "orders.yml"
    orders.write_text(orders.read_text() + "    tags: {team: sales}\n    owner: sales\n")
    refused = delta_engine("-e", "local", "validate")
    assert refused.code == 3
    assert "backend.leave_out: [owners]" in refused.stderr
    config = project / "conf" / "local.yml"
    config.write_text(CONFIG.replace("{type: oss}", "{type: oss, leave_out: [tags, owners]}"))
    assert delta_engine("-e", "local", "validate").code == 0
    config.write_text(CONFIG.replace("{type: oss}", "{type: oss, leave_out: [tag]}"))
    result = delta_engine("-e", "local", "validate")
    assert "backend.leave_out: this backend lacks no feature 'tag'. Did you mean 'tags'?" in result.stderr
    backend = "{type: databricks-warehouse, warehouse_id: x, leave_out: [tags]}"
    config.write_text(f"{CONFIG.replace('{type: oss}', backend)}state_backend: {{type: local}}\n")
    result = delta_engine("-e", "local", "validate")
    assert "lacks no feature 'tags'. It has every feature. Remove `leave_out`." in result.stderr


def test_a_catalog_may_do_without_what_folders_lack(project: Path, delta_engine: CommandLine) -> None:
    orders = project / "conf" / "models" / "orders.yml"
    orders.write_text(orders.read_text() + "    location: s3://bucket/orders\n    tags: {team: sales}\n")
    config = project / "conf" / "local.yml"
    config.write_text(CONFIG.replace("{type: oss}", "{type: oss, names: catalog, leave_out: [tags]}"))
    assert delta_engine("-e", "local", "validate").code == 0
    config.write_text(
        CONFIG.replace("{type: oss}", "{type: oss, names: catalog, leave_out: [tags, external_tables]}")
    )
    assert delta_engine("-e", "local", "validate").code == 0
    config.write_text(CONFIG.replace("{type: oss}", "{type: oss, names: catalog}"))
    assert "tags cannot be declared for the backend oss with names: catalog" in (
        delta_engine("-e", "local", "validate").stderr
    )


def test_what_is_left_out_is_not_declared() -> None:
    assert list(declared_features(without_features(EVERYTHING, [*Feature]))) == []


GOVERNED: list[Securable] = [
    function(tags={"a": "b"}, grants={"hr": ["EXECUTE"]}, owner="platform"),
    policy(),
    model(
        Column("mail", "string", mask=ColumnMask("governance.mask_email")),
        Column("other", "string", mask=ColumnMask("governance.of_others")),
        row_filter=RowFilter("dev.governance.MASK_EMAIL", ["mail"]),
    ),
]


@pytest.mark.parametrize("capabilities", [OPEN_SOURCE, OPEN_SOURCE_CATALOG], ids=["by path", "catalog"])
def test_other_platforms_refuse_what_they_lack_of_functions_and_policies(capabilities: Capabilities) -> None:
    refusals = [*SupportedFeatures(capabilities).check(GOVERNED[:2])]
    of_function = {
        refusal.reason.partition(" cannot")[0]
        for refusal in refusals
        if str(refusal.securable).startswith("f") and " cannot be declared" in refusal.reason
    }
    whole = Feature.FUNCTIONS in capabilities.refused
    assert of_function == ({"functions"} if whole else {"tags of functions", "grants", "owners"})
    assert [refusal.reason.partition(" cannot")[0] for refusal in refusals][-1] == "policies"
    assert all("backend.leave_out" in refusal.way_out for refusal in refusals)


def test_functions_are_left_out_with_the_masks_and_filters_that_need_them() -> None:
    (table,) = models_without(GOVERNED, [Feature.FUNCTIONS, Feature.POLICIES])
    assert isinstance(table, Table)
    assert [column.name for column in table.columns if column.mask is not None] == ["other"]
    assert table.row_filter is None
    features = [Feature.FUNCTION_TAGS, Feature.GRANTS, Feature.OWNERS]
    assert models_without(GOVERNED, features)[0] == function()


def test_every_refusal_of_a_model_s_feature_is_found() -> None:
    of_others = {
        *(Feature.TABLE_REMOVAL, Feature.SCHEMA_METADATA, Feature.STREAMING_TABLES),  # of the configuration
        *(Feature.MANAGED_CONVERSION, Feature.VOID_WIDENING),  # of plans
        *(Feature.FUNCTIONS, Feature.FUNCTION_TAGS, Feature.POLICIES),  # of other kinds
        *(Feature.VIEWS, Feature.VIEW_COLUMN_COMMENTS),
    }
    assert {feature for feature, _ in declared_features(EVERYTHING)} == {*OPEN_SOURCE.refused} - of_others


def test_the_rule_of_the_page_works(project: Path, delta_engine: CommandLine) -> None:
    page = (DOCS / "rules.md").read_text("utf-8")
    (project / "conf" / "house_rules.py").write_text(
        page.split("```python\n# conf/house_rules.py\n")[1].split("```")[0]
    )
    use(project, '"conf.house_rules:NoFloatMoney"')
    assert delta_engine("-e", "local", "validate").code == 0
    orders = project / "conf" / "models" / "orders.yml"
    orders.write_text(orders.read_text().replace("decimal(18,2)", "double"))
    result = delta_engine("-e", "local", "validate")
    assert result.code == 3
    assert "column amount: an amount of money is a decimal. Declare it as decimal(18,2)." in result.stderr
