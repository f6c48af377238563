//! Invariants for arbitrary bytes as a scenario, shared by the fuzz target and the ordinary tests.

use longwire_assemble::{Calibration, price};
use longwire_scenario::parse;

/// Reads the bytes as a scenario and visits all of the plan, or of its errors.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if large(&text) {
        return;
    }
    let plan = match parse("fuzz.toml", &text) {
        Ok(plan) => plan,
        Err(error) => {
            assert!(!error.findings.is_empty() && !error.to_string().is_empty());
            return;
        }
    };
    for link in &plan.links {
        assert!(plan.profiles.len() > link.profile as usize);
        assert!(!plan.end_name(link.from).is_empty() && link.from != link.to);
    }
    let by_address = plan.address_rules.iter().map(|rule| &rule.route);
    for route in by_address.chain(plan.pair_rules.iter().map(|rule| &rule.route)) {
        let links = plan.routes.links(route);
        assert!(links.iter().all(|place| plan.links.len() > *place as usize));
    }
    for (place, port) in plan.ports.iter().enumerate() {
        if let Some(end) = port.attachment.control() {
            let beside = &plan.routers[end.router as usize].ports[end.port as usize];
            assert_eq!(beside.control, Some(place as u16));
            continue;
        }
        assert!(plan.segments[port.segment as usize].ports.contains(&(place as u16)));
        match port.router {
            Some(router) => {
                let ports = &plan.routers[router as usize].ports;
                assert!(ports.iter().any(|own| usize::from(own.place) == place));
            }
            None => assert!(plan.bridges[port.bridge as usize].ports.contains(&(place as u16))),
        }
    }
    let _ = price(&plan, &Calibration::default()).shortfalls;
}

/// Whether a count might make more objects than a quick test can handle.
fn large(text: &str) -> bool {
    let digits = |c: char| c.is_ascii_hexdigit() || matches!(c, '_' | 'x' | 'o');
    text.contains("count")
        && text
            .split(|c| !digits(c))
            .any(|number| number.len() > 3 && number.starts_with(|c: char| c.is_ascii_digit()))
}
