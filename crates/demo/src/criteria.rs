//! Expectations of the demo about its link, and pass criteria of measurements.

use longwire_block::Value;
use longwire_report::Row;
use longwire_report::chances::binomial_interval;
use longwire_scenario::Plan;

/// Probability that a correct link passes.
const COVERAGE: f64 = 0.9999;
/// Tolerance for TCP's deviation from the law of averages in a few seconds with a few dozen losses.
const LAW_FACTOR: f64 = 2.5;
/// Payload of a TCP segment with timestamps on a path of 1500-byte packets, and its Ethernet frame.
const SEGMENT: (f64, f64) = (1448.0, 1518.0);

/// Configuration of the link, in each direction.
#[derive(Debug, Clone, Copy)]
pub struct LinkConfiguration {
    /// Bits per second.
    rate: f64,
    /// Nanoseconds.
    delay: f64,
    /// A share.
    loss: f64,
}

/// Packets sent and packets lost.
#[derive(Debug, Clone, Copy)]
pub struct Losses {
    pub sent: u64,
    pub lost: u64,
}

impl LinkConfiguration {
    /// Reads the first link of the plan.
    pub fn of(plan: &Plan) -> Self {
        let value = |key: &str| plan.links.first().and_then(|_| plan.profile(0).value(key));
        Self {
            rate: match value("rate") {
                Some(Value::Rate(rate)) => rate.as_f64(),
                _ => f64::INFINITY,
            },
            delay: match value("delay") {
                Some(Value::Time(delay)) => delay.0 as f64,
                _ => 0.0,
            },
            loss: match value("loss") {
                Some(Value::Probability(loss)) => loss.as_f64(),
                _ => 0.0,
            },
        }
    }

    /// Transit time of a frame of `frame` bytes, check sequence included, over the idle link.
    fn one_way_ns(&self, frame: u64) -> f64 {
        self.delay + frame as f64 * 8e9 / self.rate
    }

    /// `round trip`: the median, for frames of `frame` bytes.
    pub fn round_trip(&self, median_ns: f64, least_ns: f64, frame: u64) -> Row {
        let expected = 2.0 * self.one_way_ns(frame);
        delay("round trip", expected, median_ns, least_ns)
            .note(format!("ping, median: the delay and {frame} bytes sent, both ways"))
    }

    /// `one-way delay`: the median, for frames of `frame` bytes.
    pub fn one_way_delay(&self, median_ns: f64, least_ns: f64, frame: u64) -> Row {
        delay("one-way delay", self.one_way_ns(frame), median_ns, least_ns)
            .note(format!("UDP, a to b, median: the delay, and {frame} bytes sent"))
    }

    /// `round trip loss`: a ping is lost if either direction loses it.
    pub fn round_trip_loss(&self, losses: Losses) -> Row {
        loss("round trip loss", 1.0 - (1.0 - self.loss).powi(2), losses)
    }

    /// `loss` in one direction.
    pub fn loss(&self, losses: Losses) -> Row {
        loss("loss", self.loss, losses)
    }

    /// `bandwidth`: the rate of arrivals when more is sent than the link carries, as Ethernet frames with
    /// their check sequence.
    pub fn bandwidth(&self, measured: Option<f64>, sent: f64) -> Row {
        let row = Row::new("bandwidth", "bit/s").expected(self.rate).extra("layer", "ethernet");
        let row = match measured {
            Some(rate) => row.measured(rate),
            None => row.note("fewer than two packets arrived"),
        };
        row.within_percent(2.0).note(format!(
            "UDP, a to b, sent at {:.1} Mbit/s: Ethernet frames, from first to last arrival",
            sent / 1e6
        ))
    }

    /// `tcp goodput` under a congestion control that reacts to each loss, as Reno and CUBIC do, by the law of
    /// Mathis, Semke, Mahdavi and Ott (1997): payload / round trip · √(3 / (2 loss)).
    pub fn goodput(&self, measured: Option<f64>, congestion: &str) -> Row {
        let (payload, frame) = SEGMENT;
        let most = self.rate * payload / frame;
        let round_trip = 2.0 * self.delay / 1e9;
        let law = payload * 8.0 / round_trip * (1.5 / self.loss).sqrt();
        let expected = law.min(most).round();
        let row = Row::new("tcp goodput", "bit/s")
            .expected(expected)
            .extra("congestion_control", congestion)
            .extra("layer", "tcp payload")
            .extra("most", most);
        let law = format!(
            "what the law of Mathis lets expect of {:.0} % loss, to a factor of {LAW_FACTOR}",
            self.loss * 100.0
        );
        let link = format!("without loss it would be {:.2} Mbit/s", most / 1e6);
        let Some(measured) = measured else {
            return row.note(format!("congestion control {congestion}: {law}; {link}"));
        };
        row.measured(measured.round())
            .judged((expected / LAW_FACTOR..=most.min(expected * LAW_FACTOR)).contains(&measured))
            .note(format!("TCP ({congestion}), a to b: {law}"))
            .note(link)
    }
}

/// Passes if the median is within 2.5 %, and no packet is early.
fn delay(name: &str, expected: f64, median: f64, least: f64) -> Row {
    // Clock readings are rounded to a nanosecond.
    const ROUNDING: f64 = 2.0;
    let row =
        Row::new(name, "ns").expected(expected.round()).measured(median.round()).extra("least_ns", least);
    let in_time = (median - expected).abs() <= expected * 0.025;
    row.judged(in_time && least >= expected - ROUNDING)
}

fn loss(name: &str, expected: f64, losses: Losses) -> Row {
    let (fewest, most) = binomial_interval(losses.sent, expected, COVERAGE);
    let percent = |count: u64| if losses.sent == 0 { 0.0 } else { count as f64 * 100.0 / losses.sent as f64 };
    Row::new(name, "%")
        // Further digits are only binary representation error of decimal fractions.
        .expected((expected * 1e8).round() / 1e6)
        .measured(percent(losses.lost))
        .judged(losses.sent > 0 && (fewest..=most).contains(&losses.lost))
        .extra("sent", losses.sent)
        .extra("lost", losses.lost)
        .extra("fewest", fewest)
        .extra("most", most)
        .note(format!(
            "{} of {} lost; {fewest} to {most} are to be expected ({:.2} % to {:.2} %; binomial, {} %)",
            losses.lost,
            losses.sent,
            percent(fewest),
            percent(most),
            COVERAGE * 100.0
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: LinkConfiguration = LinkConfiguration { rate: 10e6, delay: 20e6, loss: 0.02 };

    #[test]
    fn losses_pass_within_their_interval() {
        let pass = |lost| LINK.loss(Losses { sent: 10_000, lost }).pass;
        assert_eq!(
            [0, 130, 200, 270, 400].map(pass),
            [Some(false), Some(false), Some(true), Some(false), Some(false)]
        );
        assert_eq!(LINK.loss(Losses { sent: 0, lost: 0 }).pass, Some(false));
        let row = LINK.round_trip_loss(Losses { sent: 1000, lost: 40 });
        assert_eq!((row.expected, row.pass), (Some(3.96.into()), Some(true)));
    }

    #[test]
    fn delays_pass_when_near_and_never_early() {
        // 125 bytes take 100 µs at 10 Mbit/s.
        let row = |median, least| LINK.one_way_delay(median, least, 125);
        assert_eq!(row(20.2e6, 20.1e6).expected, Some(20_100_000.0.into()));
        assert_eq!(row(20.2e6, 20.1e6).pass, Some(true));
        assert_eq!(row(21e6, 20.1e6).pass, Some(false));
        assert_eq!(row(20.2e6, 20.0e6).pass, Some(false), "one was early");
        assert_eq!(LINK.round_trip(40.3e6, 40.2e6, 125).pass, Some(true));
    }

    #[test]
    fn goodput_is_what_losses_leave_or_what_the_link_carries() {
        // 1448 bytes · 8 / 40 ms · √75.
        let row = LINK.goodput(Some(2.4e6), "cubic");
        assert_eq!(row.expected, Some(2_508_010.0.into()));
        assert_eq!((row.pass, LINK.goodput(Some(7e6), "cubic").pass), (Some(true), Some(false)));
        assert_eq!(LINK.goodput(None, "cubic").pass, None);
        let clean = LinkConfiguration { loss: 1e-6, ..LINK };
        assert_eq!(clean.goodput(Some(9.4e6), "cubic").expected, Some(9_538_867.0.into()));
    }

    #[test]
    fn the_readme_shows_the_tolerance_that_holds() {
        let readme = include_str!("../../../README.md");
        let row = LINK.goodput(Some(2.5e6), "cubic");
        let law = &row.notes[0];
        assert!(law.ends_with(&format!("to a factor of {LAW_FACTOR}")), "{law}");
        assert!(readme.contains(&format!("{law}\n")), "the README does not say: {law}");
    }
}
