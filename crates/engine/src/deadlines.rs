//! The timing wheel's entries: of each link, and of each medium, at most one, at its deadline.

use crate::wheel::Entry;
use crate::worker::Worker;
use longwire_units::Nanos;

impl Worker {
    /// Keeps the wheel's entry for a link at its deadline.
    #[inline]
    pub(crate) fn arm(&mut self, link: u32) {
        let lead = self.windows.as_ref().map_or(Nanos::ZERO, |windows| windows.lead_of(link));
        let deadline = match self.links.deadline(link) {
            Nanos::NEVER => return,
            deadline => deadline.since(lead),
        };
        let armed = self.links.armed(link);
        if deadline >= *armed {
            return;
        }
        if *armed != Nanos::NEVER {
            self.wheel.remove(Entry { time: *armed, link });
        }
        *armed = deadline;
        self.wheel.insert(Entry { time: deadline, link });
    }

    /// Lets links be looked at from the beginning that have background traffic: no packet may come for long that would
    /// wake them.
    pub(crate) fn arm_background(&mut self) {
        for link in 0..self.links.len() as u32 {
            if self.links.has_background(link) {
                self.arm(link);
            }
        }
    }

    /// The same for links and media whose deadlines have changed because of what happened to another.
    #[inline]
    pub(crate) fn arm_stirred(&mut self) {
        while let Some(link) = self.links.take_stirred() {
            self.arm(link);
        }
    }
}
