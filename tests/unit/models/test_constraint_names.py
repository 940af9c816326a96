"""Derived names: the same on every machine."""

from delta_engine.models import QualifiedName
from delta_engine.models.constraints import (
    build_foreign_key_name,
    build_not_null_check_name,
    build_primary_key_name,
)
from tests.builders.models import ORDERS


def test_primary_key_name() -> None:
    assert build_primary_key_name(ORDERS, ["id"]) == "pk_dev_silver_orders__id"
    assert build_primary_key_name(ORDERS, ["B", "a"]) == "pk_dev_silver_orders__b_a"


def test_foreign_key_names_tell_parents_apart() -> None:
    near, far = QualifiedName("Dev", "silver", "Customers"), QualifiedName("dev", "gold", "customers")
    assert (
        build_foreign_key_name(ORDERS, ["customer_id"], near)
        == "fk_dev_silver_orders__customer_id__customers"
    )
    name = build_foreign_key_name(ORDERS, ["customer_id"], far)
    assert name.startswith("fk_dev_silver_orders__customer_id__gold_customers_")
    elsewhere = QualifiedName("prod", "gold", "customers")
    assert build_foreign_key_name(ORDERS, ["customer_id"], elsewhere) != name


def test_over_long_names_are_cut_to_the_limit_and_told_apart_by_a_hash() -> None:
    name = build_primary_key_name(QualifiedName("c", "s", "t" * 250), ["x" * 100])
    other = build_primary_key_name(QualifiedName("c", "s", "t" * 250), ["x" * 101])
    assert len(name) == len(other) == 255
    assert name != other
    assert name == build_primary_key_name(QualifiedName("c", "s", "t" * 250), ["x" * 100])
    assert name.startswith("pk_c_s_ttt")


def test_replaced_letters_are_told_apart_by_a_hash() -> None:
    assert build_not_null_check_name("Id") == "delta_engine_not_null_id"
    dotted, spaced = build_not_null_check_name("a.b"), build_not_null_check_name("a b")
    assert dotted.startswith("delta_engine_not_null_a_b_")
    assert dotted != spaced
