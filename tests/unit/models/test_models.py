"""Models: what may be given, and what it becomes."""

from typing import Any

import pytest

from delta_engine.errors import InvalidModelError
from delta_engine.models import Column, PrimaryKey, QualifiedName, Table
from tests.builders.models import orders


def test_effective_properties_are_defaults_merged_with_overrides_and_read_only() -> None:
    table = Table(
        "c",
        "s",
        "t",
        [Column("id", "int")],
        table_properties={"b": "own", "z": "1"},
        default_table_properties={"b": "default", "a": "default"},
    )
    assert list(table.effective_table_properties.items()) == [("a", "default"), ("b", "own"), ("z", "1")]
    with pytest.raises(TypeError):
        table.effective_table_properties["a"] = "x"  # type: ignore[index]  # it is read-only


@pytest.mark.parametrize("key", [("id",), ["id"], PrimaryKey(["id"])])
def test_a_primary_key_is_a_tuple_a_list_or_a_key(key: Any) -> None:
    assert orders(primary_key=key).primary_key == PrimaryKey(("id",))


def test_no_columns_mean_no_primary_key() -> None:
    assert orders(primary_key=()).primary_key is None


def test_a_string_is_no_primary_key() -> None:
    with pytest.raises(TypeError, match="not the string 'id'"):
        orders(primary_key="id")


def test_an_unknown_type_is_refused_at_declaration_with_table_column_and_line() -> None:
    with pytest.raises(InvalidModelError) as caught:
        orders(Column("id", "int"), Column("amount", "array<money>"))
    error = caught.value
    assert (error.table, error.column) == ("dev.silver.orders", "amount")
    assert error.location is not None
    assert error.location.line is not None
    assert "type 'array<money>' cannot be used" in str(error)


def test_a_python_model_knows_its_file_and_line() -> None:
    table = Table("c", "s", "t", [Column("id", "int")])
    assert table.declared_at is not None
    assert table.declared_at.file == __file__


def test_models_are_values() -> None:
    assert orders() == orders()
    assert orders(comment="x") != orders()
    with pytest.raises(AttributeError):
        orders().comment = "x"  # type: ignore[misc]  # it is frozen


def test_names_meet_in_lower_case() -> None:
    assert QualifiedName("Dev", "SILVER", "Straße").key == "dev.silver.straße"
