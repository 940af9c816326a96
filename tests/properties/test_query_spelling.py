"""White space that platforms, editors and Git change never makes two queries of a view differ, and all else does.

It never makes a plan either: views of the fake catalog are planned again however the catalog spells their queries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_engine.compile.planner import TablePlanner
from delta_engine.models import View, resource_key
from delta_engine.ownership.recorded import Recorded
from delta_engine.sql.view_queries import is_same_query, submitted_query
from delta_engine.sql.views import sql_create_view
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.proofs import examples

_WORDS = (
    "SELECT",
    "id",
    "sum(a)",
    "AS",
    "`a  b`",
    "`x\u00e9`",
    "FROM",
    "dev.silver.orders",
    ",",
    "(",
    ")",
    "-",
    "1",
    "<>",
    "::",
)
_LITERALS = (
    "'a  b'",
    "'it''s'",
    "'\t'",
    "'\n\n'",
    '"x;"',
    "r'\\d  '",
    "'--'",
    "'/*'",
    "X'1F'",
    "'\\''",
    "' '",
)
_COMMENTS = (
    "-- one\n",
    "--\tit's\n",
    "/* a\n\n\tb */",
    "/*+ BROADCAST(o) */",
    "-- /* \n",
    "/* -- */",
    "-- ;\n",
)
_BLANKS = (" ", "  ", "\t", "\n", "\n\n\n", " \n\t", "\r\n", "\n \n", "\f")


def drawn(random: Random) -> list[str]:
    """Draw the pieces of a query between its first and its last word."""
    pieces = [random.choice(("SELECT", "WITH", "("))]
    for _ in range(random.randrange(12)):
        pieces.append(random.choice(random.choice((_WORDS, _WORDS, _LITERALS, _COMMENTS))))
    return [*pieces, random.choice(("a", "`b`", "'c'", ")"))]


def written(random: Random, pieces: list[str]) -> str:
    """Return a query with its pieces apart, and anything before and after that says nothing."""
    before = "".join(random.choice(("\ufeff", "", "\n", "-- lead\n", "/* lead */ ")) for _ in range(2))
    after = "".join(random.choice(("", ";", " ", "\r\n", "-- last\n", "/* last */", "\t")) for _ in range(3))
    inside = "".join(piece + random.choice(_BLANKS) for piece in pieces[:-1])
    return f"{before}{inside}{pieces[-1]}{random.choice(_BLANKS)}{after}"


def as_shown(random: Random, query: str) -> str:
    """Return a submitted query as a platform shows it, of which documents and issues report these re-spellings."""
    for change in random.sample(_RESPELLINGS, random.randrange(len(_RESPELLINGS) + 1)):
        query = change(query)
    return query


_RESPELLINGS: Sequence[Callable[[str], str]] = (
    lambda query: query.replace("\t", "    "),  # terraform-provider-databricks 3865
    lambda query: re.sub(r"\n\s*\n", "\n", query),
    lambda query: query.replace("\n", "\r\n"),
    lambda query: f"{query}\n",
    lambda query: f"  {query};",
    lambda query: f"{query} -- a comment that a platform appends",
    lambda query: re.sub(r"[ \t]+\n", "\n", query),
)


@settings(max_examples=examples(2_000, 50_000), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_query_is_the_same_however_it_is_spelled(seed: int) -> None:
    random = Random(seed)
    pieces = drawn(random)
    query, again = written(random, pieces), written(random, pieces)
    submitted = submitted_query(query)
    assert submitted_query(submitted) == submitted
    assert is_same_query(query, submitted)
    assert is_same_query(query, again)
    assert is_same_query(submitted, as_shown(random, submitted)), submitted


@settings(max_examples=examples(2_000, 50_000), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_query_with_another_word_is_another_query(seed: int) -> None:
    random = Random(seed)
    pieces = drawn(random)
    place = random.randrange(len(pieces))
    other = [
        *pieces[:place],
        random.choice(("other", "'other  '", "'other '", "/* other */ x")),
        *pieces[place + 1 :],
    ]
    assert not is_same_query(written(random, pieces), written(random, other))


_VALUES = (
    "id",
    "o.id",
    "1",
    "sum(id) OVER ()",
    "CASE WHEN id > 1 THEN 'a' END",
    "id :: STRING",
    *_LITERALS[:8],
)
_VIEWS_AT_ONCE = 40


def selected(random: Random) -> list[str]:
    """Draw the words of a query that the fake catalog can analyze."""
    values = [f"{random.choice(_VALUES)} AS c{number}" for number in range(random.randrange(1, 4))]
    condition = random.choice(("", "WHERE id <> 1", "WHERE 'a  b' <> '\\t' -- kept\n AND id > 0", "LIMIT 1"))
    words = ["SELECT", *_unbroken(values), "FROM", "dev.silver.orders", "AS", "o", condition]
    return [word for word in words if word]


def _unbroken(values: list[str]) -> list[str]:
    return [word for number, value in enumerate(values) for word in ((",", value) if number else (value,))]


@settings(max_examples=examples(50, 1_000), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_no_spelling_of_a_query_makes_a_plan(seed: int) -> None:
    random = Random(seed)
    catalog = FakeUnityCatalog(["dev.silver"])
    catalog.run("CREATE TABLE dev.silver.orders (id INT) USING delta")
    drafts = [selected(random) for _ in range(_VIEWS_AT_ONCE)]
    models = [View("dev", "silver", f"v{n}", written(random, words)) for n, words in enumerate(drafts)]
    for model in models:
        catalog.run(sql_create_view(model))
    planner = TablePlanner()
    catalog.shown_query = lambda query: as_shown(random, query)
    records = {resource_key(model.qualified_name): Recorded.of(model) for model in models}
    again = [
        replace(model, query=written(random, words)) for model, words in zip(models, drafts, strict=True)
    ]
    for declared in (models, again):
        assert not planner.plan(declared, catalog.snapshot(models))
        assert not planner.plan(declared, catalog.snapshot(models), records)
    changed = replace(models[0], query=f"{submitted_query(models[0].query)} UNION ALL {models[0].query}")
    assert planner.plan([changed], catalog.snapshot(models), records)
