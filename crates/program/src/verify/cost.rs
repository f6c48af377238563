//! Worst-case cost of helper calls.

use crate::{Counts, Helper, Item, MapSpec};

/// Cost of a helper call in addition to its instruction and the bytes of state and maps among its arguments.
/// `bytes` is the maximum that it processes, and `workers` is the number of workers that run the program.
pub fn helper_cost(helper: Helper, map: Option<&MapSpec>, bytes: u32, workers: u32) -> Counts {
    let mut counts = Counts::NONE;
    let key = map.filter(|map| !map.kind.is_array() && !map.kind.is_ring()).map(|map| map.key_size);
    let value = map.map_or(0, |map| map.value_size);
    let (item, times) = match helper.signature().cost {
        // A route and a neighbour.
        Item::HashLookup if map.is_none() => (Item::HashLookup, 2),
        Item::HashLookup if key.is_none() => (Item::ArrayLookup, 1),
        Item::HashUpdate if key.is_none() => (Item::ArrayUpdate, 1),
        item => (item, 1),
    };
    let per_byte = match item {
        Item::Checksum => Some(Item::SummedByte),
        Item::Hash => Some(Item::HashedByte),
        Item::Copy | Item::Adjust | Item::Record => Some(Item::CopiedByte),
        _ => None,
    };
    counts[item] = times;
    if let Some(item) = per_byte {
        counts[item] = bytes;
        // Registers are copied or summed one by one. The paper's processor has a hash unit, and its
        // classifier has already found the transport header, whose ports it hashes (section 4.5).
        if item != Item::HashedByte && helper != Helper::Transport {
            counts[Item::Cycle] = bytes.div_ceil(4);
        }
    }
    // The key is hashed, and compared with the entry's; for prefixes, once per length.
    let searches = if helper == Helper::MapLookup { map.map_or(1, MapSpec::searches) } else { 1 };
    counts[item] *= searches;
    counts[Item::HashedByte] += searches * key.unwrap_or(0);
    counts[Item::MapTransfer] += searches * key.unwrap_or(0).div_ceil(4);
    if item == Item::Record {
        // Writers' and reader's positions, and the record with its header.
        counts[Item::MapTransfer] += bytes.div_ceil(4);
        counts[Item::MapLine] += bytes.div_ceil(64) + 3;
    }
    if helper == Helper::MapUpdate {
        // With a new key, the values of all other workers, which are beside it, are cleared.
        let has_others = key.is_some() && map.is_some_and(|map| map.kind.is_per_worker());
        let others = if has_others { workers.saturating_sub(1) } else { 0 };
        let written = others.saturating_mul(value.div_ceil(8).saturating_mul(8)).saturating_add(value);
        counts[Item::CopiedByte] += written;
        counts[Item::MapTransfer] += written.div_ceil(4);
        counts[Item::MapLine] += written.div_ceil(64) + 1;
    }
    counts
}
