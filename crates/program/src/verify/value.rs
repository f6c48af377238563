//! Values of registers and stack slots.

use super::scalar::Scalar;

/// A name for something unknown but equal wherever the name occurs: a number, an origin in the packet, a
/// map's value. 0 is no name.
pub type Id = u32;

/// A map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapOrigin {
    /// The object's map with this index.
    Map(u16),
    /// A map in the map of maps with this index.
    Inner(u16),
}

/// The value of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// Uninitialized.
    Unset,
    /// A number. Equal numbers that are not constant may share a link, so that what is learned about one is
    /// known about all. Pointers are numbers of a region and an offset, so a number may happen to be one, but
    /// it can't be used as such.
    Number { scalar: Scalar, link: Id },
    /// An offset in the context.
    Context { offset: i64 },
    /// `fixed` bytes beyond an origin in the packet, described by the state.
    Packet { origin: Id, fixed: i64 },
    /// The end of the packet.
    PacketEnd,
    /// A former address in the packet before it was moved.
    Stale,
    /// A former address in a record before its release.
    Released,
    /// An offset in a stack frame, from its end.
    Stack { frame: u8, offset: Scalar },
    /// An offset in the flow's state, of which at least `size` bytes exist.
    State { size: u32, offset: Scalar },
    /// An offset in a value of a map, or in a record of a ring, described by the state. `object` is its name;
    /// it may be 0 if `nullable`.
    Map { map: MapOrigin, object: Id, offset: Scalar, nullable: bool },
    /// A map itself.
    Handle { map: MapOrigin },
    /// The result of a lookup in a map of maps, possibly 0. `object` is its name.
    Held { outer: u16, object: Id },
    /// A function of the program, by its first instruction. Only the function that has loaded its address has
    /// it: when passed, returned or stored it becomes a number.
    Function { entry: u32 },
}

impl Value {
    /// Any number.
    pub const ANY: Self = Self::number(Scalar::ANY);

    pub const fn number(scalar: Scalar) -> Self {
        Self::Number { scalar, link: 0 }
    }

    pub const fn constant(value: u64) -> Self {
        Self::number(Scalar::constant(value))
    }

    /// Whether it is an address, or may be one.
    pub fn is_pointer(&self) -> bool {
        !matches!(self, Self::Unset | Self::Number { .. })
    }

    /// Whether joining it with another value preserves anything.
    pub fn is_akin(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unset, _) | (_, Self::Unset) => true,
            (Self::Number { .. }, Self::Number { .. })
            | (Self::Packet { .. }, Self::Packet { .. })
            | (Self::State { .. }, Self::State { .. }) => true,
            (Self::Stack { frame: a, .. }, Self::Stack { frame: b, .. }) => a == b,
            (Self::Map { map: a, nullable: na, .. }, Self::Map { map: b, nullable: nb, .. }) => {
                a == b && na == nb
            }
            (a, b) => a == b,
        }
    }

    /// Its value where functions are not tracked.
    pub fn handed_over(self) -> Self {
        if matches!(self, Self::Function { .. }) { Self::ANY } else { self }
    }

    pub fn as_scalar(&self) -> Option<Scalar> {
        match self {
            Self::Number { scalar, .. } => Some(*scalar),
            _ => None,
        }
    }

    /// Its description in messages.
    pub fn what(&self) -> &'static str {
        match self {
            Self::Unset => "nothing",
            Self::Number { scalar, .. } if scalar.as_constant() == Some(0) => "0",
            Self::Number { .. } => "a number",
            Self::Context { .. } => "the context",
            Self::Packet { .. } => "an address in the packet",
            Self::PacketEnd => "the end of the packet",
            Self::Stale => "an address in the packet as it was before it was moved",
            Self::Released => "an address in a record that was given back",
            Self::Stack { .. } => "an address in the stack",
            Self::State { .. } => "an address in the state",
            Self::Map { nullable: true, .. } => "an address of a map's value, or 0",
            Self::Map { .. } => "an address of a map's value",
            Self::Handle { .. } => "a map",
            Self::Held { .. } => {
                "a map, or 0 if the map of maps has none for the key; compare it with 0 first"
            }
            Self::Function { .. } => "a function",
        }
    }
}

/// A pending record. Its values are [`Value::Map`] with its ring and its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingRecord {
    pub object: Id,
    pub map: u16,
    /// Its size in bytes.
    pub size: u32,
    /// The instruction that reserved it.
    pub at: usize,
}

/// Two records that become one when their states are joined.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    pub mine: Id,
    pub theirs: Id,
    pub joined: PendingRecord,
}

impl PendingRecord {
    /// Whether they differ only in their names.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.map, self.size, self.at) == (other.map, other.size, other.at)
    }
}

/// Repeated calls of a callback.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repeat {
    /// Its first instruction.
    pub entry: usize,
    /// Minimum number of rounds, unless it ends the loop, and maximum.
    pub least: u32,
    pub most: u32,
    /// Its argument besides the round's number.
    pub data: Value,
}

/// Values on the stack that a comparison of two states compares for free, as those in registers.
const FREE: usize = 32;

/// Number of further ones whose comparison takes as long as a visit of an instruction.
const COMPARED: usize = 256;

/// Number of names that are searched in the time of comparing a value.
pub const SEARCHED: usize = 8;

/// Correspondence of names between two states. A name corresponds to one only, though several may correspond
/// to the same. It also counts what comparisons take, because states may have thousands of values.
#[derive(Debug, Default)]
pub struct Names {
    pairs: Vec<(Kind, Id, Id)>,
    /// Values compared by this comparison.
    compared: usize,
    /// Those of earlier ones that were not free, and are not charged yet.
    owed: usize,
}

/// The kind of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Number,
    Origin,
    Object,
}

impl Names {
    /// Begins a comparison.
    pub fn clear(&mut self) {
        self.pairs.clear();
        self.owed += std::mem::take(&mut self.compared).saturating_sub(FREE);
    }

    /// Counts compared values.
    pub fn note(&mut self, values: usize) {
        self.compared += values;
    }

    /// Number of visits that take as long as the comparisons since the last call.
    pub fn visits(&mut self) -> usize {
        let visits = self.owed / COMPARED;
        self.owed %= COMPARED;
        visits
    }

    /// Whether `name` can correspond to `other`. A second occurrence of a name must correspond to the same
    /// one, and no name means equality with nothing else.
    pub fn allow(&mut self, kind: Kind, name: Id, other: Id) -> bool {
        if name == 0 {
            return true;
        }
        self.note(self.pairs.len() / SEARCHED);
        match self.pairs.iter().find(|&&(k, n, _)| k == kind && n == name) {
            Some(&(_, _, before)) => before == other && other != 0,
            None => {
                self.pairs.push((kind, name, other));
                true
            }
        }
    }

    pub fn of(&self, kind: Kind) -> impl Iterator<Item = (Id, Id)> + '_ {
        self.pairs.iter().filter(move |&&(k, ..)| k == kind).map(|&(_, name, other)| (name, other))
    }
}

impl Value {
    /// Whether this includes `other`, with corresponding names. Origins in the packet must be compared
    /// separately.
    pub fn contains(&self, other: &Self, names: &mut Names) -> bool {
        match (self, other) {
            (Self::Unset, _) => true,
            (Self::Number { scalar: a, link: la }, Self::Number { scalar: b, link: lb }) => {
                a.contains(b) && names.allow(Kind::Number, *la, *lb)
            }
            (Self::Number { scalar, link: 0 }, pointer) => *scalar == Scalar::ANY && *pointer != Self::Unset,
            (Self::Context { offset: a }, Self::Context { offset: b }) => a == b,
            (Self::Packet { origin: a, fixed: fa }, Self::Packet { origin: b, fixed: fb }) => {
                // The packet's beginning has no name.
                fa == fb && if *a == 0 || *b == 0 { a == b } else { names.allow(Kind::Origin, *a, *b) }
            }
            (Self::Stack { frame: fa, offset: a }, Self::Stack { frame: fb, offset: b }) => {
                fa == fb && a.contains(b)
            }
            (Self::State { size: sa, offset: a }, Self::State { size: sb, offset: b }) => {
                sa <= sb && a.contains(b)
            }
            (
                Self::Map { map: ma, object: oa, offset: a, nullable: na },
                Self::Map { map: mb, object: ob, offset: b, nullable: nb },
            ) => ma == mb && na == nb && a.contains(b) && names.allow(Kind::Object, *oa, *ob),
            (Self::Held { outer: a, object: oa }, Self::Held { outer: b, object: ob }) => {
                a == b && names.allow(Kind::Object, *oa, *ob)
            }
            (a, b) => a == b,
        }
    }
}
