//! Requests about programs that no router answers, or between which others come.

use super::*;
use crate::real_run::{RealOptions, RealRun};
use std::cell::Cell;

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
        live.leases.of(live.lease_key(0, 7), Instant::now()).map(|(length, _)| length)
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

#[test]
fn a_lease_in_the_place_of_another_is_refused() {
    let router = Refusing(SetError::Unavailable("it was asked".into()));
    let (forwarder, lease) = (json!({ "program": "syn-monitor" }), Some("30 s".into()));
    let ask = ProgramRequest::Replace(7, NewForwarder { forwarder, lease, ..NewForwarder::default() });
    let error = live().forwarders_at(&router, "r", &ask).unwrap_err().to_string();
    assert!(error.starts_with("lease: "), "{error}");
}

/// A router that answers so often before another request comes.
struct Interrupted<'r> {
    router: Running<'r>,
    left: Cell<u32>,
    other: &'r dyn Fn(),
}

impl RouterAccess for Interrupted<'_> {
    fn ask<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Router) -> T + Send + 'static,
    ) -> Result<T, SetError> {
        let done = self.router.ask(act);
        self.left.set(self.left.get().wrapping_sub(1));
        if self.left.get() == 0 {
            (self.other)();
        }
        done
    }
}

/// A removed attachment's number is the next one's at once.
#[test]
fn an_attachment_that_comes_during_a_removal_stays() {
    let ports = [("a", 1), ("b", 2)].map(|(name, net)| {
        format!("[[port]]\nname = \"{name}\"\ndriver = \"source\"\naddresses = \"10.0.{net}.9/24\"\n")
    });
    let text = ports.concat()
        + "[[router]]\nname = \"r\"\ncontrol = { packets = 500_000, cycles = 500_000_000 }\n\
           ports = [{ port = \"a\", addresses = \"10.0.1.1/24\" },\n\
           { port = \"b\", addresses = \"10.0.2.1/24\" }]\n\
           [[link]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\n";
    let name = format!("t{}-taken", std::process::id());
    let plan = longwire_scenario::plan_of(&text);
    let run = RealRun::start(plan, None, RealOptions { name, ..RealOptions::default() }).unwrap();
    let (live, remote) = (Arc::clone(&run.instance().state().objects.routers), run.instance().remote());
    let install = |name: &str| {
        let forwarder = json!({ "where": "control", "name": name, "packets": "1000", "cycles": "5000" });
        let new = NewForwarder { forwarder, ..NewForwarder::default() };
        live.forwarders(remote, "r", &ProgramRequest::Install(new))
    };
    let fid = install("first").unwrap()["fid"].as_u64().unwrap() as u32;
    let other = || drop(install("second").unwrap());
    // It is asked for its programs twice, then to take others, then to remove the attachment.
    let left = Cell::new(4);
    let router = Interrupted { router: Running { remote, node: live.refs[0] }, left, other: &other };
    live.forwarders_at(&router, "r", &ProgramRequest::Remove(fid)).unwrap();
    assert_eq!(router.left.get(), 0, "the other has come");
    let again = install("second").unwrap_err().to_string();
    assert!(again.starts_with("packets: "), "its process is expected, by this name: {again}");
    run.stop();
}
