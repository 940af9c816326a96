"""Laws of string literals in expressions: every reader reads what was meant, and equal is what Spark reads alike."""

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_engine.sql.expressions import databricks_dialect, is_same_expression
from delta_engine.sql.string_literals import with_portable_literals
from tests.builders.strategies import literal_chains
from tests.fakes.spark_strings import as_delta_stores, as_spark_reads
from tests.proofs import examples

expressions = st.one_of(
    literal_chains.map(lambda chain: f"status = {chain}"),
    literal_chains.map(lambda chain: f"`it's r'` <> {chain} AND bar > 1"),
    st.tuples(literal_chains, literal_chains).map(lambda chains: f"concat({chains[0]},{chains[1]}) IN ('')"),
    st.tuples(literal_chains, literal_chains).map(lambda chains: f"s LIKE {chains[0]} OR s = ({chains[1]})"),
)


@settings(max_examples=examples(300, 20_000), deadline=None)
@given(expressions)
def test_what_is_sent_is_what_was_meant_for_every_reader(expression: str) -> None:
    sent = with_portable_literals(expression)
    meant = as_spark_reads(expression)
    assert as_spark_reads(sent) == meant
    assert as_spark_reads(sent, doubles_quotes=False) == meant
    assert as_spark_reads(as_delta_stores(sent)) == meant
    assert "${" not in sent
    assert with_portable_literals(sent) == sent


@settings(max_examples=examples(300, 20_000), deadline=None)
@given(literal_chains, literal_chains)
def test_literals_are_equal_if_and_only_if_spark_reads_them_alike(first: str, second: str) -> None:
    is_equal = as_spark_reads(first) == as_spark_reads(second)
    assert is_same_expression(f"a = {first}", f"A = ({second})") is is_equal
    assert (
        is_same_expression(f"case = {first}", f"case = {second}") is is_equal
    )  # what only the platform parses


@settings(max_examples=examples(300, 20_000), deadline=None)
@given(expressions)
def test_an_expression_equals_every_spelling_of_its_literals(expression: str) -> None:
    sent = with_portable_literals(expression)
    for stored in (sent, as_delta_stores(sent), f"( {sent} )"):
        assert is_same_expression(expression, stored)


@settings(max_examples=examples(300, 20_000), deadline=None)
@given(literal_chains)
def test_the_parser_reads_and_writes_the_same_text(chain: str) -> None:
    import sqlglot

    tree = sqlglot.parse_one(with_portable_literals(chain), dialect=databricks_dialect())
    [(text, _)] = as_spark_reads(chain)
    assert tree.name == text
    assert as_spark_reads(tree.sql(databricks_dialect())) == [(text, True)]
