"""Refusals as text: one message for each cause."""

from delta_engine.errors import InvalidModelError, RefusedError, SourceLocation
from delta_engine.report.refusals import MOST_PLACES, refusal_messages


def refusal(number: int, reason: str = "it is wrong", column: str | None = None) -> RefusedError:
    table = f"dev.silver.t{number}"
    return InvalidModelError(
        reason,
        table=table,
        column=column,
        location=SourceLocation("m.yml", number),
        way_out=f"--allow it:{table}",
    )


def texts(*refusals: RefusedError) -> list[str]:
    return [str(message) for message in refusal_messages(refusals)]


def test_few_refusals_stay_as_they_are() -> None:
    pair = (refusal(1), refusal(2))
    assert texts(*pair) == [str(refusal) for refusal in pair]


def test_one_cause_on_many_tables_is_one_message() -> None:
    text, other = texts(refusal(1), RefusedError("no"), *(refusal(number) for number in range(2, 13)))
    first, *places, last = text.splitlines()
    assert first == "12 tables: it is wrong. --allow it:<table>"
    assert places == [f"  m.yml:{number}: table dev.silver.t{number}" for number in range(1, MOST_PLACES + 1)]
    assert last == "  and 2 more"
    assert other == "no."


def test_a_way_out_of_several_refusals_is_said_once() -> None:
    ways = ("do this", "do that", "do this", "")
    refusals = [RefusedError(f"no {number}", way_out=way) for number, way in enumerate(ways)]
    assert texts(*refusals) == ["no 0.", "no 1. do that", "no 2. For all 2: do this", "no 3."]


def test_the_column_is_named_in_the_message_if_it_is_the_same_everywhere() -> None:
    same = [refusal(number, "columns (note) go", "note") for number in range(3)]
    assert texts(*same)[0].startswith("3 tables: columns (note) go. --allow it:<table>\n")
    differing = [refusal(number, f"columns (c{number}) go", f"c{number}") for number in range(3)]
    (text,) = texts(*differing)
    assert text.startswith("3 tables: columns (<column>) go.")
    assert text.endswith("  m.yml:2: table dev.silver.t2, column c2")


def test_several_places_in_one_table_are_counted() -> None:
    of_one = [refusal(1, column=name) for name in ("a", "b", "c")]
    assert texts(*of_one, refusal(2))[0].startswith("4 places in 2 tables: it is wrong.")


def test_refusals_without_a_place_are_never_grouped() -> None:
    assert texts(*(RefusedError("no") for _ in range(3))) == ["no.", "no.", "no."]
