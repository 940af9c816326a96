"""Tags of any object. The engine sets the declared keys; the policy decides the ownership of all others.

Keys and values compare exactly: Unity Catalog distinguishes `Sales` from `sales` (Databricks documentation, "Apply tags
to Unity Catalog securable objects").
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from delta_engine.actions.policy import Ownership
from delta_engine.aspects.aspect import Change, Sign

Tags = Mapping[str, str]
"""Values by key."""


@dataclass(frozen=True, slots=True)
class TagChange:
    """One tag, both sides. None marks an absent key."""

    key: str
    desired: str
    observed: str | None

    def __post_init__(self) -> None:
        if self.desired == self.observed:
            raise ValueError(f"tag {self.key} already has this value")


def changed_tags(desired: Tags, observed: Tags) -> tuple[TagChange, ...]:
    """Return the model's tags that are missing or have another value, sorted by key."""
    if desired == observed:
        return ()
    return tuple(
        TagChange(key, value, observed.get(key))
        for key, value in sorted(desired.items())
        if observed.get(key) != value
    )


def unwanted_tags(
    desired: Tags, observed: Tags, ours: Container[str], ownership: Ownership
) -> tuple[tuple[str, str], ...]:
    """Return the undeclared (key, value) pairs that the engine may unset, sorted."""
    return tuple(
        (key, value)
        for key, value in sorted(observed.items())
        if key not in desired and (ownership is Ownership.FULL or key in ours)
    )


def explain_set(changes: Iterable[TagChange], subject: str = "") -> Iterator[Change]:
    """Yield a line per tag; `subject` is the tagged column followed by a space, or empty for a table."""
    for change in changes:
        yield Change(
            sign=Sign.ADDED if change.observed is None else Sign.CHANGED,
            subject=f"{subject}tag {change.key}",
            observed=None if change.observed is None else repr(change.observed),
            desired=repr(change.desired),
        )


def explain_unset(tags: Iterable[tuple[str, str]], subject: str = "") -> Iterator[Change]:
    """Yield a line per tag; `subject` as in `explain_set`."""
    for key, value in tags:
        yield Change(sign=Sign.REMOVED, subject=f"{subject}tag {key}", observed=repr(value))


def with_observed(tags: Tags, observed: Tags, keys: Iterable[str]) -> dict[str, str]:
    """Return a model's tags with the observed side of some keys."""
    taken = set(keys)
    kept = {key: value for key, value in tags.items() if key not in taken}
    return kept | {key: value for key, value in observed.items() if key in taken}
