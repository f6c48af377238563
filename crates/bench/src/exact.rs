//! Compares every packet's time in virtual time with the formula, to the nanosecond.
//!
//! The formula is implemented independently of the links: within a busy period the n-th packet ends at the
//! period's start plus all bits so far over the rate, rounded down, in 128 bits.

use crate::{BenchError, Settings};
use longwire_block::Port;
use longwire_engine::{Observer, PacketView};
use longwire_packet::{Meta, PacketEvent};
use longwire_port::driver::source::{Flow, Interval, Model, SourcePort};
use longwire_report::Row;
use longwire_units::Nanos;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

/// Rates in bit/s and delays in ns: round, odd, least and most.
const LINKS: [(u64, u64); 8] = [
    (300, 0),
    (64_000, 101_000_000),
    (999_983, 1),
    (9_999_991, 25_000_000),
    (100_000_000, 5_000_000),
    (1_000_000_000, 30_000_000),
    (9_999_999_967, 100_000_000_000),
    (400_000_000_000, 123_456_789),
];
/// Frame lengths without FCS, and the share of the rate of each in percent. They are Poisson flows of 99 %
/// together, so that busy periods are long, but end.
const FLOWS: [(u32, u64); 4] = [(60, 9), (333, 20), (1001, 30), (1514, 40)];

/// The rows of this bench.
pub fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    let packets = if settings.quick { 20_000 } else { 250_000 };
    let mut books = Book::default();
    for (rate, delay) in LINKS {
        settings.next(&format!("exact: {rate} bit/s, {}", Nanos(delay)))?;
        let book = simulate(rate, delay, packets)?;
        books.compared += book.compared;
        books.different += book.different;
        books.queued += book.queued;
    }
    let row = Row::new("exact: leaving times that differ from the formula", "packets")
        .expected(0)
        .measured(books.different)
        .judged(books.different == 0 && books.compared > 0)
        .extra("compared", books.compared)
        .note(format!(
            "{} packets on {} links of 300 bit/s to 400 Gbit/s, {} of which waited for others, compared to \
             the nanosecond",
            books.compared,
            LINKS.len(),
            books.queued
        ));
    Ok(vec![row])
}

/// Simulates one link with a mix of flows and compares every packet.
fn simulate(rate: u64, delay: u64, packets: u64) -> Result<Book, BenchError> {
    let text = format!(
        "[engine]\npool = \"512 MiB\"\n\
         [[port]]\nname = \"a\"\ndriver = \"source\"\naddresses = \"10.0.0.1/32\"\n\
         [[port]]\nname = \"b\"\ndriver = \"source\"\naddresses = \"10.0.0.2/32\"\n\
         [[link]]\nname = \"go\"\nfrom = \"a\"\nto = \"b\"\nrate = \"{rate} bit/s\"\ndelay = \"{delay} ns\"\n\
         queue = \"unlimited\"\n\
         [[link]]\nname = \"back\"\nfrom = \"b\"\nto = \"a\"\n"
    );
    let plan = longwire_scenario::parse("bench exact", &text)?;
    let count = FLOWS.len() as u16;
    let flows: Vec<_> = (0..count).filter_map(|id| flow(id, rate, packets)).collect();
    let ports: Vec<Box<dyn Port>> = vec![
        Box::new(SourcePort::new("a", &flows, count, 1)?),
        Box::new(SourcePort::new("b", &[], count, 1)?),
    ];
    let book = Arc::new(Mutex::new(Book::default()));
    let shown = Arc::clone(&book);
    let watch = DepartureCheck { rate, delay, ..DepartureCheck::new(shown) };
    let mut watch = Some(Box::new(watch) as Box<dyn Observer>);
    let built = longwire_assemble::build(&plan, ports, |_| watch.take())?;
    let report = built.setup.simulate(longwire_assemble::TO_THE_END);
    let mut book = *book.lock().unwrap_or_else(PoisonError::into_inner);
    // A lost packet was not on time either.
    book.different += report.flow.taken.abs_diff(book.compared);
    Ok(book)
}

fn flow(id: u16, rate: u64, packets: u64) -> Option<Flow> {
    let (frame_bytes, percent) = FLOWS[usize::from(id)];
    // At 100 %, 100 times as many bits are due in a hundredth of the time.
    let bits = (u64::from(frame_bytes) + 4) * 8;
    let nanos = u128::from(bits) * 100_000_000_000 / (u128::from(rate) * u128::from(percent));
    let interval = Interval::of(Nanos(u64::try_from(nanos).ok()?.max(1)))?;
    Some(Flow {
        name: format!("{frame_bytes} bytes"),
        id,
        destination_mac: [2, 0, 0, 0, 0, 2],
        source_mac: [2, 0, 0, 0, 0, 1],
        source: SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1), 1000 + id)),
        destination: SocketAddr::from((Ipv4Addr::new(10, 0, 0, 2), 9)),
        model: Model::Poisson { every: interval, size: frame_bytes },
        start: Nanos::ZERO,
        until: Nanos::NEVER,
        count: packets / u64::from(FLOWS.len() as u16),
        up: true,
    })
}

/// Results of the comparison.
#[derive(Debug, Clone, Copy, Default)]
struct Book {
    compared: u64,
    different: u64,
    queued: u64,
}

/// Computes each packet's departure time, and compares.
struct DepartureCheck {
    rate: u64,
    delay: u64,
    /// Start of the busy period, bits sent since, and end of its last packet.
    begin: u64,
    bits: u128,
    end: u64,
    expected: VecDeque<u64>,
    book: Arc<Mutex<Book>>,
}

impl DepartureCheck {
    fn new(book: Arc<Mutex<Book>>) -> Self {
        Self { rate: 1, delay: 0, begin: 0, bits: 0, end: 0, expected: VecDeque::new(), book }
    }

    /// End of transmission of a packet that arrives at `arrival`.
    fn finish(&mut self, arrival: u64, bits: u128) -> u64 {
        if arrival >= self.end {
            (self.begin, self.bits) = (arrival, 0);
        }
        self.bits += bits;
        let sending = self.bits * 1_000_000_000 / u128::from(self.rate);
        self.end = self.begin + u64::try_from(sending).unwrap_or(u64::MAX);
        self.end
    }

    fn book(&self) -> std::sync::MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for DepartureCheck {
    fn see(&mut self, event: PacketEvent, &PacketView { meta, frame, .. }: &PacketView<'_>) {
        match event {
            PacketEvent::Arrived { .. } => self.arrived(meta, frame),
            PacketEvent::Departed => self.departed(meta),
            _ => {}
        }
    }
}

impl DepartureCheck {
    fn arrived(&mut self, meta: &Meta, frame: &[u8]) {
        self.book().queued += u64::from(meta.arrival < self.end);
        // The link counts the frame with FCS, at least 64 bytes.
        let bits = (frame.len() as u128 + 4).max(64) * 8;
        let leave = self.finish(meta.arrival, bits) + self.delay;
        self.expected.push_back(leave);
    }

    fn departed(&mut self, meta: &Meta) {
        let expected = self.expected.pop_front();
        let mut book = self.book();
        book.compared += 1;
        book.different += u64::from(expected != Some(meta.leave()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula_by_hand() {
        // One bit each at 3 bit/s: thirds of a second, whose remainders carry until the link is idle.
        let mut watch = DepartureCheck { rate: 3, ..DepartureCheck::new(Arc::default()) };
        let ends: Vec<_> = [0, 0, 0, 5_000_000_000].map(|arrival| watch.finish(arrival, 1)).into();
        assert_eq!(ends, [333_333_333, 666_666_666, 1_000_000_000, 5_333_333_333]);
    }

    #[test]
    fn a_simulated_link_agrees() {
        let book = simulate(9_999_991, 25_000_000, 2000).unwrap();
        assert_eq!((book.compared, book.different), (2000, 0));
        assert!(book.queued > 500 && book.queued < 2000, "{book:?}");
    }
}
