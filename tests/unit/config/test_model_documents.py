"""YAML models: what they may say, and one message with file and line for the rest."""

from pathlib import Path

import pytest

from delta_engine.models import PrimaryKey
from tests.unit.config.projects import CONFIG, MODELS, Write, load, refusal, refused


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
        "conf/models/m.yml:7: table ${catalog}.silver.orders: column 'id' has no type. Write a type, such as"
    )
    assert refusal(tmp_path).startswith(message)


@pytest.mark.parametrize(("replace", "by", "message"), refused("models"))
def test_bad_models(write: Write, tmp_path: Path, replace: str, by: str, message: str) -> None:
    assert replace in MODELS
    write("conf/models/m.yml", MODELS.replace(replace, by))
    assert refusal(tmp_path).startswith(message)


@pytest.mark.parametrize(("key", "message"), refused("keys of tables"))
def test_bad_keys_of_tables(write: Write, tmp_path: Path, key: str, message: str) -> None:
    write("conf/models/m.yml", f"{MODELS}    {key}\n")
    assert refusal(tmp_path) == f"conf/models/m.yml:7: table ${{catalog}}.silver.orders: {message}"


@pytest.mark.parametrize(("key", "message"), refused("keys of columns"))
def test_bad_keys_of_columns(write: Write, tmp_path: Path, key: str, message: str) -> None:
    write("conf/models/m.yml", MODELS.replace("nullable: false", key))
    assert refusal(tmp_path) == f"conf/models/m.yml:6: table ${{catalog}}.silver.orders: {message}"


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
    [
        ('"true"', None),
        ("true", "'a' comes from a merge key, and must be a string. Write the value in quotes."),
    ],
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


def test_everything_that_is_wrong_in_a_file_is_refused_at_once(write: Write, tmp_path: Path) -> None:
    write(
        "conf/models/m.yml",
        """\
        tables:
          - catalog: ${catalog}
            schema: silver
            nmae: orders
            coment: x
            columns:
              - {name: id, type: bigint, nullable: no, comment: 7}
              - {type: int, tags: [a]}
          - {catalog: dev, name: lines, columns: []}
        """,
    )
    table = "table ${catalog}.silver.?"
    assert refusal(tmp_path).splitlines() == [
        f"conf/models/m.yml:4: {table}: unknown key 'nmae'. Did you mean 'name'?",
        f"conf/models/m.yml:5: {table}: unknown key 'coment'. Did you mean 'comment'?",
        f"conf/models/m.yml:7: {table}: columns[0].nullable: expected true or false, got a string. "
        "Write false, because YAML 1.2 reads no as a string.",
        f"conf/models/m.yml:7: {table}: columns[0].comment: expected a string, got an integer. Write the value "
        "in quotes.",
        f"conf/models/m.yml:8: {table}: columns[1]: the key 'name' is missing. Add the key.",
        f"conf/models/m.yml:8: {table}: columns[1].tags: expected a mapping, got a list. "
        "Write {key: value}.",
        "conf/models/m.yml:9: table dev.?.lines: the key 'schema' is missing. Add the key.",
    ]
