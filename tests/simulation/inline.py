"""Work of thread pools in the thread that asks for it: each actor of a story asks one thing at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextvars import copy_context
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class InlineExecutor(Executor):
    """Runs each call at once, in the context of a thread of its own; takes the arguments of `ThreadPoolExecutor`."""

    def __init__(
        self,
        _most_threads: int,
        *,
        thread_name_prefix: str = "",
        initializer: Callable[[], None] = lambda: None,
    ) -> None:
        self._context = copy_context()
        self._context.run(initializer)

    def submit(
        self,
        call: Callable[_Arguments, _Result],
        /,
        *arguments: _Arguments.args,
        **options: _Arguments.kwargs,
    ) -> Future[_Result]:
        """Run a call, and keep what it raises until its result is asked for."""
        future: Future[_Result] = Future()
        try:
            future.set_result(self._context.run(call, *arguments, **options))
        except BaseException as error:  # noqa: BLE001 - as threads do
            future.set_exception(error)
        return future
