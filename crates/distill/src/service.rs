//! A transmitter with a queue: when packets that arrived must have been sent, at a rate.

use crate::pairing::Packet;

/// A packet at the transmitter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Service {
    /// Place of the packet among all.
    pub index: usize,
    /// When its last bit is sent, in ns on the sender's clock.
    pub finish_ns: f64,
    /// How long it waits before its first bit is sent, in ns.
    pub wait_ns: f64,
    /// For how long the transmitter has not been idle when it ends, in ns: over this time an error of the
    /// rate adds up.
    pub busy_ns: f64,
}

/// Sends the packets that arrived, in order, at a rate of one bit in `ns_per_bit`. Those that were lost take
/// no time: they were lost before the transmitter.
pub fn served(packets: &[Packet], ns_per_bit: f64) -> impl Iterator<Item = Service> + '_ {
    let (mut free, mut busy_from) = (f64::NEG_INFINITY, 0.0);
    let arrived = packets.iter().enumerate().filter(|(_, packet)| packet.delay_ns.is_some());
    arrived.map(move |(index, packet)| {
        let start = packet.sent_ns.max(free);
        if free <= packet.sent_ns {
            busy_from = packet.sent_ns;
        }
        free = start + packet.bits * ns_per_bit;
        Service { index, finish_ns: free, wait_ns: start - packet.sent_ns, busy_ns: free - busy_from }
    })
}

/// A known rate, as far as it matters for times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transmitter {
    /// Time of a bit.
    pub ns_per_bit: f64,
    /// How much it may be wrong, as a share.
    pub error: f64,
    /// Unit of the captures' times in ns.
    pub resolution_ns: f64,
}

impl Transmitter {
    /// How much the time of an end of transmission may be wrong, in ns: two stamps are rounded, and so are
    /// the transmitter's own times.
    pub fn slack_ns(&self, service: &Service) -> f64 {
        2.0 * self.resolution_ns + self.error * service.busy_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_wait_for_each_other() {
        let packet = |sent_ns: f64, delay_ns| Packet { sent_ns, bits: 100.0, delay_ns, copy_ns: None };
        let arrived = Some(0.0);
        let packets = [
            packet(0.0, arrived),
            packet(150.0, arrived),
            packet(160.0, None),
            packet(160.0, arrived),
            packet(700.0, arrived),
        ];
        let all: Vec<(usize, f64, f64, f64)> = served(&packets, 2.0)
            .map(|service| (service.index, service.finish_ns, service.wait_ns, service.busy_ns))
            .collect();
        assert_eq!(
            all,
            [
                (0, 200.0, 0.0, 200.0),
                (1, 400.0, 50.0, 400.0),
                (3, 600.0, 240.0, 600.0),
                (4, 900.0, 0.0, 200.0)
            ]
        );
    }
}
