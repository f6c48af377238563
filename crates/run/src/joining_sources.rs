//! Traffic sources that are added to a run.

use crate::open_ports::flow;
use crate::replay_port::PortWatch;
use anyhow::{Context, ensure};
use longwire_assemble::PlanChange;
use longwire_block::JoiningSource;
use longwire_port::driver::source::JoiningFlow;
use longwire_scenario::Plan;

/// What the ports of new sources add, with the places of these in the plan. `watch` finds the port at a
/// place; of ports with an interface there is none, and programs behind it send instead.
///
/// # Errors
/// If a source is invalid, or the frames of its port come from a capture.
pub(crate) fn joining_sources<'w>(
    plan: &Plan,
    made: &PlanChange,
    watch: impl Fn(u16) -> Option<&'w PortWatch>,
) -> anyhow::Result<Vec<(u32, JoiningSource)>> {
    let mut all = Vec::with_capacity(made.new_sources.len());
    for &place in &made.new_sources {
        let source = &plan.sources[place as usize];
        let Some(port) = watch(source.in_port) else { continue };
        let name = &plan.ports[usize::from(source.in_port)].name;
        ensure!(
            port.takes_sources(),
            "port \"{name}\" has an input, beside which the traffic source \"{}\" can't send",
            source.name
        );
        let flow = JoiningFlow::new(name, &flow(plan, source)?, plan.seed)
            .with_context(|| format!("the traffic source \"{}\"", source.name))?;
        all.push((place, Box::new(flow) as JoiningSource));
    }
    Ok(all)
}
