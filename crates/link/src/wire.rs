//! Effects of judges on packets: before the queue, and on the wire.

use crate::delay::Order;
use crate::events::{report_lost, report_mark};
use crate::fate::{Affected, Arrival, Coming, Fate, VerdictWithEffects};
use crate::has;
use crate::link::{Link, Surroundings};
use crate::profile::Draws;
use longwire_block::path::DIRECT;
use longwire_block::{Dice, DropReason, Effects, Flips, Offer, Verdict};
use longwire_packet::{Checksum, Handle, Meta, Pool};
use longwire_units::Nanos;

/// Consecutive segments of a train with the same fate on the wire.
#[derive(Debug, Clone, Copy, Default)]
struct Piece {
    first: u16,
    count: u16,
    effects: Effects,
}

impl Link {
    /// Continues with a packet according to `fate`: after effects of judges before the queue or on the wire,
    /// or with one whose discipline decides when it is sent.
    #[inline(never)]
    pub(crate) fn finish_arrival(
        &mut self,
        dice: Draws<'_>,
        at: &mut Surroundings<'_>,
        handle: Handle,
        fate: Fate,
        affected: &mut Affected,
    ) -> Arrival {
        if fate == Fate::Waits {
            return self.wait_served(dice, at, handle);
        }
        let Some(affected) = affected.take() else { return Arrival::Kept };
        if fate == Fate::Judged {
            self.pick_up_dice(dice);
            self.send_judged(at, handle, affected);
        } else {
            let frame = at.pool.meta(handle).wire_len;
            self.arrive_affected(at, handle, Coming { now: self.latest, frame }, affected);
        }
        Arrival::DeadlineChanged
    }

    /// Continues with a packet that is sent on arrival, after effects of judges on the wire.
    #[inline(never)]
    pub(crate) fn send_judged(
        &mut self,
        at: &mut Surroundings<'_>,
        handle: Handle,
        affected: VerdictWithEffects,
    ) {
        let now = self.latest;
        self.send_off_judged(at.pool, handle, now, affected);
        if self.line.next() <= now {
            self.release(at.pool, now, at.out);
        }
    }

    /// Accepts a packet with effects of the judges.
    #[inline(never)]
    pub(crate) fn arrive_affected(
        &mut self,
        at: &mut Surroundings<'_>,
        handle: Handle,
        coming: Coming,
        (verdict, effects): VerdictWithEffects,
    ) {
        if let Verdict::Drop(reason) = verdict {
            self.answer(at, handle, &effects);
            return self.drop(at.pool, handle, reason);
        }
        if self.affect(at, handle, coming.now, &effects) {
            return;
        }
        let copy = effects.copy.and_then(|_| self.copy(at.pool, handle));
        for handle in [Some(handle), copy].into_iter().flatten() {
            if effects.past {
                self.pass_by(at, handle, coming.now);
            } else if self.line.features & has::FRONT == 0 {
                if self.join(at, handle, coming) == Arrival::Through {
                    at.out.push(at.pool, handle);
                }
            } else {
                self.delay_before(at.pool, handle, coming.now);
            }
        }
    }

    /// Takes a packet sent at `finish` through the wire, on a link with judges there, or background traffic,
    /// or packets that overtake.
    #[inline(never)]
    pub(crate) fn cross(&mut self, pool: &mut Pool, handle: Handle, finish: Nanos) {
        if pool.meta(handle).flags & Meta::PHANTOM != 0 {
            self.rare().consumed += 1;
            return pool.free(handle);
        }
        let alike = self.blocks().order == Order::InOrder;
        if pool.meta(handle).is_train() && (self.line.features & has::WIRE != 0 || !alike) {
            return self.cross_train(pool, handle, finish, alike);
        }
        if self.line.features & has::WIRE == 0 {
            if self.line.features & has::LOSSY_DELAY != 0 && self.blocks().delay.loses() {
                return self.drop(pool, handle, DropReason::Loss);
            }
            return self.depart(pool, handle, finish, (Nanos::ZERO, None));
        }
        let (verdict, effects) = self.judge_on_wire(pool, handle, finish, pool.meta(handle).wire_len);
        match verdict {
            Verdict::Drop(reason) => self.drop(pool, handle, reason),
            _ => self.go(pool, handle, finish, &effects),
        }
    }

    /// Judges each segment; those with the same fate stay together, unless each has its own delay.
    fn cross_train(&mut self, pool: &mut Pool, train: Handle, finish: Nanos, alike: bool) {
        let meta = *pool.meta(train);
        let (full, last) = (meta.first_bytes(), meta.last_bytes());
        let mut piece = Piece::default();
        for segment in 0..meta.segments {
            let bytes = if segment + 1 == meta.segments { last } else { full };
            let (verdict, effects) = self.judge_on_wire(pool, train, finish, bytes);
            if let Verdict::Drop(reason) = verdict {
                self.drop_segments(pool, train, (reason, 1));
                self.cut(pool, train, &mut piece, finish);
                continue;
            }
            if piece.count > 0 && (!alike || effects != piece.effects || effects.flips.is_some()) {
                self.cut(pool, train, &mut piece, finish);
            }
            if piece.count == 0 {
                piece = Piece { first: segment, count: 0, effects };
            }
            piece.count += 1;
        }
        if piece.count == meta.segments {
            return self.go(pool, train, finish, &piece.effects);
        }
        self.cut(pool, train, &mut piece, finish);
        pool.free(train);
    }

    /// Makes a packet of a piece of a train and sends it on.
    fn cut(&mut self, pool: &mut Pool, train: Handle, piece: &mut Piece, finish: Nanos) {
        let Piece { first, count, effects } = std::mem::take(piece);
        if count == 0 {
            return;
        }
        if let Some(handle) = self.segments(pool, train, (first, count)) {
            self.go(pool, handle, finish, &effects);
        }
    }

    fn judge_on_wire(&mut self, pool: &Pool, handle: Handle, now: Nanos, bytes: u32) -> (Verdict, Effects) {
        let mut offer = Offer::pooled(now, bytes, pool, handle);
        let mut verdict = self.blocks().wire.judge(&mut offer);
        let lossy = self.line.features & has::LOSSY_DELAY != 0;
        if lossy && !matches!(verdict, Verdict::Drop(_)) && self.blocks().delay.loses() {
            verdict = Verdict::Drop(DropReason::Loss);
        }
        (verdict, offer.done().copied().unwrap_or_default())
    }

    /// Puts a packet, and its copy if there is one, in flight.
    #[inline(never)]
    pub(crate) fn go(&mut self, pool: &mut Pool, handle: Handle, finish: Nanos, effects: &Effects) {
        if !effects.any() {
            return self.depart(pool, handle, finish, (Nanos::ZERO, None));
        }
        let copy = effects.copy.and_then(|longer| Some((self.copy(pool, handle)?, longer)));
        self.rewrite(pool, handle, effects);
        self.depart(pool, handle, finish, (Nanos::ZERO, effects.ahead));
        if let Some((copy, longer)) = copy {
            self.depart(pool, copy, finish, (longer, None));
        }
    }

    /// Lets a packet leave at `now`, on arrival, without queue, transmitter and delay. Judges on the wire
    /// still see it, and may delay its copy.
    #[inline(never)]
    pub(crate) fn pass_by(&mut self, at: &mut Surroundings<'_>, handle: Handle, now: Nanos) {
        self.serve(at.pool, now);
        let mut copy = None;
        if self.line.features & has::WIRE != 0 {
            let mut offer = Offer::pooled(now, at.pool.meta(handle).wire_len, at.pool, handle);
            let verdict = self.blocks().wire.judge(&mut offer);
            let effects = offer.done().copied().unwrap_or_default();
            if let Verdict::Drop(reason) = verdict {
                return self.drop(at.pool, handle, reason);
            }
            copy = effects.copy.and_then(|longer| Some((self.copy(at.pool, handle)?, now + longer)));
            self.rewrite(at.pool, handle, &effects);
        }
        let (line, _, blocks) = self.parts();
        let heaps = &mut blocks.books.rare().heaps;
        for (handle, leave) in [Some((handle, now)), copy].into_iter().flatten() {
            line.join_apart(heaps, at.pool, handle, leave);
        }
        self.release(at.pool, now, at.out);
    }

    /// Applies the effects of judges to an arriving packet. Returns whether it has gone to another link.
    #[inline(never)]
    pub(crate) fn affect(
        &mut self,
        at: &mut Surroundings<'_>,
        handle: Handle,
        now: Nanos,
        effects: &Effects,
    ) -> bool {
        self.rewrite(at.pool, handle, effects);
        let meta = at.pool.meta_mut(handle);
        if let Some(band) = effects.band {
            meta.set_band(band.min(Meta::NO_BAND - 1));
        }
        let Some(target) = effects.steer else { return false };
        meta.set_leave(now.0);
        meta.steer(target as u8);
        self.rare().steered += u64::from(meta.segments);
        at.out.push(at.pool, handle);
        true
    }

    /// Informs the sender of a packet of its drop, if the judge requests it. The reply leaves at once, by the
    /// input port of the packet, without links.
    #[inline(never)]
    pub(crate) fn answer(&mut self, at: &mut Surroundings<'_>, handle: Handle, effects: &Effects) {
        let Some(mtu) = effects.too_big else { return };
        let Some(reply) = longwire_wire::too_big(at.pool, handle, mtu) else { return };
        let asked = *at.pool.meta(handle);
        let meta = at.pool.meta_mut(reply);
        (meta.in_port, meta.out_port) = (asked.out_port, asked.in_port);
        meta.arrival = asked.arrival;
        meta.set_leave(asked.arrival);
        (meta.place, meta.seq) = (asked.place, asked.seq);
        (meta.path, meta.flags) = (DIRECT, Meta::REPLY);
        at.out.push(at.pool, reply);
    }

    /// Copies a packet.
    pub(crate) fn copy(&mut self, pool: &mut Pool, handle: Handle) -> Option<Handle> {
        let segments = u64::from(pool.meta(handle).segments);
        self.rare().made += segments;
        let copy = pool.duplicate(handle);
        if copy.is_none() {
            self.count_drop(DropReason::PoolFull, segments);
            let bytes = pool.meta(handle).segment_bytes();
            let reason = DropReason::PoolFull;
            report_lost(pool, handle, self.latest, (reason, (segments as u16, bytes)));
        }
        copy
    }

    /// Marks a packet that the queue has found ECN-capable.
    pub(crate) fn mark(&mut self, pool: &mut Pool, handle: Handle) {
        if longwire_wire::mark_ce(pool.data_mut(handle)) {
            self.rare().marked += u64::from(pool.meta(handle).segments);
            report_mark(pool, handle, self.latest);
        }
    }

    /// Changes the contents of a packet.
    fn rewrite(&mut self, pool: &mut Pool, handle: Handle, effects: &Effects) {
        if effects.mark {
            self.mark(pool, handle);
        }
        if let Some(dscp) = effects.dscp {
            longwire_wire::set_dscp(pool.data_mut(handle), dscp);
        }
        if let Some(flips) = &effects.flips {
            self.rare().corrupted += 1;
            flip(pool, handle, flips);
        }
    }
}

/// Flips bits of a packet. Its checksums are not updated, and so are wrong.
fn flip(pool: &mut Pool, handle: Handle, flips: &Flips) {
    let (meta, frame) = pool.parts_mut(handle);
    // A checksum that the sender left open is correct until bits flip.
    if longwire_wire::finish_checksum(meta, frame).is_ok() {
        meta.checksum = Checksum::Unknown as u8;
    }
    let spared = if flips.spare_headers { longwire_wire::payload_offset(frame) } else { 0 };
    let frame = &mut frame[spared..];
    let bits = 8 * frame.len() as u64;
    let mut wanted = u64::from(flips.count).min(bits);
    let mut dice = Dice::seeded(flips.seed);
    // Knuth's selection sampling (The Art of Computer Programming, volume 2, 3.4.2, algorithm S): all sets of
    // this many bits are equally likely.
    for bit in 0..bits {
        if wanted == 0 {
            return;
        }
        if dice.below(bits - bit) < wanted {
            frame[(bit / 8) as usize] ^= 0x80 >> (bit % 8);
            wanted -= 1;
        }
    }
}
