//! Behaviour of the paper's queues and buffers, exactly: workers run one after the other, so that no clock
//! decides.

use super::queue::{Buffers, Guard, Queue, Ready};
use super::stage::{Choice, Input, Output, OutputCounts, PRIORITIES};
use crate::book::{Book, paper};
use longwire_report::Row;

/// Buffers of the paper's pool (section 3.2.3), and packets that arrive before the output worker polls again.
const BUFFERS: usize = 8192;
const BEHIND: [u64; 4] = [4096, 8192, 10_000, 65_536];

pub(super) fn rows(book: &mut Book<'_>) {
    for behind in BEHIND {
        let name = format!("queues: packets lost in 8192 circular buffers, output {behind} behind");
        let lost = behind.saturating_sub(BUFFERS as u64);
        let row = paper(Row::new(name, "packets"), "effectively lost").expected(lost);
        book.row(row, |row| {
            let counts = after(behind);
            Ok(row
                .measured(counts.late)
                .judged(counts == OutputCounts { sent: behind - lost, late: lost, overwritten: 0 })
                .note(format!(
                    "of {behind} packets {} are sent: a buffer is valid for one pass through the circle",
                    counts.sent
                )))
        });
    }
    let row =
        paper(Row::new("queues: strict priority between 16 queues of a port", "packets"), "priority order");
    book.row(row.expected(0), |row| {
        let (out_of_order, sent) = priorities();
        Ok(row
            .measured(out_of_order)
            .judged(out_of_order == 0 && sent == PACKETS)
            .note(format!("packets of {sent} that were sent while one of a higher priority waited")))
    });
}

/// Results of an output worker that starts after this many packets.
fn after(behind: u64) -> OutputCounts {
    let (buffers, queues) = ([Buffers::new(BUFFERS)], [Queue::new(1 << 17)]);
    Input::new(0, &[0], &buffers[0], (&queues, None), Guard::Private).run(behind);
    let mut output = Output::new(Choice::Batched, &buffers, &queues, None);
    output.run(behind);
    output.counts
}

/// Packets in the test of priorities: rounds with more arrivals than departures, and then the rest.
const PACKETS: u64 = 64 * 48;

/// Packets sent although a higher priority waited, and packets sent.
fn priorities() -> (u64, u64) {
    let buffers = [Buffers::new(8192)];
    let queues: Vec<Queue> = (0..PRIORITIES).map(|_| Queue::new(8192)).collect();
    let bits = [Ready::default()];
    let mut input = Input::new(0, &[0], &buffers[0], (&queues, Some(&bits)), Guard::Private);
    let mut output = Output::new(Choice::Indirect, &buffers, &queues, Some(&bits[0]));
    let (mut wrong, mut put) = (0, 0);
    let mut one = |output: &mut Output<'_>| {
        let waiting: Vec<bool> = output.waiting().collect();
        let before = output.tails();
        if output.run(1) == 0 {
            return;
        }
        let sent = (0..PRIORITIES).find(|&queue| output.tails()[queue] > before[queue]);
        let first = waiting.iter().position(|waits| *waits);
        wrong += u64::from(sent != first);
    };
    while put < PACKETS {
        input.run(48);
        put += 48;
        (0..40).for_each(|_| one(&mut output));
    }
    while output.counts.sent < PACKETS && output.waiting().any(|waits| waits) {
        one(&mut output);
    }
    (wrong, output.counts.sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_loses_what_it_cannot_hold() {
        assert_eq!(after(8192).sent, 8192);
        assert_eq!(after(8193), OutputCounts { sent: 8192, late: 1, overwritten: 0 });
    }

    #[test]
    fn higher_priorities_go_first() {
        assert_eq!(priorities(), (0, PACKETS));
    }
}
