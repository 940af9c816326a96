"""Names that are a project's, and globs of two projects that match one table."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_engine import Column, ForeignKey, Schema, Table
from delta_engine.actions.policy import matches_any
from delta_engine.models import QualifiedName
from delta_engine.validation.owned_names import OwnedParents, OwnedTables, common_table

OWNS = ("silver.team_a_*", "gold.*")


def table(schema: str, name: str, renamed_from: str | None = None) -> Table:
    return Table("dev", schema, name, [Column("id", "bigint")], renamed_from=renamed_from)


def test_a_project_declares_its_own_tables() -> None:
    own = [table("silver", "team_a_orders"), table("gold", "sales"), table("Gold", "Sales")]
    assert list(OwnedTables(OWNS).check(own)) == []


def test_a_table_of_another_project_is_refused() -> None:
    (refusal,) = OwnedTables(OWNS).check([table("silver", "team_b_orders")])
    assert refusal.reason == "it belongs to another project: this project owns silver.team_a_*, gold.*"


def test_a_rename_takes_no_table_of_another_project() -> None:
    renamed = table("silver", "team_a_orders", "orders")
    (refusal,) = OwnedTables(OWNS).check([renamed])
    assert refusal.reason == "renamed_from 'orders' is the name of another project's table"


@pytest.mark.parametrize(
    ("key", "is_refused"),
    [
        (ForeignKey(["id"], "team_a_customers"), True),
        (ForeignKey(["id"], "team_b_customers"), False),
        (ForeignKey(["id"], "team_a_customers", ["id"]), False),
        (ForeignKey(["id"], "Team_A_Orders"), False),
        (ForeignKey(["id"], "a.b.c.d"), False),
    ],
)
def test_keys_to_undeclared_tables_of_the_project_name_columns(key: ForeignKey, is_refused: bool) -> None:
    model = Table("dev", "silver", "team_a_orders", [Column("id", "bigint")], foreign_keys=[key])
    messages = [f"{refusal.reason}. {refusal.way_out}" for refusal in OwnedParents(OWNS).check([model])]
    assert messages == is_refused * [
        "foreign key (id) references dev.silver.team_a_customers, which is not declared. Declare that table with its "
        "primary key, name referenced_columns, or, if the table belongs to another project, remove it from owns."
    ]


@pytest.mark.parametrize(
    ("owns", "is_owned"),
    [
        ("*", True),
        ("gold", True),
        ("gold.*", True),
        ("dev.gold", True),
        ("gold.a_*", False),
        ("silver", False),
    ],
)
def test_a_schema_is_owned_by_name_or_with_all_its_tables(owns: str, is_owned: bool) -> None:
    assert (list(OwnedTables([owns]).check([Schema("dev", "gold")])) == []) is is_owned


@pytest.mark.parametrize(
    ("globs", "others"),
    [
        (["silver.a_*"], ["silver.b_*"]),
        (["silver.*"], ["gold.*"]),
        (["dev.silver.*"], ["prod.silver.*"]),
        (["orders"], ["customers"]),
        (["silver.a"], ["b"]),
        (["silver.[ab]_*"], ["silver.[!ab]_*"]),
        (["a.b.c.d"], ["a.b.c.d"]),
    ],
)
def test_globs_without_a_common_table(globs: list[str], others: list[str]) -> None:
    assert common_table(globs, others, ["dev", "prod"]) is None


@pytest.mark.parametrize(
    ("glob", "other"),
    [
        ("silver.a_*", "silver.*_b"),
        ("silver.*", "d*.o*"),
        ("orders", "silver.*"),
        ("SILVER.a", "dev.silver.A"),
        ("silver.[a-c]", "silver.[c-d]"),
        ("silver.a?", "silver.?b"),
    ],
)
def test_globs_with_a_common_table(glob: str, other: str) -> None:
    assert common_table(["prod.a.b", glob], ["dev.z.u", other], ["dev"]) == (glob, other)


def words(longest: int) -> list[str]:
    return ["".join(letters) for size in range(1, longest + 1) for letters in product("ax", repeat=size)]


NAMES = [QualifiedName(*parts) for parts in product(words(1), words(3), words(4))]
GLOBS = st.text(alphabet="a*?.", min_size=1, max_size=4)


@given(GLOBS, GLOBS)
def test_what_both_match_is_common(glob: str, other: str) -> None:
    both = [name for name in NAMES if matches_any(name, [glob]) and matches_any(name, [other])]
    common = common_table([glob], [other], words(1))
    assert common == ((glob, other) if both else None)
