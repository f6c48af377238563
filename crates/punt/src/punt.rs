//! A node's side of the levels above it.

use crate::admission::spare_rates;
use crate::allowance::{Allowance, SharedAllowance};
use crate::attachment::{Attachment, Counts, OfferError};
use crate::cut::CutReason;
use crate::inline::Inline;
use crate::layout::Class;
use crate::level::{AttachmentId, AttachmentView, Level};
use crate::limits::Limits;
use crate::return_path::ReturnPath;
use crate::wire::Attach;
use longwire_block::{OUTBOX, Outbox};
use longwire_packet::{FirstLine, Handle, Pool};
use longwire_units::Nanos;
use rtrb::{Consumer, Producer, RingBuffer};

/// The worker's polling intervals: with packets up, with attached processes, and without.
const POLLS: [Nanos; 3] = [Nanos::from_micros(5), Nanos::from_micros(200), Nanos::from_millis(5)];
/// Most pending arrivals.
const ARRIVALS: usize = 64;

/// Most attachments of a level.
const MOST: usize = crate::turns::MOST;

/// The sending end of the ring through which processes or services attach at the worker.
#[derive(Debug)]
pub struct AttachSender(pub(crate) Producer<Attach>);

/// Packets of one node that are up. Belongs to the node, and is used on its worker only.
///
/// The node calls [`Punt::offer`] for packets that go up, [`Punt::flush`] after each batch, and
/// [`Punt::collect`] then and when [`Punt::deadline`] has come.
#[derive(Debug)]
pub struct Punt {
    ports: Vec<u16>,
    /// Those of them that are down.
    down: Vec<u16>,
    control: Vec<Attachment>,
    slow: SlowBackend,
    arrivals: [Option<Consumer<Attach>>; 2],
    /// Packets per second for all processes together.
    capacity: u64,
    /// Number of attached processes among which they were divided last.
    sharers: usize,
    /// The unguaranteed rest of each level's part of the worker's time, and the whole part, in nanoseconds
    /// per second.
    common: [SharedAllowance; 2],
    reserved: [Option<u64>; 2],
    /// The process that is polled first.
    turn: usize,
    next_look: Nanos,
    rewritten: Vec<(Handle, FirstLine)>,
}

#[derive(Debug)]
enum SlowBackend {
    Threads(Vec<Attachment>),
    Inline(Box<Inline>),
}

impl Punt {
    /// For a node with these ports (their numbers in the plan), without attachments.
    pub fn new(mut ports: Vec<u16>) -> Self {
        ports.sort_unstable();
        Self {
            ports,
            down: Vec::new(),
            control: Vec::new(),
            slow: SlowBackend::Threads(Vec::new()),
            arrivals: [None, None],
            capacity: 0,
            sharers: 0,
            common: [SharedAllowance(Allowance::UNBOUNDED); 2],
            reserved: [None; 2],
            turn: 0,
            next_look: Nanos::NEVER,
            // No more packets are passed at a time.
            rewritten: Vec::with_capacity(OUTBOX / 2),
        }
    }

    /// The virtual-time variant: services run inline, and there are no processes.
    pub fn simulated(ports: Vec<u16>, inline: Inline) -> Self {
        let mut punt = Self::new(ports);
        punt.slow = SlowBackend::Inline(Box::new(inline));
        punt
    }

    /// Limits the worker time for moving packets of processes and of services, in nanoseconds per second;
    /// unused time is kept up to 10 ms' share. Each attachment has its guarantee ([`Limits::reserved`]); all
    /// share the rest. None means no limit.
    pub fn set_aside(&mut self, control: Option<u64>, slow: Option<u64>) {
        self.reserved = [control, slow];
        self.share_time();
    }

    /// Recomputes the unguaranteed part of each level's time.
    fn share_time(&mut self) {
        let promised = |attachments: &[Attachment]| -> u64 {
            let there = attachments.iter().filter(|attachment| !attachment.is_removed);
            there.map(|attachment| attachment.limits.reserved).sum()
        };
        let slow = match &self.slow {
            SlowBackend::Threads(attachments) => promised(attachments),
            SlowBackend::Inline(inline) => inline.reserved(),
        };
        let promised = [promised(&self.control), slow];
        for ((common, reserved), promised) in self.common.iter_mut().zip(self.reserved).zip(promised) {
            if let Some(reserved) = reserved {
                common.0.change(reserved.saturating_sub(promised));
            }
        }
    }

    /// Adds an attachment for the control process `name`. None if there are 64.
    pub fn add_control(&mut self, name: &str, limits: Limits) -> Option<AttachmentId> {
        // Whoever waits to attach to a removed one must not come to this one.
        self.let_in();
        self.next_look = Nanos::ZERO;
        let attachment = add(&mut self.control, name, limits).map(AttachmentId::control);
        self.share_time();
        attachment
    }

    /// Adds an attachment for a service. None if there are 64, or if services run inline, whose attachments
    /// exist from the start.
    pub fn add_service(&mut self, name: &str, limits: Limits) -> Option<AttachmentId> {
        self.next_look = Nanos::ZERO;
        let attachment = match &mut self.slow {
            SlowBackend::Threads(attachments) => add(attachments, name, limits).map(AttachmentId::slow),
            SlowBackend::Inline(_) => None,
        };
        self.share_time();
        attachment
    }

    /// Removes an attachment: its process is cut off, and its packets go to the default forwarder.
    pub fn remove(&mut self, attachment: AttachmentId) {
        let AttachmentId(level, number) = attachment;
        self.let_in();
        let attachments = match (level, &mut self.slow) {
            (Level::Control, _) => &mut self.control,
            (Level::Slow, SlowBackend::Threads(attachments)) => attachments,
            (Level::Slow, SlowBackend::Inline(_)) => return,
        };
        if let Some(attachment) = attachments.get_mut(number) {
            attachment.cut(CutReason::Stopped);
            attachment.is_removed = true;
            self.next_look = Nanos::ZERO;
        }
        self.share_out();
        self.share_time();
    }

    /// Sets a port of the node up or down: one that is down drops what the levels above send out of it.
    pub fn set_up(&mut self, port: u16, up: bool) {
        self.down.retain(|other| *other != port);
        if !up {
            self.down.push(port);
        }
    }

    /// Sends a packet up: the node keeps it, and gets it back from [`Punt::collect`].
    ///
    /// # Errors
    /// The node keeps the packet; see [`OfferError`].
    #[inline]
    pub fn offer(
        &mut self,
        pool: &Pool,
        handle: Handle,
        attachment: AttachmentId,
        class: &Class,
    ) -> Result<(), OfferError> {
        let AttachmentId(level, number) = attachment;
        let common = &mut self.common[level as usize];
        let attachments = match (level, &mut self.slow) {
            (Level::Control, _) => &mut self.control,
            (Level::Slow, SlowBackend::Threads(attachments)) => attachments,
            (Level::Slow, SlowBackend::Inline(inline)) => {
                return inline.offer(number, pool, handle, class, common);
            }
        };
        attachments
            .get_mut(number)
            .map_or(Err(OfferError::Gone), |attachment| attachment.offer(pool, handle, class, common))
    }

    /// Whether [`Punt::offer`] would refuse a packet at this time for lack of room or worker time, or beyond
    /// the rate; if so, it is counted as refused. False without an attached process. For inline services it
    /// only checks time.
    #[inline]
    pub fn refuses(&mut self, attachment: AttachmentId, now: Nanos) -> bool {
        let AttachmentId(level, number) = attachment;
        let common = &mut self.common[level as usize];
        let attachments = match (level, &mut self.slow) {
            (Level::Control, _) => &mut self.control,
            (Level::Slow, SlowBackend::Threads(attachments)) => attachments,
            (Level::Slow, SlowBackend::Inline(inline)) => return inline.refuses(number, common, now),
        };
        attachments.get_mut(number).is_some_and(|attachment| attachment.refuses(common, now))
    }

    /// Makes offered packets visible to the levels above; called once after each batch. Sleeping processes
    /// are woken, with one system call each.
    #[inline]
    pub fn flush(&mut self, now: Nanos) {
        self.attachments_mut().for_each(|attachment| attachment.publish(now));
        if self.kept() > 0 {
            self.next_look = self.next_look.min(now + POLLS[0]);
        }
    }

    /// Takes back packets with a verdict and expired ones: sent or dropped packets go into `out`, those for
    /// the default forwarder into `passed`, with the current time as `arrival`. It leaves room in `out` for
    /// as many packets again. Processes come before services. Returns the number of packets made.
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
        let (ports, down) = (&self.ports[..], &self.down[..]);
        let mut path =
            ReturnPath { pool, out, passed, rewritten, ports, down, now, made: 0, common: control };
        let first = self.turn.checked_rem(self.control.len()).unwrap_or(0);
        let (after, before) = self.control.split_at_mut(first);
        before.iter_mut().chain(after).for_each(|attachment| collect_one(attachment, &mut path));
        self.turn = first + 1;
        path.common = slow;
        match &mut self.slow {
            SlowBackend::Threads(attachments) => {
                attachments.iter_mut().for_each(|attachment| collect_one(attachment, &mut path));
            }
            SlowBackend::Inline(inline) => inline.collect(&mut path),
        }
        let made = path.made;
        // The others get the share of a process that has left.
        if self.processes() != self.sharers {
            self.share_out();
        }
        let is_there = self.attachments_mut().any(|attachment| attachment.is_taken());
        let poll = match (self.kept(), is_there) {
            (1.., _) => POLLS[0],
            (0, true) => POLLS[1],
            (0, false) => POLLS[2],
        };
        let has_attachments = self.attachments_mut().next().is_some();
        self.next_look = if has_attachments { now + poll } else { Nanos::NEVER };
        made
    }

    /// Of the packets last passed by [`Punt::collect`], those whose first bytes were changed above, in the
    /// same order, with the original bytes.
    pub fn rewritten(&self) -> &[(Handle, FirstLine)] {
        &self.rewritten
    }

    /// Time at which [`Punt::collect`] must be called even if no packet comes.
    #[inline]
    pub fn deadline(&self) -> Nanos {
        match &self.slow {
            SlowBackend::Threads(_) => self.next_look,
            SlowBackend::Inline(inline) => inline.deadline(),
        }
    }

    /// Packets that are up now, counted in segments.
    #[inline]
    pub fn kept(&self) -> u64 {
        let control: u64 = self.control.iter().map(Attachment::kept).sum();
        control
            + match &self.slow {
                SlowBackend::Threads(attachments) => attachments.iter().map(Attachment::kept).sum(),
                SlowBackend::Inline(inline) => inline.kept(),
            }
    }

    /// Counters of an attachment.
    pub fn counts(&self, attachment: AttachmentId) -> Counts {
        let AttachmentId(level, number) = attachment;
        let counts = match (level, &self.slow) {
            (Level::Control, _) => self.control.get(number).map(|attachment| &attachment.counts),
            (Level::Slow, SlowBackend::Threads(attachments)) => {
                attachments.get(number).map(|one| &one.counts)
            }
            (Level::Slow, SlowBackend::Inline(inline)) => inline.counts(number),
        };
        counts.copied().unwrap_or_default()
    }

    /// Whether a process or service is attached.
    pub fn is_taken(&self, attachment: AttachmentId) -> bool {
        self.attachments().any(|one| one.attachment == attachment && one.is_taken)
    }

    /// All attachments, those for processes first.
    pub fn attachments(&self) -> impl Iterator<Item = AttachmentView<'_>> {
        let (slow, inline) = match &self.slow {
            SlowBackend::Threads(attachments) => (&attachments[..], None),
            SlowBackend::Inline(inline) => (&[][..], Some(inline)),
        };
        let control =
            self.control.iter().enumerate().map(|(number, one)| (AttachmentId::control(number), one));
        let slow = slow.iter().enumerate().map(|(number, one)| (AttachmentId::slow(number), one));
        let there = control.chain(slow).filter(|(_, one)| !one.is_removed).map(|(id, one)| AttachmentView {
            attachment: id,
            level: id.0.name(),
            name: &one.name,
            is_taken: one.is_taken(),
            kept: one.kept(),
            counts: one.counts,
        });
        there.chain(inline.into_iter().flat_map(|inline| inline.attachments()))
    }

    /// Creates the ring through which processes attach; they share this packet rate. Called once.
    pub fn control_sender(&mut self, packets: u64) -> AttachSender {
        self.capacity = packets;
        self.attach_sender(Level::Control)
    }

    /// Creates the ring through which services attach. Called once.
    pub fn service_sender(&mut self) -> AttachSender {
        self.attach_sender(Level::Slow)
    }

    fn attach_sender(&mut self, level: Level) -> AttachSender {
        let (producer, consumer) = RingBuffer::new(ARRIVALS);
        self.arrivals[level as usize] = Some(consumer);
        AttachSender(producer)
    }

    /// Accepts waiting processes.
    #[inline]
    fn let_in(&mut self) {
        let mut has_come = false;
        if let Some(control) = &mut self.arrivals[Level::Control as usize] {
            while let Ok(attach) = control.pop() {
                has_come |= join(&mut self.control, attach).is_some();
            }
        }
        if let (Some(slow), SlowBackend::Threads(attachments)) =
            (&mut self.arrivals[Level::Slow as usize], &mut self.slow)
        {
            while let Ok(attach) = slow.pop() {
                if let Some(attachment) = join(attachments, attach) {
                    // The thread's scheduler enforces shares.
                    attachment.set_rate(u64::MAX);
                }
            }
        }
        if has_come {
            self.share_out();
        }
    }

    /// Distributes the unguaranteed rate among attached processes.
    #[cold]
    fn share_out(&mut self) {
        let asked = |one: &Attachment| if one.is_taken() { (one.promised, one.share) } else { (0, 0) };
        let there: Vec<_> = self.control.iter().map(asked).collect();
        for (attachment, spare) in self.control.iter_mut().zip(spare_rates(self.capacity, &there)) {
            attachment.set_rate(attachment.promised + spare);
        }
        self.sharers = self.processes();
    }

    /// Number of attached processes.
    fn processes(&self) -> usize {
        self.control.iter().filter(|attachment| attachment.is_taken()).count()
    }

    fn attachments_mut(&mut self) -> impl Iterator<Item = &mut Attachment> {
        let slow = match &mut self.slow {
            SlowBackend::Threads(attachments) => &mut attachments[..],
            SlowBackend::Inline(_) => &mut [],
        };
        self.control.iter_mut().chain(slow)
    }
}

impl Drop for Punt {
    fn drop(&mut self) {
        self.let_in();
        self.attachments_mut().for_each(|attachment| attachment.cut(CutReason::Stopped));
    }
}

/// Attaches a process or service. None if its attachment has been removed meanwhile: it is cut off.
fn join(attachments: &mut [Attachment], attach: Attach) -> Option<&mut Attachment> {
    let Some(attachment) = attachments.get_mut(attach.attachment).filter(|one| !one.is_removed) else {
        attach.wire.end(CutReason::Stopped);
        return None;
    };
    attachment.attach(attach);
    Some(attachment)
}

/// Adds an attachment, reusing a removed one whose packets have all come back.
fn add(attachments: &mut Vec<Attachment>, name: &str, limits: Limits) -> Option<usize> {
    let attachment = Attachment::new(name, limits);
    if let Some(free) = attachments.iter().position(|one| one.is_removed && one.kept() == 0) {
        attachments[free] = attachment;
        return Some(free);
    }
    (attachments.len() < MOST).then(|| {
        attachments.push(attachment);
        attachments.len() - 1
    })
}

#[inline]
fn collect_one(attachment: &mut Attachment, path: &mut ReturnPath<'_>) {
    if attachment.is_taken() || attachment.kept() > 0 {
        path.out.at(path.now);
        attachment.collect(path);
    }
}
