"""What the deployment state has of a table or schema, as models, and its key there.

Every question of ownership is answered by a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Generic

from typing_extensions import TypeVar

from delta_engine.models import Schema, SecurableName, Table

Model_co = TypeVar("Model_co", bound=Table | Schema, covariant=True, default=Table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Generic[Model_co]):
    """The record of a table or schema.

    Args:
        declared: the model that the engine applied last; None if no run finished.
        with_unmanaged_parts: that model with the parts that the catalog had besides, right after the apply or when the
            table was adopted; None if it had none.
        attempted: the models of later runs that did not finish. Parts of them may exist.
    """

    declared: Model_co | None = None
    with_unmanaged_parts: Model_co | None = None
    attempted: tuple[Model_co, ...] = ()

    @property
    def baseline(self) -> Model_co | None:
        """The table or schema as the last apply left it."""
        return self.with_unmanaged_parts or self.declared

    @property
    def ours(self) -> tuple[Model_co, ...]:
        """The applied and attempted models. The engine may remove their parts."""
        return (*((self.declared,) if self.declared else ()), *self.attempted)


_Model = TypeVar("_Model", bound=Table | Schema)
_Record = TypeVar("_Record", bound=Record[Any])


def mapped(record: _Record, change: Callable[[Any], Any]) -> _Record:
    """Return a record with each of its models changed."""
    declared, whole = record.declared, record.with_unmanaged_parts
    return replace(
        record,
        declared=declared and change(declared),
        with_unmanaged_parts=whole and change(whole),
        attempted=tuple(map(change, record.attempted)),
    )


def records_of(models: Iterable[_Model]) -> dict[str, Record[_Model]]:
    """Return the records of models that were applied and left nothing else, by key."""
    return {model.key: Record(declared=model) for model in models}


def resource_key(name: SecurableName) -> str:
    """Return a key in lower case: `table.<catalog>.<schema>.<table>` or `schema.<catalog>.<schema>`."""
    return f"{name.kind}.{name.key}"
