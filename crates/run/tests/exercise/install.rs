//! Invariants under arbitrary requests about a router's programs, with packets and time in between; also the
//! fuzz target of this name.
//!
//! The bytes are lines: a request of the API (`{"action": "remove", "fid": 1}`), a received frame (`< 2
//! 0200…`, the port and pairs of hexadecimal digits, `^` for the router's own link address), or nanoseconds
//! that pass (`+ 1000000`). Other lines are ignored.

use longwire_block::{CONSUMED, KEPT, Node, Outbox, refusal};
use longwire_control::{NewState, ProgramRequest, SetError};
use longwire_packet::{Batch, Handle, Pool};
use longwire_program::Resource;
use longwire_router::{Fid, Forwarders, InterfaceAddress, Router, RouterConfig, RouterPort};
use longwire_run::objects::routers::LiveRouters;
use longwire_run::programs::RouterAccess;
use longwire_scenario::{Network, Plan, hexadecimal, plan_of};
use longwire_units::Nanos;
use serde_json::Value;
use std::cell::RefCell;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

/// Most lines that are executed.
const MOST_LINES: usize = 64;

static PLAN: LazyLock<Arc<Plan>> = LazyLock::new(|| {
    let scenario = r#"
        [[host]]
        name = "a"
        address = "10.0.1.9/24"

        [[host]]
        name = "b"
        address = "10.0.2.9/24"

        [[router]]
        name = "r1"
        line-rate = "1 Gbit/s"
        ports = [
            { port = "a", addresses = ["10.0.1.1/24", "fd00:1::1/64"] },
            { port = "b", addresses = ["10.0.2.1/24", "fd00:2::1/64"] },
        ]

        [[link]]
        name = "there"
        from = "a"
        to = "b"

        [[link]]
        name = "back"
        from = "b"
        to = "a"
    "#;
    Arc::new(plan_of(scenario))
});

/// Effects of the lines, to check that they did something.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Programs that were installed, and removed.
    pub installed: u32,
    pub removed: u32,
    /// Requests that were answered, and refused.
    pub answered: u32,
    pub refused: u32,
    /// Packets that went out, and those that were dropped.
    pub forwarded: u64,
    pub dropped: u64,
}

/// Executes the lines. Every request is answered or refused with a reason; a refused one changes nothing;
/// installed programs fit the budget; numbers are not reused; and every packet is accounted for.
pub fn run(bytes: &[u8]) -> Done {
    let mut bench = Bench::new();
    for line in bytes.split(|&byte| byte == b'\n').take(MOST_LINES) {
        match line.first() {
            Some(b'{' | b'"') => bench.ask(line),
            Some(b'<') => bench.come_in(&String::from_utf8_lossy(&line[1..])),
            Some(b'+') => bench.pass(&String::from_utf8_lossy(&line[1..])),
            _ => {}
        }
        bench.check();
    }
    while bench.router.borrow().deadline() != Nanos::NEVER {
        let deadline = bench.router.borrow().deadline();
        bench.tick(deadline);
    }
    bench.check();
    let stats = bench.router.borrow().stats();
    assert_eq!(stats.kept, 0);
    Done { forwarded: stats.forwarded, dropped: stats.dropped, ..bench.done }
}

/// A router without a run, accessed directly.
struct Here(RefCell<Router>);

impl Here {
    fn borrow(&self) -> std::cell::RefMut<'_, Router> {
        self.0.borrow_mut()
    }
}

impl RouterAccess for Here {
    fn ask<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Router) -> T + Send + 'static,
    ) -> Result<T, SetError> {
        Ok(act(&mut self.borrow()))
    }
}

struct Bench {
    live: LiveRouters,
    router: Here,
    pool: Pool,
    out: Outbox,
    now: u64,
    last_fid: u32,
    done: Done,
}

impl Bench {
    fn new() -> Self {
        Self {
            live: LiveRouters::new(Arc::clone(&PLAN), Vec::new(), Vec::new()),
            router: Here(RefCell::new(router(&PLAN))),
            pool: Pool::new(2 << 20).expect("two mebibytes"),
            out: Outbox::default(),
            now: 0,
            last_fid: 0,
            done: Done::default(),
        }
    }

    fn ask(&mut self, line: &[u8]) {
        let Ok(ask) = serde_json::from_slice::<ProgramRequest>(line) else { return };
        let before = self.router.borrow().forwarders();
        match self.live.forwarders_at(&self.router, "r1", &ask) {
            Ok(answer) => {
                self.done.answered += 1;
                self.heed(&ask, &answer, &before);
            }
            Err(error) => {
                self.done.refused += 1;
                assert!(!error.to_string().is_empty());
                assert!(Arc::ptr_eq(&before, &self.router.borrow().forwarders()), "{ask:?}: {error}");
            }
        }
    }

    /// Checks an answer.
    fn heed(&mut self, ask: &ProgramRequest, answer: &Value, before: &Arc<Forwarders>) {
        let now = self.router.borrow().forwarders();
        match ask {
            ProgramRequest::Install(_) => {
                let fid = answer["fid"].as_u64().expect("an installation has a number") as u32;
                assert!(fid > self.last_fid && before.forwarder(Fid(fid)).is_none());
                assert!(now.forwarder(Fid(fid)).is_some() && now.all().len() == before.all().len() + 1);
                for &resource in Resource::ALL {
                    let limit = now.admission().budget.limit(resource);
                    assert!(limit.is_none_or(|limit| now.need().amount(resource) <= limit), "{ask:?}");
                }
                self.last_fid = fid;
                self.done.installed += 1;
            }
            ProgramRequest::Remove(fid) => {
                assert!(before.forwarder(Fid(*fid)).is_some() && now.forwarder(Fid(*fid)).is_none());
                self.done.removed += 1;
            }
            ProgramRequest::Set(fid, NewState { data, .. }) => {
                let kept = self.router.borrow().data(Fid(*fid));
                assert_eq!(kept, hexadecimal(data).ok());
            }
            ProgramRequest::List => {
                assert_eq!(answer["forwarders"].as_array().map(Vec::len), Some(now.all().len()));
            }
            _ => {}
        }
    }

    fn come_in(&mut self, line: &str) {
        let mut words = line.trim().splitn(2, ' ');
        let (Some(port), Some(digits)) = (words.next(), words.next()) else { return };
        let Ok(place @ 0..2) = port.parse::<u16>() else { return };
        let own: String = PLAN.routers[0].ports[usize::from(place)]
            .mac
            .0
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let Ok(mut frame) = hexadecimal(&digits.replacen('^', &own, 1)) else { return };
        fix(&mut frame);
        let Some(handle) = self.pool.insert(&frame) else { return };
        let meta = self.pool.meta_mut(handle);
        (meta.in_port, meta.arrival) = (place, self.now);
        let mut batch = Batch::new();
        batch.push(handle);
        self.router.borrow().forward(&mut self.pool, &batch, &mut self.out);
        let out_port = self.pool.meta(handle).out_port;
        self.take_out(Some((handle, out_port)));
    }

    fn pass(&mut self, line: &str) {
        let Ok(time) = line.trim().parse::<u64>() else { return };
        // Ten seconds exceed every timeout.
        let until = Nanos(self.now.saturating_add(time.min(10_000_000_000)));
        while self.router.borrow().deadline() <= until {
            let deadline = self.router.borrow().deadline();
            self.tick(deadline);
        }
        self.now = until.0;
    }

    fn tick(&mut self, now: Nanos) {
        self.router.borrow().tick(&mut self.pool, now, &mut self.out);
        self.now = self.now.max(now.0);
        self.take_out(None);
    }

    fn take_out(&mut self, first: Option<(Handle, u16)>) {
        let others = self.out.packets().to_vec();
        self.out.clear();
        for (handle, out_port) in first.into_iter().chain(others) {
            if out_port == KEPT {
                continue;
            }
            let meta = self.pool.meta_mut(handle);
            meta.out_port = out_port;
            assert!([0, 1, CONSUMED].contains(&out_port) || refusal(meta).is_some(), "{out_port:x}");
            self.pool.free(handle);
        }
    }

    fn check(&self) {
        let stats = self.router.borrow().stats();
        assert_eq!(self.pool.live(), stats.kept);
        let gone = stats.forwarded + stats.consumed + stats.dropped;
        assert_eq!(stats.received + stats.made, gone + stats.kept);
    }
}

/// The plan's router, by itself.
fn router(plan: &Plan) -> Router {
    let written = &plan.routers[0];
    let port = |port: &longwire_scenario::RouterPort| {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for &Network { address, prefix: len } in &port.addresses {
            match address {
                IpAddr::V4(address) => v4.push(InterfaceAddress { address: address.into(), len }),
                IpAddr::V6(address) => v6.push(InterfaceAddress { address: address.into(), len }),
            }
        }
        RouterPort { place: port.place, mac: port.mac.0, mtu: port.mtu, v4, v6 }
    };
    let ports = written.ports.iter().map(port).collect();
    let admission = written.admission.clone();
    let mut router =
        Router::new(RouterConfig { ports, admission, ..RouterConfig::default() }).expect("it can be");
    // The host behind the second port is known; the other one must be resolved, and never answers.
    assert!(router.set_neighbour(1, IpAddr::from([10, 0, 2, 9]), [2, 0, 0, 0, 0, 9]));
    router
}

/// Corrects the checksum of an IPv4 frame: otherwise only the check would be tested.
fn fix(frame: &mut [u8]) {
    if frame.len() >= 34 && frame[12..14] == [8, 0] {
        let end = (14 + usize::from(frame[14] & 15) * 4).clamp(34, frame.len());
        frame[24..26].fill(0);
        let checksum = longwire_wire::checksum::Sum::ZERO.bytes(&frame[14..end]).checksum();
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    }
}
