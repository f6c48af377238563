//! `run --virtual`: the whole scenario on a simulated clock.

use crate::open_ports::open_virtual;
use crate::port_files::PortFiles;
use crate::replay_port::Watch;
use anyhow::bail;
use longwire_engine::Report;
use longwire_scenario::{Plan, TO_THE_END, build};
use longwire_units::Nanos;

/// What a virtual run has done.
pub struct Simulated {
    /// What the engine counted.
    pub counted: Report,
    /// What is left of the ports, by place in the plan.
    pub watches: Vec<Option<Watch>>,
    /// The simulated time that passed.
    pub elapsed: Nanos,
}

/// Runs `plan` on captures and traffic sources, until nothing is left to happen or for `time`.
///
/// # Errors
/// A source without an end, a file that can't be used, or a full packet pool.
pub fn simulate(plan: &Plan, files: &PortFiles, time: Option<Nanos>) -> anyhow::Result<Simulated> {
    if let Some(source) = plan.sources.iter().find(|s| s.count.is_none() && s.duration.is_none())
        && time.is_none()
    {
        bail!(
            "{}: the source \"{}\" never ends; say how long to run (--for 10s), or give it \"for\" or \"packets\"",
            plan.file,
            source.name
        );
    }
    let open = open_virtual(plan, files)?;
    let built = build(plan, open.ports, |_| None)?;
    let counted = built.setup.simulate(time.unwrap_or(TO_THE_END));
    if counted.own_losses().pool > 0 {
        bail!(
            "the packet pool was full, so the run was ended; set engine.pool above {} in {}, or run the scenario \
             for a shorter time",
            plan.engine.pool,
            plan.file
        );
    }
    let last = open.watches.iter().flatten().map(|watch| watch.capture().last).max().unwrap_or_default();
    let elapsed = time.map_or(last, |time| time.min(last.max(time)));
    Ok(Simulated { counted, watches: open.watches, elapsed })
}
