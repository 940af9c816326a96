"""YAML models: what they may say, and one message with file and line for the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_engine.models import Column, PrimaryKey, Table
from tests.unit.config.projects import CONFIG, MODELS, Write, load, refusal


def test_a_small_project(write: Write, tmp_path: Path) -> None:
    assert load(tmp_path) == (Table("dev", "silver", "orders", [Column("id", "bigint", is_nullable=False)]),)


def test_columns_that_the_model_does_not_manage_need_no_type(write: Write, tmp_path: Path) -> None:
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
            "conf/models/m.yml:6: table ${catalog}.silver.orders: columns[0].nullable: true or false is "
            "wanted, not a text. Write true or false, without quotes.",
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
        (MODELS, "", "conf/models/m.yml:1: a model file contains the keys tables and schemas"),
        (
            MODELS,
            "tables: 7",
            "conf/models/m.yml:1: a model file contains the keys tables and schemas",
        ),
        (
            MODELS,
            "tables: [7]",
            "conf/models/m.yml:1: a mapping is wanted, not a whole number. Write {key: value}.",
        ),
        (
            "    columns:\n      - {name: id, type: bigint, nullable: false}",
            "    columns:\n      id: bigint",
            "conf/models/m.yml:5: table ${catalog}.silver.orders: columns: a list is wanted, not a mapping. Begin "
            "each item with a dash.",
        ),
        ("tables:", "\t- tables", "conf/models/m.yml:1: it is not valid YAML: "),
        (
            "    name: orders",
            "\tname: orders",
            "conf/models/m.yml:4: it is not valid YAML: found character '\\t' that cannot start any token. Indent "
            "with spaces: YAML takes no tabs.",
        ),
        (
            "name: id",
            "name: ${catalog}",
            "conf/models/m.yml:6: it is not valid YAML: expected ',' or '}', but got '{'. Write variables within "
            'braces in quotes, as in "${catalog}".',
        ),
        (
            "nullable: false",
            "comment: *x",
            "conf/models/m.yml:6: it is not valid YAML: found undefined alias 'x'. Write a text that begins with * "
            'in quotes, as in "*.yml".',
        ),
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
        ("foreign_keys: [{columns: [id]}]", "foreign_keys[0]: the key 'references' is missing. Write it."),
        (
            "foreign_keys: [{columns: [id], reference: x}]",
            "unknown key 'reference'. Did you mean 'references'?",
        ),
        ("checks: {positive: 7}", "checks[...]: a text is wanted, not a whole number. Write it in quotes."),
        ("primary_key: id", "primary_key: a mapping or a list is wanted, not a text. Write [a, b]."),
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
        ("tags: [pii]", "columns[0].tags: a mapping is wanted, not a list. Write {key: value}."),
        ("comment: ~", "columns[0].comment: a text is wanted, not nothing. Write it, or leave the key out."),
        ("comment: 2024-01-01", "columns[0].comment: a text is wanted, not a date. Write it in quotes."),
        (
            "nullable: no",
            "columns[0].nullable: true or false is wanted, not a text. Write true or false, without quotes.",
        ),
        (
            "identity: {start: '1'}",
            "columns[0].identity.start: a whole number is wanted, not a text. Write it without quotes.",
        ),
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
    ("value", "message"),
    [('"true"', None), ("true", "'a' comes from a merge key, and must be a text. Write it in quotes.")],
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
