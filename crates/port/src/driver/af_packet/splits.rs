//! Trains that an interface does not split.

use super::AfPacket;
use crate::interface::{Feature, Interface, OpenError};
use longwire_block::PortError;
use longwire_packet::{Batch, Checksum, Gso, Handle, Meta, Pool};
use longwire_wire::{finish_checksum, segment};

/// The trains that are split here: all of them without the header, and with it those that the interface does
/// not split. The kernel drops what it would have to split itself where the queueing discipline is bypassed
/// (`__dev_direct_xmit`), as if a queue were full.
#[derive(Debug, Clone, Copy)]
pub(super) struct Splits {
    tcp: bool,
    tcp6: bool,
    udp: bool,
}

impl Splits {
    pub(super) fn of(interface: &Interface, with_header: bool) -> Result<Self, OpenError> {
        let features = interface.features()?;
        let lacks = |feature| !with_header || !features.is_on(feature);
        Ok(Self { tcp: lacks(Feature::TsoV4), tcp6: lacks(Feature::TsoV6), udp: lacks(Feature::Uso) })
    }

    pub(super) fn any(self) -> bool {
        self.tcp || self.tcp6 || self.udp
    }

    pub(super) fn has(self, meta: &Meta) -> bool {
        const TCP6: u8 = Gso::TcpV6 as u8;
        const UDP: u8 = Gso::Udp as u8;
        meta.train().is_some_and(|train| match train.gso {
            TCP6 => self.tcp6,
            UDP => self.udp,
            _ => self.tcp,
        })
    }
}

impl AfPacket {
    /// Sends packets of which some trains have to be split.
    pub(super) fn send_some_split(&mut self, pool: &mut Pool, frames: &[Handle]) -> Result<(), PortError> {
        let (mut rest, mut result) = (frames, Ok(()));
        while let [first, ..] = *rest {
            let whole = rest.iter().take_while(|&&handle| !self.splits.has(pool.meta(handle))).count();
            let (group, behind) = rest.split_at(whole.max(1));
            let sent = match whole {
                0 => self.send_split(pool, first),
                _ if self.with_header => self.send(pool, group),
                _ => self.send_finished(pool, group),
            };
            (rest, result) = (behind, result.and(sent));
        }
        result
    }

    /// Sends single frames with complete checksums.
    fn send_finished(&mut self, pool: &mut Pool, frames: &[Handle]) -> Result<(), PortError> {
        for &handle in frames {
            let (meta, frame) = pool.parts_mut(handle);
            if finish_checksum(meta, frame).is_err() {
                // Drivers check the checksum's offset on receipt, so this frame was created here: send it as
                // it is.
                meta.checksum = Checksum::Unknown as u8;
            }
        }
        self.send(pool, frames)
    }

    /// Sends a train as single frames.
    fn send_split(&mut self, pool: &mut Pool, train: Handle) -> Result<(), PortError> {
        let count = pool.meta(train).segments;
        let mut next = 0;
        let mut result = Ok(());
        while next < count {
            let mut group = Batch::new();
            while next < count && !group.is_full() {
                match segment(pool, train, next, 1) {
                    Some(handle) => group.push(handle),
                    None => self.stats.out_full += 1,
                }
                next += 1;
            }
            result = result.and(self.send_finished(pool, group.as_slice()));
            group.as_slice().iter().for_each(|&handle| pool.free(handle));
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_packet::Train;

    #[test]
    fn each_kind_of_train_is_split_by_itself() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let handle = pool.insert(&[7; 60]).unwrap();
        let none = Splits { tcp: false, tcp6: false, udp: false };
        for (splits, expected) in [
            (none, None),
            (Splits { tcp: true, ..none }, Some(Gso::TcpV4)),
            (Splits { tcp6: true, ..none }, Some(Gso::TcpV6)),
            (Splits { udp: true, ..none }, Some(Gso::Udp)),
        ] {
            assert_eq!(splits.any(), expected.is_some(), "{splits:?}");
            for gso in [Gso::TcpV4, Gso::TcpV6, Gso::Udp] {
                let train = Train { gso: gso as u8, segments: 2, gso_size: 1000, header_len: 54 };
                pool.meta_mut(handle).set_train(train);
                assert_eq!(splits.has(pool.meta(handle)), expected == Some(gso), "{splits:?} {gso:?}");
            }
        }
    }
}
