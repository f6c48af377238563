//! What a node has to do with the levels above.

use crate::admission::spare_rates;
use crate::allowance::{Allowance, Common};
use crate::cut::Cut;
use crate::inline::Inline;
use crate::layout::Class;
use crate::level::{Level, SeatId, Seated};
use crate::limits::Limits;
use crate::seat::{Counts, Refused, Seat};
use crate::way::Way;
use crate::wire::Attach;
use longwire_block::{OUTBOX, Outbox};
use longwire_packet::{FirstLine, Handle, Pool};
use longwire_units::Nanos;
use rtrb::{Consumer, Producer, RingBuffer};

/// How long the worker does not look while packets are up, while only someone is there, and while nobody is.
const POLLS: [Nanos; 3] = [Nanos::from_micros(5), Nanos::from_micros(200), Nanos::from_millis(5)];
/// Who comes, most at once.
const ARRIVALS: usize = 64;

/// Most seats of a level.
const MOST: usize = crate::turns::MOST;

/// The way to a level's seats, for who lets others in: a ring to the worker.
#[derive(Debug)]
pub struct Door(pub(crate) Producer<Attach>);

/// Packets of one node that are up, and who has them. Belongs to the node, and is used on its worker only.
///
/// The node calls [`Punt::offer`] for packets that go up, [`Punt::flush`] after each batch, and [`Punt::collect`] then and when
/// [`Punt::deadline`] has come.
#[derive(Debug)]
pub struct Punt {
    ports: Vec<u16>,
    control: Vec<Seat>,
    slow: Slow,
    arrivals: [Option<Consumer<Attach>>; 2],
    /// Packets a second for all processes together.
    capacity: u64,
    /// Of each level's part of the worker's time, what is promised to nobody; and that part, in nanoseconds a second.
    common: [Common; 2],
    aside: [Option<u64>; 2],
    /// Which process is looked at first.
    turn: usize,
    next_look: Nanos,
    /// See [`Punt::rewritten`].
    rewritten: Vec<(Handle, FirstLine)>,
}

#[derive(Debug)]
enum Slow {
    Threads(Vec<Seat>),
    Inline(Box<Inline>),
}

impl Punt {
    /// For a node with these ports (their places in the plan), with nobody above it yet.
    pub fn new(mut ports: Vec<u16>) -> Self {
        ports.sort_unstable();
        Self {
            ports,
            control: Vec::new(),
            slow: Slow::Threads(Vec::new()),
            arrivals: [None, None],
            capacity: 0,
            common: [Common(Allowance::UNBOUNDED); 2],
            aside: [None; 2],
            turn: 0,
            next_look: Nanos::NEVER,
            // No more are passed at a time.
            rewritten: Vec::with_capacity(OUTBOX / 2),
        }
    }

    /// The same in virtual time: services run in line, and there are no processes.
    pub fn simulated(ports: Vec<u16>, inline: Inline) -> Self {
        let mut punt = Self::new(ports);
        punt.slow = Slow::Inline(Box::new(inline));
        punt
    }

    /// Sets aside so many nanoseconds of each second of the worker's time for moving the packets of processes and of services: no more is taken for
    /// that, but for 10 ms' part that may be left over. A seat has what it was promised of it ([`Limits::aside`]), and all have the rest together. None is no bound.
    pub fn set_aside(&mut self, control: Option<u64>, slow: Option<u64>) {
        self.aside = [control, slow];
        self.share_time();
    }

    /// What seats were not promised of their level's time is everybody's.
    fn share_time(&mut self) {
        let promised = |seats: &[Seat]| -> u64 {
            seats.iter().filter(|seat| !seat.is_removed).map(|seat| seat.limits.aside).sum()
        };
        let slow = match &self.slow {
            Slow::Threads(seats) => promised(seats),
            Slow::Inline(inline) => inline.aside(),
        };
        let promised = [promised(&self.control), slow];
        for ((common, aside), promised) in self.common.iter_mut().zip(self.aside).zip(promised) {
            if let Some(aside) = aside {
                common.0.change(aside.saturating_sub(promised));
            }
        }
    }

    /// Sets up a seat for a control process, which calls itself `name`. None if there are 64.
    pub fn add_control(&mut self, name: &str, limits: Limits) -> Option<SeatId> {
        self.next_look = Nanos::ZERO;
        let seat = add(&mut self.control, name, limits).map(SeatId::control);
        self.share_time();
        seat
    }

    /// Sets up a seat for a service. None if there are 64, or services run in line: those have their seats from the start.
    pub fn add_service(&mut self, name: &str, limits: Limits) -> Option<SeatId> {
        self.next_look = Nanos::ZERO;
        let seat = match &mut self.slow {
            Slow::Threads(seats) => add(seats, name, limits).map(SeatId::slow),
            Slow::Inline(_) => None,
        };
        self.share_time();
        seat
    }

    /// Takes a seat away: who sits there is cut off, and its packets go to the default forwarder.
    pub fn remove(&mut self, seat: SeatId) {
        let SeatId(level, number) = seat;
        let seats = match (level, &mut self.slow) {
            (Level::Control, _) => &mut self.control,
            (Level::Slow, Slow::Threads(seats)) => seats,
            (Level::Slow, Slow::Inline(_)) => return,
        };
        if let Some(seat) = seats.get_mut(number) {
            seat.cut(Cut::Stopped);
            seat.is_removed = true;
            self.next_look = Nanos::ZERO;
        }
        self.share_out();
        self.share_time();
    }

    /// Takes a packet up: the node keeps it, and gets it back from [`Punt::collect`].
    ///
    /// # Errors
    /// It stays with the node: see [`Refused`].
    #[inline]
    pub fn offer(&mut self, pool: &Pool, handle: Handle, seat: SeatId, class: &Class) -> Result<(), Refused> {
        let SeatId(level, number) = seat;
        let common = &mut self.common[level as usize];
        let seats = match (level, &mut self.slow) {
            (Level::Control, _) => &mut self.control,
            (Level::Slow, Slow::Threads(seats)) => seats,
            (Level::Slow, Slow::Inline(inline)) => return inline.offer(number, pool, handle, class, common),
        };
        seats.get_mut(number).map_or(Err(Refused::Gone), |seat| seat.offer(pool, handle, class, common))
    }

    /// Whether [`Punt::offer`] would refuse a packet of this time for want of room or of the worker's time, or
    /// beyond the rate; if so, it counts as refused. False where nobody is. Of services in line it says so for want of time only.
    #[inline]
    pub fn refuses(&mut self, seat: SeatId, now: Nanos) -> bool {
        let SeatId(level, number) = seat;
        let common = &mut self.common[level as usize];
        let seats = match (level, &mut self.slow) {
            (Level::Control, _) => &mut self.control,
            (Level::Slow, Slow::Threads(seats)) => seats,
            (Level::Slow, Slow::Inline(inline)) => return inline.refuses(number, common, now),
        };
        seats.get_mut(number).is_some_and(|seat| seat.refuses(common, now))
    }

    /// Lets the levels above see what was offered; to be called once after each batch. Who sleeps is woken, with one system call.
    #[inline]
    pub fn flush(&mut self, now: Nanos) {
        self.seats_mut().for_each(|seat| seat.publish(now));
        if self.kept() > 0 {
            self.next_look = self.next_look.min(now + POLLS[0]);
        }
    }

    /// Takes back what was decided about, or has waited too long: what is sent or dropped goes into `out`, what the default forwarder is to take into
    /// `passed`, with `arrival` the time of that. It leaves room in `out` for as many packets again. Processes come before services. Answers how many
    /// packets were made.
    pub fn collect(
        &mut self,
        pool: &mut Pool,
        now: Nanos,
        out: &mut Outbox,
        passed: &mut Vec<Handle>,
    ) -> u64 {
        self.let_in();
        self.rewritten.clear();
        let rewritten = &mut self.rewritten;
        let [control, slow] = &mut self.common;
        let mut way = Way { pool, out, passed, rewritten, ports: &self.ports, now, made: 0, common: control };
        let first = self.turn.checked_rem(self.control.len()).unwrap_or(0);
        let (after, before) = self.control.split_at_mut(first);
        before.iter_mut().chain(after).for_each(|seat| collect_one(seat, &mut way));
        self.turn = first + 1;
        way.common = slow;
        match &mut self.slow {
            Slow::Threads(seats) => seats.iter_mut().for_each(|seat| collect_one(seat, &mut way)),
            Slow::Inline(inline) => inline.collect(&mut way),
        }
        let made = way.made;
        let is_there = self.seats_mut().any(|seat| seat.is_taken());
        let poll = if self.kept() > 0 {
            0
        } else if is_there {
            1
        } else {
            2
        };
        let has_seats = self.seats_mut().next().is_some();
        self.next_look = if has_seats { now + POLLS[poll] } else { Nanos::NEVER };
        made
    }

    /// The packets, of those that [`Punt::collect`] has passed last, whose first bytes were written above, in the same order, with what these were
    /// before.
    pub fn rewritten(&self) -> &[(Handle, FirstLine)] {
        &self.rewritten
    }

    /// When [`Punt::collect`] is to be called though no packet comes.
    #[inline]
    pub fn deadline(&self) -> Nanos {
        match &self.slow {
            Slow::Threads(_) => self.next_look,
            Slow::Inline(inline) => inline.deadline(),
        }
    }

    /// Packets that are up now; segments of a train count one each.
    #[inline]
    pub fn kept(&self) -> u64 {
        let control: u64 = self.control.iter().map(Seat::kept).sum();
        control
            + match &self.slow {
                Slow::Threads(seats) => seats.iter().map(Seat::kept).sum(),
                Slow::Inline(inline) => inline.kept(),
            }
    }

    /// What became of a seat's packets.
    pub fn counts(&self, seat: SeatId) -> Counts {
        let SeatId(level, number) = seat;
        let counts = match (level, &self.slow) {
            (Level::Control, _) => self.control.get(number).map(|seat| &seat.counts),
            (Level::Slow, Slow::Threads(seats)) => seats.get(number).map(|seat| &seat.counts),
            (Level::Slow, Slow::Inline(inline)) => inline.counts(number),
        };
        counts.copied().unwrap_or_default()
    }

    /// Whether someone sits there.
    pub fn is_taken(&self, seat: SeatId) -> bool {
        self.seats().any(|one| one.seat == seat && one.is_taken)
    }

    /// All seats, those of processes first.
    pub fn seats(&self) -> impl Iterator<Item = Seated<'_>> {
        let (slow, inline) = match &self.slow {
            Slow::Threads(seats) => (&seats[..], None),
            Slow::Inline(inline) => (&[][..], Some(inline)),
        };
        let control = self.control.iter().enumerate().map(|(number, seat)| (SeatId::control(number), seat));
        let slow = slow.iter().enumerate().map(|(number, seat)| (SeatId::slow(number), seat));
        let there = control.chain(slow).filter(|(_, seat)| !seat.is_removed).map(|(id, seat)| Seated {
            seat: id,
            level: id.0.name(),
            name: &seat.name,
            is_taken: seat.is_taken(),
            kept: seat.kept(),
            counts: seat.counts,
        });
        there.chain(inline.into_iter().flat_map(|inline| inline.seats()))
    }

    /// The way in for processes, which can have so many packets a second together. To be made once.
    pub fn control_door(&mut self, packets: u64) -> Door {
        self.capacity = packets;
        self.door(Level::Control)
    }

    /// The way in for services. To be made once.
    pub fn slow_door(&mut self) -> Door {
        self.door(Level::Slow)
    }

    fn door(&mut self, level: Level) -> Door {
        let (producer, consumer) = RingBuffer::new(ARRIVALS);
        self.arrivals[level as usize] = Some(consumer);
        Door(producer)
    }

    /// Lets in who has come.
    #[inline]
    fn let_in(&mut self) {
        let mut has_come = false;
        if let Some(control) = &mut self.arrivals[Level::Control as usize] {
            while let Ok(attach) = control.pop() {
                if let Some(seat) = self.control.get_mut(attach.seat) {
                    seat.attach(attach);
                    has_come = true;
                }
            }
        }
        if let (Some(slow), Slow::Threads(seats)) = (&mut self.arrivals[Level::Slow as usize], &mut self.slow)
        {
            while let Ok(attach) = slow.pop() {
                if let Some(seat) = seats.get_mut(attach.seat) {
                    seat.attach(attach);
                    // Its thread's scheduler holds it to its share.
                    seat.set_rate(u64::MAX);
                }
            }
        }
        if has_come {
            self.share_out();
        }
    }

    /// What is promised to nobody is shared by those who are there.
    #[cold]
    fn share_out(&mut self) {
        let there: Vec<_> = self
            .control
            .iter()
            .map(|seat| if seat.is_taken() { (seat.promised, seat.share) } else { (0, 0) })
            .collect();
        for (seat, spare) in self.control.iter_mut().zip(spare_rates(self.capacity, &there)) {
            seat.set_rate(seat.promised + spare);
        }
    }

    fn seats_mut(&mut self) -> impl Iterator<Item = &mut Seat> {
        let slow = match &mut self.slow {
            Slow::Threads(seats) => &mut seats[..],
            Slow::Inline(_) => &mut [],
        };
        self.control.iter_mut().chain(slow)
    }
}

impl Drop for Punt {
    fn drop(&mut self) {
        self.let_in();
        self.seats_mut().for_each(|seat| seat.cut(Cut::Stopped));
    }
}

/// A seat, in the place of one that was taken away and whose packets have all come back, if there is such.
fn add(seats: &mut Vec<Seat>, name: &str, limits: Limits) -> Option<usize> {
    let seat = Seat::new(name, limits);
    if let Some(free) = seats.iter().position(|seat| seat.is_removed && seat.kept() == 0) {
        seats[free] = seat;
        return Some(free);
    }
    (seats.len() < MOST).then(|| {
        seats.push(seat);
        seats.len() - 1
    })
}

#[inline]
fn collect_one(seat: &mut Seat, way: &mut Way<'_>) {
    if seat.is_taken() || seat.kept() > 0 {
        way.out.at(way.now);
        seat.collect(way);
    }
}
