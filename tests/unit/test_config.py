"""Configuration and model files: what they may say, and one message with file and line for the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from delta_engine.config.documents import MAX_DEPTH, read_document
from delta_engine.config.model_files import load_models
from delta_engine.config.settings import BackendType, SqlWarehouse, environments, load_settings
from delta_engine.errors import ConfigError, DeltaEngineError
from delta_engine.models import Column, PrimaryKey, Table
from delta_engine.orchestrate.project import load_project
from delta_engine.policy import Allowance, DestructiveKind

CONFIG = """\
environment: dev
backend: {type: oss}
variables: {catalog: dev, n: 7}
models:
  yaml: ["conf/models/*.yml"]
"""

MODELS = """\
tables:
  - catalog: ${catalog}
    schema: silver
    name: orders
    columns:
      - {name: id, type: bigint, nullable: false}
"""

TPCH = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"]

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes a file of the project; config and models are there already."""

    def put(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), "utf-8")
        return path

    put("conf/dev.yml", CONFIG)
    put("conf/models/m.yml", MODELS)
    return put


def load(project: Path) -> tuple[Table, ...]:
    """Load and check the project's dev environment, as every command does."""
    return load_project(project / "conf", "dev").models


def refusal(project: Path) -> str:
    """Return the message with which loading is refused; paths relative to the project."""
    with pytest.raises(DeltaEngineError) as caught:
        load(project)
    return str(caught.value).replace(f"{project}/", "")


def test_a_small_project(write: Write, tmp_path: Path) -> None:
    assert load(tmp_path) == (Table("dev", "silver", "orders", [Column("id", "bigint", is_nullable=False)]),)


def test_columns_of_a_table_that_somebody_else_owns_need_no_type(write: Write, tmp_path: Path) -> None:
    partly = """\
        tables:
          - catalog: ${catalog}
            schema: silver
            name: orders
            manages: [comments]
            columns:
              - {name: id, comment: Order ID}
        """
    write("conf/models/m.yml", partly)
    (model,) = load(tmp_path)
    assert [(column.name, column.comment) for column in model.columns] == [("id", "Order ID")]
    write("conf/models/m.yml", partly.replace("manages: [comments]", "comment: x"))
    message = (
        "conf/models/m.yml:7: table ${catalog}.silver.orders: column 'id' has no type. Write one, such as"
    )
    assert refusal(tmp_path).startswith(message)


def test_all_settings(write: Write, tmp_path: Path) -> None:
    write(
        "conf/dev.yml",
        """\
        environment: dev
        backend: {type: oss, names: catalog, warehouse: "w-${n}", spark: {spark.a: true, spark.b: "${n}"}}
        variables: {catalog: dev, n: 1.10}
        models: {yaml: ["${catalog}/*.yml"], python: ["a.b:c"]}
        policy: {allow: ["drop_column:silver.*"], create_schemas: true}
        apply: {parallelism: 8}
        defaults: {table_properties: {a.b: 7}}
        """,
    )
    settings = load_settings(tmp_path / "conf", "dev")
    assert settings.backend is BackendType.CATALOG
    assert settings.warehouse == tmp_path / "w-1.10"
    assert dict(settings.spark) == {"spark.a": "true", "spark.b": "1.10"}
    assert settings.yaml_models == ("dev/*.yml",)
    assert settings.python_models == ("a.b:c",)
    assert settings.policy.allow == (Allowance(DestructiveKind.DROP_COLUMN, "silver.*"),)
    assert settings.policy.create_schemas
    assert settings.parallelism == 8
    assert dict(settings.default_table_properties) == {"a.b": "7"}
    assert environments(tmp_path / "conf") == ["dev"]


def test_the_settings_of_a_sql_warehouse(write: Write, tmp_path: Path) -> None:
    write(
        "conf/dev.yml",
        """\
        environment: dev
        backend:
          type: databricks-warehouse
          warehouse_id: "${warehouse}"
          profile: dev
          statement_timeout_seconds: 600
        variables: {warehouse: a1b2}
        models: {yaml: ["*.yml"]}
        state_backend: {type: databricks, databricks: {schema: dev.delta_engine}}
        """,
    )
    settings = load_settings(tmp_path / "conf", "dev")
    assert settings.backend.is_databricks
    assert settings.sql_warehouse == SqlWarehouse(
        warehouse_id="a1b2", profile="dev", statement_timeout_seconds=600
    )


@pytest.mark.parametrize(
    ("replace", "by", "message"),
    [
        ("variables:", "varables:", "conf/dev.yml:3: unknown key 'varables'. Did you mean 'variables'?"),
        ("type: oss", "type: os", "conf/dev.yml:2: unknown backend type 'os'. Did you mean 'oss'?"),
        (
            "type: oss",
            "type: oss, names: paths",
            "conf/dev.yml:2: unknown backend names 'paths'. Did you mean 'path'?",
        ),
        (
            "type: oss",
            "type: databricks, warehouse: x",
            "conf/dev.yml:2: warehouse is for type: oss only. Remove it, or change the type.",
        ),
        (
            "type: oss",
            "type: oss, warehouse_id: x",
            "conf/dev.yml:2: warehouse_id is for type: databricks-warehouse only. Remove it, or change the type.",
        ),
        (
            "type: oss",
            "type: databricks-warehouse",
            "conf/dev.yml:2: backend databricks-warehouse needs a warehouse_id. Add the id of a SQL warehouse; ",
        ),
        (
            "type: oss",
            "type: databricks-warehouse, warehouse_id: a1",
            "conf/dev.yml:1: backend databricks-warehouse needs a state_backend: ",
        ),
        ("type: oss", "tpye: oss", "conf/dev.yml:2: unknown key 'tpye'. Did you mean 'type'?"),
        (
            "environment: dev",
            "environment: prod",
            "conf/dev.yml:1: the file is for 'dev', but says environment: 'prod'. Name both alike.",
        ),
        (
            "variables: {catalog: dev, n: 7}",
            "apply: {parallelism: 0}",
            "conf/dev.yml:3: apply.parallelism: Expected `int` >= 1.",
        ),
        (
            "variables: {catalog: dev, n: 7}",
            "policy:\n  allow:\n    - drop_column\n    - drop_everything:*",
            "conf/dev.yml:6: 'drop_everything' is not one of: drop_column, drop_table, drop_row_filter, "
            "drop_column_mask, drop_constraint.",
        ),
        (
            "variables: {catalog: dev, n: 7}",
            "variables: {catalog: [dev]}",
            "conf/dev.yml:3: 'catalog' must be a text. Write it in quotes.",
        ),
        (
            "variables: {catalog: dev, n: 7}",
            "variables: {catlog: dev}",
            "conf/models/m.yml:2: table ${catalog}.silver.orders: unknown variable 'catalog'. "
            "Did you mean 'catlog'?",
        ),
        (
            "conf/models/*.yml",
            "${x}/*.yml",
            "conf/dev.yml:5: unknown variable 'x'. Known: catalog, n.",
        ),
        (
            "conf/models/*.yml",
            "conf/nope/*.yml",
            "conf/dev.yml:1: no model file matches 'conf/nope/*.yml'. The pattern is relative to ",
        ),
        (
            'yaml: ["conf/models/*.yml"]',
            "yaml: []",
            "conf/dev.yml:1: it names no models. List them under models.yaml or models.python.",
        ),
        (
            CONFIG,
            "- a\n",
            "conf/dev.yml:1: a configuration is a mapping of keys.",
        ),
        (
            CONFIG,
            "environment: dev\n",
            "conf/dev.yml:1: Object missing required field `backend`.",
        ),
        ("backend: {", "backend: {{", "conf/dev.yml:"),
        ("variables:", "environment: x\nvariables:", "conf/dev.yml:3: key 'environment' stands here twice."),
        ("environment: dev", "environment: ~", "conf/dev.yml:1: environment: Expected `str`, got `null`."),
    ],
)
def test_bad_configuration(write: Write, tmp_path: Path, replace: str, by: str, message: str) -> None:
    assert replace in CONFIG
    write("conf/dev.yml", CONFIG.replace(replace, by))
    assert refusal(tmp_path).startswith(message)


@pytest.mark.parametrize(
    ("replace", "by", "message"),
    [
        (
            "    name: orders",
            "    nmae: orders",
            "conf/models/m.yml:4: table ${catalog}.silver.?: unknown key 'nmae'. Did you mean 'name'?",
        ),
        (
            "type: bigint, nullable: false",
            "type: money",
            "conf/models/m.yml:6: table ${catalog}.silver.orders, column id: type 'money' cannot be used: no "
            "such SQL type. Use a Spark SQL type that Delta stores, such as bigint or decimal(18,2).",
        ),
        (
            "type: bigint",
            "type: decimal(18,2)",
            "conf/models/m.yml:6: table ${catalog}.silver.orders: unknown key '2)'. A comma ends a value here: "
            'write it in quotes, as in "decimal(18,2)".',
        ),
        (
            "nullable: false",
            "nullable: maybe",
            "conf/models/m.yml:6: table ${catalog}.silver.orders: columns[0].nullable: Expected `bool`, "
            "got `str`.",
        ),
        (
            "    columns:\n      - {name: id, type: bigint, nullable: false}",
            "    columns: []",
            "conf/models/m.yml:2: table dev.silver.orders: it has no columns. Declare at least one.",
        ),
        (
            "nullable: false}",
            "nullable: false}\n    primary_key: {columns: [id], nam: x}",
            "conf/models/m.yml:7: table ${catalog}.silver.orders: unknown key 'nam'. Did you mean 'name'?",
        ),
        (
            "nullable: false}",
            "nullable: false}\n      - {name: ID, type: int}",
            "conf/models/m.yml:7: table dev.silver.orders, column ID: the table has this column twice",
        ),
        (
            "nullable: false}",
            "nullable: true}\n    primary_key: [id]",
            "conf/models/m.yml:6: table dev.silver.orders, column id: primary key columns (id) are nullable.",
        ),
        (
            "nullable: false}",
            "nullable: true}\n    properties: {a: {b: c}}",
            "conf/models/m.yml:7: table ${catalog}.silver.orders: 'a' must be a text. Write it in quotes.",
        ),
        (
            "name: orders",
            "name: or ders",
            "conf/models/m.yml:2: table dev.silver.or ders: table name 'or ders' has a character",
        ),
        (MODELS, "", "conf/models/m.yml:1: a model file holds the keys tables and schemas"),
        (
            MODELS,
            "tables: 7",
            "conf/models/m.yml:1: a model file holds the keys tables and schemas",
        ),
        (MODELS, "tables: [7]", "conf/models/m.yml:1: Expected `object`, got `int`."),
        ("tables:", "\t- tables", "conf/models/m.yml:1: it is not valid YAML: "),
        ("tables:", "tables: !!python/object:os.system x\ny:", "conf/models/m.yml:1: it is not valid YAML: "),
    ],
)
def test_bad_models(write: Write, tmp_path: Path, replace: str, by: str, message: str) -> None:
    assert replace in MODELS
    write("conf/models/m.yml", MODELS.replace(replace, by))
    assert refusal(tmp_path).startswith(message)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("cluster_by: id", "cluster_by is a list of columns, or AUTO. Write [id]."),
        ("manages: [comments, colums]", "unknown part 'colums'. Did you mean 'columns'?"),
        (
            "manages: [everything]",
            "unknown part 'everything'. Known: clustering, columns, comments, constraints, grants, owner, "
            "properties, row_filters, tags.",
        ),
        ("grants: {analysts: SELECT}", "the grants of 'analysts' are a list. Write [SELECT]."),
        ("foreign_keys: [{columns: [id]}]", "foreign_keys[0]: Object missing required field `references`."),
        (
            "foreign_keys: [{columns: [id], reference: x}]",
            "unknown key 'reference'. Did you mean 'references'?",
        ),
        ("checks: {positive: 7}", "checks[...]: Expected `str`, got `int`."),
        ("tags: {pii: [a]}", "'pii' must be a text. Write it in quotes."),
        ("row_filter: {functon: f}", "unknown key 'functon'. Did you mean 'function'?"),
        ("partitoned_by: [id]", "unknown key 'partitoned_by'. Did you mean 'partitioned_by'?"),
    ],
)
def test_bad_keys_of_tables(write: Write, tmp_path: Path, key: str, message: str) -> None:
    write("conf/models/m.yml", f"{MODELS}    {key}\n")
    assert refusal(tmp_path) == f"conf/models/m.yml:7: table ${{catalog}}.silver.orders: {message}"


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (
            "default: null",
            'default says nothing. Write "NULL" in quotes for that SQL expression, or leave the key out.',
        ),
        ("default: [1]", "'default' must be a text. Write it in quotes."),
        (
            "identity: yes",
            "identity is true, or a mapping with start, step and always, not 'yes'. Write true.",
        ),
        ("identity: {strat: 1}", "unknown key 'strat'. Did you mean 'start'?"),
        ("mask: {columns: [a]}", "unknown key 'columns'. Did you mean 'using_columns'?"),
        ("tags: [pii]", "columns[0].tags: Expected `object`, got `array`."),
    ],
)
def test_bad_keys_of_columns(write: Write, tmp_path: Path, key: str, message: str) -> None:
    write("conf/models/m.yml", MODELS.replace("nullable: false", key))
    assert refusal(tmp_path) == f"conf/models/m.yml:6: table ${{catalog}}.silver.orders: {message}"


def test_several_models_of_one_table(write: Write, tmp_path: Path) -> None:
    write("conf/models/n.yml", MODELS.replace("orders", "ORDERS"))
    assert refusal(tmp_path) == (
        "conf/models/n.yml:2: table dev.silver.ORDERS: it is declared twice, first at conf/models/m.yml:2. "
        "Remove one of the two."
    )


def test_all_refusals_are_collected(write: Write, tmp_path: Path) -> None:
    write("conf/models/n.yml", MODELS.replace("bigint", "money").replace("orders", "n"))
    write("conf/models/o.yml", "x")
    write("conf/models/p.yml", MODELS.replace("catalog}", "nope}"))
    assert [line.split(":")[0] for line in refusal(tmp_path).splitlines()] == [
        "conf/models/n.yml",
        "conf/models/o.yml",
        "conf/models/p.yml",
    ]


def test_awkward_text_is_valid_and_exact(write: Write, tmp_path: Path) -> None:
    write(
        "conf/models/m.yml",
        """\
        tables:
          - catalog: ${catalog}
            schema: silver
            name: "t_${n}"
            comment: "it's ${x} a \\\\ back\\nslash 🎉"
            columns:
              - {name: no, type: int, comment: '${catalog} "q"'}
            properties: {a: true, b: 7, c: 1.10, d: "${n}", e: "$${n}", f: yes, g: "True"}
            primary_key: {name: pk, columns: [no], rely: true}
        """.replace("type: int,", "type: int, nullable: false,"),
    )
    (table,) = load(tmp_path)
    assert table.table_name == "t_7"
    assert table.comment == "it's ${x} a \\ back\nslash 🎉"
    assert table.columns[0].name == "no"
    assert table.columns[0].comment == '${catalog} "q"'
    assert dict(table.table_properties) == {
        "a": "true",
        "b": "7",
        "c": "1.10",
        "d": "7",
        "e": "${n}",
        "f": "yes",
        "g": "True",
    }
    assert table.primary_key == PrimaryKey(["no"], "pk", rely=True)


def test_default_properties_reach_every_model(write: Write, tmp_path: Path) -> None:
    write("conf/dev.yml", CONFIG + "defaults: {table_properties: {a: 1, b: 2}}\n")
    write("conf/models/m.yml", MODELS + "    properties: {b: own}\n")
    assert dict(load(tmp_path)[0].effective_table_properties) == {"a": "1", "b": "own"}


@pytest.mark.parametrize(
    ("source", "attribute"),
    [
        ("tables = [TABLE]", "tables"),
        ("tables = TABLE", "tables"),
        ("def tables(variables): return (TABLE,) if variables['catalog'] == 'dev' else ()", "tables"),
    ],
)
def test_python_models(write: Write, tmp_path: Path, source: str, attribute: str) -> None:
    module = f"models_{abs(hash(tmp_path))}"
    write(
        f"{module}.py",
        "from delta_engine import Column, Table\n"
        "TABLE = Table('${catalog}', 'silver', 'orders', [Column('id', 'int')], comment='${x}')\n" + source,
    )
    write("conf/dev.yml", CONFIG.replace('yaml: ["conf/models/*.yml"]', f'python: ["{module}:{attribute}"]'))
    (table,) = load(tmp_path)
    assert table == Table("dev", "silver", "orders", [Column("id", "int")], comment="${x}")
    assert str(table.declared_at) == f"{module}.py:2"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("tables = [7]", "conf/dev.yml:1: '{m}:tables' gives a int, not a Table or Schema."),
        ("tables = 7", "conf/dev.yml:1: '{m}:tables' gives a int, not a Table or Schema."),
        ("x = 1", "conf/dev.yml:1: loading the models '{m}:tables' failed: AttributeError: module "),
        ("x = 1\n1 / 0", "{m}.py:2: loading the models '{m}:tables' failed: ZeroDivisionError: division by"),
        (
            "from delta_engine import Column, Table\ntables = Table('c', 's', 't', [Column('a', 'money')])",
            "{m}.py:2: table c.s.t, column a: type 'money' cannot be used",
        ),
    ],
)
def test_bad_python_models(write: Write, tmp_path: Path, source: str, message: str) -> None:
    module = f"models_{abs(hash(tmp_path))}"
    write(f"{module}.py", source)
    write("conf/dev.yml", CONFIG.replace('yaml: ["conf/models/*.yml"]', f'python: ["{module}:tables"]'))
    assert refusal(tmp_path).startswith(message.replace("{m}", module))


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("tables", "conf/dev.yml:1: 'tables' is not of the form module:attribute."),
        ("no_such_module:x", "conf/dev.yml:1: loading the models 'no_such_module:x' failed: ModuleNotFound"),
    ],
)
def test_bad_python_references(write: Write, tmp_path: Path, reference: str, message: str) -> None:
    write("conf/dev.yml", CONFIG.replace('yaml: ["conf/models/*.yml"]', f'python: ["{reference}"]'))
    assert refusal(tmp_path).startswith(message)


def test_an_environment_without_a_file(write: Write, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown environment 'dve': .* Did you mean 'dev'\?"):
        load_settings(tmp_path / "conf", "dve")
    with pytest.raises(ConfigError, match=r"`delta-engine init` makes a project\."):
        load_settings(tmp_path / "nope", "dev")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="it cannot be read"):
        read_document(tmp_path / "nope.yml")
    latin = tmp_path / "latin.yml"
    latin.write_bytes("ä: ö".encode("latin-1"))
    with pytest.raises(ConfigError, match="it cannot be read"):
        read_document(latin)


def test_documents_that_would_exhaust_memory_are_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.yml"
    layers = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    layers += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    bomb.write_text("\n".join(layers))
    with pytest.raises(ConfigError, match="too large or too deep"):
        read_document(bomb)
    deep = tmp_path / "deep.yml"
    deep.write_text("[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2))
    with pytest.raises(ConfigError, match="too large or too deep"):
        read_document(deep)


def test_globs_select_models(write: Write, tmp_path: Path) -> None:
    write("conf/models/n.yml", MODELS.replace("orders", "lines"))
    conf = tmp_path / "conf"
    for glob in ("lines", "silver.l*", "DEV.silver.lines"):
        assert [str(m.qualified_name) for m in load_project(conf, "dev", tables=[glob]).models] == [
            "dev.silver.lines"
        ]
    with pytest.raises(
        ConfigError, match=r"unknown table 'dev.silver.line'. Did you mean 'dev.silver.lines'"
    ):
        load_project(conf, "dev", tables=["dev.silver.line"])


def test_the_command_can_allow_more(write: Write, tmp_path: Path) -> None:
    project = load_project(tmp_path / "conf", "dev", allow=["drop_column"])
    assert project.settings.policy.allow == (Allowance(DestructiveKind.DROP_COLUMN),)
    with pytest.raises(ConfigError, match="--allow: 'nope' is not one of: drop_column"):
        load_project(tmp_path / "conf", "dev", allow=["nope"])


def test_the_shipped_example_is_valid_everywhere() -> None:
    conf = Path(__file__).parents[2] / "conf"
    assert environments(conf) == ["dev", "local", "prod", "stage"]
    for environment in environments(conf):
        names = {str(model.qualified_name) for model in load_project(conf, environment).models}
        catalog = "dev" if environment == "local" else environment
        assert names == {f"{catalog}.silver.{table}" for table in TPCH} | {f"{catalog}.sales.orders"}


def test_models_load_from_settings_alone(write: Write, tmp_path: Path) -> None:
    assert len(load_models(load_settings(tmp_path / "conf", "dev"))) == 1


@pytest.mark.parametrize(
    ("value", "message"),
    [('"true"', None), ("true", "'a' comes from a merge, and has to be a text. Write it in quotes.")],
)
def test_merged_properties_are_texts(write: Write, tmp_path: Path, value: str, message: str | None) -> None:
    second = MODELS.partition("tables:\n")[2].replace("name: orders", "name: others")
    write(
        "conf/models/m.yml",
        MODELS + f"    properties: &p {{a: {value}}}\n" + second + "    properties: {<<: *p, b: own}\n",
    )
    if message is None:
        assert dict(load(tmp_path)[1].table_properties) == {"a": "true", "b": "own"}
    else:
        assert message in refusal(tmp_path)
