//! Settings that are chosen for the machine.

use longwire_report::Machine;
use longwire_scenario::Plan;
use longwire_units::Bytes;

/// Chooses the size of the packet pool if the plan leaves it open: what it needs, within this machine's
/// memory.
pub fn fit_pool(plan: &mut Plan) {
    let memory = Machine::this().memory_bytes;
    longwire_assemble::fit_pool(plan, (memory > 0).then_some(Bytes(memory)));
}
