//! The demo in virtual time, if this system allows neither namespaces nor TAP: traffic sources replace
//! programs.

use crate::criteria::{LinkConfiguration, Losses};
use longwire_engine::Fidelity;
use longwire_port::driver::source::ReceivedCounters;
use longwire_report::Row;
use longwire_run::port_files::PortFiles;
use longwire_run::records::RecordOptions;
use longwire_run::virtual_run::simulate;
use longwire_scenario::Plan;
use std::sync::Arc;

/// Sources count frames without their check sequence.
const CHECK: u64 = 4;

/// Runs the scenario's sources and judges the arrivals.
pub fn run(plan: &Plan) -> anyhow::Result<(Vec<Row>, Option<Fidelity>)> {
    let run =
        simulate(&Arc::new(plan.clone()), &PortFiles::new(plan, &[], &[])?, None, RecordOptions::default())?;
    let link = LinkConfiguration::of(plan);
    let mut rows = Vec::new();
    let flow = |name: &str| {
        let source = plan.sources.iter().find(|source| &*source.name == name)?;
        let watch = |port: u16| run.watches.get(usize::from(port))?.as_ref();
        let sent = watch(source.in_port)?.tally().packets_sent(source.number);
        let received = watch(source.out_port)?.tally().received(source.number);
        Some((source, sent, received))
    };
    if let (Some((source, sent, there)), Some((_, _, back))) = (flow("there"), flow("back")) {
        let frame = u64::from(source.size()) + CHECK;
        let least = there.delay_min.0 as f64;
        if let (Some(mean), Some(mean_back)) = (there.delay_mean(), back.delay_mean()) {
            let both = least + back.delay_min.0 as f64;
            let row = link.round_trip(mean + mean_back, both, frame);
            rows.push(row.note("in virtual time: the mean one-way delays of both directions, added up"));
            rows.push(link.one_way_delay(mean, least, frame));
        }
        rows.push(link.loss(Losses { sent, lost: there.lost(sent) }));
    }
    if let Some((source, _, received)) = flow("overload") {
        let frame = u64::from(source.size()) + CHECK;
        let Some(offered) = source.rate() else {
            anyhow::bail!("the demo's source \"overload\" has no rate")
        };
        let offered = offered.as_f64() * frame as f64 / f64::from(source.size());
        rows.push(link.bandwidth(rate(&received, frame), offered));
    }
    rows.push(link.goodput(None, "cubic").note("not measured: there is no TCP without programs"));
    Ok((rows, run.counted.fidelity))
}

/// Rate of whole frames from first to last arrival, without the first.
fn rate(received: &ReceivedCounters, frame: u64) -> Option<f64> {
    let time = received.last.since(received.first);
    let bits = received.packets.saturating_sub(1) * frame * 8;
    (time.0 > 0).then(|| bits as f64 * 1e9 / time.0 as f64)
}
