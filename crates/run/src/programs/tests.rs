//! Requests about programs that no router answers.

use super::*;

/// A router that answers nothing but this.
struct Refusing(SetError);

impl RouterAccess for Refusing {
    fn ask<T: Send + 'static>(
        &self,
        _: impl FnOnce(&mut Router) -> T + Send + 'static,
    ) -> Result<T, SetError> {
        Err(self.0.clone())
    }
}

/// A router `r` between two ports.
fn live() -> LiveRouters {
    let text = "[[port]]\nname = \"a\"\ndriver = \"source\"\naddresses = \"10.0.1.9/24\"\n[[port]]\n\
        name = \"b\"\ndriver = \"source\"\naddresses = \"10.0.2.9/24\"\n[[router]]\nname = \"r\"\n\
        ports = [{ port = \"a\", addresses = \"10.0.1.1/24\" },\n\
        { port = \"b\", addresses = \"10.0.2.1/24\" }]\n\
        [[link]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\n";
    let plan = Arc::new(longwire_scenario::parse("x.toml", text).unwrap());
    LiveRouters::new(plan, Vec::new(), Vec::new())
}

#[test]
fn a_lease_ends_again_if_the_router_does_not_answer() {
    let live = live();
    let lease = |error: SetError| {
        assert_eq!(live.end_lease(&Refusing(error), 0, 7), None, "nothing was removed");
        live.leases().of(live.lease_key(0, 7), Instant::now()).map(|(length, _)| length)
    };
    assert_eq!(lease(unknown(7)), None, "it is gone");
    assert_eq!(lease(SetError::Unavailable("a worker is busy".into())), Some(RETRY));
}

#[test]
fn lists_are_not_read_as_objects() {
    let live = live();
    let install = |forwarder: Value| {
        let router = Refusing(SetError::Unavailable("it was asked".into()));
        let new = NewForwarder { forwarder, ..NewForwarder::default() };
        live.forwarders_at(&router, "r", &ProgramRequest::Install(new)).unwrap_err()
    };
    for (forwarder, wrong) in [
        (json!(["x", "syn-monitor"]), "forwarder"),
        (json!({ "program": "syn-monitor", "key": ["10.0.0.1"] }), "key"),
    ] {
        let error = install(forwarder).to_string();
        assert!(error.starts_with(&format!("{wrong}: write an object, such as {{")), "{error}");
    }
    let asked = install(json!({ "program": "syn-monitor", "key": { "protocol": "tcp" } }));
    assert!(matches!(asked, SetError::Unavailable(_)), "{asked}");
}
