//! The driver's function, in a phrase. This one returns the frames sent to it.

use super::open::{Open, OpenFault, PortRequest};
use longwire_block::{Port, PortError, PortStats, Stamp};
use longwire_packet::{Batch, Pool};
use longwire_units::Nanos;
use std::collections::VecDeque;

/// Most waiting frames.
const ROOM: usize = 1024;

/// A port.
#[derive(Debug)]
pub struct Template {
    name: String,
    interface: String,
    waiting: VecDeque<Vec<u8>>,
    stats: PortStats,
}

/// Opens ports.
pub struct Opener;

impl Open for Opener {
    fn ports(&self, wanted: &[PortRequest<'_>]) -> Result<Vec<Vec<Box<dyn Port>>>, OpenFault> {
        let queue = |wanted: &PortRequest<'_>| Template {
            name: wanted.name.into(),
            interface: wanted.interface.into(),
            waiting: VecDeque::with_capacity(ROOM),
            stats: PortStats::default(),
        };
        let port = |wanted: &PortRequest<'_>| {
            (0..wanted.queues).map(|_| Box::new(queue(wanted)) as Box<dyn Port>).collect()
        };
        Ok(wanted.iter().map(port).collect())
    }
}

impl Port for Template {
    fn name(&self) -> &str {
        &self.name
    }

    fn describe(&self) -> String {
        format!("template on {}", self.interface)
    }

    /// Kernel timestamps are better: without them, frames that wait between two polls get late stamps.
    fn stamp(&self) -> Stamp {
        Stamp::Poll
    }

    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError> {
        while let (false, Some(frame)) = (batch.is_full(), self.waiting.front()) {
            match pool.insert(frame) {
                Some(handle) => {
                    pool.meta_mut(handle).arrival = now.0;
                    self.stats.in_frames += 1;
                    self.stats.in_bytes += frame.len() as u64;
                    batch.push(handle);
                }
                None => self.stats.in_pool_full += 1,
            }
            self.waiting.pop_front();
        }
        Ok(())
    }

    /// Frees every packet, and counts it as sent or by the reason of failure.
    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        for &handle in batch.as_slice() {
            if self.waiting.len() < ROOM {
                let frame = pool.data(handle).to_vec();
                self.stats.out_frames += 1;
                self.stats.out_bytes += frame.len() as u64;
                self.waiting.push_back(frame);
            } else {
                self.stats.out_full += 1;
            }
            pool.free(handle);
        }
        Ok(())
    }

    fn stats(&self) -> PortStats {
        self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_block::Values;
    use longwire_drivers::{Netns, memory};

    /// A sent frame is received once, stamped with the time of the poll.
    #[test]
    fn what_is_sent_comes_in() {
        let values = Values::read(&memory::DRIVER.spec, &[]).unwrap();
        let wanted =
            PortRequest { name: "p", interface: "eth0", netns: &Netns::Own, queues: 2, values: &values };
        let mut queues = Opener.ports(&[wanted]).unwrap().remove(0);
        assert_eq!((queues.len(), queues[0].describe().as_str()), (2, "template on eth0"));
        let (mut pool, mut batch) = (Pool::new(1 << 20).unwrap(), Batch::new());
        batch.push(pool.insert(&[7; 60]).unwrap());
        queues[0].transmit(&mut pool, &batch).unwrap();
        batch.clear();
        queues[0].receive(&mut pool, Nanos(9), &mut batch).unwrap();
        let [handle] = batch.as_slice() else { panic!("{} came", batch.as_slice().len()) };
        assert_eq!((pool.data(*handle), pool.meta(*handle).arrival), (&[7; 60][..], 9));
        assert_eq!((queues[0].stats().in_frames, queues[0].stats().out_frames), (1, 1));
    }
}
