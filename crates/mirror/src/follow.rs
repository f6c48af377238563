//! The thread that listens to the kernel and tells the router.

use crate::change::{Change, Destination, Target};
use crate::message::{RTNLGRP_NEXTHOP, read};
use crate::stats::{Counters, MirrorStats, count};
use crate::view::View;
use longwire_lab::{LabError, Namespace};
use longwire_netlink::{LONGEST, Socket, address, link, neighbour, route, split_reply};
use longwire_router::Way;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The groups that are listened to.
const GROUPS: [u32; 7] = [
    libc::RTNLGRP_LINK,
    libc::RTNLGRP_NEIGH,
    libc::RTNLGRP_IPV4_IFADDR,
    libc::RTNLGRP_IPV6_IFADDR,
    libc::RTNLGRP_IPV4_ROUTE,
    libc::RTNLGRP_IPV6_ROUTE,
    RTNLGRP_NEXTHOP,
];

/// Room for messages that are not read yet: a route takes about 500 bytes of it.
const ROOM: usize = 32 << 20;
/// How often the thread looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// Datagrams that are read before the router is told: of what changes back and forth it hears the end.
const MOST_READ: usize = 1024;
/// Changes that a router carries out between two batches of packets: these wait for it.
const TOGETHER: usize = 64;
/// The least time between two dumps, and how many times as long as the last took: a namespace that makes dumps necessary all the time costs a fifth of
/// a processor at most.
const BETWEEN: Duration = Duration::from_millis(50);
const TIMES: u32 = 4;
/// How often a dump is begun anew because something changed meanwhile, before it is taken as it is: the changes are told besides.
const ATTEMPTS: usize = 3;

/// A port of the router and the interface beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// The interface's index in the namespace.
    pub index: u32,
    /// The port's place in the plan.
    pub port: u16,
}

/// A namespace that is being mirrored. Dropping it ends that; the router keeps what it knows.
#[derive(Debug)]
pub struct Mirror {
    counters: Arc<Counters>,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Mirror {
    /// Begins to mirror `namespace`, whose interfaces are beside the ports of the router that `target` tells.
    ///
    /// # Errors
    /// The namespace can't be entered or listened to, or there is no thread to be had.
    pub fn start(namespace: &Namespace, ports: &[Pair], target: Box<dyn Target>) -> Result<Self, LabError> {
        Self::with_room(namespace, ports, target, ROOM)
    }

    /// The same with `room` bytes for messages that are not read yet, of which the kernel makes twice as many: when there is no more, all is
    /// asked for anew.
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
        let counters = Arc::new(Counters::default());
        let ending = Arc::new(AtomicBool::new(false));
        let mut follower = Follower {
            heard,
            asked,
            view: View::new(ports.iter().map(|pair| (pair.index, pair.port))),
            told: BTreeMap::new(),
            sound: false,
            target,
            counters: Arc::clone(&counters),
            ending: Arc::clone(&ending),
        };
        let thread = std::thread::Builder::new()
            .name("mirror".into())
            .spawn(move || {
                follower.run();
            })
            .map_err(doing)?;
        Ok(Self { counters, ending, thread: Some(thread) })
    }

    /// What it has done so far.
    pub fn stats(&self) -> MirrorStats {
        self.counters.read()
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // What it ends with is nobody's business any more.
            let _ = thread.join();
        }
    }
}

struct Follower {
    heard: Socket,
    asked: Socket,
    view: View,
    /// Routes that the router has.
    told: BTreeMap<Destination, Way>,
    /// Whether the view is of everything: the last dump has come to its end.
    sound: bool,
    target: Box<dyn Target>,
    counters: Arc<Counters>,
    ending: Arc<AtomicBool>,
}

impl Follower {
    /// Until it is to end, or the router has ended.
    fn run(&mut self) -> Option<()> {
        let mut buffer = vec![0; LONGEST];
        self.told = self.target.routes()?.into_iter().collect();
        // What the router has and the kernel has not is to go.
        self.view.touch(self.told.keys().copied());
        let mut wants_dump = true;
        let mut next_dump = Instant::now();
        while !self.ending.load(Ordering::Relaxed) {
            let now = Instant::now();
            if wants_dump && now >= next_dump {
                self.sound = self.dump(&mut buffer);
                wants_dump = !self.sound;
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

    /// Reads what the kernel says, waiting for the first word. False if something was lost, or must be asked for.
    fn hear(&mut self, buffer: &mut [u8]) -> bool {
        let mut complete = true;
        for number in 0..MOST_READ {
            let received =
                if number == 0 { self.heard.receive(buffer) } else { self.heard.try_receive(buffer) };
            let (datagram, of_the_kernel) = match received {
                Ok(received) => received,
                Err(error) => match error.raw_os_error() {
                    Some(libc::ENOBUFS) => {
                        count(&self.counters.overflows);
                        return false;
                    }
                    _ => return complete,
                },
            };
            if of_the_kernel {
                complete &= note(&mut self.view, &self.counters, datagram);
            } else {
                count(&self.counters.foreign);
            }
        }
        complete
    }

    /// Asks for everything. False if not everything was answered.
    fn dump(&mut self, buffer: &mut [u8]) -> bool {
        count(&self.counters.dumps);
        self.skip(buffer);
        for _ in 0..ATTEMPTS {
            self.view.forget();
            match self.ask_for_all() {
                Ok(true) => return true,
                Ok(false) => {}
                Err(_) => return false,
            }
        }
        // What changed while it was asked for will be heard.
        true
    }

    /// Reads over what was said so far: if some of it was lost, the rest says what does not hold any more.
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
        let Self { asked, view, counters, .. } = self;
        let mut whole = true;
        for listing in [link::list(), address::list(), route::list(), neighbour::list()] {
            whole &= asked.dump(listing, |kind, body| {
                count(&counters.messages);
                match read(kind, 0, body) {
                    // A dump says what is there, and never that something is gone.
                    Ok(told) => told.into_iter().for_each(|told| _ = view.note(told)),
                    Err(_) => count(&counters.malformed),
                }
            })?;
        }
        Ok(whole)
    }

    /// Tells the router what is different from what it knows. None if it has ended.
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
                count(if done { &self.counters.changes } else { &self.counters.refused });
                if let (Change::Route { to, way }, true) = (change, done) {
                    match way {
                        Some(way) => self.told.insert(*to, way.clone()),
                        None => self.told.remove(to),
                    };
                }
            }
        }
        self.counters.routes.store(self.told.len() as u64, Ordering::Relaxed);
        self.counters.neighbours.store(self.view.neighbours() as u64, Ordering::Relaxed);
        Some(())
    }
}

/// Reads a datagram of the kernel. False if something must be asked for.
fn note(view: &mut View, counters: &Counters, datagram: &[u8]) -> bool {
    let (mut rest, mut complete) = (datagram, true);
    while !rest.is_empty() {
        count(&counters.messages);
        let Some((message, tail)) = split_reply(rest) else {
            count(&counters.malformed);
            return false;
        };
        rest = tail;
        match read(message.kind, message.flags, message.body) {
            Ok(told) => complete &= told.is_none_or(|told| view.note(told)),
            Err(_) => {
                count(&counters.malformed);
                complete = false;
            }
        }
    }
    complete
}
