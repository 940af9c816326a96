"""The forms in which Unity Catalog words a refusal, after recorded ones (docs/decisions/0020)."""

from collections.abc import Callable, Mapping
from typing import Final

FORMS: Final[Mapping[str, Callable[[str, str], str]]] = {
    "bracketed": lambda condition, words: f"[{condition}] {words} SQLSTATE: 56000",
    "of the service": lambda condition, words: (
        f"[RequestId=25b8c822-3052-46b6-90b0-d1945b0df14d ErrorClass={condition}] {words}"
    ),
    "over Connect": lambda condition, words: (
        f"(com.databricks.sql.managedcatalog.acl.UnauthorizedAccessException) {condition}: {words}"
    ),
}
"""How a refusal reads, by the name of its form; each takes a condition and the words after it."""
