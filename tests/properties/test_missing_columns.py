"""A column that counts as missing in a query makes the catalog refuse it, whatever the query and its tables are."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from delta_engine.sql.missing_columns import missing_columns
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.fakes.unity_catalog.refusals import Refusal
from tests.proofs import examples
from tests.properties.test_view_orders import NAMES, TABLES, query_over


@settings(max_examples=examples(200, 20_000), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_catalog_refuses_a_query_with_a_missing_column(seed: int) -> None:
    random = Random(seed)
    relations = {key: tuple(random.sample(NAMES, random.randint(2, 5))) for key in TABLES}
    query = query_over(random, relations)
    left = {key: columns[random.randint(0, 1) :] for key, columns in relations.items()}
    missing = missing_columns(query, left)
    event("missing" if missing else "nothing is missing")
    assert missing_columns(query, relations) == []
    if missing:
        catalog = FakeUnityCatalog(["dev.silver"])
        for key, columns in left.items():
            catalog.run(f"CREATE TABLE {key} ({', '.join(f'{name} INT' for name in columns)}) USING delta")
        with pytest.raises(Refusal) as caught:
            catalog.returned(query)
        assert caught.value.error_class == "UNRESOLVED_COLUMN.WITH_SUGGESTION"
