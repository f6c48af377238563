//! Rounds in which each flow gets credit once. Rounds without service are skipped in one step.

use super::progress::Progress;
use super::ring::Ring;
use crate::backlog::{Backlog, Turn};

/// Fractional bits of rounds.
const FRACTION: u32 = 16;
/// Limit on rounds to skip: a packet's largest cost at the smallest quantum.
const FARTHEST: u64 = 1 << 32;

/// Flows that take turns, and the state of the round.
#[derive(Debug, Clone, Default)]
pub(super) struct Turns<const STAGE: usize> {
    ring: Ring<STAGE>,
    round: u64,
    /// Flows whose turn in this round is still to come; those after them belong to the next.
    left: u32,
    /// Rounds that must pass before any flow of this round can be served; 0 if one was.
    skip: u64,
    progress: Progress,
}

impl<const STAGE: usize> Turns<STAGE> {
    /// Adds a flow at the end; its turn is in the next round.
    #[inline]
    pub(super) fn join(&mut self, backlog: &mut Backlog, flow: u32) {
        self.ring.push(backlog, flow);
        backlog.flow_mut(flow).turn_of_mut(STAGE).round = self.round;
        // It can be served in the next round: none may be skipped.
        self.skip = self.skip.min(1);
    }

    /// The flow whose turn it is, and the number of rounds whose credit it has yet to receive, which it is
    /// treated as having received afterwards.
    #[inline]
    pub(super) fn front(&mut self, backlog: &mut Backlog) -> Option<(u32, u64)> {
        let Some(flow) = self.ring.front() else {
            // The next flow to join is served in the next round.
            self.skip = self.skip.min(1);
            return None;
        };
        if self.left == 0 {
            self.left = self.ring.len();
            self.round += self.skip.max(1);
            self.skip = u64::MAX;
            self.progress.begin(self.round << FRACTION);
        }
        let turn = backlog.flow_mut(flow).turn_of_mut(STAGE);
        let rounds = self.round - turn.round;
        turn.round = self.round;
        Some((flow, rounds))
    }

    #[inline]
    pub(super) fn turn(backlog: &mut Backlog, flow: u32) -> &mut Turn {
        backlog.flow_mut(flow).turn_of_mut(STAGE)
    }

    /// Limits the credit of a flow with a new weight to one round's.
    pub(super) fn cap(backlog: &mut Backlog, flow: u32, quantum: i64) {
        let most = quantum.saturating_mul(backlog.flow(flow).weight.into());
        let turn = Self::turn(backlog, flow);
        turn.credit = turn.credit.min(most);
    }

    /// Records that a packet of this cost was taken in this round.
    #[inline]
    pub(super) fn serve(&mut self, cost: u32) {
        self.skip = 0;
        self.progress.charge(cost);
    }

    /// The virtual time of the next packet: in rounds.
    #[inline]
    pub(super) fn due(&self) -> u64 {
        if self.left == 0 {
            (self.round + self.skip.clamp(1, FARTHEST)) << FRACTION
        } else {
            self.progress.now()
        }
    }

    /// Ends the turn of a flow that can be served after `rounds` rounds, at least 1.
    #[inline]
    pub(super) fn pass(&mut self, backlog: &mut Backlog, rounds: u64) {
        self.ring.rotate(backlog);
        self.left -= 1;
        self.skip = self.skip.min(rounds);
    }

    /// Ends the turn, and removes the flow.
    #[inline]
    pub(super) fn retire(&mut self, backlog: &mut Backlog) {
        self.ring.pop(backlog);
        self.left -= 1;
    }
}

/// Number of rounds with this credit that cover `lack`, at least 1.
#[inline]
pub(super) fn rounds_for(lack: i64, quantum: i64) -> u64 {
    if lack <= quantum { 1 } else { (lack as u64).div_ceil(quantum as u64) }
}
