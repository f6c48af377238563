//! How many neighbours are remembered behind each port, and how many are its share.

#[derive(Debug)]
pub(super) struct Shares {
    /// The ports' places in order, and what is behind each.
    places: Box<[u16]>,
    held: Box<[usize]>,
    share: usize,
}

impl Shares {
    /// Of `all` neighbours each of the ports at these `places`, which are in order, has the same share.
    pub fn new(all: usize, places: &[u16]) -> Self {
        let held = vec![0; places.len()].into();
        Self { places: places.into(), held, share: all / places.len().max(1) }
    }

    /// One more is behind `port`.
    pub fn take(&mut self, port: u16) {
        if let Ok(at) = self.places.binary_search(&port) {
            self.held[at] += 1;
        }
    }

    /// One less is.
    pub fn give_back(&mut self, port: u16) {
        if let Ok(at) = self.places.binary_search(&port) {
            self.held[at] -= 1;
        }
    }

    /// Whether a port has its share.
    pub fn is_full(&self, port: u16) -> bool {
        self.of(port) >= self.share
    }

    /// Whether it has more than that.
    pub fn is_over(&self, port: u16) -> bool {
        self.of(port) > self.share
    }

    /// Whether there are more behind `port` than behind `other`.
    pub fn has_more(&self, port: u16, other: u16) -> bool {
        self.of(port) > self.of(other)
    }

    fn of(&self, port: u16) -> usize {
        self.places.binary_search(&port).map_or(0, |at| self.held[at])
    }
}
