"""Calls as tasks of Ray, behind the interface of `concurrent.futures`."""

from __future__ import annotations

import importlib
import time
from concurrent import futures
from concurrent.futures import Executor, Future
from typing import Any, Callable, Dict

from ..errors import LongwireError


#: Seconds that a cancelled call waits for the end of its worker: Ray may let that live.
_END_TIME = 10.0


class RayExecutor(Executor):
    """An executor whose calls are tasks of Ray, for `longwire.sweep` and all that takes executors.

        ray.init("auto")
        with RayExecutor() as executor:
            rows = sweep("net.toml", axes, executor=executor)

    Options are those of a task of Ray, such as `num_cpus=2` or `scheduling_strategy="SPREAD"`.
    What the functions import has to be installed on all nodes. A task whose worker died runs again,
    three times by default: `max_retries=0` is never. Unlike in other executors, `cancel` also ends
    a call that runs, with its worker.
    """

    def __init__(self, **options: Any) -> None:
        try:
            self._ray: Any = importlib.import_module("ray")
        except ImportError as error:
            raise LongwireError("Ray is not installed", fix="pip install ray") from error
        task = self._ray.remote(_call)
        self._task = task.options(**options) if options else task
        self._is_shut = False
        #: The results that are not there yet.
        self._pending: Dict["Future[Any]", Any] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Starts `fn(*args, **kwargs)` on some node, and returns its future."""
        if self._is_shut:
            raise RuntimeError("cannot schedule new futures after shutdown")
        reference = self._task.remote(fn, args, kwargs)
        future: "Future[Any]" = reference.future()
        self._pending[future] = reference
        future.add_done_callback(self._ended)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no more calls. Waits for those that run, or cancels them with `cancel_futures`."""
        self._is_shut = True
        pending = list(self._pending)
        if cancel_futures:
            for future in pending:
                future.cancel()
        if wait:
            futures.wait(pending)

    def _ended(self, future: "Future[Any]") -> None:
        reference = self._pending.pop(future)
        if future.cancelled():
            self._ray.cancel(reference, force=True)


def _call(function: Callable[..., Any], arguments: Any, keywords: Any) -> Any:
    """Runs on the worker. A call that was cancelled does not return.

    Ray kills the processes that a cancelled call has started, and only then the worker. A call that
    waited for one of them could return in between, and the dying worker would get the next call.
    """
    try:
        return function(*arguments, **keywords)
    finally:
        context = importlib.import_module("ray").get_runtime_context()
        # Earlier versions of Ray do not tell.
        is_cancelled = getattr(context, "is_canceled", bool)
        deadline = time.monotonic() + _END_TIME
        while is_cancelled() and time.monotonic() < deadline:
            time.sleep(0.1)
