//! Choice among several next hops.

use crate::group::flow_hash;
use crate::next_hop::NextHop;
use crate::state::Core;

impl Core {
    /// The next hop of a packet whose route leads to `hop`: among several, that of its flow.
    #[inline]
    pub fn chosen(&self, hop: NextHop, frame: &[u8]) -> NextHop {
        if let NextHop::Group(_) = hop { self.chosen_of_several(hop, frame) } else { hop }
    }

    #[inline(never)]
    fn chosen_of_several(&self, hop: NextHop, frame: &[u8]) -> NextHop {
        self.fib.member(hop, flow_hash(frame, self.seed))
    }
}
