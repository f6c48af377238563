//! The state at an instruction: registers, stack frames, and the checked part of the packet.

use super::FURTHEST;
use super::scalar::Scalar;
use super::stack::Frame;
use super::value::{Id, Kind, MapOrigin, Names, Pair, PendingRecord, Repeat, SEARCHED, Value};
use crate::memory::MAX_MAPS;
use crate::{Arithmetic, Operand, Register, Width};

/// Size of a cache line.
pub const LINE: i64 = 64;

/// An origin of pointers into the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Origin {
    id: Id,
    /// Offset from the packet's beginning.
    offset: Scalar,
    /// Number of bytes from here on proven to be in the packet, unless it is before the beginning; may be
    /// negative.
    proven: i64,
}

/// No bytes proven beyond an origin.
const NOTHING: i64 = i64::MIN / 2;

/// An object in cache lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    State,
    Value(Id),
}

/// Successors of a state.
pub enum Flow {
    Next,
    Jump,
    /// The given state is that of falling through, if possible.
    Branch {
        falls: bool,
        jumps: Option<Box<Knowledge>>,
    },
    Enter,
    /// Calls of a callback.
    Repeat(Repeat),
    Exit,
}

/// Knowledge on one or several paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knowledge {
    /// `r0` to `r9`.
    registers: [Value; 10],
    /// The program's own frame, and those of called functions.
    pub frames: Vec<Frame>,
    origins: Vec<Origin>,
    /// Which of the first 64 lines of objects were accessed before, a bit each.
    touched: Vec<(Object, u64)>,
    /// The value whose lock is held: its map and name.
    pub locked: Option<(MapOrigin, Id)>,
    /// Pending records, oldest first.
    pub(super) open: Vec<PendingRecord>,
}

impl Knowledge {
    /// The state at a program's beginning.
    pub fn new() -> Self {
        let mut registers = [Value::Unset; 10];
        registers[1] = Value::Context { offset: 0 };
        let frames = vec![Frame::new([Value::Unset; 4])];
        let (origins, touched, open) = (vec![Self::beginning()], Vec::new(), Vec::new());
        Self { registers, frames, origins, touched, locked: None, open }
    }

    fn beginning() -> Origin {
        Origin { id: 0, offset: Scalar::constant(0), proven: 0 }
    }

    pub fn register(&self, register: Register) -> Value {
        match self.registers.get(register.number()) {
            Some(value) => *value,
            None => Value::Stack { frame: self.depth() as u8, offset: Scalar::constant(0) },
        }
    }

    pub fn set(&mut self, register: Register, value: Value) {
        if let Some(slot) = self.registers.get_mut(register.number()) {
            *slot = value;
        }
    }

    pub fn operand(&self, operand: Operand) -> Value {
        match operand {
            Operand::Register(register) => self.register(register),
            Operand::Immediate(value) => Value::constant(i64::from(value) as u64),
        }
    }

    /// The innermost frame's number.
    pub fn depth(&self) -> usize {
        self.frames.len() - 1
    }

    /// Forgets registers outside the set, which are dead.
    pub fn keep(&mut self, live: u16) {
        for (number, value) in self.registers.iter_mut().enumerate() {
            if live >> number & 1 == 0 {
                *value = Value::Unset;
            }
        }
    }

    /// Enters a function.
    pub fn enter(&mut self) {
        let saved = [self.registers[6], self.registers[7], self.registers[8], self.registers[9]];
        self.frames.push(Frame::new(saved));
        self.registers[1..6].iter_mut().for_each(|value| *value = value.handed_over());
        self.registers[0] = Value::Unset;
        self.registers[6..].fill(Value::Unset);
    }

    /// Enters a callback for one of `most` rounds, with its argument besides the round's number. Lines
    /// accessed before may be charged to another round.
    pub fn enter_round(&mut self, data: Value, most: u32) {
        self.enter();
        self.registers[1..6].fill(Value::Unset);
        self.registers[1] = Value::number(Scalar::between(0, u64::from(most.saturating_sub(1))));
        self.registers[2] = data;
        self.touched.clear();
    }

    /// Returns from a function. Addresses of its frame become numbers.
    pub fn leave(&mut self) {
        let gone = self.depth() as u8;
        if let Some(frame) = self.frames.pop() {
            self.registers[6..].copy_from_slice(&frame.saved);
        }
        self.registers[1..6].fill(Value::Unset);
        self.registers[0] = self.registers[0].handed_over();
        self.replace(Value::ANY, |value| matches!(value, Value::Stack { frame, .. } if *frame == gone));
    }

    /// Replaces these values, wherever they are.
    pub(super) fn replace(&mut self, by: Value, which: impl Fn(&Value) -> bool) {
        self.values_mut().filter(|value| which(value)).for_each(|value| *value = by);
    }

    fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.registers.iter_mut().chain(self.frames.iter_mut().flat_map(Frame::values_mut))
    }

    /// Gives a number in a register a link, so that its copies share what is learned about it. Constants need
    /// none.
    pub fn link(&mut self, register: Register, fresh: impl FnOnce() -> Id) -> Value {
        match self.register(register) {
            Value::Number { scalar, link: 0 } if scalar.as_constant().is_none() => {
                let linked = Value::Number { scalar, link: fresh() };
                self.set(register, linked);
                linked
            }
            other => other,
        }
    }

    /// Refines a number in a register.
    pub fn learn(&mut self, register: Register, scalar: Scalar) {
        match self.register(register) {
            Value::Number { link: 0, .. } => self.set(register, Value::number(scalar)),
            Value::Number { link: linked, .. } => {
                let is_linked =
                    |value: &Value| matches!(value, Value::Number { link, .. } if *link == linked);
                self.replace(Value::Number { scalar, link: linked }, is_linked);
            }
            _ => {}
        }
    }

    /// Records whether a lookup or reservation was successful.
    pub fn resolve(&mut self, wanted: Id, found: bool) {
        if !found {
            self.open.retain(|record| record.object != wanted);
        }
        for value in self.values_mut() {
            if let Value::Map { object, nullable, .. } = value
                && *object == wanted
            {
                if found {
                    *nullable = false;
                } else {
                    *value = Value::constant(0);
                }
            } else if let Value::Held { outer, object } = *value
                && object == wanted
            {
                let map = MapOrigin::Inner(outer);
                *value = if found { Value::Handle { map } } else { Value::constant(0) };
            }
        }
    }

    /// The packet was moved: addresses in it become invalid.
    pub fn move_packet(&mut self) {
        self.replace(Value::Stale, |value| matches!(value, Value::Packet { .. } | Value::PacketEnd));
        self.origins = vec![Self::beginning()];
    }

    /// Forgets origins and lines of objects without addresses: a loop creates new ones in each round.
    pub fn forget_unnamed(&mut self) {
        let (mut origins, mut objects) = (Vec::new(), Vec::new());
        for value in self.values_mut() {
            match *value {
                Value::Packet { origin, .. } => origins.push(origin),
                Value::Map { object, .. } => objects.push(object),
                _ => {}
            }
        }
        origins.sort_unstable();
        objects.sort_unstable();
        self.origins.retain(|origin| origin.id == 0 || origins.binary_search(&origin.id).is_ok());
        // Those of a map's only value keep their name.
        let lasts = |object: &Object| match object {
            Object::State => true,
            Object::Value(id) => *id > Id::MAX - MAX_MAPS as Id || objects.binary_search(id).is_ok(),
        };
        self.touched.retain(|(object, _)| lasts(object));
    }

    /// Number of origins in the packet.
    #[cfg(test)]
    pub fn places(&self) -> usize {
        self.origins.len()
    }

    fn origin(&self, id: Id) -> Origin {
        let found = self.origins.iter().find(|origin| origin.id == id);
        found.copied().unwrap_or(Origin { id, offset: Scalar::ANY, proven: NOTHING })
    }

    /// Minimum offset of an address in the packet, and the number of proven bytes after it. Both may be
    /// negative.
    pub fn packet_place(&self, origin: Id, fixed: i64) -> (i64, i64) {
        let origin = self.origin(origin);
        (origin.offset.signed_min.saturating_add(fixed), origin.proven.saturating_sub(fixed))
    }

    /// Records that `fixed` bytes after the origin are in the packet. Useful only if the origin's offset is
    /// known well enough.
    pub fn prove(&mut self, id: Id, fixed: i64) {
        if let Some(origin) = self.origins.iter_mut().find(|origin| origin.id == id)
            && origin.offset.is_within(FURTHEST)
        {
            origin.proven = origin.proven.max(fixed);
        }
    }

    /// Whether addresses relative to this origin are ordered by their distance.
    pub fn is_ordered(&self, id: Id) -> bool {
        self.origin(id).offset.is_within(FURTHEST)
    }

    /// Creates an origin relative to another one.
    pub fn move_origin(&mut self, from: Id, operation: Arithmetic, by: Scalar, fresh: Id) {
        let from = self.origin(from);
        let offset = from.offset.apply(operation, Width::W64, by);
        let most = if operation == Arithmetic::Add { by.signed_max } else { by.signed_min.saturating_neg() };
        let proven =
            if by.is_within(FURTHEST) && from.proven > NOTHING / 2 { from.proven - most } else { NOTHING };
        self.origins.push(Origin { id: fresh, offset, proven });
    }

    /// Records an access to bytes of an object. Returns whether their line may be new.
    pub fn touch(&mut self, object: Object, first: i64, last: i64) -> bool {
        let line = first.div_euclid(LINE);
        if line != last.div_euclid(LINE) || !(0..64).contains(&line) {
            return true;
        }
        let bit = 1 << line;
        match self.touched.iter_mut().find(|(of, _)| *of == object) {
            Some((_, lines)) => {
                let cold = *lines & bit == 0;
                *lines |= bit;
                cold
            }
            None => {
                self.touched.push((object, bit));
                true
            }
        }
    }

    /// Extends this state to all paths of `other`, which it includes except for accessed lines.
    pub fn absorb(&mut self, other: &Self, names: &Names) {
        let theirs = |object: Object| {
            let object = match object {
                Object::State => Object::State,
                Object::Value(id) => {
                    let other = names.of(Kind::Object).find(|&(name, _)| name == id);
                    Object::Value(other.map_or(id, |(_, other)| other))
                }
            };
            other.touched.iter().find(|(of, _)| *of == object).map_or(0, |&(_, lines)| lines)
        };
        self.touched.iter_mut().for_each(|(object, lines)| *lines &= theirs(*object));
        self.touched.retain(|&(_, lines)| lines != 0);
    }

    /// Whether this state includes `other`; `names` then maps this state's names to the other's. Accessed
    /// lines are ignored.
    pub fn contains(&self, other: &Self, names: &mut Names) -> bool {
        names.clear();
        self.registers.iter().zip(&other.registers).all(|(mine, theirs)| mine.contains(theirs, names))
            && match (self.locked, other.locked) {
                (Some((mine, name)), Some((theirs, other))) => {
                    mine == theirs && names.allow(Kind::Object, name, other)
                }
                (mine, theirs) => mine == theirs,
            }
            && self.frames.len() == other.frames.len()
            && self.frames.iter().zip(&other.frames).all(|(mine, theirs)| mine.contains(theirs, names))
            && self.includes_origins(other, names)
            && self.allows_records(other, names)
    }

    /// Whether each named origin includes the other's of the corresponding name.
    fn includes_origins(&self, other: &Self, names: &mut Names) -> bool {
        let origins = names.of(Kind::Origin).count() * (self.origins.len() + other.origins.len());
        // A state that is included is absorbed, object by object.
        names.note((origins + self.touched.len() * other.touched.len()) / SEARCHED);
        names.of(Kind::Origin).chain([(0, 0)]).all(|(mine, theirs)| {
            let (mine, theirs) = (self.origin(mine), other.origin(theirs));
            mine.offset.contains(&theirs.offset) && mine.proven <= theirs.proven
        })
    }

    /// Number of its values, and of what they name: its memory, and the time to copy it.
    pub fn size(&self) -> usize {
        let frames: usize = self.frames.iter().map(Frame::size).sum();
        self.registers.len() + frames + self.origins.len() + self.touched.len()
    }

    /// The size of all these states.
    pub fn total_size(states: &[Self]) -> usize {
        states.iter().map(Self::size).sum()
    }

    /// Number of values of different kinds in both, which would be lost in a joined state; counted up to
    /// `most`.
    pub fn differences(&self, other: &Self, most: usize) -> usize {
        let registers = self.registers.iter().zip(&other.registers);
        let frames = self.frames.iter().zip(&other.frames).flat_map(|(mine, theirs)| mine.pairs(theirs));
        let differs = |(mine, theirs): &(&Value, &Value)| !mine.is_akin(theirs);
        registers.chain(frames).filter(differs).take(most).count()
    }

    /// A state that includes both. Both have the same frames, and the same lock or none.
    pub fn join(&self, other: &Self, fresh: impl FnMut() -> Id) -> Self {
        self.merge(other, false, fresh)
    }

    /// As [`Knowledge::join`], for repeated joins: differences become unknown, so that it changes only a few
    /// times.
    pub fn widen(&self, other: &Self, fresh: impl FnMut() -> Id) -> Self {
        self.merge(other, true, fresh)
    }

    fn merge(&self, other: &Self, wide: bool, mut fresh: impl FnMut() -> Id) -> Self {
        let mut joined = self.clone();
        joined.origins = vec![Self::beginning()];
        joined.origins[0].proven = self.origin(0).proven.min(other.origin(0).proven);
        let (open, records) = self.joined_records(other, &mut fresh);
        joined.open = open;
        let mut places =
            Places { mine: self, theirs: other, origins: Vec::new(), objects: Vec::new(), records };
        let mut join = |mine: &Value, theirs: &Value| match places.join(mine, theirs, &mut fresh) {
            joined if wide && joined != *mine && joined != Value::Unset => Value::ANY,
            joined => joined,
        };
        for (mine, theirs) in joined.registers.iter_mut().zip(&other.registers) {
            *mine = join(mine, theirs);
        }
        let frames = self.frames.iter().zip(&other.frames);
        joined.frames = frames.map(|(mine, theirs)| mine.join(theirs, &mut join)).collect();
        joined.origins.extend(places.origins.into_iter().map(|(_, origin)| origin));
        // Names are unique, so equal names mean the same in both.
        joined.absorb(other, &Names::default());
        joined
    }
}

/// Targets of addresses while two states are joined.
struct Places<'a> {
    mine: &'a Knowledge,
    theirs: &'a Knowledge,
    /// The joined origin for both origins and the difference of the added offsets.
    origins: Vec<((Id, Id, i64), Origin)>,
    /// The common name of two objects, one of which may be missing.
    objects: Vec<(Objects, Id)>,
    records: Vec<Pair>,
}

/// Objects of two states; none where there is 0 instead of an address.
type Objects = (Option<Id>, Option<Id>);

/// Whether it is the number 0, the result of an unsuccessful lookup.
fn is_zero(value: &Value) -> bool {
    value.as_scalar() == Some(Scalar::constant(0))
}

impl Places<'_> {
    fn join(&mut self, mine: &Value, theirs: &Value, fresh: &mut impl FnMut() -> Id) -> Value {
        match (*mine, *theirs) {
            (Value::Unset, _) | (_, Value::Unset) => Value::Unset,
            (Value::Number { scalar: a, link: la }, Value::Number { scalar: b, link: lb }) => {
                Value::Number { scalar: a.join(b), link: if la == lb { la } else { 0 } }
            }
            (Value::Packet { origin: a, fixed: fa }, Value::Packet { origin: b, fixed: fb }) => {
                if a == b && fa == fb && a == 0 {
                    return *mine;
                }
                Value::Packet { origin: self.origin((a, fa), (b, fb), fresh), fixed: fa }
            }
            (Value::Stack { frame: fa, offset: a }, Value::Stack { frame: fb, offset: b }) if fa == fb => {
                Value::Stack { frame: fa, offset: a.join(b) }
            }
            (Value::State { size: sa, offset: a }, Value::State { size: sb, offset: b }) => {
                Value::State { size: sa.min(sb), offset: a.join(b) }
            }
            (
                Value::Map { map: ma, object: oa, offset: a, nullable: na },
                Value::Map { map: mb, object: ob, offset: b, nullable: nb },
            ) if ma == mb && self.joins((Some(oa), Some(ob))) => {
                let object = self.object((Some(oa), Some(ob)), fresh);
                Value::Map { map: ma, object, offset: a.join(b), nullable: na || nb }
            }
            (Value::Map { map, object, offset, .. }, zero)
            | (zero, Value::Map { map, object, offset, .. })
                if is_zero(&zero) =>
            {
                let objects = if zero == *theirs { (Some(object), None) } else { (None, Some(object)) };
                if !self.joins(objects) {
                    return Value::ANY;
                }
                Value::Map { map, object: self.object(objects, fresh), offset, nullable: true }
            }
            (a, b) if a == b => a,
            _ => Value::ANY,
        }
    }

    /// Whether these can be joined: a record, which must be released, only with a similar one.
    fn joins(&self, (mine, theirs): Objects) -> bool {
        let among = |pair: &&Pair| Some(pair.mine) == mine || Some(pair.theirs) == theirs;
        let paired = |pair: &Pair| Some(pair.mine) == mine && Some(pair.theirs) == theirs;
        self.records.iter().find(among).is_none_or(paired)
    }

    /// The common name of two objects: always the same for the same two, because they exist or not together.
    fn object(&mut self, objects: Objects, fresh: &mut impl FnMut() -> Id) -> Id {
        let (mine, theirs) = objects;
        let record = self.records.iter().find(|pair| Some(pair.mine) == mine && Some(pair.theirs) == theirs);
        if let Some(record) = record {
            return record.joined.object;
        }
        if let (Some(object), true) = (mine, mine == theirs) {
            return object;
        }
        if let Some((_, name)) = self.objects.iter().find(|(known, _)| *known == objects) {
            return *name;
        }
        let name = fresh();
        self.objects.push((objects, name));
        name
    }

    fn origin(&mut self, (a, fa): (Id, i64), (b, fb): (Id, i64), fresh: &mut impl FnMut() -> Id) -> Id {
        let key = (a, b, fb - fa);
        if let Some((_, origin)) = self.origins.iter().find(|(made, _)| *made == key) {
            return origin.id;
        }
        // The other's origin is shifted to where this one's offsets lead to the same byte.
        let (mine, theirs) = (self.mine.origin(a), self.theirs.origin(b));
        let shift = Scalar::constant((fb - fa) as u64);
        let offset = mine.offset.join(theirs.offset.apply(Arithmetic::Add, Width::W64, shift));
        let proven = mine.proven.min(theirs.proven - (fb - fa));
        let origin = Origin { id: if a == b && fa == fb { a } else { fresh() }, offset, proven };
        self.origins.push((key, origin));
        origin.id
    }
}
