"""Errors of Longwire as exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Sequence, Tuple, Type

if TYPE_CHECKING:
    from .records import Verdict


#: The file of a scenario that was built in Python.
BUILT = "-"


class LongwireError(Exception):
    """What Longwire refused or could not do.

    The attributes are those of its JSON; what is unknown is None.
    """

    def __init__(
        self,
        message: str,
        *,
        file: Optional[str] = None,
        line: Optional[int] = None,
        column: Optional[int] = None,
        field: Optional[str] = None,
        fix: Optional[str] = None,
        suggestion: Optional[str] = None,
        more: Sequence["LongwireError"] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        #: The scenario's file, "-" if it was built in Python.
        self.file = file
        #: Its line and column, counted from 1.
        self.line = line
        self.column = column
        #: The object, key or option that is wrong.
        self.field = field
        #: How to fix it.
        self.fix = fix
        #: What was probably meant.
        self.suggestion = suggestion
        #: Further errors of the same scenario.
        self.more = tuple(more)

    def __str__(self) -> str:
        text = self.message if self.line is None else f"{self._place()}: {self.message}"
        if self.fix and self.fix not in text:
            text += f"; {self.fix}"
        return "\n".join([text, *map(str, self.more)])

    def _place(self) -> str:
        # Nobody has written the lines of a scenario that was built in Python: its object says more.
        if self.file == BUILT:
            return self.field or f"line {self.line} of the scenario's text"
        place = f"{self.file}:{self.line}:{self.column}"
        return f"{place}: {self.field}" if self.field else place

    def __reduce__(self) -> Tuple[Any, ...]:
        # Exceptions are made again from their message alone, which is not enough for all of these.
        return _restored, (type(self), self.args, self.__dict__)

    @classmethod
    def of_json(cls, error: Mapping[str, Any]) -> "LongwireError":
        """The error that a command printed as JSON."""
        known = {key: error.get(key) for key in ("file", "line", "column", "field", "fix", "suggestion")}
        more = [LongwireError.of_json(one) for one in error.get("more", [])]
        return cls(str(error.get("error", "it gave no reason")), **known, more=more)


def _restored(
    kind: Type[LongwireError], arguments: Tuple[Any, ...], attributes: Dict[str, Any]
) -> LongwireError:
    """An error that came from another process."""
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(attributes)
    return error


class ProgramNotFound(LongwireError):
    """The program `longwire` is not there."""


class NoAnswer(LongwireError):
    """A running instance does not answer, or has ended."""


class Refused(LongwireError):
    """A running instance refused a request; nothing has changed."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        detail = str(problem.get("detail", f"status {status}"))
        super().__init__(detail, field=problem.get("key"), suggestion=problem.get("suggestion"))
        #: The HTTP status: 404 if there is no such object, 409 if it can't change in this run, 422 for a
        #: wrong value.
        self.status = status


class NotFaithful(LongwireError):
    """The emulation was not faithful, so results measured behind it do not count."""

    def __init__(self, verdict: "Verdict") -> None:
        super().__init__(f"the run was not faithful: {verdict.reason}")
        #: The verdict with its causes.
        self.verdict = verdict
