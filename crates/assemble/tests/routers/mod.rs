//! Routers in scenarios: plans, errors, and behaviour in virtual time.

mod graph;
mod processors;
mod promises;
mod routes;
mod weights;

use longwire_scenario::{Plan, parse, plan_of};

/// Two hosts on lines 1 and 2.
const HOSTS: &str = "host = [{ name = \"a\", address = [\"10.0.1.9/24\", \"fd01::9/64\"] },\n\
    { name = \"b\", address = [\"10.0.2.9/24\", \"fd02::9/64\"] }]\n";

fn plan(text: &str) -> Plan {
    plan_of(&format!("{HOSTS}{text}"))
}

/// Checks that one of the errors is at `place` (line:column) and contains `wanted`.
fn check(text: &str, place: &str, wanted: &str) {
    let error = parse("s.toml", &format!("{HOSTS}{text}")).map(|_| ()).unwrap_err();
    let mut told = error.findings.iter().map(ToString::to_string);
    let meant = |told: &String| told.starts_with(&format!("s.toml:{place}")) && told.contains(wanted);
    assert!(told.any(|told| meant(&told)), "wanted {place} {wanted}\n{error}\nin:\n{text}");
}

/// A router between the two hosts, with more configuration.
fn between(more: &str) -> String {
    format!(
        "[[router]]\nname = \"r\"\nports = [{{ port = \"a\", addresses = [\"10.0.1.1/24\", \"fd01::1/64\"] \
         }},\n\
         {{ port = \"b\", addresses = [\"10.0.2.1/24\", \"fd02::1/64\"] }}]\n{more}"
    )
}
