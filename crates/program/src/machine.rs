//! The environment of a program for one packet, with every access checked.

use crate::call::{Argument, MAX_SIZE};
use crate::context::{Context, ContextField};
use crate::fib::{RouteAnswer, RouteQuery};
use crate::map::{MAX_RECORD, Map, Maps};
use crate::memory::{Fault, Region};
use crate::packet::Packet;
use crate::stack::Stack;
use crate::state::ProgramState;
use crate::words::Words;
use crate::{Atomic, Helper, Size, Width};
use std::ops::Range;

/// External inputs of programs.
pub trait Environment {
    /// The next 32 random bits of the program's own stream.
    fn random(&mut self) -> u32;

    /// The router's answer to a route lookup. Without a router, nothing is forwarded.
    fn route(&mut self, _query: &RouteQuery<'_>) -> RouteAnswer {
        RouteAnswer::Disabled
    }
}

/// Destination of a redirected packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Redirect {
    /// Out of the port with this number.
    Port(u32),
    /// Into the link with this number among those that the installation names.
    Link(u32),
    /// To the processor with this number; here the packet stays on its own.
    Processor(u32),
}

/// Requests of a program besides its return code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effects {
    /// The destination, if it returns XDP_REDIRECT.
    pub redirect: Option<Redirect>,
    /// Number of the program named by the redirecting entry, from 1; 0 for none.
    pub exit: u8,
    /// The output queue.
    pub queue: Option<u16>,
    /// The packet's new mark, if set.
    pub mark: Option<u32>,
    /// The link that the packet takes if it is routed, by number among the installation's links.
    pub link: Option<u32>,
    /// The program's own drop reason, 0 to 63; 64 means any higher number.
    pub reason: Option<u8>,
    /// Number of `trace_printk` calls.
    pub traces: u32,
    /// Number of tail calls.
    pub tail_calls: u8,
}

impl Effects {
    /// Number of a program's own drop reasons.
    pub const REASONS: u8 = 64;
}

/// The environment of a program for one packet. The interpreter does everything through it; compiled programs
/// only helper calls and accesses to unknown regions (see [`Region`]).
pub struct Machine<'a> {
    /// The packet's metadata.
    pub context: Context,
    /// The packet.
    pub packet: Packet<'a>,
    /// The stack.
    pub stack: &'a mut Stack,
    /// The flow's state.
    pub state: &'a ProgramState,
    /// The object's maps.
    pub maps: &'a Maps,
    /// External inputs.
    pub environment: &'a mut dyn Environment,
    /// The program's requests so far.
    pub effects: Effects,
}

/// Location of checked bytes.
enum Place<'a> {
    Packet(Range<usize>),
    Stack(Range<usize>),
    Words(&'a Words, usize),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

impl<'a> Machine<'a> {
    /// Address of the context, the program's first argument.
    pub const CONTEXT: u64 = Region::Context.address(0);

    /// Loads the bytes at `address`, zero-extended. A field of the context is loaded whole; the first three
    /// give a 64-bit address.
    ///
    /// # Errors
    /// If the access is invalid.
    #[inline]
    pub fn load(&self, address: u64, size: Size) -> Result<u64, Fault> {
        if let Some((Region::Context, offset)) = Region::of(address) {
            return self.load_context(address, offset, size);
        }
        match self.resolve_aligned(address, size, Access::Read)? {
            Place::Packet(range) => Ok(number(&self.packet.bytes()[range])),
            Place::Stack(range) => self.stack.read(address, range).map(number),
            Place::Words(words, place) => Ok(words.load(place, size)),
        }
    }

    /// As [`Machine::load`], sign-extended. Not for the context, whose fields are unsigned.
    ///
    /// # Errors
    /// If the access is invalid.
    #[inline]
    pub fn load_extended(&self, address: u64, size: Size) -> Result<u64, Fault> {
        match Region::of(address) {
            Some((Region::Context, _)) => Err(Fault::OutOfBounds { address, size: size.bytes() as u32 }),
            _ => self.load(address, size).map(|value| size.extend(value)),
        }
    }

    /// Stores the low bytes of `value`.
    ///
    /// # Errors
    /// If the access is invalid.
    #[inline]
    pub fn store(&mut self, address: u64, size: Size, value: u64) -> Result<(), Fault> {
        let bytes = &value.to_le_bytes()[..size.bytes()];
        match self.resolve_aligned(address, size, Access::Write)? {
            Place::Packet(range) => self.packet.bytes_mut()[range].copy_from_slice(bytes),
            Place::Stack(range) => self.stack.write(range).copy_from_slice(bytes),
            Place::Words(words, place) => words.store(place, size, value),
        }
        Ok(())
    }

    /// Executes an atomic operation, and returns the previous value. `r0` is the comparison value of
    /// compare-and-exchange.
    ///
    /// # Errors
    /// If the access is invalid: always in packets and the context.
    pub fn change(
        &mut self,
        address: u64,
        width: Width,
        operation: Atomic,
        src: u64,
        r0: u64,
    ) -> Result<u64, Fault> {
        let size = width.size();
        match self.resolve_aligned(address, size, Access::Write)? {
            Place::Packet(_) => Err(Fault::ReadOnly { address, size: size.bytes() as u32 }),
            Place::Stack(range) => {
                let old = number(self.stack.read(address, range.clone())?);
                let new = operation.apply(width, old, src, r0);
                self.stack.write(range).copy_from_slice(&new.to_le_bytes()[..size.bytes()]);
                Ok(old)
            }
            Place::Words(words, place) => Ok(words.change(place, width, operation, src, r0)),
        }
    }

    /// Calls a helper. Superfluous arguments are ignored.
    ///
    /// # Errors
    /// If there is no such helper, or its arguments are invalid. Errors possible in a correct program are
    /// part of the result.
    pub fn call(&mut self, helper: u32, arguments: [u64; 5]) -> Result<u64, Fault> {
        let helper = Helper::from_number(helper).ok_or(Fault::Helper(helper))?;
        self.check_arguments(helper.signature().arguments, arguments)?;
        self.perform(helper, arguments)
    }

    /// Bytes of the packet or the stack, which nothing else writes; none elsewhere.
    #[inline]
    pub(crate) fn own_bytes(&self, address: u64, size: u32) -> Result<Option<&[u8]>, Fault> {
        match self.resolve(address, size, Access::Read)? {
            Place::Packet(range) => Ok(Some(&self.packet.bytes()[range])),
            Place::Stack(range) => self.stack.read(address, range).map(Some),
            Place::Words(..) => Ok(None),
        }
    }

    /// Copies bytes of the program's memory.
    pub(crate) fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Fault> {
        match self.resolve(address, bytes.len() as u32, Access::Read)? {
            Place::Packet(range) => bytes.copy_from_slice(&self.packet.bytes()[range]),
            Place::Stack(range) => bytes.copy_from_slice(self.stack.read(address, range)?),
            Place::Words(words, place) => words.read(place, bytes),
        }
        Ok(())
    }

    /// Writes bytes to the program's memory.
    pub(crate) fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        match self.resolve(address, bytes.len() as u32, Access::Write)? {
            Place::Packet(range) => self.packet.bytes_mut()[range].copy_from_slice(bytes),
            Place::Stack(range) => self.stack.write(range).copy_from_slice(bytes),
            Place::Words(words, place) => words.write(place, bytes),
        }
        Ok(())
    }

    /// The map of a handle, and its number.
    pub(crate) fn map(&self, handle: u64) -> Option<(u16, &'a Map)> {
        match Region::of(handle)? {
            (Region::Handle(index), 0) => Some((index, self.maps.at(u32::from(index))?)),
            _ => None,
        }
    }

    fn load_context(&self, address: u64, offset: u32, size: Size) -> Result<u64, Fault> {
        let field = ContextField::at(i64::from(offset)).filter(|_| size == Size::Word);
        let field = field.ok_or(Fault::OutOfBounds { address, size: size.bytes() as u32 })?;
        let range = self.packet.range();
        Ok(match field {
            ContextField::Data | ContextField::DataMeta => Region::Packet.address(range.start as u32),
            ContextField::DataEnd => Region::Packet.address(range.end as u32),
            ContextField::Ingress => u64::from(self.context.ingress),
            ContextField::Queue => u64::from(self.context.queue),
            ContextField::Egress => u64::from(self.context.egress),
        })
    }

    /// As [`Machine::resolve`], for accesses that must be aligned outside the packet.
    fn resolve_aligned(&self, address: u64, size: Size, access: Access) -> Result<Place<'a>, Fault> {
        let size = size.bytes() as u32;
        let place = self.resolve(address, size, access)?;
        match place {
            Place::Stack(_) | Place::Words(..) if !address.is_multiple_of(u64::from(size)) => {
                Err(Fault::Misaligned { address, size })
            }
            place => Ok(place),
        }
    }

    /// Locates bytes, and checks that the program may access them in this way. (Uninitialized stack bytes are
    /// detected when read.)
    fn resolve(&self, address: u64, size: u32, access: Access) -> Result<Place<'a>, Fault> {
        let outside = Fault::OutOfBounds { address, size };
        let (region, offset) = Region::of(address).ok_or(outside)?;
        let (start, end) = (offset as usize, offset as usize + size as usize);
        match region {
            Region::Packet => {
                let window = self.packet.range();
                let within = start >= window.start && end <= window.end;
                let place = || Place::Packet(start - window.start..end - window.start);
                within.then(place).ok_or(outside)
            }
            Region::Stack => self.stack.range(address, size).map(Place::Stack),
            Region::State if end <= self.state.size() as usize => Ok(Place::Words(self.state.words(), start)),
            Region::Map(index) => {
                let map = self.maps.at(u32::from(index)).ok_or(outside)?;
                if map.spec().kind.is_ring() {
                    let own = self.stack.records.cover(address, size);
                    return own.then_some(Place::Words(map.values(), start)).ok_or(outside);
                }
                let in_value = start % map.spec().stride() + size as usize <= map.spec().value_size as usize;
                let within = start % map.spec().stride();
                let locked = map.spec().touches_lock(within, within + size as usize);
                if !in_value || locked || end > map.values().len() {
                    return Err(outside);
                }
                if access == Access::Write && map.spec().is_read_only() {
                    return Err(Fault::ReadOnly { address, size });
                }
                Ok(Place::Words(map.values(), start))
            }
            Region::Context if access == Access::Write => Err(Fault::ReadOnly { address, size }),
            Region::State | Region::Context | Region::Handle(_) | Region::Code => Err(outside),
        }
    }

    /// Checks any helper's arguments: pointers and sizes.
    fn check_arguments(&self, wanted: &[Argument], given: [u64; 5]) -> Result<(), Fault> {
        let map = wanted.iter().position(|argument| *argument == Argument::Map);
        let map = map.and_then(|place| self.map(given[place])).map(|(_, map)| map.spec());
        for (index, argument) in wanted.iter().enumerate() {
            let value = given[index];
            let wrong = Fault::Argument(index as u8 + 1);
            let memory = |size: Option<u64>, access| {
                let size = size.and_then(|s| u32::try_from(s).ok()).ok_or(wrong)?;
                self.resolve(value, size, access).map(|_| ())
            };
            let next = given.get(index + 1).copied();
            let within =
                |low: u64, high: u64| if (low..=high).contains(&value) { Ok(()) } else { Err(wrong) };
            match argument {
                Argument::Number => Ok(()),
                Argument::StateSize => within(1, u64::from(self.state.size())),
                Argument::Context => within(Self::CONTEXT, Self::CONTEXT),
                Argument::Function | Argument::StackOrNull | Argument::Lock => Ok(()),
                Argument::Map => map.map(|_| ()).ok_or(wrong),
                Argument::Key => memory(map.map(|m| u64::from(m.key_size)), Access::Read),
                Argument::Value => memory(map.map(|m| u64::from(m.value_size)), Access::Read),
                Argument::Readable | Argument::Payload => memory(next, Access::Read),
                Argument::Record => self.stack.records.cover(value, 0).then_some(()).ok_or(wrong),
                Argument::Writable | Argument::Changed => memory(next, Access::Write),
                Argument::ReadableOrNull if value == 0 && next == Some(0) => Ok(()),
                Argument::ReadableOrNull => memory(next, Access::Read),
                Argument::Size => within(1, u64::from(MAX_SIZE)),
                Argument::SizeOrZero => within(0, u64::from(MAX_SIZE)),
                Argument::PayloadSize | Argument::RecordSize => within(0, u64::from(MAX_RECORD)),
            }?;
        }
        Ok(())
    }
}

/// Up to eight bytes as a number.
fn number(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}
