"""Errors go from process to process."""

from __future__ import annotations

import pickle

import pytest

from longwire import LongwireError, NotFaithful, Refused, Verdict

VERDICT = Verdict(False, ("the machine was busy",), 10, 1, {"max": 5_000_000})


@pytest.mark.parametrize(
    "error",
    [
        LongwireError("no", file="-", line=1, column=2, fix="do", more=[LongwireError("more")]),
        Refused(404, {"detail": "there is no link", "key": "wan", "suggestion": "lan"}),
        NotFaithful(VERDICT),
    ],
)
def test_errors_are_whole_after_pickling(error: LongwireError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error) and again.args == error.args
    attributes, kept = dict(vars(error)), dict(vars(again))
    assert [str(one) for one in kept.pop("more")] == [str(one) for one in attributes.pop("more")]
    assert kept == attributes
