//! Section II-B.2: the propagation delay, which precedes the output buffer. The paper says that its delays
//! were precise, and prints no number. Always in virtual time.

use crate::Settings;
use crate::book::Book;
use crate::experiment::{Experiment, LONGEST, base, blast, generator, paced};
use crate::kinds::require;
use crate::meter::{Arrivals, Meter};
use crate::seeds;
use longwire_bench::BenchError;
use longwire_report::Row;
use longwire_units::Nanos;

/// A port of 10 Mbit/s at half load for 10 s.
const PORT: u64 = 10_000_000;
const TIME: Nanos = Nanos(10_000_000_000);
const DELAY: Nanos = Nanos::from_millis(30);

pub(super) fn rows(book: &mut Book<'_>) {
    let settings = book.settings;
    for which in ["first", "last"] {
        let of = |arrived: &Arrivals| if which == "first" { arrived.first } else { arrived.last };
        let row = Row::new(format!("II-B.2: delay of 30 ms before the output queue, {which} packet"), "ns");
        book.row(row.expected(DELAY.0), |row| {
            let [without, with] = [Nanos::ZERO, DELAY].map(|delay| {
                let keys = format!(
                    "queue = \"2 packets\"\n\
                    delay = {{ delay = \"{} ns\", before = \"queue\" }}",
                    delay.0
                );
                carry(1, &keys)
            });
            let (without, with) = (without?.0, with?.0);
            Ok(row.measured(of(&with).since(of(&without)).0).within(0.0).extra("packets", with.packets).note(
                "beside the same packet where there is no delay; the port is half used, so that no \
                    packet waits",
            ))
        });
    }
    for (place, what) in [("queue", "before the output queue"), ("leaving", "behind the transmitter")] {
        let name = format!("II-B.2: lost in a queue of 2 packets, delays of 0 to 20 ms {what}");
        let row = Row::new(&name, "%");
        book.row(if place == "leaving" { row.expected(0) } else { row.expected("some") }, |row| {
            let (arrived, sent) = jittered(settings, &name, place)?;
            let lost = (sent - arrived.packets) as f64 * 100.0 / sent as f64;
            let row = row
                .measured((lost * 100.0).round() / 100.0)
                .extra("sent", sent)
                .extra("arrived", arrived.packets);
            Ok(if place == "leaving" {
                row.judged(arrived.packets == sent).note("what the port is offered comes evenly")
            } else {
                row.judged(arrived.packets < sent).note(
                    "as in the paper: packets that were delayed differently come to the output buffer \
                        together",
                )
            })
        });
    }
}

fn jittered(settings: &Settings<'_>, name: &str, place: &str) -> Result<(Arrivals, u64), BenchError> {
    require("delay", "jitter")?;
    let [seed, ..] = seeds::of_row(settings, name);
    carry(
        seed,
        &format!(
            "queue = \"2 packets\"\ndelay = {{ kind = \"jitter\", delay = \"10 ms\", jitter = \"10 ms\", \
             before = \"{place}\" }}"
        ),
    )
}

/// Arrivals through a port with these keys, and the number of packets sent.
fn carry(seed: u64, keys: &str) -> Result<(Arrivals, u64), BenchError> {
    let plan = paced(blast(0, 1, LONGEST), PORT / 2, TIME);
    let sent = plan.count;
    let keys = format!("rate = \"{PORT} bit/s\"\n{keys}");
    let link = Experiment::one_way(generator(0, plan)?, Meter::new(base(1), 1), &keys, TIME)?;
    Ok((Experiment { seed, ..link }.simulate()?.meters[1].links[0], sent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn the_queue_sees_packets_behind_the_delay() {
        let stop = AtomicBool::new(false);
        let settings = Settings::of_test(&stop);
        let lost = |place| {
            let (arrived, sent) = jittered(&settings, "test", place).unwrap();
            sent - arrived.packets
        };
        // About 4100 packets, at half load with nearly random arrivals: a few percent find two in the queue.
        assert!(lost("queue") > 40);
        assert_eq!(lost("leaving"), 0);
    }
}
