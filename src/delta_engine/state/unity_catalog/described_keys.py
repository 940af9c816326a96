"""The keys in a table's JSON description, which has them from Databricks Runtime 17.3: as one text, not as objects.

    [(pk,PRIMARY KEY (`id`)), (fk,FOREIGN KEY (`day`) REFERENCES `dev`.`gold`.`days` (`day`))]

The form is not documented, so it is either understood whole or not used at all. It and the runtime are taken from
github.com/databricks/dbt-databricks, pull request 1432.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from delta_engine.models import ForeignKey, PrimaryKey, QualifiedName

_IDENT = r"`(?:[^`]|``)+`"
_IDENTS = rf"\(\s*{_IDENT}(?:\s*,\s*{_IDENT})*\s*\)"
_KEY = re.compile(
    rf"\((?P<name>[^`(),]+),\s*(?P<kind>PRIMARY|FOREIGN) KEY\s*(?P<columns>{_IDENTS})"
    rf"(?:\s*REFERENCES\s*(?P<table>{_IDENT}\.{_IDENT}\.{_IDENT})\s*(?P<referenced>{_IDENTS}))?[\w\s]*\)"
)
_BETWEEN = re.compile(r"\[\s*(?:,\s*)*\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedKeys:
    """The keys of a table, all of them."""

    primary_key: PrimaryKey | None
    foreign_keys: tuple[ForeignKey, ...]


def described_keys(text: str) -> DescribedKeys | None:
    """Return the keys that a text describes; None if any of it is not understood."""
    if not _BETWEEN.fullmatch(_KEY.sub("", text).strip() or "[]"):
        return None
    primary_key, foreign_keys = None, []
    for found in _KEY.finditer(text):
        name, columns = found["name"].strip(), _names(found["columns"])
        if found["kind"] == "PRIMARY":
            primary_key = PrimaryKey(columns, name)
        elif found["table"] is None:
            return None
        else:
            target = QualifiedName(*_names(found["table"]))
            foreign_keys.append(ForeignKey(columns, target, _names(found["referenced"]), name))
    by_name = sorted(foreign_keys, key=lambda key: (key.name or "").lower())
    return DescribedKeys(primary_key=primary_key, foreign_keys=tuple(by_name))


def _names(text: str) -> list[str]:
    return [name[1:-1].replace("``", "`") for name in re.findall(_IDENT, text)]
