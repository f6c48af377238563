//! Probes: what becomes of packets, reported where it happens.
//!
//! A pool without a probe costs nothing on the path of a packet that passes. A drop and a mark each test
//! whether there is one.

use crate::{Handle, Meta, Pool};
use std::any::Any;

/// What happens to a packet. Reasons are numbers, because their names belong to a higher layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketEvent {
    /// It arrives at the link of its path at `Meta::arrival`.
    Arrived {
        /// Bytes that wait in the link's queue, if the observer asked for them, else 0.
        queue_bytes: u64,
    },
    /// It leaves the link of its path at `Meta::leave`, or a filter has sent it to another link.
    Left,
    /// It goes to its port at `Meta::leave`.
    Departed,
    /// The link has set CE on it.
    Marked {
        /// When.
        time: u64,
    },
    /// The link drops it, or some segments of it.
    Dropped {
        /// When.
        time: u64,
        /// The reason's number.
        reason: u8,
        /// How many segments.
        segments: u16,
        /// Their frame bytes together.
        bytes: u32,
    },
    /// It is dropped outside links.
    Refused {
        /// The reason's number.
        reason: u8,
    },
}

/// Receives the events of a pool's packets. It must be fast: it runs on the packet path.
pub trait Probe: Any + Send {
    /// This has happened to a packet.
    fn note(&mut self, event: PacketEvent, handle: Handle, meta: &Meta, frame: &[u8]);
}

impl Pool {
    /// Attaches a probe in the place of an earlier one.
    pub fn attach(&mut self, probe: Box<dyn Probe>) {
        self.probe = Some(probe);
    }

    /// The probe, for those who know what it is.
    pub fn probe_mut(&mut self) -> Option<&mut dyn Any> {
        let probe = self.probe.as_deref_mut()?;
        Some(probe)
    }

    /// Whether a probe receives events.
    #[inline]
    pub fn is_probed(&self) -> bool {
        self.probe.is_some()
    }

    /// Reports an event of a packet, if there is a probe.
    #[cold]
    #[inline(never)]
    pub fn report(&mut self, handle: Handle, event: PacketEvent) {
        // Taken out meanwhile, because it reads the packet.
        if let Some(mut probe) = self.probe.take() {
            probe.note(event, handle, self.meta(handle), self.data(handle));
            self.probe = Some(probe);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    struct Noted(Arc<Mutex<Vec<(PacketEvent, u32)>>>);

    impl Probe for Noted {
        fn note(&mut self, event: PacketEvent, _: Handle, meta: &Meta, frame: &[u8]) {
            assert_eq!(meta.len as usize, frame.len());
            self.0.lock().unwrap().push((event, meta.len));
        }
    }

    #[test]
    fn a_probe_receives_what_is_reported() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let handle = pool.insert(&[7; 99]).unwrap();
        pool.report(handle, PacketEvent::Left);
        assert!(!pool.is_probed());
        let noted = Arc::<Mutex<Vec<_>>>::default();
        pool.attach(Box::new(Noted(Arc::clone(&noted))));
        pool.report(handle, PacketEvent::Marked { time: 3 });
        assert!(pool.is_probed());
        assert_eq!(*noted.lock().unwrap(), [(PacketEvent::Marked { time: 3 }, 99)]);
    }
}
