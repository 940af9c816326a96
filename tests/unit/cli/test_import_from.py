"""`import --from`: models of scripts without a catalog, what is written, kept as a variable, and left out."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.cases.documentation import DOCS, blocks, console_steps, simple_commands
from tests.cases.tpcds import columns_of, tpcds_script
from tests.projects.catalog_project import CatalogProject
from tests.projects.commandline import CommandLine, Result

STATEMENTS = (
    "CREATE TABLE dev.silver.customers (id BIGINT NOT NULL COMMENT 'key', name VARCHAR(10), "
    "CONSTRAINT pk PRIMARY KEY (id)) USING delta COMMENT 'Every customer' TBLPROPERTIES ('team' = 'crm')",
    "CREATE TABLE dev.silver.orders (id BIGINT NOT NULL, customer BIGINT, day DATE) USING delta CLUSTER BY (id)",
    "ALTER TABLE dev.silver.orders ADD CONSTRAINT fk FOREIGN KEY (customer) REFERENCES dev.silver.customers (id)",
    "ALTER TABLE dev.silver.orders ADD CONSTRAINT recent CHECK (day > DATE '2020-01-01')",
    "ALTER TABLE dev.silver.customers SET TAGS ('layer' = 'silver')",
    "ALTER TABLE dev.silver.customers ALTER COLUMN name SET TAGS ('pii' = 'yes')",
    "GRANT SELECT ON TABLE dev.silver.orders TO `readers`",
    "CREATE VIEW dev.silver.recent AS SELECT id FROM dev.silver.orders",
)


class Scripts:
    """Scripts in the folder `ddl` of a project, and the command that imports them."""

    def __init__(self, project: CatalogProject, delta_engine: CommandLine) -> None:
        self.project = project
        self._delta_engine = delta_engine
        config = project.config
        config.write_text(
            config.read_text()
            .replace("conf/models/*.yml", "conf/models/**/*.yml")
            .replace("{catalog: dev}", "{catalog: dev, bucket: acme-dev, env: dev}")
        )

    def write(self, text: str, name: str = "1.sql") -> None:
        path = Path("ddl") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def imports(self, *options: str) -> Result:
        return self._delta_engine("-e", "dev", "import", "--from", "ddl", *options)


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine) -> Scripts:
    return Scripts(CatalogProject(tmp_path, monkeypatch, delta_engine), delta_engine)


@pytest.mark.parametrize("per", ["", "--per table", "--per schema"])
def test_the_plan_is_empty_against_tables_made_from_the_same_scripts(per: str, scripts: Scripts) -> None:
    scripts.project.by_hand(*STATEMENTS)
    scripts.write(";\n".join(STATEMENTS))
    to = "conf/models" if per else "conf/models/all.yml"
    imported = scripts.imports("--to", to, *per.split())
    assert imported.code == 0, imported.stderr
    assert "note: 3 models written to " in imported.stderr
    assert "next: `delta-engine -e dev plan` compares them with the catalog" in imported.stderr.replace(
        "\n  ", " "
    )
    planned = scripts.project.run("plan --detailed-exitcode")
    assert planned.code == 0, planned.stdout + planned.stderr
    again = scripts.imports("--to", to + ("" if per else ".new"), *per.split())
    assert "note: 3 resources declared already, and not imported again" in again.stderr


def test_variables_are_kept(scripts: Scripts) -> None:
    scripts.write(
        "CREATE TABLE ${cat}.silver.t (a INT) LOCATION 's3://${bucket}/t' TBLPROPERTIES ('env' = '{{ env }}');\n"
        "CREATE TABLE IDENTIFIER(:cat || '.silver.u') (a INT COMMENT 'in ${env}');\n"
        "CREATE VIEW ${cat}.silver.v AS SELECT a FROM ${cat}.silver.u;\n"
        "GRANT SELECT ON TABLE ${cat}.silver.t TO `readers-${env}`; -- ${unused}\n"
    )
    imported = scripts.imports("--var", "cat=${catalog}")
    assert imported.code == 0, imported.stderr
    for line in (
        "location: s3://${bucket}/t",
        "env: ${env}",
        "readers-${env}: [SELECT]",
        "{name: a, type: int, comment: in dev}",
        "query: SELECT a FROM ${catalog}.silver.u",
    ):
        assert line in imported.stdout
    assert imported.stdout.count("catalog: ${catalog}") == 3
    assert scripts.imports("--var", "cat=${catalog}", "--to", "conf/models/all.yml").code == 0
    assert scripts.project.run("validate").code == 0
    literal = scripts.imports("--var", "cat=other", "--format", "python", "--var", "region=eu")
    assert "note: --var region is not a variable of the sources" in literal.stderr
    assert literal.stdout.count('catalog_name="other"') == 3
    assert 'location="s3://${bucket}/t"' in literal.stdout


def test_the_place_behind_the_command_takes_variables(scripts: Scripts) -> None:
    scripts.write("CREATE TABLE t (a INT); ALTER TABLE ${catalog}.silver.t SET TAGS ('x' = 'y');")
    assert scripts.imports("dev.silver").code == 5
    imported = scripts.imports("${catalog}.silver")
    assert imported.code == 0, imported.stderr
    assert "catalog: ${catalog}" in imported.stdout


def test_a_variable_without_a_value_is_refused_before_anything_is_written(scripts: Scripts) -> None:
    scripts.write("-- ${comments} do not count\n\nCREATE TABLE ${var.cat}.silver.t (a INT);")
    refused = scripts.imports("--to", "conf/models/all.yml")
    assert refused.code == 3
    message = " ".join(refused.stderr.split())
    assert (
        "ddl/1.sql:3: variable 'var.cat' has no value. Add --var cat=VALUE, or --var 'cat=${NAME}'" in message
    )
    assert not Path("conf/models/all.yml").exists()


FAILING_TEMPLATES = {
    "{% for x in %}": "ddl/1.sql:1: its template fails: ",
    "{{ env.region }}": "its template fails: ",
    "{{ env | upper }}": "its template changes the case of a variable. Render it first",
    "{{ 1 / 0 }}": "its template fails: division by zero",
    "{{ ref(env) }}": "its template fails: it calls ref, which only the tool of the template knows. Render it first",
}


@pytest.mark.parametrize("template", FAILING_TEMPLATES)
def test_a_template_that_fails_leaves_out_its_file(template: str, scripts: Scripts) -> None:
    scripts.write(f"CREATE TABLE dev.silver.t (a INT COMMENT '{template}');")
    scripts.write("CREATE TABLE dev.silver.u (a INT);", "2.sql")
    imported = scripts.imports()
    assert imported.code == 5
    assert FAILING_TEMPLATES[template] in " ".join(imported.stderr.split())
    assert "name: u" in imported.stdout
    assert "name: t" not in imported.stdout


def test_templates_see_the_values_of_variables(scripts: Scripts) -> None:
    scripts.write(
        "{% if env == 'dev' %}CREATE TABLE {{ catalog }}.silver.t (a INT);{% else %}"
        "CREATE TABLE {{ catalog }}.silver.u (a INT);{% endif %}"
    )
    assert "name: t" in scripts.imports().stdout


def test_what_rules_refuse_is_left_out_and_the_rest_is_written(scripts: Scripts) -> None:
    scripts.write(
        "CREATE TABLE silver.ok (a INT);\nCREATE TABLE silver.bad (a INT, b INT) CLUSTER BY (zz);\n"
        "CREATE TABLE silver.query AS SELECT 1 AS a;"
    )
    imported = scripts.imports("dev", "--to", "conf/models", "--per", "table")
    assert imported.code == 5
    message = " ".join(imported.stderr.split())
    assert "left out: ddl/1.sql:2: table dev.silver.bad" in message
    assert "left out: ddl/1.sql:3: CREATE TABLE silver.query AS SELECT 1 AS a: its columns follow" in message
    assert [path.name for path in Path("conf/models").rglob("*.yml")] == ["ok.yml"]


def test_files_are_never_overwritten_and_nothing_is_half_written(scripts: Scripts) -> None:
    scripts.write("CREATE TABLE dev.silver.a (a INT); CREATE TABLE dev.silver.b (a INT);")
    (Path("conf/models") / "silver").mkdir()
    (Path("conf/models") / "silver" / "b.yml").write_text("tables: []\n")
    refused = scripts.imports("--to", "conf/models", "--per", "table")
    assert refused.code == 3
    assert "conf/models/silver/b.yml exists, and importing never overwrites files" in " ".join(
        refused.stderr.split()
    )
    assert not (Path("conf/models") / "silver" / "a.yml").exists()


def test_nothing_is_written_if_one_file_cannot_be(scripts: Scripts) -> None:
    scripts.write("CREATE TABLE dev.a.t (a INT); CREATE TABLE dev.b.t (b INT);")
    (Path("conf/models") / "b").write_text("no folder")
    failed = scripts.imports("--to", "conf/models", "--per", "table")
    assert (failed.code, failed.stderr) == (
        1,
        "failed: conf/models/b/t.yml cannot be used: Not a directory\n",
    )
    assert [path.name for path in Path("conf/models").rglob("*")] == ["b"]


WRONG = {
    ("--from", "nowhere"): (3, "--from nowhere does not exist. Name a file or a folder."),
    ("--from", "conf"): (3, "--from conf has no scripts (.sql, .ddl, .hql, .j2) and no data contracts"),
    ("--from", "ddl", "a.b.c"): (
        3,
        "'a.b.c' is not a catalog or a schema. Write catalog or catalog.schema",
    ),
    ("--from", "ddl", "--var", "env"): (3, "--var env is not NAME=TEXT"),
    ("--from", "ddl", "--var", "a=${nope}"): (3, "variable 'nope'"),
    ("--from", "ddl"): (3, "--from ddl declares no tables, views or functions"),
    ("--from", "ddl", "--per", "table"): (3, "--per writes files into a folder"),
    ("--from", "ddl", "--to", "conf"): (3, "conf is a folder. Add --per table or --per schema"),
    (): (3, "name what to import: CATALOG"),
    ("dev", "--var", "a=b"): (3, "--var and --checks need --from. Add --from, or remove them"),
}


@pytest.mark.parametrize("options", WRONG, ids=" ".join)
def test_wrong_commands(options: tuple[str, ...], scripts: Scripts, delta_engine: CommandLine) -> None:
    scripts.write("SELECT 1;")
    refused = delta_engine("-e", "dev", "import", *options)
    code, message = WRONG[options]
    assert (refused.code, message in " ".join(refused.stderr.split())) == (code, True), refused.stderr


def test_unqualified_names_need_a_place(scripts: Scripts) -> None:
    scripts.write("CREATE TABLE t (a INT);")
    refused = scripts.imports()
    assert refused.code == 3
    assert "t has no catalog. Name the default catalog and schema" in " ".join(refused.stderr.split())
    assert "name: t" in scripts.imports("dev.silver").stdout


def test_the_tables_of_tpc_ds_in_one_command(scripts: Scripts) -> None:
    scripts.write(tpcds_script("${catalog}.tpcds"))
    imported = scripts.imports("--to", "conf/models", "--per", "table")
    assert imported.code == 0, imported.stderr
    files = {path.stem: path.read_text("utf-8") for path in Path("conf/models/tpcds").iterdir()}
    assert {name: text.count("- {name:") for name, text in files.items()} == {
        key.removeprefix("dev.tpcds."): columns for key, columns in columns_of("dev.tpcds")
    }
    assert scripts.project.run("validate").stdout == "dev: configuration and 24 models are valid\n"


def test_the_page_of_imports_from_files_shows_what_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine
) -> None:
    page = [*blocks(DOCS / "adopting.md")]
    shown = [block for block in page if block.title]
    scripts = Scripts(CatalogProject(tmp_path, monkeypatch, delta_engine), delta_engine)
    for block in shown:
        if not block.title.startswith("conf/"):
            Path(block.title).parent.mkdir(exist_ok=True)
            Path(block.title).write_text(block.text, "utf-8")
    terminals = [block for block in page if block.language == "console"]
    for command, printed in (step for block in terminals for step in console_steps(block)):
        if "--from" not in command:
            continue  # tests/unit/test_documented_commands.py runs the others
        result = delta_engine(*shlex.split(command)[1:])
        output = re.sub(r"\s+", " ", result.stderr + result.stdout)
        for part in re.sub(r"\s+", " ", printed).split("… note"):
            assert part.strip().removesuffix(" …") in output
    for block in shown:
        if block.title.startswith("conf/"):
            assert Path(block.title).read_text("utf-8") == block.text
    Path("target").mkdir()
    Path("target/manifest.json").write_text(json.dumps(MANIFEST))
    for block in page:
        for program, *arguments in simple_commands(block) if block.language == "sh" else ():
            if program == "delta-engine" and {"--from", "contract"} & {*arguments}:
                done = delta_engine(*arguments)
                assert done.code in (0, 5), (arguments, done.stderr)
    assert scripts.project.run("validate").code == 0


MODEL = """\
tables:
  - catalog: ${catalog}
    schema: silver
    name: customers
    columns: [{name: id, type: bigint, nullable: false}]
    primary_key: [id]
  - catalog: ${catalog}
    schema: silver
    name: orders
    comment: Orders
    columns: [{name: id, type: bigint, nullable: false, tags: {pii: ""}}, {name: customer, type: bigint}]
    primary_key: [id]
    foreign_keys: [{columns: [customer], references: customers}]
    checks: {positive: id > 0}
"""


def test_a_contract_of_declared_tables_is_imported_again(scripts: Scripts, delta_engine: CommandLine) -> None:
    scripts.project.models.write_text(MODEL)
    printed = delta_engine("-e", "dev", "contract", "orders")
    assert "customers.id" in printed.stdout
    written = delta_engine("-e", "dev", "contract", "silver.*", "--to", "contracts/silver.odcs.yaml")
    assert (written.code, "contracts/silver.odcs.yaml written" in written.stderr) == (0, True), written.stderr
    refused = delta_engine("-e", "dev", "contract", "silver.*", "--to", "contracts/silver.odcs.yaml")
    assert "exists, and a contract never overwrites files" in " ".join(refused.stderr.split())
    scripts.project.models.unlink()
    again = delta_engine(
        "-e", "dev", "import", "--from", "contracts", "--checks", "--to", "conf/models/tables.yml"
    )
    assert again.code == 0, again.stderr
    text = Path("conf/models/tables.yml").read_text("utf-8")
    for part in (
        "comment: Orders",
        "{columns: [customer], references: customers}",
        "positive: id > 0",
        "{pii: ",
    ):
        assert part in text


MANIFEST = {
    "metadata": {"dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v12.json"},
    "nodes": {
        "model.shop.totals": {
            "resource_type": "model",
            "database": "dev",
            "schema": "silver",
            "name": "totals",
            "description": "Totals",
            "config": {"materialized": "table", "contract": {"enforced": True}, "grants": {"select": ["bi"]}},
            "columns": {
                "id": {
                    "name": "id",
                    "data_type": "bigint",
                    "constraints": [{"type": "not_null"}, {"type": "primary_key"}],
                    "databricks_tags": {"pii": "no"},
                }
            },
        }
    },
}


def test_a_model_of_dbt_is_planned_beside_dbt(scripts: Scripts, delta_engine: CommandLine) -> None:
    scripts.project.by_hand("CREATE TABLE dev.silver.totals (id BIGINT NOT NULL, more INT) USING delta")
    Path("manifest.json").write_text(json.dumps(MANIFEST))
    imported = delta_engine("-e", "dev", "import", "--from", "manifest.json", "--to", "conf/models/dbt.yml")
    assert imported.code == 0, imported.stderr
    planned = scripts.project.run("plan")
    assert planned.code == 0, planned.stderr
    for part in ("COMMENT", "Totals", "pii", "bi", "PRIMARY KEY"):
        assert part.lower() in planned.stdout.lower(), planned.stdout
    assert "more" not in planned.stdout


def test_a_contract_of_no_table_is_refused(scripts: Scripts, delta_engine: CommandLine) -> None:
    scripts.project.models.write_text(
        MODEL.replace("schema: silver", "schema: gold", 1).replace("es: c", "es: gold.c")
    )
    for tables, message in (
        ("nothing", "unknown table 'nothing'"),
        ("*", "the tables are in several schemas: dev.gold, dev.silver"),
    ):
        refused = delta_engine("-e", "dev", "contract", tables)
        assert refused.code == 3
        assert message in " ".join(refused.stderr.split()), refused.stderr


CONTRACT_HEAD = """\
apiVersion: {version}
kind: DataContract
id: shop
version: 1.0.0
status: active
servers: [{{server: dev, type: databricks, catalog: dev, schema: silver}}]
schema:
"""
CONTRACTS = {
    "physical types": CONTRACT_HEAD.format(version="v3.0.2")
    + """\
  - name: payments
    physicalType: table
    description: One row per payment
    tags: [finance]
    properties:
      - {name: id, logicalType: integer, physicalType: BIGINT, primaryKey: true, primaryKeyPosition: 1}
      - {name: amount, logicalType: number, physicalType: "DECIMAL(18,2)", required: true, description: in euros}
      - {name: paid_on, logicalType: date, physicalType: DATE, partitioned: true, partitionKeyPosition: 1}
""",
    "logical types": CONTRACT_HEAD.format(version="v3.1.0")
    + """\
  - name: events
    properties:
      - {name: at, logicalType: timestamp}
      - name: payload
        logicalType: object
        properties:
          - {name: kind, logicalType: string, description: click or view}
          - {name: tags, logicalType: array, items: {logicalType: string}}
      - {name: size, logicalType: integer, logicalTypeOptions: {format: i64}}
""",
    "keys and rules": CONTRACT_HEAD.format(version="v3.1.0")
    + """\
  - name: customers
    properties:
      - {name: id, physicalType: bigint, primaryKey: true}
      - name: segment
        physicalType: string
        tags: ["pii:no"]
        quality: [{name: segments, metric: invalidValues, arguments: {validValues: [a, b]}, mustBe: 0}]
  - name: orders
    properties:
      - {name: id, physicalType: bigint, required: true}
      - {name: customer, physicalType: bigint, relationships: [{to: customers.id}]}
""",
}


@pytest.mark.parametrize("name", CONTRACTS)
def test_tables_that_a_sync_makes_of_a_contract_are_imported_as_the_contract_says(
    name: str, scripts: Scripts, delta_engine: CommandLine
) -> None:
    Path("shop.odcs.yaml").write_text(CONTRACTS[name], "utf-8")
    source = ("import", "--from", "shop.odcs.yaml", "--checks")
    declared = delta_engine("-e", "dev", *source)
    assert delta_engine("-e", "dev", *source, "--to", "conf/models/shop.yml").code == 0
    synced = scripts.project.run("sync --yes")
    assert synced.code == 0, synced.stderr
    assert scripts.project.run("plan --detailed-exitcode").code == 0
    real = delta_engine("-e", "dev", "import", "dev.silver").stdout
    assert [line for line in real.splitlines() if " segments: " not in line] == [
        line for line in declared.stdout.splitlines() if " segments: " not in line
    ]
    assert real.count(" segments: ") == declared.stdout.count(
        " segments: "
    )  # Delta spells checks with blanks


def test_a_manifest_without_contracts_says_what_is_missing(
    scripts: Scripts, delta_engine: CommandLine
) -> None:
    node = {"resource_type": "model", "name": "a", "config": {"materialized": "table"}}
    url = "https://schemas.getdbt.com/dbt/manifest/v12.json"
    manifest = {"metadata": {"dbt_schema_version": url}, "nodes": {"model.shop.a": node}}
    Path("manifest.json").write_text(json.dumps(manifest))
    result = delta_engine("-e", "dev", "import", "--from", "manifest.json")
    assert (result.code, result.stdout) == (3, "")
    assert "note: left out, without an enforced contract: 1 model of dbt" in result.stderr
