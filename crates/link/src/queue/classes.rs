//! Classes of packets defined by a text, one per line, and the discipline that lets a scheduler choose among
//! them.
//!
//! `NAME SETTINGS [limit L] [queue KIND [PARAMETER VALUE]...] [if EXPRESSION]`: the settings depend on the
//! scheduler. Blank lines and lines that begin with `#` are skipped.

use super::lane::Lanes;
use super::leaf::{CLASSES, Leaf, LeafPlan, rows};
use super::settings::{LIMIT, Limit};
use super::{Admission, Ahead, Discipline, Foresight, Meeting, Next, QueueContext};
use crate::fifo::Fifo;
use crate::piece::{LineError, Piece};
use longwire_block::{Block, Dice, Values, Verdict};
use longwire_expression::Expression;
use longwire_packet::{Handle, Meta, Pool};
use longwire_settings::Setting;
use longwire_units::{Nanos, Rate};
use std::fmt::Debug;
use std::sync::Arc;

/// Most classes of a queue.
pub const MAX_CLASSES: usize = 1024;
/// The default limit of a class.
const USUAL: Limit = Limit::Packets(1000);

/// One line of a text of classes.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub name: Piece<'a>,
    /// The scheduler's keywords with the texts after them.
    pub settings: Vec<(&'static str, Piece<'a>)>,
    limit: Option<(Limit, Piece<'a>)>,
    queue: Option<(LeafPlan, Piece<'a>)>,
    condition: Option<(Expression, Piece<'a>)>,
}

/// Classes in the form for a queue; `P` is the scheduler's form of the settings.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClassSet<P> {
    limits: Box<[Limit]>,
    /// The disciplines of classes that specify one.
    queues: Box<[Option<LeafPlan>]>,
    /// Conditions with their classes, in the order of evaluation.
    conditions: Box<[(Expression, u32)]>,
    default: u32,
    /// Whether a band beyond the last means the last, rather than none.
    clamps: bool,
    pub plan: P,
}

/// Parses a text whose settings begin with one of `words`.
pub(super) fn read_lines<'a>(
    text: &'a str,
    words: &'static [&'static str],
    example: &'static str,
) -> Result<Vec<Line<'a>>, LineError> {
    let mut read: Vec<Line<'_>> = Vec::new();
    for line in Piece::lines(text, "class") {
        if read.len() == MAX_CLASSES {
            let what = format!("there are more than {MAX_CLASSES} classes; leave some out");
            return Err(LineError::Whole(what));
        }
        let line = read_line(line, words)?;
        if read.iter().any(|other| other.name.text == line.name.text) {
            return Err(line.name.found("give it another name: one before has this one"));
        }
        read.push(line);
    }
    if read.is_empty() {
        return Err(LineError::Whole(format!("there is no class; write one a line, such as {example}")));
    }
    Ok(read)
}

fn read_line<'a>(whole: Piece<'a>, words: &'static [&'static str]) -> Result<Line<'a>, LineError> {
    let (before, condition) = whole.divided("if");
    let (name, rest) = before.first_word();
    let name = before.part(0, name.len());
    let (rest, queue) = rest.divided("queue");
    let is_name = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    if name.text.is_empty() || !name.text.chars().all(is_name) || name.text.split('.').any(str::is_empty) {
        return Err(name.found("begin with a name of letters, digits, - and _"));
    }
    let mut line = Line { name, settings: Vec::new(), limit: None, queue: None, condition: None };
    let words: Vec<_> = words.iter().copied().chain(["limit"]).collect();
    let others = format!("\"{}\", \"queue\" or \"if\"", words.join("\", \""));
    for (word, value) in settings(rest, &words, &others)? {
        if line.settings.iter().any(|(other, _)| *other == word) {
            return Err(value.found(format!("write \"{word}\" once")));
        }
        line.settings.push((word, value));
    }
    if let Some(at) = line.settings.iter().position(|(word, _)| *word == "limit") {
        let (_, value) = line.settings.remove(at);
        let fix = "write packets, bytes or a time such as \"100 packets\", \"64 KiB\" or \"50 ms\"";
        let read = LIMIT.read(value.text).map_err(|_| value.found(fix))?;
        line.limit = Some((Limit::of(&read).unwrap_or_default(), value));
    }
    if let Some(piece) = queue {
        line.queue = Some((line.leaf(piece)?, piece));
    }
    if let Some(piece) = condition {
        line.condition = Some((piece.condition()?, piece));
    }
    Ok(line)
}

/// Splits a text before each of the words; `wanted` lists alternatives for errors.
fn settings<'a>(
    mut rest: Piece<'a>,
    words: &[&'static str],
    wanted: &str,
) -> Result<Vec<(&'static str, Piece<'a>)>, LineError> {
    let known = |found: &str| words.iter().find(|word| **word == found).copied();
    let mut all = Vec::new();
    while !rest.text.is_empty() {
        let (found, behind) = rest.first_word();
        let word = known(found).ok_or_else(|| rest.found(format!("write {wanted} there")))?;
        let mut end = 0;
        for next in behind.text.split_whitespace().take_while(|next| known(next).is_none()) {
            // The word is a slice of the text, so its position follows from the addresses.
            end = next.as_ptr() as usize - behind.text.as_ptr() as usize + next.len();
        }
        all.push((word, behind.part(0, end)));
        rest = behind.part(end, behind.text.len());
    }
    Ok(all)
}

impl Line<'_> {
    /// Parses the discipline `KIND [PARAMETER VALUE]...`.
    fn leaf(&self, piece: Piece<'_>) -> Result<LeafPlan, LineError> {
        let (kind, rest) = piece.first_word();
        let Some(spec) = rows().find(|spec| spec.kind == kind) else {
            let known: Vec<_> = rows().map(|spec| spec.kind).collect();
            let kind = piece.part(0, kind.len());
            return Err(kind.found(format!("write {} behind \"queue\"", known.join(", "))));
        };
        let names = spec.params.iter().map(|param| param.name);
        let names: Vec<_> = names.filter(|name| *name != CLASSES).collect();
        let mut given = settings(rest, &names, &format!("\"{}\" or \"if\"", names.join("\", \"")))?;
        if let Some((_, limit)) = self.limit {
            if given.iter().any(|(name, _)| *name == "limit") || !names.contains(&"limit") {
                return Err(limit.found("write \"limit\" once, behind \"queue\""));
            }
            given.push(("limit", limit));
        }
        let pairs: Vec<_> = given.iter().map(|(name, value)| (*name, value.text)).collect();
        let values = Values::read(spec, &pairs).map_err(|error| piece.wrong(error))?;
        Ok(LeafPlan { spec, values })
    }

    /// Rejects settings that only classes with packets may have.
    pub(super) fn holds_no_packets(&self) -> Result<(), LineError> {
        let condition = self.condition.as_ref().map(|(_, piece)| *piece);
        let queue = self.queue.as_ref().map(|(_, piece)| *piece);
        match condition.or(queue).or(self.limit.map(|(_, piece)| piece)) {
            Some(piece) => {
                Err(piece.found("leave it out: only classes without others below them hold packets"))
            }
            None => Ok(()),
        }
    }
}

impl<P> ClassSet<P> {
    /// Makes a set of the lines of classes with packets.
    pub(super) fn new(mut lines: Vec<Line<'_>>, plan: P) -> Result<Self, LineError> {
        let default = lines.iter().position(|line| line.condition.is_none()).ok_or_else(|| {
            let what = "every class has an \"if\", so that some packets may have none; add a class without \
                \"if\"";
            LineError::Whole(what.into())
        })?;
        let limits = lines.iter().map(|line| line.limit.map_or(USUAL, |(limit, _)| limit)).collect();
        let queues = lines.iter_mut().map(|line| line.queue.take().map(|(queue, _)| queue)).collect();
        let conditions = lines.into_iter().enumerate();
        let conditions = conditions.filter_map(|(class, line)| Some((line.condition?.0, class as u32)));
        let conditions = conditions.collect();
        Ok(Self { limits, queues, conditions, default: default as u32, clamps: false, plan })
    }

    /// Classes with these limits that only a filter assigns; `default` is for packets without a band. A class
    /// beyond the last means the last.
    pub(super) fn bands(limits: Vec<Limit>, default: usize, plan: P) -> Self {
        let default = default.min(limits.len().saturating_sub(1)) as u32;
        let queues = limits.iter().map(|_| None).collect();
        Self { limits: limits.into(), queues, conditions: [].into(), default, clamps: true, plan }
    }
    /// The class of a packet: the filter's, else the first whose condition holds, else the first without a
    /// condition.
    #[inline]
    fn class_of(&self, pool: &Pool, handle: Handle) -> usize {
        let meta = pool.meta(handle);
        let band = usize::from(meta.band());
        if meta.band() != Meta::NO_BAND && (band < self.limits.len() || self.clamps) {
            return band.min(self.limits.len() - 1);
        }
        let bytes = meta.first_bytes();
        let frame = pool.data(handle);
        let frame = &frame[..frame.len().min(bytes as usize)];
        let holds = |(condition, _): &&(Expression, u32)| condition.matches_marked(frame, bytes, meta.mark());
        self.conditions.iter().find(holds).map_or(self.default, |(_, class)| *class) as usize
    }
}

/// A scheduler among classes. Bytes are counted as in the link's rate.
pub trait Scheduler: Sized {
    /// Its form of the settings; the default is for one class.
    type Plan: PartialEq + Debug + Send + Sync + 'static;

    /// Whether selection depends on time; otherwise the first class with packets is selected.
    const BY_TIME: bool = true;

    fn new(plan: &Self::Plan) -> Self;

    /// Bytes of memory besides its own record.
    fn memory_bytes(&self) -> usize;

    /// Reports that an empty class has got a packet of `bytes`.
    fn wake(&mut self, class: usize, bytes: u64, now: Nanos, rate: Rate);

    /// Reports that the last packet has been sent, and none waits.
    fn rest(&mut self);

    /// The class to send now, if some wait. The previous packet has been sent.
    fn select(&mut self, now: Nanos) -> Option<usize>;

    /// The time at which a class may send, if none may now.
    fn resume(&self, now: Nanos) -> Nanos;

    /// Reports that the selected class sends `bytes`; its next packet has `next` bytes, if there is one.
    fn serve(&mut self, class: usize, bytes: u64, next: Option<u64>, now: Nanos);
}

/// Classes and their scheduler.
#[derive(Debug)]
pub struct Classed<S: Scheduler> {
    now: ClassState<S>,
    /// The new classes, in effect once waiting packets have been taken out: they start fresh when these are
    /// reassigned by the new conditions.
    pub(super) wanted: Arc<ClassSet<S::Plan>>,
    /// The dice from which those of the classes' disciplines are derived.
    dice: Dice,
    /// On a decided link, the class of all that waits.
    alone: usize,
    meeting: Meeting,
}

#[derive(Debug)]
struct ClassState<S: Scheduler> {
    set: Arc<ClassSet<S::Plan>>,
    lanes: Lanes,
    scheduler: S,
    /// Number of classes with waiting packets.
    busy: usize,
}

impl<S: Scheduler> Classed<S> {
    pub(super) fn new(set: Arc<ClassSet<S::Plan>>, mut dice: Dice) -> Self {
        let now = ClassState::new(Arc::clone(&set), &mut dice);
        Self { now, wanted: set, dice, alone: 0, meeting: Meeting::default() }
    }
}

impl<S: Scheduler> Discipline for Classed<S>
where
    Self: Block,
{
    fn memory_bytes(&self) -> usize {
        self.now.lanes.memory_bytes() + self.now.scheduler.memory_bytes()
    }

    #[inline]
    fn admit(&mut self, _: &Admission<'_>) -> Verdict {
        Verdict::Pass
    }

    /// A class without a discipline of its own is first in, first out.
    fn foresees(&self) -> bool {
        !S::BY_TIME && self.wanted.queues.iter().all(Option::is_none)
    }

    #[inline]
    fn begins_to_decide(&mut self) -> bool {
        self.meeting.is_over()
    }

    /// While packets of one class wait, they are sent in order.
    #[inline(always)]
    fn foresee(&mut self, packet: &Ahead<'_>, rate: impl FnOnce() -> Rate) -> Foresight {
        let set = &self.now.set;
        let class = set.class_of(packet.pool, packet.handle);
        if packet.waiting.packets > 0 && class != self.alone {
            self.meeting.begin();
            return Foresight::Waits;
        }
        if !set.limits[class].surely_allows(packet, rate) {
            return Foresight::Waits;
        }
        self.alone = class;
        Foresight::Passes
    }

    fn take_back(&mut self, pool: &mut Pool, sending: Handle, waiting: Fifo) -> Fifo {
        let ClassState { lanes, scheduler, busy, .. } = &mut self.now;
        lanes.take_back(pool, self.alone, (sending, waiting));
        if let Some(bytes) = lanes.head(pool, self.alone) {
            *busy += 1;
            // Neither time nor rate matters, as far as the discipline foresees.
            scheduler.wake(self.alone, bytes, Nanos::ZERO, Rate::UNLIMITED);
        }
        Fifo::EMPTY
    }

    fn resettle(&mut self, context: &mut QueueContext<'_>) {
        if self.wanted != self.now.set {
            let waiting = self.drain(context.pool);
            self.adopt(context, waiting);
        }
    }

    fn adopt(&mut self, context: &mut QueueContext<'_>, mut waiting: Fifo) {
        let ClassState { set, lanes, scheduler, busy } = &mut self.now;
        let mut lists = vec![Fifo::EMPTY; set.limits.len()];
        while let Some(handle) = waiting.pop(context.pool) {
            lists[set.class_of(context.pool, handle)].push(context.pool, handle);
        }
        let filled = lists.into_iter().enumerate().filter(|(_, list)| !list.is_empty());
        for (class, list) in filled {
            lanes.adopt(context, class, list);
            if let Some(bytes) = lanes.head(context.pool, class) {
                *busy += 1;
                scheduler.wake(class, bytes, context.now, context.rate);
            }
        }
    }

    #[inline(always)]
    fn push(&mut self, context: &mut QueueContext<'_>, handle: Handle) {
        let state = &mut self.now;
        let class = state.set.class_of(context.pool, handle);
        let bytes = context.pool.meta(handle).counted();
        if state.lanes.join(context, class, handle) {
            state.busy += 1;
            state.scheduler.wake(class, bytes, context.now, context.rate);
        }
    }

    #[inline(always)]
    fn pop(&mut self, context: &mut QueueContext<'_>) -> Next {
        let state = &mut self.now;
        state.lanes.settle(context.now);
        if state.busy == 0 {
            state.scheduler.rest();
            return Next::Empty;
        }
        let now = context.now;
        let later = |state: &ClassState<S>| Next::Later(state.scheduler.resume(now));
        let Some(class) = state.scheduler.select(context.now) else { return later(state) };
        let Some(handle) = state.lanes.take(context, class) else { return later(state) };
        let next = state.lanes.head(context.pool, class);
        state.busy -= usize::from(next.is_none());
        state.scheduler.serve(class, context.pool.meta(handle).counted(), next, context.now);
        Next::Packet(handle)
    }

    /// Class by class, or, if selection depends on time, in order of arrival. The classes start fresh.
    fn drain(&mut self, pool: &mut Pool) -> Fifo {
        let waiting = self.now.lanes.drain(pool);
        self.now = ClassState::new(Arc::clone(&self.wanted), &mut self.dice);
        if !S::BY_TIME {
            return waiting;
        }
        let mut waiting: Vec<_> =
            waiting.iter(pool).map(|handle| (pool.meta(handle).arrival, handle)).collect();
        waiting.sort_by_key(|(arrival, _)| *arrival);
        let mut all = Fifo::EMPTY;
        waiting.into_iter().for_each(|(_, handle)| all.push(pool, handle));
        all
    }
}

impl<S: Scheduler> ClassState<S> {
    fn new(set: Arc<ClassSet<S::Plan>>, dice: &mut Dice) -> Self {
        let mut leaf = |plan: &LeafPlan| Leaf::new(plan, Dice::seeded(dice.draw()));
        let leaves = set.queues.iter().map(|queue| queue.as_ref().and_then(&mut leaf));
        let lanes = Lanes::new(set.limits.iter().copied().zip(leaves));
        let scheduler = S::new(&set.plan);
        Self { set, lanes, scheduler, busy: 0 }
    }
}
