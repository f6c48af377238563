//! Ports with several queues, each served by its own worker.

use crate::plan::Plan;

impl Plan {
    /// In real time, the port's place for each queue of each port, in order.
    pub fn queue_places(&self) -> impl Iterator<Item = u16> {
        (0u16..).zip(&self.ports).flat_map(|(place, port)| (0..port.queues).map(move |_| place))
    }

    /// Number of workers that share this segment in real time, from the first: more than one if its ports
    /// have several queues.
    ///
    /// # Panics
    /// If there is no such segment.
    pub fn segment_queues(&self, segment: u32) -> u16 {
        let ports = &self.segments[segment as usize].ports;
        ports.first().map_or(1, |&place| self.ports[usize::from(place)].queues)
    }
}
