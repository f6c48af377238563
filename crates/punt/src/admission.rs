//! Admission control: the guarantees of a level, and whether another one fits.
//!
//! "For each such forwarder, the requester specifies the expected packet rate and the expected number of
//! cycles expended on each packet. [...] The forwarder can be admitted only if the processor has sufficient
//! cycles-per-second are available and the total packet rate remains below the maximum" (Spalink and others,
//! "Building a robust software-based router using network processors", 4.6).

use std::fmt;
use thiserror::Error;

/// Capacity of a level per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Packets that can be moved up and back.
    pub packets: u64,
    /// Cycles of its processor.
    pub cycles: u64,
}

/// The request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Packets a second.
    pub packets: u64,
    /// Cycles for each.
    pub cycles: u64,
}

impl Request {
    /// Whether a request is within `promised` in both respects.
    pub(crate) const fn fits(self, promised: Self) -> bool {
        self.packets <= promised.packets && self.cycles <= promised.cycles
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} packets/s x {} cycles", self.packets, self.cycles)
    }
}

/// Reason for a refusal, with its computation.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DoesNotFit {
    /// More packets than the level can move.
    #[error("{asked} packets/s, and {promised} promised already, make {sum} of {capacity}: {} too many; ask \
        for at most {}",
        sum - capacity, capacity - promised)]
    Packets {
        /// The request.
        asked: u64,
        /// Promised to others.
        promised: u64,
        /// The sum of both.
        sum: u64,
        /// The capacity of the level.
        capacity: u64,
    },
    /// Too many cycles.
    #[error("{0}")]
    Cycles(CycleSum),
    /// The name already has a guarantee.
    #[error("{name} has been admitted already")]
    Twice {
        /// The name.
        name: String,
    },
}

/// A sum of cycles that exceeds the capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CycleSum {
    /// The request.
    pub request: Request,
    /// Guaranteed to others, cycles per second.
    pub promised: u128,
    /// The capacity of the level.
    pub capacity: u64,
}

impl fmt::Display for CycleSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { request: Request { packets, cycles }, promised, capacity } = *self;
        let own = u128::from(packets) * u128::from(cycles);
        let (sum, left) = (own + promised, u128::from(capacity).saturating_sub(promised));
        write!(
            f,
            "{packets} packets/s x {cycles} cycles = {own} cycles/s, and {promised} promised already, make \
             {sum} of {capacity}: "
        )?;
        write!(
            f,
            "{} too many; ask for at most {} packets/s",
            sum.saturating_sub(capacity.into()),
            left / u128::from(cycles.max(1))
        )
    }
}

/// The guarantees of one level.
#[derive(Debug, Clone)]
pub struct Admission {
    capacity: Capacity,
    promised: Vec<(String, Request)>,
}

impl Admission {
    /// Creates the admission control of a level without guarantees.
    pub const fn new(capacity: Capacity) -> Self {
        Self { capacity, promised: Vec::new() }
    }

    /// Admits `name` with the requested guarantee.
    ///
    /// # Errors
    /// It does not fit, or `name` already has a guarantee.
    pub fn admit(&mut self, name: &str, request: Request) -> Result<(), DoesNotFit> {
        if self.promised.iter().any(|(other, _)| other == name) {
            return Err(DoesNotFit::Twice { name: name.into() });
        }
        let promised = self.promised_packets();
        let sum = promised.saturating_add(request.packets);
        if sum > self.capacity.packets {
            let (asked, capacity) = (request.packets, self.capacity.packets);
            return Err(DoesNotFit::Packets { asked, promised, sum, capacity });
        }
        let promised = self.promised_cycles();
        if promised + cycles(request) > self.capacity.cycles.into() {
            let capacity = self.capacity.cycles;
            return Err(DoesNotFit::Cycles(CycleSum { request, promised, capacity }));
        }
        self.promised.push((name.into(), request));
        Ok(())
    }

    /// Releases the guarantee of `name`.
    pub fn release(&mut self, name: &str) {
        self.promised.retain(|(other, _)| other != name);
    }

    /// The capacity of the level.
    pub const fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Guaranteed packets per second.
    pub fn promised_packets(&self) -> u64 {
        self.promised.iter().map(|(_, request)| request.packets).sum()
    }

    /// Guaranteed cycles per second.
    pub fn promised_cycles(&self) -> u128 {
        self.promised.iter().map(|&(_, request)| cycles(request)).sum()
    }

    /// The weight of `name` for a scheduler: its guarantee, plus a part of the rest given by `shares` (its
    /// own and the sum of all).
    pub fn weight(&self, name: &str, shares: (u32, u32)) -> u64 {
        let own =
            self.promised.iter().find(|(other, _)| other == name).map_or(0, |&(_, request)| cycles(request));
        let spare = u128::from(self.capacity.cycles).saturating_sub(self.promised_cycles());
        let part = spare * u128::from(shares.0) / u128::from(shares.1.max(1));
        u64::try_from(own + part).unwrap_or(u64::MAX).max(1)
    }
}

/// Each attached process's part of the unguaranteed capacity, given guarantees and shares.
pub(crate) fn spare_rates(capacity: u64, there: &[(u64, u32)]) -> impl Iterator<Item = u64> {
    let promised: u64 = there.iter().map(|(promised, _)| promised).sum();
    let spare = capacity.saturating_sub(promised);
    let shares: u64 = there.iter().map(|&(_, share)| u64::from(share)).sum();
    there
        .iter()
        .map(move |&(_, share)| (u128::from(spare) * u128::from(share) / u128::from(shares.max(1))) as u64)
}

fn cycles(request: Request) -> u128 {
    u128::from(request.packets) * u128::from(request.cycles)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: Capacity = Capacity { packets: 534_000, cycles: 500_000_000 };

    #[test]
    fn promises_add_up_and_are_refused_with_the_sum() {
        let mut admission = Admission::new(CAPACITY);
        // The paper's 310 kpps at 1510 cycles fit alone.
        assert_eq!(admission.admit("proxy", Request { packets: 310_000, cycles: 1510 }), Ok(()));
        let packets = admission.admit("a", Request { packets: 224_001, cycles: 0 }).unwrap_err();
        assert_eq!(
            packets.to_string(),
            "224001 packets/s, and 310000 promised already, make 534001 of 534000: 1 too many; ask for at \
             most 224000"
        );
        let cycles = admission.admit("a", Request { packets: 100_000, cycles: 1000 }).unwrap_err();
        assert_eq!(
            cycles.to_string(),
            "100000 packets/s x 1000 cycles = 100000000 cycles/s, and 468100000 promised already, make \
             568100000 of 500000000: 68100000 too many; ask for at most 31900 packets/s"
        );
        assert!(admission.admit("a", Request { packets: 31_900, cycles: 1000 }).is_ok());
        assert!(matches!(
            admission.admit("a", Request { packets: 0, cycles: 0 }),
            Err(DoesNotFit::Twice { .. })
        ));
        admission.release("proxy");
        assert_eq!((admission.promised_packets(), admission.promised_cycles()), (31_900, 31_900_000));
        assert!(admission.admit("b", Request { packets: u64::MAX, cycles: u64::MAX }).is_err());
    }

    #[test]
    fn what_nobody_was_promised_is_shared() {
        let mut admission = Admission::new(Capacity { packets: 1000, cycles: 1000 });
        admission.admit("a", Request { packets: 10, cycles: 60 }).unwrap();
        // 400 are left: a quarter for a, three quarters for b.
        assert_eq!((admission.weight("a", (1, 4)), admission.weight("b", (3, 4))), (700, 300));
        assert_eq!(spare_rates(1000, &[(600, 1), (0, 3), (0, 0)]).collect::<Vec<_>>(), [100, 300, 0]);
        assert_eq!(spare_rates(1000, &[(1200, 1)]).collect::<Vec<_>>(), [0]);
    }
}
