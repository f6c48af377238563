//! Results as rows of a report. Names are stable, because tools look up rows by name.

use super::bulk::BulkResult;
use super::percent;
use super::ping::PingResult;
use super::request::RequestResult;
use super::server::{Session, SessionOutcome};
use super::spread::Distribution;
use super::tally::UdpReception;
use super::udp::{SendingRate, UdpResult};
use longwire_report::{Report, Row};
use longwire_units::counted;

impl Distribution {
    /// A row with the mean as its value, and further fields `min_ns`, `p50_ns` … `max_ns`.
    pub fn row(&self, name: impl Into<String>) -> Row {
        let [p50, p99, p999, max] = [self.p50_ns, self.p99_ns, self.p999_ns, self.max_ns].map(micros);
        Row::new(name, "ns")
            .measured(self.mean_ns)
            .extra("count", self.count)
            .extra("min_ns", self.min_ns)
            .extra("deviation_ns", self.deviation_ns)
            .extra("p50_ns", self.p50_ns)
            .extra("p90_ns", self.p90_ns)
            .extra("p99_ns", self.p99_ns)
            .extra("p999_ns", self.p999_ns)
            .extra("max_ns", self.max_ns)
            .note(format!("p50 {p50}  p99 {p99}  p99.9 {p999}  max {max}"))
    }
}

fn micros(ns: i64) -> String {
    format!("{:.1} µs", ns as f64 / 1000.0)
}

/// A row whose value may be missing, with the reason if it is.
fn optional(name: &str, unit: &str, value: Option<f64>, why_not: &str) -> Row {
    match value {
        Some(value) => Row::new(name, unit).measured(value),
        None => Row::new(name, unit).note(why_not),
    }
}

impl UdpResult {
    /// `sent`, `sent rate`, `loss`, `received rate`, `one-way delay` (or `delay variation`), `jitter`,
    /// `reordered`, `duplicates`.
    pub fn rows(&self) -> Vec<Row> {
        let layer = self.stream.layer.name();
        let few = "fewer than two packets";
        let mut sent_rate =
            optional("sent rate", "bit/s", self.sent_bits_per_second, few).extra("layer", layer);
        if let SendingRate::BitsPerSecond(rate) = self.stream.pace {
            sent_rate = sent_rate.expected(rate);
        }
        if self.slips > 0 {
            let by = micros(self.slipped_ns.cast_signed());
            let times = counted(self.slips, "time");
            sent_rate = sent_rate.note(format!("the sender was held up {times}, {by} altogether"));
        }
        let seen = &self.reception;
        let mut loss = Row::new("loss", "%")
            .measured(self.loss_percent())
            .extra("lost", seen.lost)
            .extra("runs", seen.loss_runs.count)
            .extra("longest_run", seen.loss_runs.longest)
            .extra("receiver_drops", seen.receiver_drops);
        if seen.receiver_drops > 0 {
            loss = loss.note(format!("{} of the lost found the receiving socket full", seen.receiver_drops));
        }
        let rate = optional("received rate", "bit/s", seen.rate_bits_per_second, few).extra("layer", layer);
        let mut rows = vec![Row::new("sent", "packets").measured(self.sent), sent_rate, loss, rate];
        rows.extend(seen.delay_row());
        rows.push(Row::new("jitter", "ns").measured(seen.jitter_ns).extra("definition", "RFC 3550"));
        let reordered =
            Row::new("reordered", "packets").measured(seen.reordered).extra("definition", "RFC 4737");
        rows.push(reordered.extra("by_at_most", seen.reordered_by_at_most));
        rows.push(Row::new("duplicates", "packets").measured(seen.duplicates));
        rows
    }
}

impl Session {
    /// The report on what came from this sender.
    pub fn report(&self) -> Report {
        let mut report = Report::new("traffic receive").with("peer", self.peer.to_string());
        let rate = |name: &str, rate: Option<f64>| rate.map(|rate| Row::new(name, "bit/s").measured(rate));
        match &self.outcome {
            Ok(SessionOutcome::Udp(seen)) => {
                report.push(Row::new("received", "packets").measured(seen.received));
                report.push(Row::new("lost", "packets").measured(seen.lost));
                report.extend(rate("received rate", seen.rate_bits_per_second));
                report.extend(seen.delay_row());
            }
            Ok(SessionOutcome::Bulk(seen)) => {
                report.push(Row::new("received", "bytes").measured(seen.bytes));
                report.extend(rate("goodput", seen.goodput_bits_per_second));
            }
            Ok(SessionOutcome::Requests(answered)) => {
                report.push(Row::new("answered", "requests").measured(*answered));
            }
            Err(error) => report.fail(error.to_string()),
        }
        report
    }

    /// What came from this sender in a few words, for people.
    pub fn summary(&self) -> String {
        let rate = |rate: Option<f64>| match rate {
            Some(rate) => format!(", {:.3} Mbit/s", rate / 1e6),
            None => String::new(),
        };
        match &self.outcome {
            Ok(SessionOutcome::Udp(seen)) => {
                let received = counted(seen.received, "packet");
                format!("UDP, {received}, {} lost{}", seen.lost, rate(seen.rate_bits_per_second))
            }
            Ok(SessionOutcome::Bulk(seen)) => {
                format!("TCP, {}{}", counted(seen.bytes, "byte"), rate(seen.goodput_bits_per_second))
            }
            Ok(SessionOutcome::Requests(answered)) => format!("{} answered", counted(*answered, "request")),
            Err(error) => format!("failed: {error}"),
        }
    }
}

impl UdpReception {
    /// The one-way delay, or its variation where the clocks are not the same; none if nothing arrived.
    pub fn delay_row(&self) -> Option<Row> {
        match (&self.delay, &self.delay_variation) {
            (Some(delay), _) => Some(delay.row("one-way delay")),
            (None, Some(variation)) => Some(
                variation
                    .row("delay variation")
                    .note("clocks are not synchronised: one-way delay less the smallest one (RFC 5481)"),
            ),
            (None, None) => None,
        }
    }
}

impl BulkResult {
    /// `goodput`, `retransmits`, `tcp rtt`.
    pub fn rows(&self) -> Vec<Row> {
        let goodput = self.reception.goodput_bits_per_second;
        let mut rows = vec![
            optional("goodput", "bit/s", goodput, "everything arrived at once, or nothing did")
                .extra("bytes", self.reception.bytes)
                .extra("streams", self.bulk.streams)
                .extra("congestion_control", self.congestion.clone())
                .extra("layer", "tcp payload")
                .note(format!("congestion control {}, {} stream(s)", self.congestion, self.bulk.streams)),
            Row::new("retransmits", "segments").measured(self.retransmits),
        ];
        rows.extend(self.rtt.map(|rtt| rtt.row("tcp rtt").extra("tcp_min_rtt_ns", self.min_rtt_ns)));
        rows
    }
}

impl RequestResult {
    /// `requests`, `request rate`, `request loss`, `request latency`.
    pub fn rows(&self) -> Vec<Row> {
        let loss = percent(self.lost, self.sent);
        let mut rows = vec![
            Row::new("requests", "requests").measured(self.sent).extra("answered", self.answered),
            optional("request rate", "requests/s", self.per_second(), "no response came"),
            Row::new("request loss", "%").measured(loss).extra("stray", self.stray),
        ];
        rows.extend(self.latency.map(|latency| latency.row("request latency")));
        rows
    }
}

impl PingResult {
    /// `ping loss`, `ping rtt`.
    pub fn rows(&self) -> Vec<Row> {
        let loss = Row::new("ping loss", "%").measured(self.loss_percent()).extra("sent", self.sent);
        let mut rows = vec![loss.extra("duplicates", self.duplicates)];
        rows.extend(self.rtt.map(|rtt| rtt.row("ping rtt")));
        rows
    }
}
