//! Settings that a scenario leaves to the machine that it runs on.

use longwire_report::Machine;
use longwire_scenario::Plan;
use longwire_units::Bytes;

/// Gives a plan that leaves its packet pool open as much as it needs, as far as this machine has it.
pub fn fit_pool(plan: &mut Plan) {
    let memory = Machine::this().memory_bytes;
    longwire_assemble::fit_pool(plan, (memory > 0).then_some(Bytes(memory)));
}
