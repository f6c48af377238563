//! Nodes with a station table are called only for packets without a cached verdict.

use super::Worker;
use crate::nodes::Nodes;
use crate::verdicts::PATIENCE;
use longwire_packet::Batch;

impl Worker {
    /// Decides about packets of a node with a station table.
    pub(crate) fn decide_by_stations(&mut self, node: usize, batch: &Batch, first: usize) {
        if self.nodes.verdicts.skipped > 0 {
            self.nodes.verdicts.skipped -= 1;
            return self.forward(node, batch, first);
        }
        let (mut rest, mut known) = (batch.as_slice(), 0);
        while !rest.is_empty() {
            let Self { nodes: Nodes { all, verdicts, .. }, pool, map, intake, .. } = self;
            let alike = verdicts.decide_alike(&mut *all[node], pool, &map.classifier, rest);
            intake.ready.extend_from_slice(&rest[..alike]);
            known += alike;
            rest = &rest[alike..];
            let (others, more) = rest.split_at(self.nodes.verdicts.unlike(&mut self.pool, rest));
            if !others.is_empty() {
                let mut batch = Batch::new();
                others.iter().for_each(|&handle| batch.push(handle));
                self.forward(node, &batch, first);
            }
            rest = more;
        }
        if 2 * known < batch.len() {
            self.nodes.verdicts.skipped = PATIENCE;
        }
    }
}
