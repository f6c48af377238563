//! Counters of a running instance as OpenMetrics text, for Prometheus.
//!
//! The number of series does not depend on the number of links or ports, which are summed. Single links have
//! series only on request, up to a limit.

use longwire_block::{PortStats, Underlay};
use longwire_engine::{LinkReport, Report};
use longwire_link::LinkStats;
use longwire_units::Nanos;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;

/// Counters of an instance.
pub(crate) struct Sample<'r> {
    /// Its name.
    pub(crate) scenario: &'r str,
    /// Its counters.
    pub(crate) report: &'r Report,
    /// How long it has been running, in seconds.
    pub(crate) seconds: f64,
    /// The requested links, with their names.
    pub(crate) links: Vec<(String, &'r LinkReport)>,
    /// Number of further requested links.
    pub(crate) left_out: usize,
}

type Labels = Vec<(&'static str, String)>;

/// A counter of all links, removed ones included, or of one.
type LinkMetric = (&'static str, &'static str, fn(&LinkStats) -> u64);

const OF_LINKS: [LinkMetric; 7] = [
    ("in_packets", "Packets that arrived at links", |link| link.in_packets),
    ("in_bytes", "Bytes of their frames", |link| link.in_bytes),
    ("out_packets", "Packets that left links", |link| link.out_packets),
    ("out_bytes", "Bytes of their frames", |link| link.out_bytes),
    ("marked_packets", "Packets marked as having met congestion", |link| link.marked_packets),
    ("corrupted_packets", "Packets with flipped bits", |link| link.corrupted_packets),
    ("late_packets", "Packets that left later than tolerated", |link| link.late_packets),
];

/// A gauge of all links, or of one.
const NOW_AT_LINKS: [LinkMetric; 3] = [
    ("queued_packets", "Packets in queues", |link| link.queued_packets),
    ("queued_bytes", "Bytes in queues, as the links' rates count them", |link| link.queued_bytes),
    ("travelling_packets", "Packets in delay lines", |link| link.travelling_packets),
];

/// A counter of all ports, removed ones included.
type PortMetric = (&'static str, &'static str, fn(&PortStats) -> u64);

const OF_PORTS: [PortMetric; 6] = [
    ("in_frames", "Frames that ports received", |port| port.in_frames),
    ("in_bytes", "Bytes that ports received", |port| port.in_bytes),
    ("out_frames", "Frames that ports sent", |port| port.out_frames),
    ("out_bytes", "Bytes that ports sent", |port| port.out_bytes),
    ("in_missed", "Frames lost by the kernel's receive queues", |port| port.in_missed),
    ("out_full", "Frames that drivers did not accept in time", |port| port.out_full),
];

/// A counter of all tunnels, removed ones included.
type TunnelMetric = (&'static str, &'static str, fn(&Underlay) -> u64);

const OF_TUNNELS: [TunnelMetric; 9] = [
    ("sessions", "Sessions with peers", |underlay| underlay.sessions),
    ("overdue_packets", "Packets that came later than they were due", |underlay| underlay.overdue),
    ("lost_messages", "Messages lost on the way", |underlay| underlay.lost),
    ("reordered_messages", "Messages that later ones overtook", |underlay| underlay.reordered),
    ("replayed_messages", "Messages received before", |underlay| underlay.replayed),
    ("forged_messages", "Messages with a wrong authenticator", |underlay| underlay.forged),
    ("malformed_messages", "Messages that break the protocol", |underlay| underlay.malformed),
    ("foreign_messages", "Messages of no session, or of another version", |underlay| {
        underlay.other_session + underlay.other_version
    }),
    ("clock_jumps", "How often a clock was set, or stood still", |underlay| underlay.clock_jumps),
];

/// The largest of all tunnels, once it is known.
type TunnelTime = (&'static str, &'static str, fn(&Underlay) -> Option<Nanos>);

const TIMES_OF_TUNNELS: [TunnelTime; 2] = [
    ("round_trip_seconds", "The longest round trip to a peer", |underlay| underlay.round_trip),
    ("clock_error_seconds", "The largest error of a peer's clock", |underlay| underlay.clock_error),
];

fn underlays(report: &Report) -> impl Iterator<Item = &Underlay> {
    report.ports.iter().filter_map(|port| port.underlay.as_ref())
}

/// A counter of the whole run.
type RunMetric = (&'static str, &'static str, fn(&Report) -> u64);

const OF_RUN: [RunMetric; 5] = [
    ("received_packets", "Packets that ports took in", |report| report.flow.taken),
    ("sent_packets", "Packets that ports sent", |report| report.flow.sent),
    ("made_packets", "Packets made by routers, and copies", |report| report.flow.made),
    ("consumed_packets", "Packets consumed by routers", |report| report.flow.consumed),
    ("pauses", "Pauses of workers", |report| fidelity(report, |f| f.lateness.pauses)),
];

const NOW: [RunMetric; 9] = [
    ("links", "Links", |report| report.links.len() as u64),
    ("ports", "Ports", |report| report.ports.len() as u64),
    ("tunnels", "Tunnels", |report| underlays(report).count() as u64),
    ("tunnels_connected", "Tunnels whose peers answer", |report| {
        underlays(report).filter(|underlay| underlay.is_connected).count() as u64
    }),
    ("workers", "Workers", |report| report.workers.len() as u64),
    ("pool_used_bytes", "Packet memory in use", |report| report.pool_used),
    ("pool_peak_bytes", "Most packet memory that was in use", |report| report.pool_peak),
    ("pool_capacity_bytes", "Packet memory", |report| report.pool_capacity),
    ("faithful", "Whether the emulation has been faithful", |report| {
        fidelity(report, |f| u64::from(f.faithful))
    }),
];

fn fidelity(report: &Report, value: fn(&longwire_engine::Fidelity) -> u64) -> u64 {
    report.fidelity.as_ref().map_or(0, value)
}

/// The counters of an instance, in the text format of OpenMetrics 1.0.
pub(crate) fn text(sample: &Sample<'_>) -> String {
    let report = sample.report;
    let mut page = Page { registry: Registry::with_prefix("longwire"), scenario: sample.scenario };
    for (name, help, value) in OF_RUN {
        page.counter(name, help, one(value(report)));
    }
    for (name, help, value) in NOW {
        page.gauge(name, help, one(value(report) as f64));
    }
    page.gauge("uptime_seconds", "Time since the start", one(sample.seconds));
    let drops = report.all_links().flat_map(|link| &link.drops).chain(&report.flow.drops);
    let drops = drops.map(|(reason, packets)| (vec![("reason", (*reason).to_owned())], *packets));
    page.counter("dropped_packets", "Packets dropped, in links and elsewhere", drops);
    let late = report.fidelity.as_ref().map(|fidelity| fidelity.lateness.all);
    let late = late.iter().flat_map(|q| [("50", q.p50), ("99", q.p99), ("100", q.max)]);
    let late = late.map(|(percentile, late)| (vec![("percentile", percentile.to_owned())], seconds(late)));
    page.gauge("lateness_seconds", "How late packets left", late);
    for (name, help, value) in OF_LINKS {
        page.counter(&format!("links_{name}"), help, one(report.all_links().map(value).sum()));
    }
    for (name, help, value) in NOW_AT_LINKS {
        let sum: u64 = report.all_links().map(value).sum();
        page.gauge(&format!("links_{name}"), help, one(sum as f64));
    }
    for (name, help, value) in OF_PORTS {
        page.counter(&format!("ports_{name}"), help, one(report.all_ports().map(value).sum()));
    }
    for (name, help, value) in OF_TUNNELS {
        page.counter(&format!("tunnels_{name}"), help, one(report.all_underlays().map(value).sum()));
    }
    for (name, help, value) in TIMES_OF_TUNNELS {
        let most = underlays(report).filter_map(value).max();
        page.gauge(&format!("tunnels_{name}"), help, most.map(|most| (Labels::new(), seconds(most))));
    }
    if !sample.links.is_empty() || sample.left_out > 0 {
        page.single_links(&sample.links, sample.left_out);
    }
    let mut text = String::new();
    // Writing to a text can't fail.
    let _ = encode(&mut text, &page.registry);
    text
}

/// The only value of a metric.
fn one<T>(value: T) -> [(Labels, T); 1] {
    [(Labels::new(), value)]
}

fn seconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e9
}

/// The metrics being written.
struct Page<'r> {
    registry: Registry,
    scenario: &'r str,
}

impl Page<'_> {
    /// Adds a counter: the sums of these values by their labels.
    fn counter(&mut self, name: &str, help: &str, values: impl IntoIterator<Item = (Labels, u64)>) {
        let family = Family::<Labels, Counter>::default();
        for (labels, value) in values {
            family.get_or_create(&self.labelled(labels)).inc_by(value);
        }
        self.registry.register(name, help, family);
    }

    /// Adds a gauge with these values.
    fn gauge(&mut self, name: &str, help: &str, values: impl IntoIterator<Item = (Labels, f64)>) {
        let family = Family::<Labels, Gauge<f64, AtomicU64>>::default();
        for (labels, value) in values {
            family.get_or_create(&self.labelled(labels)).set(value);
        }
        self.registry.register(name, help, family);
    }

    fn labelled(&self, labels: Labels) -> Labels {
        std::iter::once(("scenario", self.scenario.to_owned())).chain(labels).collect()
    }

    /// Writes the requested links.
    fn single_links(&mut self, links: &[(String, &LinkReport)], left_out: usize) {
        let label = |link: &String| vec![("link", link.clone())];
        for (name, help, value) in OF_LINKS {
            let values = links.iter().map(|(link, counted)| (label(link), value(&counted.stats)));
            self.counter(&format!("link_{name}"), help, values);
        }
        for (name, help, value) in NOW_AT_LINKS {
            let values = links.iter().map(|(link, counted)| (label(link), value(&counted.stats) as f64));
            self.gauge(&format!("link_{name}"), help, values);
        }
        let drops = links.iter().flat_map(|(link, counted)| {
            let labels = move |reason: &str| vec![("link", link.clone()), ("reason", reason.to_owned())];
            counted.stats.drops.iter().map(move |(reason, packets)| (labels(reason), *packets))
        });
        self.counter("link_dropped_packets", "Packets dropped in a link", drops);
        let left_out = one(left_out as f64);
        self.gauge("links_left_out", "Links that were asked for beyond the limit", left_out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_engine::PortReport;

    #[test]
    fn series_do_not_grow_with_links() {
        let lines = |links: u32, single: usize| {
            let link = |place| LinkReport {
                place,
                stats: LinkStats { in_packets: 2, drops: vec![("loss", 1)], ..LinkStats::default() },
                lateness: None,
                changed: None,
            };
            let report = Report { links: (0..links).map(link).collect(), ..Report::default() };
            let named = report.links.iter().take(single).map(|link| (format!("l{}\"\n", link.place), link));
            let sample = Sample {
                scenario: "net",
                report: &report,
                seconds: 1.5,
                links: named.collect(),
                left_out: 3,
            };
            text(&sample)
        };
        let (few, many) = (lines(1, 0), lines(1000, 0));
        assert_eq!(few.lines().count(), many.lines().count());
        assert!(many.contains("longwire_links_in_packets_total{scenario=\"net\"} 2000\n"), "{many}");
        assert!(many.contains("longwire_dropped_packets_total{scenario=\"net\",reason=\"loss\"} 1000\n"));
        assert!(many.ends_with("# EOF\n") && !many.contains("link=\""));
        let single = lines(1000, 1);
        assert!(single.contains("longwire_link_in_packets_total{scenario=\"net\",link=\"l0\\\"\\n\"} 2\n"));
        assert!(single.contains("longwire_links_left_out{scenario=\"net\"} 3.0\n"), "{single}");
    }

    /// What is left of links and ports that were removed is in the sums: counters never decrease.
    #[test]
    fn removed_links_and_ports_are_in_the_sums() {
        let removed = LinkStats { in_packets: 7, drops: vec![("loss", 3)], ..LinkStats::default() };
        let removed_ports = longwire_engine::RemovedPorts {
            stats: PortStats { in_frames: 5, ..PortStats::default() },
            underlay: Underlay { forged: 2, ..Underlay::default() },
            ..longwire_engine::RemovedPorts::default()
        };
        let report = Report { removed, removed_ports, ..Report::default() };
        let page =
            text(&Sample { scenario: "net", report: &report, seconds: 1.0, links: Vec::new(), left_out: 0 });
        for line in [
            "links{scenario=\"net\"} 0.0",
            "links_in_packets_total{scenario=\"net\"} 7",
            "dropped_packets_total{scenario=\"net\",reason=\"loss\"} 3",
            "ports_in_frames_total{scenario=\"net\"} 5",
            "tunnels{scenario=\"net\"} 0.0",
            "tunnels_forged_messages_total{scenario=\"net\"} 2",
        ] {
            assert!(page.contains(&format!("longwire_{line}\n")), "{line}{page}");
        }
    }

    #[test]
    fn tunnels_are_summed() {
        let port = |underlay| PortReport {
            place: 0,
            name: "far".into(),
            driver: "tunnel".into(),
            stats: PortStats::default(),
            underlay,
            fault: None,
        };
        let [near, far] =
            [(true, 3, Some(Nanos(2_500))), (false, 4, None)].map(|(is_connected, forged, clock_error)| {
                port(Some(Underlay { is_connected, forged, clock_error, ..Underlay::default() }))
            });
        let page = |ports| {
            let report = Report { ports, ..Report::default() };
            text(&Sample { scenario: "net", report: &report, seconds: 1.0, links: Vec::new(), left_out: 0 })
        };
        let two = page(vec![near, far, port(None)]);
        for (series, value) in [
            ("tunnels", "2.0"),
            ("tunnels_connected", "1.0"),
            ("tunnels_forged_messages_total", "7"),
            ("tunnels_lost_messages_total", "0"),
            ("tunnels_clock_error_seconds", "0.0000025"),
        ] {
            let line = format!("longwire_{series}{{scenario=\"net\"}} {value}\n");
            assert!(two.contains(&line), "{line}{two}");
        }
        // A time that is not known has no value.
        assert!(!two.contains("longwire_tunnels_round_trip_seconds{"), "{two}");
        assert!(page(Vec::new()).contains("longwire_tunnels_forged_messages_total{scenario=\"net\"} 0\n"));
    }

    #[test]
    fn the_dashboard_for_grafana_shows_series_that_exist() {
        let dashboard = include_str!("../../../packaging/grafana-dashboard.json");
        // A series without values is left out.
        let drops = vec![("loss", 1)];
        let stats = LinkStats { drops, ..LinkStats::default() };
        let link = LinkReport { place: 0, stats, lateness: None, changed: None };
        let known = Some(Nanos(1));
        let port = PortReport {
            place: 0,
            name: "far".into(),
            driver: "tunnel".into(),
            stats: PortStats::default(),
            underlay: Some(Underlay { round_trip: known, clock_error: known, ..Underlay::default() }),
            fault: None,
        };
        let fidelity = longwire_engine::Fidelity {
            faithful: true,
            causes: Vec::new(),
            brief: None,
            lateness: longwire_engine::LatenessSummary::default(),
            tunnels: Vec::new(),
        };
        let (links, ports) = (vec![link.clone()], vec![port]);
        let report = Report { links, ports, fidelity: Some(fidelity), ..Report::default() };
        let links = vec![("l".to_owned(), &link)];
        let all = text(&Sample { scenario: "net", report: &report, seconds: 1.0, links, left_out: 0 });
        let is_in_name = |letter: char| letter == '_' || letter.is_ascii_lowercase();
        let shown = dashboard.split(|letter: char| !is_in_name(letter));
        let shown: Vec<_> = shown.filter(|word| word.starts_with("longwire_")).collect();
        assert!(shown.len() > 10, "{shown:?}");
        for series in shown {
            let family = series.strip_suffix("_total").unwrap_or(series);
            assert!(all.contains(&format!("# TYPE {family} ")), "{series} is not in {all}");
        }
    }
}
