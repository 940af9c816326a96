"""What platforms mean by a refusal."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import pytest

from delta_engine.backends import error_conditions
from delta_engine.backends.error_conditions import (
    Transience,
    is_class_conflict,
    is_conflict,
    is_existing,
    is_forbidden,
    is_missing_catalog,
    is_missing_class,
    is_missing_table,
    is_refusal,
    is_refused_query,
    is_unauthenticated,
    is_unreachable,
    statement_error,
    transience,
)
from delta_engine.backends.retries import PATIENCE_SECONDS
from delta_engine.errors import StatementError
from tests.cases.golden_texts import assert_golden_lines
from tests.fakes.dialects import Dialect


def refusal(condition: str | None) -> StatementError:
    return StatementError("DELTA_METADATA_CHANGED, says the message", sql="ALTER", error_class=condition)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("DELTA_METADATA_CHANGED", Transience.CONFLICT),
        ("DELTA_PROTOCOL_CHANGED.CONFLICTING_COMMIT", Transience.CONFLICT),
        ("DELTA_CONCURRENT_APPEND.WHOLE_TABLE_READ", Transience.CONFLICT),
        ("DELTA_CONCURRENT_WRITE", Transience.CONFLICT),
        ("DELTA_MAX_COMMIT_RETRIES_EXCEEDED", Transience.CONFLICT),
        ("RESOURCE_EXHAUSTED", Transience.THROTTLED),
        ("TEMPORARILY_UNAVAILABLE", Transience.UNAVAILABLE),
        ("SERVICE_UNDER_MAINTENANCE", Transience.UNAVAILABLE),
        ("TABLE_OR_VIEW_ALREADY_EXISTS", None),
        ("DELTA_POST_COMMIT_HOOK_FAILED", None),  # it is committed
        ("DEADLINE_EXCEEDED", None),  # nobody knows whether it is
        ("INTERNAL_ERROR", None),
        (None, None),
    ],
)
def test_passing_errors_are_known_by_condition(condition: str | None, expected: Transience | None) -> None:
    assert transience(refusal(condition)) is expected


def test_a_table_is_looked_at_where_a_statement_may_be_done_or_not_needed_any_more() -> None:
    assert [transience for transience in Transience if transience.needs_reread] == [
        Transience.UNAVAILABLE,
        Transience.CONFLICT,
    ]


@pytest.mark.parametrize("dialect", Dialect)
def test_missing_and_existing_tables_are_known_in_the_words_of_each_service(dialect: Dialect) -> None:
    missing, existing = (
        statement_error(
            f"io.unitycatalog.client.ApiException: call failed with: {status} - {json.dumps(document)}",
            sql="S",
        )
        for status, document in (
            (404, dialect.error("TABLE_OR_VIEW_NOT_FOUND", "no 'x'")),
            (400, dialect.error("TABLE_OR_VIEW_ALREADY_EXISTS", "no")),
        )
    )
    assert (is_missing_table(missing), is_existing(missing)) == (True, False)
    assert not is_missing_table(existing)
    assert is_existing(existing)
    assert is_conflict(existing)


def test_a_race_to_create_is_a_conflict_and_not_transient() -> None:
    assert is_conflict(refusal("DELTA_TABLE_ALREADY_EXISTS"))
    assert is_conflict(refusal("DELTA_METADATA_CHANGED"))
    assert not is_conflict(refusal(None))


class DataOfRefusals(TypedDict, total=False):
    condition: str
    code: str


STACK = "\n\tat org.apache.spark.sql.catalyst.A.b(A.scala:1)\n\tat java.base/java.lang.Thread.run(Thread.java:840)\n"
PY4J = "An error occurred while calling o91.sql.\n: "


TEXTS = [
    "[DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES] no SQLSTATE: 2D521",
    "[RequestId=1 ErrorClass=INVALID_PARAMETER_VALUE.CANNOT_DROP_TAGGED_COLUMN] no",
    "com.databricks.ServiceException: RESOURCE_EXHAUSTED: Too many requests",
    "org.apache.HiveSQLException: Error running query: com.databricks.A: [ErrorClass=TABLE_DOES_NOT_EXIST] no",
    f"{PY4J}com.databricks.acl.UnauthorizedAccessException: PERMISSION_DENIED: no{STACK}",
    "com.databricks.acl.UnauthorizedAccessException: no",
    'io.unitycatalog.client.ApiException: call failed with: 403 - {"error_code":"PERMISSION_DENIED"}',
    "io.unitycatalog.client.ApiException: listTables call failed with: 429 - wait",
    "429 Client Error: Too Many Requests for url",
    "HTTP 503: wait",
    "java.lang.NoSuchFieldError: no",
    "A comment says PERMISSION_DENIED: [NOT_THIS] no",
    "",
]


def test_conditions_are_read_from_the_text(request: pytest.FixtureRequest) -> None:
    errors = [statement_error(text, sql="S") for text in TEXTS]
    conditions = [
        f"{text} → {error.error_class}, {error.sql_state}" for text, error in zip(TEXTS, errors, strict=True)
    ]
    assert_golden_lines(conditions, Path(__file__).parent / "conditions.txt", request)


def test_a_condition_that_came_as_data_wins_over_an_http_status_in_the_message() -> None:
    words = "the storage answered: HTTP 403: no"
    assert statement_error(words, sql="S", condition="INTERNAL_ERROR").error_class == "INTERNAL_ERROR"
    assert statement_error(words, sql="S", code="BAD_REQUEST").error_class == "BAD_REQUEST"
    assert statement_error(words, sql="S").error_class == "PERMISSION_DENIED"


def test_the_form_of_the_service_stands_first_and_not_in_the_words_of_users() -> None:
    words = "tag '[x ErrorClass=TABLE_DOES_NOT_EXIST]' is not yours"
    denied = statement_error(f"(a.b.UnauthorizedAccessException) PERMISSION_DENIED: {words}", sql="S")
    assert denied.error_class == "PERMISSION_DENIED"
    assert not is_missing_table(denied)
    assert is_forbidden(denied)
    assert statement_error(words, sql="S", code="BAD_REQUEST").error_class == "BAD_REQUEST"
    for prefix in ("", "a.b.ServiceException: ", "Error running query: ", "SparkException: (a.b.X) "):
        text = f"{prefix}[RequestId=1 ErrorClass=TABLE_DOES_NOT_EXIST.RPC] no"
        assert is_missing_table(statement_error(text, sql="S"))


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("[DELTA_Y] no comment 'SQLSTATE: 42501' SQLSTATE: 22000", "22000"),
        ("[DELTA_Y] no SQLSTATE: 42501 in it. SQLSTATE: 22000", "22000"),
        ("[DELTA_Y] no SQLSTATE: 22000\n== SQL ==\nCOMMENT ON TABLE t IS 'SQLSTATE: 42501'", "22000"),
        ("[DELTA_Y] no comment 'SQLSTATE: 42501'", None),
        ("[DELTA_Y] can't use `it's`. SQLSTATE: 22000 (line 1, pos 2)", "22000"),
    ],
)
def test_the_last_sql_state_that_no_user_wrote_counts(text: str, state: str | None) -> None:
    assert statement_error(text, sql="S").sql_state == state


def test_what_comes_as_data_counts_before_the_words_unless_it_says_little() -> None:
    def condition(given: str, words: str) -> str | None:
        return statement_error(words, sql="S", condition=given).error_class

    assert condition("A.B", "[C] no") == "A.B"
    assert condition("INTERNAL_ERROR", "[RequestId=1 ErrorClass=C] no") == "C"
    assert condition("_LEGACY_ERROR_TEMP_1234", "no") == "_LEGACY_ERROR_TEMP_1234"
    assert statement_error("no", sql="S", code="BAD_REQUEST").error_class == "BAD_REQUEST"
    assert statement_error("[C] no", sql="S", code="BAD_REQUEST").error_class == "C"


LEGACY: DataOfRefusals = {"condition": "_LEGACY_ERROR_TEMP_1205"}
BAD: DataOfRefusals = {"code": "BAD_REQUEST"}
WORDS_OF_USERS: list[tuple[str, DataOfRefusals]] = [
    ("Failed to list by partition pruning predicates: (status = 503)", LEGACY),
    ("Failed to list by predicates: (status = 503)", {}),
    ("Cannot set comment 'sent again after HTTP 429' on t", BAD),
    ("Tag value 'HTTP 403' is not allowed", BAD),
    ("No HTTP 503 without quotes", BAD),
    ("Cannot set comment 'sent again after HTTP 429' on t", {}),
    ("Cannot set comment 'it''s HTTP 429, isn't it' on t", {}),
    ("Cannot set comment 'sent again after HTTP 429 and cut", {}),
    ('Cannot set comment "HTTP 429" on `HTTP 503`', {}),
    ("No.\n== SQL (line 1, position 1) ==\nALTER TABLE t -- HTTP 429\n^^^", {}),
    ("The users' server can't answer: HTTP 429", {}),
    ("Can't reach 'dev': HTTP status 503", {}),
    ("Answered with status code: 503", {}),
    ("""Comment 'x: {"error_code": "PERMISSION_DENIED"}' is too long""", {}),
    ("""call failed with: 403 - {"message": "no 'x'", "error_code": "A_B"}""", {}),
    ("""java.io.IOException: failed: 403 - {"error_code": "PERMISSION_DENIED"}""", LEGACY),
]


def test_words_of_users_are_no_conditions(request: pytest.FixtureRequest) -> None:
    conditions = [
        f"{text} {data or ''}→ {statement_error(text, sql='S', **data).error_class}"
        for text, data in WORDS_OF_USERS
    ]
    assert_golden_lines(conditions, Path(__file__).parent / "words_of_users.txt", request)


def test_the_cause_that_has_the_condition_is_shown() -> None:
    error = statement_error(
        f"{PY4J}org.apache.spark.SparkException: Job aborted.{STACK}Caused by: java.io.IOException: lost{STACK}"
        f"Caused by: a.UnauthorizedAccessException: PERMISSION_DENIED: no USE SCHEMA{STACK}\t... 3 more\n",
        sql="S",
    )
    assert error.error_class == "PERMISSION_DENIED"
    assert error.message == (
        "org.apache.spark.SparkException: Job aborted "
        "(caused by a.UnauthorizedAccessException: PERMISSION_DENIED: no USE SCHEMA)"
    )


@pytest.mark.parametrize(
    ("cause", "is_kind"),
    [
        ("java.lang.ClassNotFoundException: io.unitycatalog.spark.UCSingleCatalog", is_missing_class),
        ("java.lang.NoSuchFieldError: Class X does not have member field 'Y'", is_class_conflict),
        ("java.net.ConnectException: Connection refused", is_unreachable),
        ("java.io.IOException: listSchemas failed (HTTP 0)", is_unreachable),
        ("org.apache.spark.SparkException: [CATALOG_NOT_FOUND] no SQLSTATE: 42P08", is_missing_catalog),
    ],
)
def test_kinds_of_java_exceptions(cause: str, is_kind: Callable[[StatementError], bool]) -> None:
    for text in (f"{PY4J}{cause}{STACK}", f"{PY4J}a.b.SparkException: no{STACK}Caused by: {cause}{STACK}"):
        error = statement_error(text, sql="S")
        kinds = [is_missing_class, is_class_conflict, is_unreachable, is_missing_catalog, is_forbidden]
        assert [kind for kind in kinds if kind(error)] == [is_kind]
        assert cause in error.first_line


@pytest.mark.parametrize(
    "text",
    [
        "401 Client Error: no token",
        "HTTP 401: expired\nmore",
        "[UNAUTHENTICATED] no",
    ],
)
def test_a_rejected_login_names_the_token(text: str) -> None:
    error = statement_error(text, sql="S")
    assert is_unauthenticated(error)
    assert not is_forbidden(error)
    assert error.first_line == (
        f"{text.splitlines()[0]} (the token is missing, wrong or expired: log in again, or replace it)"
    )


@pytest.mark.parametrize("answer", ["no token", '{"error_code": "UNAUTHENTICATED"}'])
def test_a_rejected_login_at_a_catalog_names_no_login(answer: str) -> None:
    text = f"io.unitycatalog.client.ApiException: getTable call failed with: 401 - {answer}"
    error = statement_error(text, sql="S")
    assert is_unauthenticated(error)
    assert error.first_line == f"{text} (the token is missing, wrong or expired)"


def test_a_sql_state_tells_of_a_missing_right_where_the_condition_is_new() -> None:
    assert is_forbidden(statement_error("[SOME_NEW_CONDITION] no SQLSTATE: 42501", sql="S"))


def test_the_documentation_names_what_is_tried_again_and_for_how_long() -> None:
    page = (Path(__file__).parents[3] / "docs" / "running.md").read_text("utf-8")
    conditions = (
        *error_conditions._COMMIT_CONFLICTS,
        *error_conditions._THROTTLED,
        *error_conditions._UNAVAILABLE,
    )
    assert [condition for condition in conditions if f"`{condition}" not in page] == []
    for seconds in PATIENCE_SECONDS.values():
        assert f"{seconds / 60:.0f} minutes" in page


@pytest.mark.parametrize(
    ("message", "is_refused"),
    [
        ("[UNRESOLVED_COLUMN.WITH_SUGGESTION] no column. SQLSTATE: 42703", True),
        ("[TABLE_OR_VIEW_NOT_FOUND] no table. SQLSTATE: 42P01", True),
        ("[UNRESOLVED_ROUTINE] no function. SQLSTATE: 42883", True),
        ("[PARSE_SYNTAX_ERROR] no query. SQLSTATE: 42601", True),
        ("[DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES] no sum. SQLSTATE: 42K09", True),
        ("[UNRESOLVED_COLUMN] no column", True),
        ("[INSUFFICIENT_PERMISSIONS] no right. SQLSTATE: 42501", False),
        ("PERMISSION_DENIED: no right", False),
        ("[TEMPORARILY_UNAVAILABLE] later", False),
        ("[DIVIDE_BY_ZERO] no quotient. SQLSTATE: 22012", False),
        ("no condition", False),
    ],
)
def test_a_refused_query_is_one_that_the_platform_cannot_make_sense_of(
    message: str, is_refused: bool
) -> None:
    assert is_refused_query(statement_error(message, sql="S")) is is_refused


@pytest.mark.parametrize(
    ("facts", "is_refused"),
    [
        ({"error_class": "PERMISSION_DENIED"}, True),
        ({"error_class": None, "sql_state": "42501"}, True),
        ({"error_class": "PARSE_SYNTAX_ERROR"}, True),
        ({"error_class": "DELTA_POST_COMMIT_HOOK_FAILED", "sql_state": "2DKD0"}, False),
        ({"error_class": "PERMISSION_DENIED", "is_outcome_unknown": True}, False),
        ({"error_class": "INTERNAL_ERROR", "sql_state": "XX000"}, False),
        ({"error_class": "STATEMENT_TIMEOUT"}, False),
        ({"error_class": "TEMPORARILY_UNAVAILABLE"}, False),
        ({"error_class": None}, False),
    ],
)
def test_a_refusal_is_named_by_the_platform(facts: dict[str, Any], is_refused: bool) -> None:
    error = StatementError("no", sql="S", **facts)
    assert is_refusal(error) is is_refused
