//! Records of rings on a path: each must be released exactly once on every path to the program's end.

use super::error::{Rejection, Result};
use super::explore::Explorer;
use super::state::Knowledge;
use super::value::{Id, Kind, Names, Pair, PendingRecord, Value};
use crate::Register;
use crate::reserved::MAX_RECORDS;

impl Explorer<'_> {
    /// Instruction `at` reserves a record of this size, or returns 0.
    pub fn reserve(&mut self, state: &mut Knowledge, at: usize, (map, size): (u16, u32)) -> Result<Id> {
        if state.open.len() == MAX_RECORDS {
            return Err(Rejection::TooManyRecords);
        }
        let object = self.fresh();
        state.open.push(PendingRecord { object, map, size, at });
        Ok(object)
    }

    /// The record whose first byte a register points to, for release.
    pub fn record(&self, state: &Knowledge, register: Register, wrong: Rejection) -> Result<Id> {
        match state.register(register) {
            Value::Map { map, object, offset, nullable } if self.spec(map)?.kind.is_ring() => {
                if nullable {
                    return Err(self.maybe_null(register, map)?);
                }
                if !state.open.iter().any(|open| open.object == object) {
                    return Err(wrong);
                }
                let first = offset.as_constant() == Some(0);
                first.then_some(object).ok_or(Rejection::RecordInside { register })
            }
            Value::Released => Err(Rejection::Released { register }),
            _ => Err(wrong),
        }
    }
}

impl Knowledge {
    /// Releases a record: its addresses become invalid.
    pub fn release(&mut self, record: Id) {
        self.open.retain(|open| open.object != record);
        self.replace(
            Value::Released,
            |value| matches!(value, Value::Map { object, .. } if *object == record),
        );
    }

    /// Whether both have the same reservations, so that they can be joined.
    pub fn has_records_like(&self, other: &Self) -> bool {
        self.open.len() == other.open.len()
            && self.open.iter().zip(&other.open).all(|(mine, theirs)| mine.is_like(theirs))
    }

    /// Whether each of the other's records corresponds to one of these, by the names of their addresses. A
    /// record without an address can't be released: such states are kept separate until they are refused at
    /// the end.
    pub fn allows_records(&self, other: &Self, names: &Names) -> bool {
        let named = |mine: &PendingRecord| {
            let (_, name) = names.of(Kind::Object).find(|&(name, _)| name == mine.object)?;
            other.open.iter().find(|theirs| theirs.object == name && mine.is_like(theirs)).map(|_| name)
        };
        let stand_for: Vec<Option<Id>> = self.open.iter().map(named).collect();
        self.open.len() == other.open.len()
            && (0..stand_for.len())
                .all(|at| stand_for[at].is_some() && !stand_for[..at].contains(&stand_for[at]))
    }

    /// The records after joining two states, and which become one. With different reservations, none does:
    /// then those of one state have no addresses any more, and the program is refused at its end.
    pub fn joined_records(
        &self,
        other: &Self,
        fresh: &mut impl FnMut() -> Id,
    ) -> (Vec<PendingRecord>, Vec<Pair>) {
        if !self.has_records_like(other) {
            // Not of both: each round of a loop would add to their number.
            let most = if self.open.len() < other.open.len() { &other.open } else { &self.open };
            let nameless = most.iter().map(|open| PendingRecord { object: fresh(), ..*open });
            return (nameless.collect(), Vec::new());
        }
        let pair = |(mine, theirs): (&PendingRecord, &PendingRecord)| {
            let object = if mine.object == theirs.object { mine.object } else { fresh() };
            Pair { mine: mine.object, theirs: theirs.object, joined: PendingRecord { object, ..*mine } }
        };
        let pairs: Vec<Pair> = self.open.iter().zip(&other.open).map(pair).collect();
        (pairs.iter().map(|pair| pair.joined).collect(), pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_states_have_no_more_records_than_one_of_them() {
        let with = |objects: &[Id]| {
            let mut state = Knowledge::new();
            state.open =
                objects.iter().map(|&object| PendingRecord { object, map: 0, size: 8, at: 5 }).collect();
            state
        };
        let mut last = 100;
        let mut widen = |state: &Knowledge, other: &Knowledge| {
            state.widen(other, || {
                last += 1;
                last
            })
        };
        let mut summary = with(&[]);
        for _ in 0..3 {
            for other in [with(&[1]), with(&[2, 3])] {
                summary = widen(&summary, &other);
            }
        }
        assert_eq!(summary.open.len(), 2);
        // They can't be released any more.
        assert!(summary.open.iter().all(|record| record.object > 100));
    }
}
