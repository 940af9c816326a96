"""The default rules for what Unity Catalog adds to a table: tags, filters, masks, owners and grants."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from delta_engine.errors import InvalidModelError
from delta_engine.models import Table


class TagsWithinLimits:
    """Tags are ones that Unity Catalog stores (Databricks docs: "Apply tags to Unity Catalog objects").

    Keys of the platform's own tags (`class.…`, `system.…`) have a dot, and may be assigned.
    """

    MOST = 50
    LONGEST_KEY = 255
    LONGEST_VALUE = 1000
    _FORBIDDEN = re.compile(r"[.,\-=/:]")
    _SYSTEM = ("class.", "system.")

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse too many, too long ones, and keys with characters that are not stored."""
        for model in models:
            for reason, way_out in self.problems(model.tags):
                yield _refusal(model, reason, way_out)
            for column in model.columns:
                for reason, way_out in self.problems(column.tags):
                    yield _refusal(model, reason, way_out, column.name)

    def problems(self, tags: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the tags of one object, and what to do about it."""
        if len(tags) > self.MOST:
            yield f"it has {len(tags)} tags", f"Name {self.MOST} at most."
        for key, value in tags.items():
            problem = self._key_problem(key)
            if problem:
                yield (
                    f"tag key {key!r} {problem}",
                    "Use letters, digits, underscores and blanks between them.",
                )
            if len(value) > self.LONGEST_VALUE:
                yield (
                    f"the value of tag {key!r} is longer than {self.LONGEST_VALUE} characters",
                    "Shorten it, or write it into the comment.",
                )
            elif value != value.strip():
                yield f"the value of tag {key!r} begins or ends with a blank", "Remove the blank."

    def _key_problem(self, key: str) -> str:
        if not key:
            return "is empty"
        if len(key) > self.LONGEST_KEY:
            return f"is longer than {self.LONGEST_KEY} characters"
        if key != key.strip():
            return "begins or ends with a blank"
        own = next((key.removeprefix(prefix) for prefix in self._SYSTEM if key.startswith(prefix)), key)
        found = self._FORBIDDEN.search(own)
        return f"has a character that is not allowed here: {found[0]!r}" if found else ""


def _refusal(model: Table, reason: str, way_out: str, column: str | None = None) -> InvalidModelError:
    found = (one.declared_at for one in model.columns if one.name == column)
    return InvalidModelError(
        reason,
        table=str(model.qualified_name),
        column=column,
        location=next(found, None) or model.declared_at,
        way_out=way_out,
    )
