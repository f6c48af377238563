//! A node that has left a running engine: it is kept until it has given up the packets that it keeps.

use longwire_block::{DropReason, Node, Outbox};
use longwire_packet::{Batch, Pool};
use longwire_units::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stands in for a node that leaves. It gets no packets any more, and has no ports and no counters. What the
/// node kept comes out of it when its time has come (an answer, a timeout, a processor), and is dropped.
pub struct RetiredNode {
    node: Box<dyn Node>,
    /// Whether the node's place is free.
    gone: Arc<AtomicBool>,
}

impl RetiredNode {
    /// A stand-in, and whether its place can be used again.
    pub fn new() -> (Box<Self>, Arc<AtomicBool>) {
        let gone = Arc::<AtomicBool>::default();
        (Box::new(Self { node: Box::new(NoNode), gone: Arc::clone(&gone) }), gone)
    }

    /// Takes the place of a node that keeps packets. One without packets leaves an empty place, and is then
    /// in `stand_in`, to be freed by the caller.
    pub(crate) fn replace(node: &mut Box<dyn Node>, stand_in: &mut Option<Box<Self>>) {
        let Some(mut retired) = stand_in.take() else { return };
        retired.node = std::mem::replace(node, Box::new(NoNode));
        if retired.node.kept() > 0 {
            *node = retired;
            return;
        }
        retired.gone.store(true, Ordering::Release);
        *stand_in = Some(retired);
    }
}

impl Node for RetiredNode {
    /// No port belongs to it.
    fn forward(&mut self, pool: &mut Pool, batch: &Batch, _: &mut Outbox) {
        refuse_all(pool, batch);
    }

    fn ports(&self) -> &[u16] {
        &[]
    }

    fn deadline(&self) -> Nanos {
        self.node.deadline()
    }

    fn tick(&mut self, pool: &mut Pool, now: Nanos, out: &mut Outbox) {
        self.node.tick(pool, now, out);
        out.refuse_all(DropReason::PortDown);
        if self.node.kept() == 0 {
            self.gone.store(true, Ordering::Release);
        }
    }

    fn kept(&self) -> u64 {
        self.node.kept()
    }
}

/// An empty place.
struct NoNode;

impl Node for NoNode {
    fn forward(&mut self, pool: &mut Pool, batch: &Batch, _: &mut Outbox) {
        refuse_all(pool, batch);
    }

    fn ports(&self) -> &[u16] {
        &[]
    }
}

fn refuse_all(pool: &mut Pool, batch: &Batch) {
    for &handle in batch.as_slice() {
        longwire_block::refuse(pool.meta_mut(handle), DropReason::PortDown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps a packet until its deadline.
    struct Keeper(u64, Nanos);

    impl Node for Keeper {
        fn forward(&mut self, _: &mut Pool, _: &Batch, _: &mut Outbox) {}

        fn ports(&self) -> &[u16] {
            &[7]
        }

        fn deadline(&self) -> Nanos {
            if self.0 > 0 { self.1 } else { Nanos::NEVER }
        }

        fn tick(&mut self, pool: &mut Pool, now: Nanos, out: &mut Outbox) {
            out.at(now);
            let handle = pool.alloc(60).unwrap();
            out.put(pool, handle, 7);
            self.0 = 0;
        }

        fn kept(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn a_node_is_kept_while_it_keeps_packets_and_these_are_refused() {
        let (stand_in, gone) = RetiredNode::new();
        let (mut node, mut stand_in): (Box<dyn Node>, _) = (Box::new(Keeper(1, Nanos(5))), Some(stand_in));
        RetiredNode::replace(&mut node, &mut stand_in);
        assert!(stand_in.is_none() && node.ports().is_empty() && node.stats().is_none());
        assert_eq!((node.kept(), node.deadline(), gone.load(Ordering::Acquire)), (1, Nanos(5), false));
        let (mut pool, mut out) = (Pool::new(1 << 20).unwrap(), Outbox::default());
        node.tick(&mut pool, Nanos(5), &mut out);
        assert_eq!(out.packets()[0].1, longwire_block::REFUSED + DropReason::PortDown as u16);
        assert_eq!((node.kept(), node.deadline(), gone.load(Ordering::Acquire)), (0, Nanos::NEVER, true));
    }

    #[test]
    fn a_node_without_packets_leaves_at_once() {
        let (stand_in, gone) = RetiredNode::new();
        let (mut node, mut stand_in): (Box<dyn Node>, _) = (Box::new(Keeper(0, Nanos(5))), Some(stand_in));
        RetiredNode::replace(&mut node, &mut stand_in);
        let left = stand_in.expect("it is handed back");
        assert_eq!(left.node.ports(), [7]);
        assert!(node.ports().is_empty() && gone.load(Ordering::Acquire));
    }
}
