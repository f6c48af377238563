//! Implementation of helpers.

use crate::Helper;
use crate::call::{MAX_SIZE, MAX_TAIL_CALLS};
use crate::fib;
use crate::hash::hash;
use crate::machine::{Effects, Machine, Redirect};
use crate::map::ring::End;
use crate::map::{Map, MapKind, MapSpec, Refusal};
use crate::memory::{Fault, Region};
use crate::verdict::{ABORTED, DROP, REDIRECT};
use longwire_wire::{Ethernet, Ipv4, Ipv6, Ipv6Payload, ethertype};

/// Errors that helpers return, as in errno(3).
const EFAULT: i64 = 14;
const EINVAL: i64 = 22;
const EAFNOSUPPORT: i64 = 97;
/// Flag of fragments, the first one included.
const FRAGMENT: u64 = 0x100;
/// Prefix if the transport header was not reached: the result is negative then.
const UNSEEN: u64 = -0x1_0000_i64 as u64;

impl Machine<'_> {
    /// Calls a helper as [`Machine::call`] does, for a program with verified arguments: what the verifier
    /// knows is not checked again, but nothing outside the program's memory is accessed.
    ///
    /// # Errors
    /// If an argument is invalid.
    #[inline]
    pub fn perform(&mut self, helper: Helper, arguments: [u64; 5]) -> Result<u64, Fault> {
        let [a, b, c, d, _] = arguments;
        match helper {
            Helper::MapLookup => self.lookup(a, b),
            Helper::MapUpdate => self.update(a, b, c, d),
            Helper::MapDelete => self.delete(a, b),
            Helper::Now | Helper::BootTime | Helper::CoarseTime => Ok(self.context.now),
            Helper::Jiffies => Ok(self.context.now / 1_000_000),
            Helper::Random => Ok(u64::from(self.environment.random())),
            Helper::Worker => Ok(u64::from(self.context.worker)),
            Helper::Node => Ok(0),
            Helper::Trace | Helper::TraceMany => {
                self.effects.traces = self.effects.traces.saturating_add(1);
                Ok(b)
            }
            Helper::Redirect if b != 0 => Ok(ABORTED),
            Helper::Redirect => Ok(self.redirect(Redirect::Port(a as u32))),
            Helper::RedirectLink => Ok(self.redirect(Redirect::Link(a as u32))),
            Helper::RedirectMap => self.redirect_map(a, b, c),
            Helper::SpinLock => self.set_lock(a, true),
            Helper::SpinUnlock => self.set_lock(a, false),
            Helper::TailCall => self.tail_call(b, c),
            Helper::ChecksumDiff => self.checksum_diff(arguments),
            Helper::AdjustHead => Ok(code_unless(self.packet.adjust_head(b as i32), EINVAL)),
            Helper::AdjustTail => Ok(code_unless(self.packet.adjust_tail(b as i32), EINVAL)),
            Helper::PacketLength => Ok(self.packet.range().len() as u64),
            Helper::LoadBytes => self.load_bytes(b, c, d),
            Helper::StoreBytes => self.store_bytes(b, c, d),
            Helper::FlowState => Ok(Region::State.address(0)),
            Helper::ChooseQueue => Ok(self.choose_queue(a)),
            Helper::Mark => {
                self.effects.mark = Some(a as u32);
                Ok(0)
            }
            Helper::ReadMark => Ok(u64::from(self.effects.mark.unwrap_or(self.context.mark))),
            Helper::ChooseLink => {
                self.effects.link = Some(a as u32);
                Ok(0)
            }
            Helper::Transport => Ok(transport(self.packet.bytes()).unwrap_or(-EINVAL as u64)),
            Helper::Drop => {
                self.effects.reason = Some((a as u32).min(Effects::REASONS.into()) as u8);
                Ok(DROP)
            }
            Helper::FibLookup => self.fib_lookup(b, c, d),
            // Engines call functions of the program.
            Helper::Loop => Err(Fault::Helper(helper.number())),
            Helper::PerfOutput => self.perf_output(b, c, d, arguments[4]),
            Helper::RingOutput => self.ring_output(a, b, c, d),
            Helper::RingReserve => self.reserve(a, b, c),
            Helper::RingSubmit => self.end_record(a, End::Submitted(self.context.now)),
            Helper::RingDiscard => self.end_record(a, End::Discarded),
            Helper::RingQuery => Ok(self.usable_map(a, helper)?.1.query(b)),
            Helper::Hash => {
                let mut buffer = BUFFER;
                let bytes = first(&mut buffer, b, 2)?;
                self.read(a, bytes)?;
                Ok(hash(c, bytes))
            }
        }
    }

    fn lookup(&self, handle: u64, key: u64) -> Result<u64, Fault> {
        let (index, map) = self.usable_map(handle, Helper::MapLookup)?;
        if map.spec().kind.is_of_maps() {
            let held = self.with_key(map, key, |key| map.held(key))?;
            return Ok(held.map_or(0, |map| Region::Handle(map).address(0)));
        }
        let place = self.with_key(map, key, |key| map.lookup(key, self.context.worker))?;
        Ok(place.map_or(0, |place| Region::Map(index).address(place)))
    }

    fn update(&self, handle: u64, key: u64, value: u64, flags: u64) -> Result<u64, Fault> {
        let (_, map) = self.usable_map(handle, Helper::MapUpdate)?;
        if map.spec().read_only {
            return Err(Fault::Map);
        }
        // All bytes are in bounds, but those of the stack may be uninitialized.
        let mut fault = None;
        let read = |at: usize, piece: &mut [u8]| {
            if let Err(error) = self.read(value + at as u64, piece) {
                fault = Some(error);
            }
        };
        let done = self.with_key(map, key, |key| map.update(key, self.context.worker, flags, read))?;
        fault.map_or(Ok(code(done)), Err)
    }

    fn delete(&self, handle: u64, key: u64) -> Result<u64, Fault> {
        let (_, map) = self.usable_map(handle, Helper::MapDelete)?;
        Ok(code(self.with_key(map, key, |key| map.delete(key))?))
    }

    /// Takes or releases the lock at an address.
    fn set_lock(&self, address: u64, locked: bool) -> Result<u64, Fault> {
        let Some((Region::Map(index), place)) = Region::of(address) else { return Err(Fault::Argument(1)) };
        let map = self.maps.at(index.into()).ok_or(Fault::Argument(1))?;
        let (place, stride) = (place as usize, map.spec().stride());
        let is_lock = map.spec().lock.is_some_and(|at| place % stride == at as usize);
        if !is_lock || place >= map.values().len() {
            return Err(Fault::Argument(1));
        }
        if map.set_lock(place - place % stride, locked) { Ok(0) } else { Err(Fault::Lock) }
    }

    /// Number of the target of a tail call, 0 for none.
    fn tail_call(&mut self, handle: u64, index: u64) -> Result<u64, Fault> {
        let (_, map) = self.map(handle).ok_or(Fault::Argument(2))?;
        if !map.spec().kind.serves(Helper::TailCall) {
            return Err(Fault::Map);
        }
        let number = map.program(index as u32);
        if number > 0 && self.effects.tail_calls < MAX_TAIL_CALLS {
            self.effects.tail_calls += 1;
            return Ok(number.into());
        }
        Ok(0)
    }

    fn redirect_map(&mut self, handle: u64, key: u64, flags: u64) -> Result<u64, Fault> {
        let (_, map) = self.usable_map(handle, Helper::RedirectMap)?;
        // The lower two bits are the return value without a port; broadcasting is not supported.
        if flags > 3 {
            return Ok(ABORTED);
        }
        // As in the kernel, only the lower half of a key counts.
        let (kind, key) = (map.spec().kind, key as u32);
        let Some(target) = map.target(key) else {
            self.effects.redirect = None;
            return Ok(flags);
        };
        let is_processor = kind == MapKind::CpuMap;
        let to = if is_processor { Redirect::Processor(key) } else { Redirect::Port(target.first) };
        let returned = self.redirect(to);
        self.effects.exit = target.exit;
        Ok(returned)
    }

    fn redirect(&mut self, to: Redirect) -> u64 {
        (self.effects.redirect, self.effects.exit) = (Some(to), 0);
        REDIRECT
    }

    fn choose_queue(&mut self, queue: u64) -> u64 {
        let Ok(queue) = u16::try_from(queue) else { return code_unless(false, EINVAL) };
        self.effects.queue = Some(queue);
        0
    }

    /// The sum as in Linux since 6.13, folded to 16 bits, which is the same on every machine.
    fn checksum_diff(&self, [from, from_size, to, to_size, seed]: [u64; 5]) -> Result<u64, Fault> {
        if !(from_size | to_size).is_multiple_of(4) {
            return Ok(code_unless(false, EINVAL));
        }
        let seed = seed as u32;
        if from_size | to_size == 0 {
            return Ok(u64::from(seed));
        }
        let removed = !self.sum(from, from_size, 2)?;
        let added = self.sum(to, to_size, 4)?;
        let removed = if from_size == 0 { 0 } else { removed };
        let total = u64::from(seed >> 16) + u64::from(seed & 0xffff) + u64::from(removed) + u64::from(added);
        Ok(u64::from(folded(total)))
    }

    /// The ones' complement sum of byte pairs in native order (RFC 1071).
    fn sum(&self, address: u64, size: u64, argument: u8) -> Result<u16, Fault> {
        let mut buffer = BUFFER;
        let bytes = first(&mut buffer, size, argument)?;
        if size > 0 {
            self.read(address, bytes)?;
        }
        let pairs = bytes.as_chunks::<2>().0.iter();
        Ok(folded(pairs.map(|&pair| u64::from(u16::from_le_bytes(pair))).sum()))
    }

    fn load_bytes(&mut self, offset: u64, to: u64, size: u64) -> Result<u64, Fault> {
        let mut buffer = BUFFER;
        let bytes = first(&mut buffer, size, 4)?;
        let Some(start) = self.packet_offset(offset, bytes.len()) else {
            // Programs may read the destination without checking the result.
            self.write(to, bytes)?;
            return Ok(offset_error(offset));
        };
        bytes.copy_from_slice(&self.packet.bytes()[start..start + bytes.len()]);
        self.write(to, bytes)?;
        Ok(0)
    }

    fn store_bytes(&mut self, offset: u64, from: u64, size: u64) -> Result<u64, Fault> {
        let mut buffer = BUFFER;
        let bytes = first(&mut buffer, size, 4)?;
        let Some(start) = self.packet_offset(offset, bytes.len()) else { return Ok(offset_error(offset)) };
        self.read(from, bytes)?;
        self.packet.bytes_mut()[start..start + bytes.len()].copy_from_slice(bytes);
        Ok(0)
    }

    fn fib_lookup(&mut self, address: u64, size: u64, flags: u64) -> Result<u64, Fault> {
        if size < fib::PARAMETERS as u64 || flags & !fib::FLAGS != 0 {
            return Ok(code_unless(false, EINVAL));
        }
        let mut bytes = [0; fib::PARAMETERS];
        self.read(address, &mut bytes)?;
        let mut parameters = fib::Parameters(bytes);
        let answer = match parameters.query(flags, self.context.now, self.packet.bytes()) {
            Some(query) => self.environment.route(&query),
            None => return Ok(code_unless(false, EAFNOSUPPORT)),
        };
        let code = parameters.answer(&answer);
        self.write(address, &parameters.0)?;
        Ok(code as u64)
    }

    /// An offset into the packet with `length` bytes after it.
    fn packet_offset(&self, offset: u64, length: usize) -> Option<usize> {
        let start = offset as u32 as usize;
        (start <= 0xffff && start + length <= self.packet.range().len()).then_some(start)
    }

    pub(crate) fn usable_map(&self, handle: u64, helper: Helper) -> Result<(u16, &Map), Fault> {
        let (index, map) = self.map(handle).ok_or(Fault::Argument(1))?;
        if map.spec().kind.serves(helper) { Ok((index, map)) } else { Err(Fault::Map) }
    }

    /// Calls `then` with a key, which is copied only if others might write to it meanwhile.
    #[inline]
    fn with_key<T>(&self, map: &Map, address: u64, then: impl FnOnce(&[u8]) -> T) -> Result<T, Fault> {
        let size = map.spec().key_size;
        if let Some(key) = self.own_bytes(address, size)? {
            return Ok(then(key));
        }
        let mut key = [0; MapSpec::MAX_KEY as usize];
        let key = &mut key[..size as usize];
        self.read(address, key)?;
        Ok(then(key))
    }
}

/// Buffer for a helper's argument.
const BUFFER: [u8; MAX_SIZE as usize] = [0; MAX_SIZE as usize];

/// The part given by this size argument.
fn first(buffer: &mut [u8], size: u64, argument: u8) -> Result<&mut [u8], Fault> {
    let size = usize::try_from(size).ok();
    size.and_then(|size| buffer.get_mut(..size)).ok_or(Fault::Argument(argument))
}

/// Result of `lw_transport` for a frame: the protocol in the low 8 bits, [`FRAGMENT`], and in the upper half
/// of 32 bits the offset of the protocol's header, 0 if that is not in this packet, or all ones ([`UNSEEN`])
/// if the packet is truncated within its headers or has too many of them. None if it is no IP packet.
fn transport(frame: &[u8]) -> Option<u64> {
    let ethernet = Ethernet::check(frame).ok()?;
    let packet = ethernet.payload();
    let before = frame.len() - packet.len();
    let (protocol, offset, is_fragment) = match ethernet.ethertype() {
        ethertype::IPV4 => {
            let ip = Ipv4::check(packet).ok()?;
            let offset = if ip.is_later_fragment() { 0 } else { before + ip.header_len() };
            (ip.protocol(), offset, ip.is_fragment())
        }
        ethertype::IPV6 => match Ipv6::check(packet).ok()?.walk() {
            Ipv6Payload::Transport(found) => (found.protocol, before + found.offset, found.is_fragment),
            Ipv6Payload::Later { protocol } => (protocol, 0, true),
            Ipv6Payload::Closed { protocol, is_fragment } => (protocol, 0, is_fragment),
            Ipv6Payload::Beyond { protocol, is_fragment } => {
                return Some(UNSEEN | u64::from(protocol) | if is_fragment { FRAGMENT } else { 0 });
            }
        },
        _ => return None,
    };
    let fragment = if is_fragment { FRAGMENT } else { 0 };
    Some(u64::from(protocol) | fragment | u64::from(u16::try_from(offset).ok()?) << 16)
}

fn code(done: Result<(), Refusal>) -> u64 {
    done.map_or_else(Refusal::code, |()| 0)
}

fn code_unless(done: bool, error: i64) -> u64 {
    if done { 0 } else { -error as u64 }
}

fn offset_error(offset: u64) -> u64 {
    code_unless(false, if offset as u32 > 0xffff { EFAULT } else { EINVAL })
}

fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
