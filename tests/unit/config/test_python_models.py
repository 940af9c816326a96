"""Models in Python: how they are named, loaded and refused."""

from pathlib import Path

import pytest

from delta_engine.models import Column, Table
from tests.unit.config.projects import CONFIG, Write, load, refusal


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
        (
            "tables = [7]",
            "conf/dev.yml:5: '{m}:tables' returns a value of type int. Return models: Schema, Function, Table, "
            "AbacPolicy, View.",
        ),
        (
            "tables = 7",
            "conf/dev.yml:5: '{m}:tables' returns a value of type int. Return models: Schema, Function, Table, "
            "AbacPolicy, View.",
        ),
        ("x = 1", "conf/dev.yml:5: loading the models '{m}:tables' failed: AttributeError: module "),
        ("x = 1\n1 / 0", "{m}.py:2: loading the models '{m}:tables' failed: ZeroDivisionError: division by"),
        (
            "from delta_engine import Column, Table\ntables = Table('c', 's', 't', [Column('a', 'money')])",
            "{m}.py:2: table c.s.t, column a: type 'money' cannot be used",
        ),
        (
            "from delta_engine import Column, Table\n"
            "tables = Table('c', 's', 't', [\n    Column('a', 'int'),\n    Column('b', 'money'),\n])",
            "{m}.py:4: table c.s.t, column b: type 'money' cannot be used",
        ),
        (
            "from dataclasses import replace\n"
            "from delta_engine import Column, Table\n"
            "AT = Column('at', 'timestamp')\n"
            "tables = Table('c', 's', 't', [\n    replace(AT, name='from'),\n    Column('a b', 'int'),\n])",
            "{m}.py:6: table c.s.t, column a b: ",
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
        (
            "tables",
            "conf/dev.yml:5: 'tables' does not name an object. Write module:attribute, such as models.orders:tables.",
        ),
        ("no_such_module:x", "conf/dev.yml:5: loading the models 'no_such_module:x' failed: ModuleNotFound"),
    ],
)
def test_bad_python_references(write: Write, tmp_path: Path, reference: str, message: str) -> None:
    write("conf/dev.yml", CONFIG.replace('yaml: ["conf/models/*.yml"]', f'python: ["{reference}"]'))
    assert refusal(tmp_path).startswith(message)
