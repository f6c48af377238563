"""The pytest plugin: the fixture `network` and the marker of the same name.

    @pytest.mark.network(profile="lte")
    def test_download(network):
        network["server"].popen(["python3", "-m", "http.server", "8000"])
        network["client"].run("until curl -fsS http://server:8000/ -o /dev/null; do sleep 0.1; done")

A test that passed behind a network whose emulation was not faithful has shown nothing: it fails, or by choice
is an expected failure.
"""

from __future__ import annotations

from typing import Any, Dict, Generator, Iterator, Optional

import pytest

from .errors import LongwireError
from .lab import Lab
from .records import Verdict

#: What becomes of tests whose network was not faithful.
CHOICES = ("fail", "xfail", "accept")

_MARKER = (
    "network(scenario=None, unfaithful=None, seed=None, settings=None, **link): the network of the fixture "
    "`network`. Either the file of a scenario, or the settings of the link between the hosts client and "
    "server, such as profile='lte' or rate='10mbit', delay='20ms'. seed and settings are those of Lab. "
    "unfaithful says what becomes of the test if the emulation was not faithful: 'fail', 'xfail' or 'accept'."
)


def pytest_addoption(parser: Any) -> None:
    help = "tests whose network was not faithful: fail, xfail or accept"
    parser.addini("network_unfaithful", help, default="fail")


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", _MARKER)


class Wanted:
    """What the markers of a test ask for; the closest one has the last word."""

    def __init__(self, item: Any) -> None:
        given: Dict[str, Any] = {}
        for marker in reversed(list(item.iter_markers("network"))):
            if len(marker.args) > 1:
                raise pytest.UsageError("network takes one argument without a name, the scenario's file")
            given.update(zip(("scenario",), marker.args))
            given.update(marker.kwargs)
        self.scenario: Optional[Any] = given.pop("scenario", None)
        ini = item.config.getini("network_unfaithful")
        self.unfaithful: str = given.pop("unfaithful", None) or ini
        if self.unfaithful not in CHOICES:
            raise pytest.UsageError(f"unfaithful={self.unfaithful!r}: choose one of {', '.join(CHOICES)}")
        self.options = {key: given.pop(key, None) for key in ("seed", "settings")}
        if self.scenario is not None and given:
            raise pytest.UsageError(f"a scenario's file has its own links; leave out {', '.join(given)}")
        self.link = given

    def lab(self) -> Lab:
        """The network that is wanted."""
        if self.scenario is not None:
            return Lab.load(self.scenario, **self.options)
        lab = Lab(**self.options)
        client, server = lab.host("client"), lab.host("server")
        # Forward is the direction to the user, as in profiles.
        lab.link(server, client, "link", **self.link)
        return lab


@pytest.fixture
def network(request: Any) -> Iterator[Lab]:
    """A running lab: the scenario of the marker `network`, else the hosts client and server with a link
    called "link". It ends with the test's body, before other fixtures are torn down.

    `network["client"]` is a host, `network.instance.link("link")` the link; its direction forward leads to
    the client.
    """
    lab = Wanted(request.node).lab()
    with lab:
        try:
            lab.start()
        except LongwireError as error:
            # Where it came from in this package does not matter.
            raise pytest.fail.Exception(f"the network can't start: {error}", pytrace=False) from None
        # A fixture that a test asks for while it runs is not among its `funcargs`.
        request.node.longwire_network = lab
        yield lab


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Generator[None, Any, None]:
    outcome = yield
    lab: Optional[Lab] = getattr(item, "longwire_network", None)
    if call.when != "call" or lab is None:
        return
    report = outcome.get_result()
    if report.skipped:
        return
    try:
        lab.stop()
    except LongwireError as error:
        report.outcome, report.longrepr = "failed", f"the network failed: {error}"
        return
    verdict = lab.verdict
    if verdict is None:
        return
    report.sections.append(("network", _described(verdict)))
    wanted = Wanted(item).unfaithful
    if verdict.faithful or wanted == "accept":
        return
    reason = f"the network was not faithful: {verdict.reason}"
    if wanted == "xfail":
        report.outcome, report.wasxfail = "skipped", reason
    elif report.passed:
        report.outcome, report.longrepr = "failed", f"{reason}\n{_described(verdict)}"


def _described(verdict: Verdict) -> str:
    late = ", ".join(f"{name} {nanos / 1000:g} us" for name, nanos in verdict.lateness_ns.items())
    return "\n".join([str(verdict), *verdict.causes, f"late by: {late}"])
