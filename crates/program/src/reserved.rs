//! Records that a program has reserved and not released.

/// Most records that a program may have at once.
pub const MAX_RECORDS: usize = 8;

/// Pending records of the running program; none between runs.
#[derive(Debug, Clone, Default)]
pub struct Records {
    open: [ReservedRecord; MAX_RECORDS],
    count: usize,
}

/// A record: address and size of its data.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReservedRecord {
    pub address: u64,
    pub length: u32,
}

impl Records {
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether another one may be reserved.
    pub fn has_room(&self) -> bool {
        self.count < MAX_RECORDS
    }

    /// Adds one, if there is room.
    pub(crate) fn add(&mut self, record: ReservedRecord) {
        if let Some(slot) = self.open.get_mut(self.count) {
            *slot = record;
            self.count += 1;
        }
    }

    pub(crate) fn pop(&mut self) -> Option<ReservedRecord> {
        self.count = self.count.checked_sub(1)?;
        Some(self.open[self.count])
    }

    /// Removes the record with data at this address.
    pub(crate) fn remove(&mut self, address: u64) -> Option<ReservedRecord> {
        let at = self.open[..self.count].iter().position(|record| record.address == address)?;
        let record = self.open[at];
        self.count -= 1;
        self.open[at] = self.open[self.count];
        Some(record)
    }

    /// Whether all these bytes are in one record.
    pub fn cover(&self, address: u64, size: u32) -> bool {
        let within = |record: &ReservedRecord| {
            let before = address.checked_sub(record.address);
            before.is_some_and(|before| before + u64::from(size) <= record.length.into())
        };
        self.open[..self.count].iter().any(within)
    }
}
