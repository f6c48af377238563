//! Number of neighbours at each port, and its share.

#[derive(Debug)]
pub(super) struct Shares {
    /// The ports' indices in order, and the number of neighbours at each.
    places: Box<[u16]>,
    held: Box<[usize]>,
    share: usize,
}

impl Shares {
    /// Divides `all` neighbours equally among the ports at these `places`, which are in order.
    pub fn new(all: usize, places: &[u16]) -> Self {
        let held = vec![0; places.len()].into();
        Self { places: places.into(), held, share: all / places.len().max(1) }
    }

    /// Counts a new neighbour of `port`.
    pub fn take(&mut self, port: u16) {
        if let Ok(at) = self.places.binary_search(&port) {
            self.held[at] += 1;
        }
    }

    /// Counts a removed neighbour.
    pub fn give_back(&mut self, port: u16) {
        if let Ok(at) = self.places.binary_search(&port) {
            self.held[at] -= 1;
        }
    }

    /// Whether a port has its share.
    pub fn is_full(&self, port: u16) -> bool {
        self.of(port) >= self.share
    }

    /// Whether it exceeds its share.
    pub fn is_over(&self, port: u16) -> bool {
        self.of(port) > self.share
    }

    /// Whether `port` has more neighbours than `other`.
    pub fn has_more(&self, port: u16, other: u16) -> bool {
        self.of(port) > self.of(other)
    }

    fn of(&self, port: u16) -> usize {
        self.places.binary_search(&port).map_or(0, |at| self.held[at])
    }
}
