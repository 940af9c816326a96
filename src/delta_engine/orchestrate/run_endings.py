"""How an apply ended: whether tables failed, whether somebody ended it, and whether it could be recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from delta_engine.deployment.errors import StaleStateError, UnsavedStateError
from delta_engine.execute.action_runner import ApplyFailedError, ApplyStoppedError
from delta_engine.execute.outcomes import AnyOutcome

Unsaved: TypeAlias = StaleStateError | UnsavedStateError
"""Why a deployment state was not saved."""


class UnrecordedApplyError(ApplyFailedError):
    """What was applied could not be recorded; schemas and tables may have failed besides.

    Args:
        outcomes: what became of every schema and table of the plan.
        reason: why it could not be recorded.
        failure: what else there is to say; None if all was done.
    """

    def __init__(
        self,
        outcomes: tuple[AnyOutcome, ...],
        *,
        reason: Unsaved,
        failure: ApplyFailedError | None,
    ) -> None:
        self.reason = reason
        self.failure = failure
        super().__init__(outcomes)

    def _message(self) -> str:
        return "\n".join(str(one) for one in (self.failure, self.reason) if one is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What became of everything that was to be done.

    Args:
        outcomes: of every schema and table of the plan.
        has_failed: whether any of them did.
        is_stopped: whether somebody asked for the end.
        unsaved: why it could not be recorded; None if it was.
        unverified: why no changed table is verified; empty if one is.
    """

    outcomes: tuple[AnyOutcome, ...] = ()
    has_failed: bool = False
    is_stopped: bool = False
    unsaved: Unsaved | None = None
    unverified: str = ""

    def raise_failure(self) -> None:
        """Raise what there is to say, unless all is done and recorded.

        Raises:
            UnrecordedApplyError: it could not be recorded.
            ApplyStoppedError: somebody asked for the end, be it after all was done.
            ApplyFailedError: a schema or a table failed.
        """
        failure = self._failure()
        if self.unsaved is not None:
            raise UnrecordedApplyError(self.outcomes, reason=self.unsaved, failure=failure) from self.unsaved
        if failure is not None:
            raise failure

    def _failure(self) -> ApplyFailedError | None:
        if self.is_stopped:
            return ApplyStoppedError(self.outcomes)
        return ApplyFailedError(self.outcomes) if self.has_failed else None
