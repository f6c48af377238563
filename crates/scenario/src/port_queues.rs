//! Ports with several queues, each of which another worker receives and transmits by.

use crate::plan::Plan;

impl Plan {
    /// The ends of the ports in real time, in order: for each queue of a port, the port's place.
    pub fn queue_places(&self) -> impl Iterator<Item = u16> {
        (0u16..).zip(&self.ports).flat_map(|(place, port)| (0..port.queues).map(move |_| place))
    }

    /// How many workers have the segment with this index in real time, from the first on: more than one if
    /// its ports have several queues.
    ///
    /// # Panics
    /// If there is no such segment.
    pub fn segment_queues(&self, segment: u32) -> u16 {
        let ports = &self.segments[segment as usize].ports;
        ports.first().map_or(1, |&place| self.ports[usize::from(place)].queues)
    }
}
