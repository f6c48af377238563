"""The pytest plugin, in runs of its own."""

from __future__ import annotations

import pytest
from machines import TWO_HOSTS

pytestmark = pytest.mark.usefixtures("labs")

HASTY = '[fidelity]\nwithin = "1 ns"\n' + TWO_HOSTS + 'delay = "1 ms"\n'

PING = 'network["{}"].run("ping -q -c 3 -i 0.05 {}", capture_output=True)'


def test_the_network_is_that_of_the_marker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.network(unfaithful="accept", rate="10mbit", delay="5ms", forward={{"delay": "7ms"}})
        def test_link(network):
            link = network.instance.link("link")
            assert link.forward.settings["delay"] == "7 ms"
            assert link.backward.settings["delay"] == "5 ms"
            {PING.format("client", "server")}

        @pytest.mark.network(profile="lte", unfaithful="accept")
        class TestProfile:
            def test_profile(self, network):
                assert network.instance.link("link").forward.settings["rate.kind"] == "trace"

            @pytest.mark.network(delay="99ms")
            def test_override(self, network):
                assert network.instance.link("link").forward.settings["delay"] == "99 ms"

        @pytest.mark.network("net.toml", seed=8, settings={{"wan.delay": "9 ms"}}, unfaithful="accept")
        def test_settings(network):
            assert network.instance.link("wan").settings["delay"] == "9 ms"
            assert network.instance.api.ask("GET", "/v1/scenario")["toml"].startswith("seed = 8")
        """
    )
    (pytester.path / "net.toml").write_text(HASTY)
    pytester.runpytest().assert_outcomes(passed=4)


def test_what_was_not_faithful_does_not_pass(pytester: pytest.Pytester) -> None:
    (pytester.path / "hasty.toml").write_text(HASTY)
    ping = PING.format("a", "10.0.0.2")
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.network("hasty.toml")
        def test_fails(network):
            {ping}

        @pytest.mark.network("hasty.toml")
        def test_fails_although_it_asks_late(request):
            network = request.getfixturevalue("network")
            {ping}

        @pytest.mark.network("hasty.toml", unfaithful="xfail")
        def test_is_expected_to_fail(network):
            {ping}

        @pytest.mark.network("hasty.toml", unfaithful="xfail")
        def test_fails_as_expected(network):
            {ping}
            assert False

        @pytest.mark.network("hasty.toml", unfaithful="accept")
        def test_passes(network):
            {ping}

        @pytest.mark.network("hasty.toml")
        def test_skips(network):
            pytest.skip("later")
        """
    )
    run = pytester.runpytest("-rA")
    run.assert_outcomes(failed=2, xfailed=2, passed=1, skipped=1)
    run.stdout.fnmatch_lines(["*the network was not faithful: *"])


def test_the_choice_can_be_a_setting(pytester: pytest.Pytester) -> None:
    (pytester.path / "hasty.toml").write_text(HASTY)
    pytester.makeini("[pytest]\nnetwork_unfaithful = xfail\n")
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.network("hasty.toml")
        def test_it(network):
            {PING.format("a", "10.0.0.2")}
        """
    )
    pytester.runpytest().assert_outcomes(xfailed=1)


def test_mistakes_are_named(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.network(dealy="1ms")
        def test_key(network):
            pass

        @pytest.mark.network(unfaithful="ignore")
        def test_choice(network):
            pass
        """
    )
    run = pytester.runpytest()
    run.assert_outcomes(errors=2)
    run.stdout.fnmatch_lines(['*did you mean "delay"?*'])
    run.stdout.fnmatch_lines(["*choose one of fail, xfail, accept*"])
    run.stdout.fnmatch_lines(['the network can\'t start: *there is no key "dealy"*'])
    run.stdout.no_fnmatch_line("*lab.py:*")
    run.stdout.no_fnmatch_line("*During handling*")
