//! An expensive flow beside a cheap one on a router that can't serve both, under several schedulers.

use crate::fairness_traffic::{Arrivals, FlowLoad, exchange};
use crate::{Mode, REAL, VIRTUAL, say, say_virtual};
use anyhow::Context;
use longwire_block::FlowStats;
use longwire_drivers::HostDriver;
use longwire_engine::Report as Counted;
use longwire_program::{Program, assemble};
use longwire_report::{Report, Row, shown};
use longwire_router::{FlowKey, Installation, Key};
use longwire_run::port_files::PortFiles;
use longwire_run::real_run::{RealOptions, RealRun};
use longwire_run::records::RecordOptions;
use longwire_run::test_hosts::TestHosts;
use longwire_run::virtual_run::simulate;
use longwire_scenario::{ForwarderRequest, Plan, PlannedForwarder};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The scenario.
pub const SCENARIO: &str = include_str!("../../../scenarios/fairness.toml");
/// The schedulers compared, the unfair one first.
const SCHEDULERS: [&str; 3] = ["fifo", "cbcs", "gmr3"];
/// The flows by name.
const FLOWS: [&str; 2] = ["heavy", "cheap"];
/// The loop body of the expensive program, on values only known at run time: each division waits for the
/// previous one.
const STEP: &str = "r1 |= r3\nr1 %= r2\n";
/// Number of iterations, and of rounds of a loop over them: together about a tenth of a millisecond.
const STEPS: usize = 100;
const ROUNDS: usize = 200;
/// Processor demand of the flows, as shares: the expensive one exceeds the processor, the cheap one needs
/// less than half.
const DEMAND: [f64; 2] = [2.0, 0.2];
/// Highest packet rate of each flow, so that only the processor is the bottleneck.
const MOST: [f64; 2] = [40_000.0, 10_000.0];
const TIME: Duration = Duration::from_millis(1200);
/// Packets for measuring costs.
const TRIAL: FlowLoad = FlowLoad { per_second: 500.0, time: Duration::from_millis(300) };
/// With first come, first served both flows lose equally: the cheap flow's delivered share is at most this
/// multiple of the expensive one's.
const ALIKE: f64 = 1.5;
/// With the others the cheap flow's delivered share is at least this, or it gets this share of the processor,
/// of which half is due to it.
const THROUGH: f64 = 0.9;
const HALF: f64 = 0.4;

/// Results of all schedulers.
#[derive(Debug)]
pub struct FairnessDemo {
    mode: &'static str,
    trials: Vec<Trial>,
}

/// Result of a scheduler.
#[derive(Debug)]
struct Trial {
    scheduler: &'static str,
    /// By flow: packets sent, and the router's counters.
    flows: [(u64, FlowStats); 2],
    /// Arrivals at host b; none in virtual time.
    arrived: Option<[Arrivals; 2]>,
}

impl FairnessDemo {
    /// Runs it until it is complete, or `stop` is set.
    ///
    /// # Errors
    /// If the hosts can't be made, or something between them fails.
    pub fn run(mode: Mode, stop: &AtomicBool) -> anyhow::Result<Self> {
        let plan = longwire_scenario::parse("fairness.toml", SCENARIO).context("the demo's own scenario")?;
        say(
            "a router between hosts a and b; two flows, of which one's packets cost its processor many times \
             the other's",
        );
        Ok(match mode {
            Mode::Real(driver) => Self { mode: REAL, trials: real(&plan, driver, stop)? },
            Mode::Virtual(reason) => {
                say_virtual(&reason);
                let trials = SCHEDULERS.into_iter().map(|name| simulated(&plan, name));
                Self { mode: VIRTUAL, trials: trials.collect::<Result<_, _>>()? }
            }
        })
    }

    /// A row for each scheduler.
    pub fn report(&self) -> Report {
        Report::new("demo fairness").with("mode", self.mode).with_rows(self.trials.iter().map(Trial::row))
    }

    /// Bars of each flow's delivered share.
    pub fn picture(&self) -> String {
        picture(&self.trials)
    }
}

/// On real packets: first measures their cost, then runs each scheduler.
fn real(plan: &Plan, driver: HostDriver, stop: &AtomicBool) -> anyhow::Result<Vec<Trial>> {
    let mut plan = plan.clone();
    plan.hosts.iter_mut().for_each(|host| host.driver = driver);
    plan.forwarders.push(expensive_program(&plan)?);
    say("finding out what packets cost");
    let trial = measure(&with(&plan, "fifo"), "fifo", [TRIAL; 2], stop)?;
    let costs =
        trial.flows.each_ref().map(|(_, flow)| flow.processor_ns as f64 / flow.out_packets.max(1) as f64);
    let time = |cost: f64| shown::time(cost);
    say(&format!(
        "a packet of the heavy flow takes {}, one of the cheap flow {}",
        time(costs[0]),
        time(costs[1])
    ));
    let per_second = [0, 1].map(|flow| (DEMAND[flow] * 1e9 / costs[flow].max(1.0)).min(MOST[flow]));
    let paces = per_second.map(|per_second| FlowLoad { per_second, time: TIME });
    let mut all = Vec::new();
    for name in SCHEDULERS {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        say(&format!(
            "{name}: {:.0} heavy and {:.0} cheap packets a second for {} s",
            per_second[0],
            per_second[1],
            TIME.as_secs_f64()
        ));
        all.push(measure(&with(&plan, name), name, paces, stop)?);
    }
    Ok(all)
}

fn measure(
    plan: &Plan,
    scheduler: &'static str,
    paces: [FlowLoad; 2],
    stop: &AtomicBool,
) -> anyhow::Result<Trial> {
    let name = format!("demo-{}", std::process::id());
    let hosts = TestHosts::make(&name, plan)?;
    let run = RealRun::start(plan.clone(), hosts, RealOptions { name, ..RealOptions::default() })?;
    let lab = run.hosts().context("the demo's hosts")?.lab();
    let host = &plan.hosts.first().context("the demo's host a")?;
    let address = |at: usize| host.addresses.get(at).map(|own| own.address).context("the demo's addresses");
    let sources = [address(1)?, address(0)?];
    let exchanged = exchange((lab.host("a")?, lab.host("b")?), sources, paces, stop);
    let counted = run.stop().counted;
    let (sent, arrived) = exchanged?;
    let [heavy, cheap] = flows(&counted)?;
    Ok(Trial { scheduler, flows: [(sent[0], heavy), (sent[1], cheap)], arrived: Some(arrived) })
}

fn simulated(plan: &Plan, scheduler: &'static str) -> anyhow::Result<Trial> {
    let plan = Arc::new(with(plan, scheduler));
    let counted = simulate(&plan, &PortFiles::new(&plan, &[], &[])?, None, RecordOptions::default())?.counted;
    let flows = flows(&counted)?.map(|flow| (flow.in_packets + flow.refused, flow));
    Ok(Trial { scheduler, flows, arrived: None })
}

/// The plan with this scheduler. First come, first served has one queue for all, as in routers without flows.
fn with(plan: &Plan, scheduler: &str) -> Plan {
    let mut plan = plan.clone();
    for sharing in plan.routers.iter_mut().filter_map(|router| router.sharing.as_mut()) {
        sharing.scheduler = scheduler.into();
        if scheduler == "fifo" {
            sharing.settings.flow_limit = sharing.settings.packets;
        }
    }
    plan
}

/// A program of the expensive flow, which only takes time.
fn expensive_program(plan: &Plan) -> anyhow::Result<PlannedForwarder> {
    // The port number is the input of the computation, and the result is stored, so that no compiler removes
    // the work.
    let begin = "r1 = *(u32 *)(r1 + 12)\nr2 = r1\nr2 += 12345\nr3 = r2\nr3 <<= 40\n";
    let round = format!("round: {}r4 += -1\nif r4 != 0 goto round\n", STEP.repeat(STEPS));
    let end = "r6 = r1\nr1 = 8\ncall 65536\n*(u64 *)(r0 + 0) = r6\nr0 = 2\nexit\n";
    let code = format!("{begin}r4 = {ROUNDS}\n{round}{end}");
    let program = Program::new("expensive", assemble(&code).context("the demo's own program")?, []);
    let sharing = plan.routers.first().and_then(|router| router.sharing.as_ref());
    let key = sharing.and_then(|sharing| sharing.flows.iter().find(|flow| &*flow.name == FLOWS[0]));
    let key = key.map_or_else(FlowKey::default, |flow| flow.key);
    let installation =
        Installation { name: "expensive".into(), key: Key::Flow(key), ..Installation::default() };
    let request = ForwarderRequest { program: Arc::new(program), installation, data: None, above: None };
    Ok(PlannedForwarder { router: 0, request })
}

/// The router's counters of both flows.
fn flows(counted: &Counted) -> anyhow::Result<[FlowStats; 2]> {
    let all =
        counted.nodes.iter().filter_map(|node| node.stats.processors.as_ref()).flat_map(|all| &all.flows);
    let of = |name: &str| {
        let own = all.clone().filter(|flow| flow.flow == name);
        own.max_by_key(|flow| flow.in_packets)
            .cloned()
            .with_context(|| format!("no packet of the {name} flow came"))
    };
    Ok([of(FLOWS[0])?, of(FLOWS[1])?])
}

impl Trial {
    /// Share of a flow's packets that the router forwarded.
    fn delivered(&self, flow: usize) -> f64 {
        let (_, stats) = &self.flows[flow];
        stats.out_packets as f64 / (stats.in_packets + stats.refused).max(1) as f64
    }

    /// The flow's share of the processor time used.
    fn processor(&self, flow: usize) -> f64 {
        let times = self.flows.each_ref().map(|(_, stats)| stats.processor_ns as f64);
        times[flow] / (times[0] + times[1]).max(1.0)
    }

    /// The cheap flow's delivered share. Not judged if the processor could meet the demand.
    fn row(&self) -> Row {
        let [heavy, cheap] = [0, 1].map(|flow| self.delivered(flow));
        let percent = |share: f64| (share * 1000.0).round() / 10.0;
        let is_fair = self.scheduler != SCHEDULERS[0];
        let expected = if is_fair { 1.0 } else { heavy };
        let row = Row::new(format!("cheap flow with {}", self.scheduler), "%");
        let row = row.expected(percent(expected)).measured(percent(cheap));
        let mut row = if heavy.min(cheap) > THROUGH {
            row.note("the processor was not short on this machine: there was nothing to share")
        } else if is_fair {
            row.judged(cheap >= THROUGH || self.processor(1) >= HALF).note(format!(
                "it comes through: {} % or more, or {} % of the processor time",
                THROUGH * 100.0,
                HALF * 100.0
            ))
        } else {
            row.judged(cheap <= heavy * ALIKE).note(format!(
                "it suffers as the heavy one does: {ALIKE} times what of that comes through, at most"
            ))
        };
        for (at, name) in FLOWS.into_iter().enumerate() {
            let (sent, stats) = &self.flows[at];
            row = row
                .extra(format!("{name}_sent"), *sent)
                .extra(format!("{name}_out"), stats.out_packets)
                .extra(format!("{name}_processor_ns"), stats.processor_ns);
            if let Some(arrived) = &self.arrived {
                row = row.extra(format!("{name}_arrived"), arrived[at].packets);
                row = row.extra(format!("{name}_delay_ns_median"), arrived[at].median_ns);
            }
        }
        row
    }
}

/// Bars of each flow's delivered share.
fn picture(seen: &[Trial]) -> String {
    const WIDTH: f64 = 30.0;
    let mut lines = vec!["\nof what each flow sends, the router delivers".to_owned()];
    for one in seen {
        for flow in [1, 0] {
            let share = one.delivered(flow).clamp(0.0, 1.0);
            let full = (share * WIDTH).round() as usize;
            let bar = format!("{}{}", "█".repeat(full), "░".repeat(WIDTH as usize - full));
            let name = if flow == 1 { one.scheduler } else { "" };
            let delay = one.arrived.as_ref().map_or(String::new(), |arrived| {
                format!(", after {} in the median", shown::time(arrived[flow].median_ns as f64))
            });
            let processor = one.processor(flow) * 100.0;
            lines.push(format!(
                "  {name:<5} {:<5} {bar} {:>5.1} %, with {processor:.0} % of the processor time{delay}",
                FLOWS[flow],
                share * 100.0
            ));
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 1000 packets each; the expensive ones cost 100 times as much.
    fn seen(scheduler: &'static str, delivered: [u64; 2]) -> Trial {
        let flow = |out_packets: u64, cost| {
            let refused = 1000 - out_packets;
            let processor_ns = out_packets * cost;
            (
                1000,
                FlowStats {
                    in_packets: out_packets,
                    refused,
                    out_packets,
                    processor_ns,
                    ..FlowStats::default()
                },
            )
        };
        Trial { scheduler, flows: [flow(delivered[0], 100), flow(delivered[1], 1)], arrived: None }
    }

    #[test]
    fn fair_and_unfair_are_distinguished_on_any_machine() {
        for (scheduler, delivered, pass) in [
            ("fifo", [450, 450], Some(true)),
            ("fifo", [90, 100], Some(true)),
            ("fifo", [300, 1000], Some(false)),
            ("fifo", [1000, 1000], None),
            ("gmr3", [400, 1000], Some(true)),
            // A machine without spare time: half of it each.
            ("gmr3", [5, 500], Some(true)),
            ("gmr3", [450, 450], Some(false)),
            ("gmr3", [1000, 1000], None),
        ] {
            assert_eq!(seen(scheduler, delivered).row().pass, pass, "{scheduler} {delivered:?}");
        }
    }

    #[test]
    fn in_virtual_time_only_fifo_lets_the_cheap_flow_suffer() {
        let plan = longwire_scenario::plan_of(SCENARIO);
        for name in SCHEDULERS {
            let seen = simulated(&plan, name).unwrap();
            assert_eq!(seen.row().pass, Some(true), "{name}: {}", picture(&[seen]));
        }
    }

    #[test]
    fn the_expensive_program_can_be_installed() {
        let plan = longwire_scenario::plan_of(SCENARIO);
        let planned = expensive_program(&plan).unwrap();
        let prices = &plan.routers[0].admission.prices;
        let prepared = planned.request.prepare(prices, 1).unwrap();
        assert!(prepared.demand().amount(longwire_program::Resource::Cycles) as usize > 2 * STEPS * ROUNDS);
    }
}
