//! Maps whose values are numbers: of programs, or of other maps.

use super::{Map, MapKind};
use crate::Size;

impl Map {
    /// Of a program array: the number of the program in this entry, 0 if there is none.
    pub fn program(&self, index: u32) -> u32 {
        if index >= self.spec.max_entries || self.spec.kind != MapKind::ProgArray {
            return 0;
        }
        self.values.load(self.place(index, 0), Size::Word) as u32
    }

    /// Of a map of maps: the place of the map with this key among those of its object.
    pub fn held(&self, key: &[u8]) -> Option<u16> {
        let entry = self.entry(key).filter(|_| self.spec.kind.is_of_maps())?;
        let number = self.values.load(self.place(entry, 0), Size::Word) as u32;
        number.checked_sub(1)?.try_into().ok()
    }

    /// Gives a hash map its first values, whose keys are their numbers.
    pub(super) fn fill_by_number(&self) {
        for (key, number) in self.spec.initial.as_chunks::<4>().0.iter().enumerate() {
            if *number != [0; 4] {
                // What can't be there is left out: the key has another length, or there is no room.
                let fill = |_: usize, value: &mut [u8]| value.copy_from_slice(number);
                self.write(&(key as u32).to_le_bytes(), 0, 0, fill).ok();
            }
        }
    }
}
