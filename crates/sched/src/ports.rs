//! Sets of ports.

/// Ports of a scheduler, as bits: at most 256 ([`Settings::ports`](crate::Settings::ports)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ports([u64; 4]);

impl Ports {
    /// Only this one.
    #[inline]
    pub(crate) fn only(port: u16) -> Self {
        let mut ports = Self::default();
        ports.insert(port);
        ports
    }

    #[inline]
    pub(crate) fn insert(&mut self, port: u16) {
        self.0[usize::from(port / 64) % 4] |= 1 << (port % 64);
    }

    #[inline]
    pub(crate) fn remove(&mut self, port: u16) {
        self.0[usize::from(port / 64) % 4] &= !(1 << (port % 64));
    }

    #[inline]
    pub(crate) fn has(&self, port: u16) -> bool {
        self.0[usize::from(port / 64) % 4] & (1 << (port % 64)) != 0
    }

    /// Ports that are not in `others`.
    #[inline]
    pub(crate) fn without(&self, others: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !others.0[word]))
    }

    /// All of them, ascending.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = u16> + use<> {
        (0u16..).zip(self.0).flat_map(|(word, bits)| {
            let rest = |bits: &u64| Some(bits & (bits - 1)).filter(|bits| *bits != 0);
            let sets = std::iter::successors(Some(bits).filter(|bits| *bits != 0), rest);
            sets.map(move |bits| word * 64 + bits.trailing_zeros() as u16)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_by_hand() {
        let mut ports = Ports::default();
        assert_eq!(ports.iter().count(), 0);
        for port in [0, 63, 64, 255] {
            ports.insert(port);
        }
        ports.remove(63);
        assert_eq!(ports.iter().collect::<Vec<_>>(), [0, 64, 255]);
        assert!(ports.has(255) && !ports.has(63) && !ports.has(127));
        assert_eq!(ports.without(&Ports::only(64)).iter().collect::<Vec<_>>(), [0, 255]);
    }
}
