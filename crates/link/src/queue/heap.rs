//! A binary heap of numbered items that can be moved and removed; nothing is allocated after construction.

/// Position of an absent item.
const NONE: u32 = u32::MAX;

/// Items numbered from 0, each in the heap at most once. Ties go to the lower number.
#[derive(Debug, Default)]
pub(super) struct Heap {
    items: Vec<(u128, u32)>,
    /// Position of each item.
    places: Box<[u32]>,
}

impl Heap {
    /// An empty heap for items 0 to `count` - 1.
    pub(super) fn new(count: usize) -> Self {
        Self { items: Vec::with_capacity(count), places: vec![NONE; count].into() }
    }

    /// Bytes of memory besides its own record.
    pub(super) fn memory_bytes(&self) -> usize {
        self.items.capacity() * size_of::<(u128, u32)>() + size_of_val(&*self.places)
    }

    /// The lowest key, with its item.
    #[inline]
    pub(super) fn first(&self) -> Option<(u128, usize)> {
        self.items.first().map(|&(key, item)| (key, item as usize))
    }

    /// Inserts an item, or changes its key.
    #[inline]
    pub(super) fn set(&mut self, item: usize, key: u128) {
        let mut place = self.places[item] as usize;
        if place >= self.items.len() {
            place = self.items.len();
            self.items.push((key, item as u32));
        } else {
            self.items[place].0 = key;
        }
        self.settle(place);
    }

    /// Removes an item, if it is in the heap.
    #[inline]
    pub(super) fn remove(&mut self, item: usize) {
        let place = self.places[item] as usize;
        if place >= self.items.len() {
            return;
        }
        self.items.swap_remove(place);
        self.places[item] = NONE;
        if place < self.items.len() {
            self.settle(place);
        }
    }

    /// Moves the entry at `place` to its correct position.
    fn settle(&mut self, mut place: usize) {
        let moved = self.items[place];
        while place > 0 && moved < self.items[(place - 1) / 2] {
            self.put(place, self.items[(place - 1) / 2]);
            place = (place - 1) / 2;
        }
        loop {
            let mut child = 2 * place + 1;
            if child + 1 < self.items.len() && self.items[child + 1] < self.items[child] {
                child += 1;
            }
            if child >= self.items.len() || moved < self.items[child] {
                break;
            }
            self.put(place, self.items[child]);
            place = child;
        }
        self.put(place, moved);
    }

    #[inline]
    fn put(&mut self, place: usize, item: (u128, u32)) {
        self.items[place] = item;
        self.places[item.1 as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_block::Dice;

    /// Compares with a linear search.
    #[test]
    fn the_first_is_the_lowest() {
        let mut dice = Dice::named(1, "heap");
        let mut heap = Heap::new(20);
        let mut list = [None; 20];
        for _ in 0..20_000 {
            let item = dice.below(20) as usize;
            if dice.below(3) == 0 {
                heap.remove(item);
                list[item] = None;
            } else {
                let key = u128::from(dice.below(30));
                heap.set(item, key);
                list[item] = Some(key);
            }
            let lowest = (0..20).filter_map(|item| list[item].map(|key: u128| (key, item))).min();
            assert_eq!(heap.first(), lowest);
        }
    }
}
