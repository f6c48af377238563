//! The timing wheel's entries: of each link, and of each medium, at most one, at its deadline.

use crate::wheel::Entry;
use crate::worker::Worker;
use longwire_units::Nanos;

impl Worker {
    /// Keeps the wheel's entry for a link at its deadline.
    #[inline]
    pub(crate) fn arm(&mut self, link: u32) {
        let deadline =
            if self.windows.is_none() { self.links.deadline(link) } else { self.deadline_in_window(link) };
        let armed = self.links.armed(link);
        if deadline >= *armed {
            if deadline == Nanos::NEVER && self.simulated {
                self.disarm(link);
            }
            return;
        }
        if *armed != Nanos::NEVER {
            self.wheel.remove(Entry { time: *armed, link });
        }
        self.arm_at(link, deadline);
    }

    /// When a link wants to be looked at that may lead to another worker's.
    fn deadline_in_window(&mut self, link: u32) -> Nanos {
        match self.windows.as_ref().and_then(|windows| windows.lead_of(link)) {
            None => self.links.deadline(link),
            Some(lead) => self.links.deadline_ahead(link, lead),
        }
    }

    /// Gives a link that has no entry one at its deadline, if it has one.
    #[inline]
    pub(crate) fn arm_at(&mut self, link: u32, deadline: Nanos) {
        *self.links.armed(link) = deadline;
        if deadline != Nanos::NEVER {
            self.wheel.insert(Entry { time: deadline, link });
        }
    }

    /// Takes a link out of the wheel that has nothing to wait for any more: a simulated run would take the old deadline for
    /// something that is left to happen.
    fn disarm(&mut self, link: u32) {
        let time = std::mem::replace(self.links.armed(link), Nanos::NEVER);
        if time != Nanos::NEVER {
            self.wheel.remove(Entry { time, link });
        }
    }

    /// Lets links be looked at from the beginning that have background traffic, and media, whose stations may have some: no packet may
    /// come for long that would wake them.
    pub(crate) fn arm_background(&mut self) {
        for at in 0..self.noisy.len() {
            self.arm(self.noisy[at]);
        }
        for medium in self.links.len()..self.links.slots() {
            self.arm(medium as u32);
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
