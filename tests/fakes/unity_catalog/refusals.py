"""How the fake catalog refuses: by error condition, as the platform does."""

from __future__ import annotations


class Refusal(Exception):
    """A statement that the platform would refuse.

    Args:
        error_class: the documented error condition; None where none is documented.
        message: what is wrong.
    """

    def __init__(self, error_class: str | None, message: str) -> None:
        super().__init__(message)
        self.error_class = error_class
        self.message = message


def require(condition: object, error_class: str | None, message: str) -> None:
    if not condition:
        raise Refusal(error_class, message)
