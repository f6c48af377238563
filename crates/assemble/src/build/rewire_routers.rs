//! What routers that join a running engine need before they do: levels above, and measured processors.

use super::levels::in_line;
use super::rewire::PlanChange;
use super::{Levels, LevelsError};
use crate::BuildError;
use longwire_block::Node;
use longwire_engine::NodeRef;
use longwire_router::{Meter, Router};
use longwire_scenario::Plan;
use std::any::Any;
use std::path::PathBuf;

impl PlanChange {
    /// Sets up the levels above each new router in real time, in the order of `plan`, the new plan, as
    /// [`BuiltEngine::raise`](super::BuiltEngine::raise) does.
    ///
    /// # Errors
    /// The machine's refusal.
    pub fn raise(
        &mut self,
        plan: &Plan,
        socket: impl Fn(&longwire_scenario::Router) -> PathBuf,
    ) -> Result<Vec<Levels>, LevelsError> {
        let mut all = Vec::with_capacity(self.new_routers.len());
        for (index, router) in self.each_new_router(plan) {
            let (levels, punt) = Levels::above(plan, index, socket(&plan.routers[index]))?;
            router.set_levels(punt);
            all.push((index, levels));
        }
        all.sort_by_key(|(index, _)| *index);
        Ok(all.into_iter().map(|(_, levels)| levels).collect())
    }

    /// Sets up the levels above each new router in virtual time.
    ///
    /// # Errors
    /// A control process is requested.
    pub fn raise_in_line(&mut self, plan: &Plan) -> Result<(), LevelsError> {
        for (index, router) in self.each_new_router(plan) {
            if let Some(punt) = in_line(plan, index)? {
                router.set_levels(punt);
            }
        }
        Ok(())
    }

    /// Makes new routers with shared processors measure packet costs.
    ///
    /// # Errors
    /// A router's processors can't be threads.
    pub fn measure_processors(&mut self, plan: &Plan, meter: Meter) -> Result<(), BuildError> {
        for (index, router) in self.each_new_router(plan) {
            let name = plan.routers[index].name.to_string();
            let broken = |why: String| BuildError::Router { name, why };
            router.measure_processors(meter).map_err(|error| broken(error.to_string()))?;
        }
        Ok(())
    }

    /// The new routers with their places in the new plan.
    fn each_new_router<'r>(&'r mut self, plan: &'r Plan) -> impl Iterator<Item = (usize, &'r mut Router)> {
        let places = self.layout.routers(plan);
        let indices = self.new_routers.clone();
        let parts = (0..).zip(&mut self.rewiring.parts);
        let nodes = parts.flat_map(|(worker, part)| part.nodes.iter_mut().map(move |node| (worker, node)));
        nodes.filter_map(move |(worker, (place, node))| {
            let at = NodeRef { worker, place: *place };
            let index = *indices.iter().find(|&&index| places[index as usize] == at)? as usize;
            let node: &mut dyn Node = &mut **node;
            Some((index, (node as &mut dyn Any).downcast_mut()?))
        })
    }
}
