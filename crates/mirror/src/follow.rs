//! The thread that listens to the kernel and updates the router.

use crate::change::{Change, Destination, Target};
use crate::message::{RTNLGRP_NEXTHOP, read};
use crate::stats::{MirrorStats, count, held};
use crate::view::View;
use longwire_lab::{LabError, Namespace};
use longwire_netlink::{LONGEST, Socket, address, link, neighbour, route, split_reply};
use longwire_router::RouteHops;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The multicast groups subscribed to.
const GROUPS: [u32; 7] = [
    libc::RTNLGRP_LINK,
    libc::RTNLGRP_NEIGH,
    libc::RTNLGRP_IPV4_IFADDR,
    libc::RTNLGRP_IPV6_IFADDR,
    libc::RTNLGRP_IPV4_ROUTE,
    libc::RTNLGRP_IPV6_ROUTE,
    RTNLGRP_NEXTHOP,
];

/// Receive buffer: a route needs about 500 bytes of it.
const ROOM: usize = 32 << 20;
/// Interval between checks whether the thread should end.
const LOOK: Duration = Duration::from_millis(100);
/// Datagrams read before the router is updated: of repeated changes it only receives the last.
const MOST_READ: usize = 1024;
/// Changes per update, which the router applies between two batches of packets, and which delay these.
const TOGETHER: usize = 64;
/// The shortest time between two dumps, also as a multiple of the last dump's duration: a namespace that
/// continuously requires dumps costs at most a fifth of a processor.
const BETWEEN: Duration = Duration::from_millis(50);
const TIMES: u32 = 4;
/// Attempts at a dump that is interrupted by changes, before it is accepted until the next one.
const ATTEMPTS: usize = 3;

/// A port of the router and its interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// The interface's index in the namespace.
    pub index: u32,
    /// The port's number in the plan.
    pub port: u16,
}

/// A namespace that is being mirrored. Dropping it stops the mirroring; the router keeps its state.
#[derive(Debug)]
pub struct Mirror {
    stats: Arc<Mutex<MirrorStats>>,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Mirror {
    /// Starts mirroring `namespace`, whose interfaces belong to the ports of the router behind `target`.
    ///
    /// # Errors
    /// The namespace can't be entered or listened to, or no thread is available.
    pub fn start(namespace: &Namespace, ports: &[Pair], target: Box<dyn Target>) -> Result<Self, LabError> {
        Self::with_room(namespace, ports, target, ROOM)
    }

    /// Starts mirroring with a receive buffer of `room` bytes, which the kernel doubles. When it overflows,
    /// everything is dumped again.
    ///
    /// # Errors
    /// As [`Mirror::start`].
    pub fn with_room(
        namespace: &Namespace,
        ports: &[Pair],
        target: Box<dyn Target>,
        room: usize,
    ) -> Result<Self, LabError> {
        let open = || {
            let mut heard = Socket::route()?;
            heard.subscribe(&GROUPS, room, LOOK)?;
            Ok((heard, Socket::route()?))
        };
        let doing = |source| LabError::System { doing: "listening to a router's namespace".into(), source };
        let (heard, asked) = namespace.run(open)?.map_err(doing)?;
        let (stats, ending) = (Arc::<Mutex<MirrorStats>>::default(), Arc::<AtomicBool>::default());
        let mut follower = Follower {
            heard,
            asked,
            view: View::new(ports.iter().map(|pair| (pair.index, pair.port))),
            told: BTreeMap::new(),
            sound: false,
            target,
            stats: Arc::clone(&stats),
            ending: Arc::clone(&ending),
        };
        let thread = std::thread::Builder::new().name("mirror".into());
        let thread = thread.spawn(move || _ = follower.run()).map_err(doing)?;
        Ok(Self { stats, ending, thread: Some(thread) })
    }

    /// Counters so far.
    pub fn stats(&self) -> MirrorStats {
        *held(&self.stats)
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread's result is no longer needed.
            let _ = thread.join();
        }
    }
}

struct Follower {
    heard: Socket,
    asked: Socket,
    view: View,
    /// Routes of the router.
    told: BTreeMap<Destination, RouteHops>,
    /// Whether the view is complete: the last dump was finished.
    sound: bool,
    target: Box<dyn Target>,
    stats: Arc<Mutex<MirrorStats>>,
    ending: Arc<AtomicBool>,
}

impl Follower {
    /// Runs until it should end, or the router has ended.
    fn run(&mut self) -> Option<()> {
        let mut buffer = vec![0; LONGEST];
        self.told = self.target.routes()?.into_iter().collect();
        // Routes of the router that the kernel does not have must be removed.
        self.view.touch(self.told.keys().copied());
        let mut wants_dump = true;
        let mut next_dump = Instant::now();
        while !self.ending.load(Ordering::Relaxed) {
            let now = Instant::now();
            if wants_dump && now >= next_dump {
                let whole = self.dump(&mut buffer);
                self.sound = whole.is_some();
                wants_dump = whole != Some(true);
                let took = now.elapsed();
                next_dump = now + took + BETWEEN.max(took * TIMES);
            } else {
                wants_dump |= !self.hear(&mut buffer);
            }
            if self.sound {
                self.tell()?;
            }
        }
        Some(())
    }

    /// Reads the kernel's messages, waiting for the first one. Returns false if some were lost or a dump is
    /// needed.
    fn hear(&mut self, buffer: &mut [u8]) -> bool {
        let mut complete = true;
        for number in 0..MOST_READ {
            let received =
                if number == 0 { self.heard.receive(buffer) } else { self.heard.try_receive(buffer) };
            match received {
                Ok((datagram, true)) => complete &= note(&mut self.view, &self.stats, datagram),
                Ok((_, false)) => count(&self.stats, |stats| &mut stats.foreign),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    count(&self.stats, |stats| &mut stats.overflows);
                    return false;
                }
                Err(_) => return complete,
            }
        }
        complete
    }

    /// Dumps everything. Returns none if that failed, and false if changes interrupted the dump.
    fn dump(&mut self, buffer: &mut [u8]) -> Option<bool> {
        count(&self.stats, |stats| &mut stats.dumps);
        self.skip(buffer);
        for _ in 0..ATTEMPTS {
            self.view.forget();
            match self.ask_for_all() {
                Ok(true) => return Some(true),
                Ok(false) => {}
                Err(_) => return None,
            }
        }
        // Changes made during the dump are received later. What the kernel passed over because of them is
        // not (it goes on by counting: `fib6_dump_table` in net/ipv6/ip6_fib.c), but is in the next dump.
        Some(false)
    }

    /// Reads the messages received so far, some of which were lost: the remaining ones report removals.
    fn skip(&self, buffer: &mut [u8]) {
        while !self.ending.load(Ordering::Relaxed) {
            match self.heard.try_receive(buffer) {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                Err(_) => return,
            }
        }
    }

    fn ask_for_all(&mut self) -> io::Result<bool> {
        let Self { asked, view, stats, .. } = self;
        let mut whole = true;
        for listing in [link::list(), address::list(), route::list(), neighbour::list()] {
            whole &= asked.dump(listing, |kind, body| {
                count(stats, |stats| &mut stats.messages);
                match read(kind, 0, body) {
                    // A dump only contains what exists, never removals.
                    Ok(told) => told.into_iter().for_each(|told| _ = view.note(told)),
                    Err(_) => count(stats, |stats| &mut stats.malformed),
                }
            })?;
        }
        Ok(whole)
    }

    /// Sends the router the differences to its state. None if it has ended.
    fn tell(&mut self) -> Option<()> {
        let mut changes = self.view.take_changes();
        changes.retain(|change| match change {
            Change::Route { to, way } => self.told.get(to) != way.as_ref(),
            _ => true,
        });
        for chunk in changes.chunks(TOGETHER) {
            if self.ending.load(Ordering::Relaxed) {
                return None;
            }
            let done = self.target.apply(chunk.to_vec())?;
            for (change, done) in chunk.iter().zip(done) {
                count(&self.stats, |stats| if done { &mut stats.changes } else { &mut stats.refused });
                if let (Change::Route { to, way }, true) = (change, done) {
                    match way {
                        Some(way) => self.told.insert(*to, way.clone()),
                        None => self.told.remove(to),
                    };
                }
            }
        }
        let mut stats = held(&self.stats);
        (stats.routes, stats.neighbours) = (self.told.len() as u64, self.view.neighbours() as u64);
        Some(())
    }
}

/// Reads a datagram of the kernel. Returns false if a dump is needed.
fn note(view: &mut View, stats: &Mutex<MirrorStats>, datagram: &[u8]) -> bool {
    let (mut rest, mut complete) = (datagram, true);
    while !rest.is_empty() {
        count(stats, |stats| &mut stats.messages);
        let Some((message, tail)) = split_reply(rest) else {
            count(stats, |stats| &mut stats.malformed);
            return false;
        };
        rest = tail;
        match read(message.kind, message.flags, message.body) {
            Ok(told) => complete &= told.is_none_or(|told| view.note(told)),
            Err(_) => {
                count(stats, |stats| &mut stats.malformed);
                complete = false;
            }
        }
    }
    complete
}
