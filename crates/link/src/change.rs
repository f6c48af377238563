//! Changes to a link while packets flow.

use crate::background::Background;
use crate::blocks::Blocks;
use crate::chain::{AnyJudge, Chain, Judges};
use crate::delay::{Delay, Order, before_queue};
use crate::fifo::Fifo;
use crate::has;
use crate::link::Link;
use crate::links::Links;
use crate::queue::Queue;
use crate::registry::{NONE, ROWS};
use crate::transmit::Transmit;
use crate::transmit::constant::Law;
use crate::transmit::framing::BYTE;
use longwire_block::{Dice, Spec, Values};
use longwire_packet::Pool;
use longwire_units::{Nanos, Rate};
use std::sync::Arc;
use thiserror::Error;

/// The time of a change, and parameters for new blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangeContext {
    pub now: Nanos,
    pub begin: Nanos,
    pub seed: u64,
    /// The link's place in the plan.
    pub place: u32,
    /// Segments of a train with departures within this time stay together.
    pub spread: Nanos,
}

/// A row, and its new values.
type Change<'a> = (&'static Spec, &'a Values);

impl ChangeContext {
    /// The dice of a new block.
    fn dice(&self, spec: &Spec) -> Dice {
        Dice::named(self.seed, &format!("links/added-{}/{}", self.place, spec.key))
    }
}

/// Reason why a link could not be changed. No part of the change was made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChangeError {
    /// No stage has the key.
    #[error("a link has no \"{0}\"")]
    Unknown(&'static str),
    /// The key belongs to the link's medium.
    #[error("the link's medium decides \"{0}\": that can't be changed")]
    Shared(&'static str),
}

impl Links {
    /// Sets the blocks named in `changes` at time `now`, keeping everything else: every bit not yet sent uses
    /// the new rate, packets whose transmission ends later have the new delay, waiting packets stay. A block
    /// of another kind replaces the old one: a queue takes over its packets, a transmitter the rest of the
    /// one being sent.
    ///
    /// # Errors
    /// If a row belongs to no stage; nothing is changed then.
    pub fn change(
        &mut self,
        pool: &mut Pool,
        link: u32,
        now: Nanos,
        changes: &[(&'static Spec, Values)],
    ) -> Result<(), ChangeError> {
        let known = |spec: &Spec| ROWS.iter().any(|row| row.key == spec.key);
        if let Some((spec, _)) = changes.iter().find(|(spec, _)| !known(spec)) {
            return Err(ChangeError::Unknown(spec.key));
        }
        let number = link;
        let is_station = self.links[link as usize].line.features & has::MEDIUM != 0;
        if let Some((spec, _)) = changes.iter().find(|(spec, _)| is_station && spec.key == "rate") {
            return Err(ChangeError::Shared(spec.key));
        }
        self.advance_station(pool, number, now);
        let place = self.places[link as usize];
        let link = &mut self.links[link as usize];
        // Ports are read while the clock goes on: packets may have arrived after this moment.
        let now = link.effective_arrival(now);
        link.catch_up(pool, now);
        link.pick_up_dice(self.dice.get_mut(number as usize));
        link.serve(pool, now);
        for (spec, values) in changes {
            let when = ChangeContext { now, begin: self.begin, seed: self.seed, place, spread: self.spread };
            apply(link, pool, (spec, values), when);
        }
        // A new rate may have ended the transmission at this very moment.
        link.catch_up(pool, now);
        link.note_decidable();
        link.decide_waiting(pool);
        self.make_room_for_dice(number);
        self.links[number as usize].lay_down_dice(self.dice.get_mut(number as usize));
        self.hand_in(pool, number);
        Ok(())
    }
}

/// Gives `link`, which is caught up to `when.now`, new parameters for a block, or a block of another kind.
fn apply(link: &mut Link, pool: &mut Pool, change: Change<'_>, when: ChangeContext) {
    let (spec, values) = change;
    if spec.key == link.blocks().transmit.spec().key {
        change_transmit(link, pool, change, when);
    } else if spec.key == link.blocks().queue.spec().key {
        change_queue(link, pool, change, when);
    } else if spec.key == link.blocks().delay.spec().key {
        change_delay(link, change, when);
        link.part_waiting(pool, when.spread);
    } else if Background::has(spec) {
        match link.known_rare_mut().and_then(|rare| rare.background.as_mut()) {
            // Its waiting packets are sent, and stay distinguished from others.
            Some(_) if spec.kind == NONE => link.rare().background = None,
            None if spec.kind == NONE => {}
            Some(background) => background.change(spec, values, when.now),
            None => {
                let background = Background::new(spec, values, when.dice(spec), (when.begin, when.now));
                link.set_background(Some(background));
            }
        }
    } else {
        change_judges(link, change, when);
    }
}

fn change_transmit(link: &mut Link, pool: &mut Pool, (spec, values): Change<'_>, when: ChangeContext) {
    let busy = !link.blocks().sending.is_none();
    link.untake();
    link.tell_transmitter(when.now);
    let same = spec.is(link.blocks().transmit.spec());
    let sent = if busy { link.sent_of_this_train(pool, when.now).0 as u16 } else { 0 };
    link.blocks().transmit.settle(when.now);
    let work = if busy { link.blocks().transmit.work_left() } else { 0 };
    if same {
        link.blocks().transmit.change(values);
    } else if let Some(mut transmit) = Transmit::build(spec, values, || when.dice(spec)) {
        transmit.start(when.begin);
        link.blocks().transmit = transmit;
    }
    link.note_law();
    link.part_waiting(pool, when.spread);
    // A train that the sender splits itself is only left whole if the pool has no room.
    let parts = busy && (!same || link.blocks().transmit.whole_trains());
    let waits = if parts { link.part_sending(pool, when.now, when.spread, sent) } else { 0 };
    if busy && (!same || waits > 0) {
        link.blocks().transmit.take_over(when.now, work.saturating_sub(waits * BYTE));
    }
    let waited = link.line.features & has::OPPORTUNITIES != 0;
    link.note_transmit();
    if busy {
        link.note_taken(pool);
    } else if link.waiting.packets > 0 && (waited || link.line.features & has::OPPORTUNITIES != 0) {
        // They wait for an opportunity that no longer comes, or comes at another time, or from now on.
        link.begin_next(pool, when.now);
    }
}

fn change_delay(link: &mut Link, (spec, values): Change<'_>, when: ChangeContext) {
    let before = before_queue(spec, values);
    let moved = link.place_delay(before);
    let blocks = link.blocks();
    let front = blocks.books.rare.as_mut().and_then(|rare| rare.front.as_deref_mut());
    let (last, delay) = match front {
        Some(front) if before => (front.last, &mut front.delay),
        _ => (blocks.last, &mut blocks.delay),
    };
    let mut handed_over = false;
    if spec.is(delay.spec()) {
        handed_over = !moved && last > when.now && delay.hand_over(last);
        delay.change(values);
    } else if let Some(mut other) = Delay::build(spec, values, || when.dice(spec)) {
        other.start(when.begin);
        *delay = other;
    }
    link.note_order();
    if !handed_over {
        // Packets in flight keep their times; later ones are sorted separately, behind them.
        link.part_line(before);
    }
}

/// Moves waiting packets to a queue of another kind in the order in which they would have been sent; a queue
/// of the same kind rearranges them for its new parameters. No packet is admitted again, dropped or marked.
fn change_queue(link: &mut Link, pool: &mut Pool, (spec, values): Change<'_>, when: ChangeContext) {
    if spec.is(link.blocks().queue.spec()) {
        link.blocks().queue.change(values);
        link.with_queue(pool, |queue, at| queue.resettle(&mut at.link.context(at.pool, when.now)));
    } else if let Some(mut queue) = Queue::build(spec, values, || when.dice(spec)) {
        queue.start(when.begin);
        let mut waiting = link.waiting(pool);
        link.blocks().queue = queue;
        if !link.blocks().queue.plain() {
            waiting = link.parted(pool, waiting, when.spread);
        }
        if !waiting.is_empty() {
            link.with_queue(pool, |queue, at| queue.adopt(&mut at.link.context(at.pool, when.now), waiting));
        }
    }
    if link.blocks().sending.is_none() && link.waiting.packets > 0 {
        link.begin_next(pool, when.now);
    }
}

/// Changes the judge of that key, or adds one; the row `none` removes it.
fn change_judges(link: &mut Link, (spec, values): Change<'_>, when: ChangeContext) {
    let Blocks { before, wire, .. } = link.blocks();
    let mut judges = before.take();
    judges.append(&mut wire.take());
    match judges.iter_mut().find(|judge| spec.is(judge.spec())) {
        Some(judge) => judge.change(values, when.now),
        None => {
            judges.retain(|judge| judge.spec().key != spec.key);
            if let Some(mut judge) = AnyJudge::build(spec, values, || when.dice(spec)) {
                judge.start(when.begin);
                judges.push(judge);
            }
        }
    }
    link.place_judges(judges);
    // Judges on the wire may have put packets in flight out of order.
    link.note_order();
}

impl Link {
    /// Informs every block of the beginning of the run.
    pub(crate) fn start(&mut self, begin: Nanos) {
        // Plain blocks ignore it.
        let Some(blocks) = self.known_blocks_mut() else { return };
        let Blocks { before, wire, queue, transmit, delay, books, .. } = blocks;
        for judges in [before, wire] {
            judges.chain.as_mut_slice().iter_mut().for_each(|judge| judge.start(begin));
        }
        if let Some(rare) = &mut books.rare {
            rare.background.iter_mut().for_each(|background| background.start(begin));
            rare.front.iter_mut().for_each(|front| front.delay.start(begin));
        }
        queue.start(begin);
        transmit.start(begin);
        delay.start(begin);
    }

    /// Puts each judge into its sequence.
    pub(crate) fn place_judges(&mut self, judges: Vec<AnyJudge>) {
        let (wire, before): (Vec<_>, Vec<_>) = judges.into_iter().partition(AnyJudge::on_wire);
        self.blocks().before = Judges::new(Chain::new(before));
        self.line.set(has::AHEAD, wire.iter().any(AnyJudge::hastens));
        self.line.set(has::WIRE, !wire.is_empty());
        if !wire.is_empty() {
            self.blocks().wire = Judges::new(Chain::new(wire));
        }
    }

    /// Gives the link its background traffic, if there is any.
    pub(crate) fn set_background(&mut self, background: Option<Background>) {
        if background.is_some() {
            self.line.features |= has::BACKGROUND;
            self.rare().background = background;
        }
    }

    /// Records what packets count, and the rate, if it is constant.
    fn note_law(&mut self) {
        let transmit = &mut self.blocks().transmit;
        let (framing, (law, asks_transmitter)) = (transmit.framing(), Law::of_transmit(transmit));
        let profile = Arc::make_mut(&mut self.profile);
        (profile.framing, profile.law, profile.asks_transmitter) = (framing, law, asks_transmitter);
    }

    /// Updates a constant-rate transmitter, whose work the link computes itself, with the rest of the packet
    /// being sent at `now`.
    pub(crate) fn tell_transmitter(&mut self, now: Nanos) {
        if self.profile.asks_transmitter || !self.serves() {
            return;
        }
        let (rate, finish) = (self.profile.law.rate(), self.finish);
        if rate == Rate::UNLIMITED {
            self.blocks().transmit.take_over(now, 0);
        } else {
            let work = finish.since(now).0 * rate.0 + self.rest;
            self.blocks().transmit.take_over(now, work);
        }
    }

    /// Records what packets count, when the current one finishes, and whether packets wait for opportunities.
    pub(crate) fn note_transmit(&mut self) {
        self.note_law();
        let transmit = &mut self.blocks().transmit;
        let (finish, by_opportunities) = (transmit.finish(), transmit.by_opportunities());
        let rest = transmit.rest(finish);
        (self.finish, self.rest) = (finish, rest);
        self.line.set(has::OPPORTUNITIES, by_opportunities);
    }

    /// Removes all waiting packets, in a possible order of transmission.
    pub(crate) fn waiting(&mut self, pool: &mut Pool) -> Fifo {
        let mut waiting = self.blocks().books.list.take();
        let others = self.blocks().queue.drain(pool);
        waiting.append(pool, others);
        waiting
    }

    /// Records whether packets may leave out of order. Packets in flight may, even if later ones do not.
    pub(crate) fn note_order(&mut self) {
        let (line, _, blocks) = self.parts();
        blocks.order = blocks.delay.order();
        if blocks.order != Order::InOrder || line.is_irregular() {
            line.features |= has::DISORDER;
        }
        line.set(has::LOSSY_DELAY, blocks.delay.may_lose());
    }
}
