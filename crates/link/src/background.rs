//! Background traffic: the source of a link's background packets.

use longwire_block::{Dice, Spec, Values};
use longwire_random::process::Process;
use longwire_units::Nanos;

/// The key of background traffic.
pub(crate) const KEY: &str = "background";

/// The source of a link's background packets.
#[derive(Debug)]
pub(crate) struct Background {
    pub process: Process,
    /// Beginning of the process.
    pub begin: Nanos,
    pub real_time: bool,
}

impl Background {
    /// Background traffic of the row `spec`, from `now` on, on a link of a run that began at `begin`.
    pub(crate) fn new(spec: &Spec, values: &Values, dice: Dice, (begin, now): (Nanos, Nanos)) -> Self {
        let process = Process::begun(spec, values, dice, now.since(begin));
        Self { process, begin, real_time: begin != Nanos::ZERO }
    }

    /// Whether `spec` is a row of background traffic.
    pub(crate) fn has(spec: &Spec) -> bool {
        spec.key == KEY
    }

    /// Changes parameters or the model from `now` on.
    pub(crate) fn change(&mut self, spec: &Spec, values: &Values, now: Nanos) {
        self.process.change(spec, values, now.since(self.begin));
    }

    /// Sets the beginning of the run.
    pub(crate) fn start(&mut self, begin: Nanos) {
        (self.begin, self.real_time) = (begin, begin != Nanos::ZERO);
    }

    /// Time of the next packet; never if there is none.
    pub(crate) fn next(&self) -> Nanos {
        match self.process.peek() {
            Nanos::NEVER => Nanos::NEVER,
            time => self.begin + time,
        }
    }
}
