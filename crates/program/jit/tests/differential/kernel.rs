//! The kernel's own verifier and compiler as another reference: `bpf(2)` with `BPF_PROG_TEST_RUN`, if
//! permitted.
#![allow(unsafe_code)]

use longwire_program::{Instruction, Map, MapKind, Maps, OWN_BASE, Program};
use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const MAP_CREATE: i32 = 0;
const MAP_LOOKUP: i32 = 1;
const MAP_UPDATE: i32 = 2;
const PROG_LOAD: i32 = 5;
const PROG_TEST_RUN: i32 = 10;
const BTF_LOAD: i32 = 18;
const PROG_TYPE_XDP: u64 = 6;

/// Longest packet returned.
const LARGEST: usize = 2048;

/// Ingress of test packets: the loopback interface.
pub const INGRESS_AND_QUEUE: (u32, u32) = (1, 0);

/// The attributes of a call, 8 bytes each; halves are packed by [`both`].
type Attributes = [u64; 16];

/// A program in the kernel, with its maps.
pub struct InKernel {
    program: OwnedFd,
    maps: Vec<OwnedFd>,
    /// Targets of tail calls.
    _others: Vec<OwnedFd>,
}

/// Reason why the kernel can't be used, if any: it must load the smallest program.
pub fn refusal() -> Option<String> {
    let code = longwire_program::assemble("r0 = 2\n exit").unwrap();
    let error = load(&code.encode(), &[]).err()?;
    Some(format!("the kernel was not asked: bpf(2) gives {error}"))
}

/// Whether the kernel has everything the program uses, and is deterministic.
pub fn knows(program: &Program) -> bool {
    // Time, random numbers, and the processor's number.
    const OTHERS: [u32; 6] = [5, 7, 8, 118, 125, 160];
    let helpers = program.code.instructions().iter().all(|instruction| match instruction {
        Instruction::Call { helper } => *helper < OWN_BASE && !OTHERS.contains(helper),
        _ => true,
    });
    helpers && program.maps.iter().all(|map| kind(map.kind).is_some())
}

impl InKernel {
    /// Loads a program, with maps that have these contents. Targets of tail calls must not have functions of
    /// their own.
    pub fn new(program: &Program, maps: &Maps) -> io::Result<Self> {
        let maps = create_all(maps)?;
        let mut bytes = program.code.encode();
        for (index, instruction) in program.code.instructions().iter().enumerate() {
            let (map, selector) = match *instruction {
                Instruction::LoadMap { map, .. } => (map, 1),
                Instruction::LoadMapValue { map, .. } => (map, 2),
                _ => continue,
            };
            let at = program.code.slot(index) * 8;
            bytes[at + 1] = bytes[at + 1] & 0x0f | selector << 4;
            bytes[at + 4..at + 8].copy_from_slice(&maps[map as usize].as_raw_fd().to_le_bytes());
        }
        let starts: Vec<usize> = program.functions.iter().map(|function| function.entry).collect();
        // Each program separately.
        let loaded = |start: usize| {
            let last = starts.iter().copied().find(|&other| other > start).unwrap_or(program.code.len());
            load(&bytes[program.code.slot(start) * 8..program.code.slot(last) * 8], &[])
        };
        let mut others = Vec::new();
        for (index, map) in program.maps.iter().enumerate().filter(|(_, map)| map.kind == MapKind::ProgArray)
        {
            for (entry, number) in map.initial.as_chunks::<4>().0.iter().enumerate() {
                let Some(start) = program.code.program(u32::from_le_bytes(*number)) else { continue };
                others.push(loaded(start)?);
                let mut value = others[others.len() - 1].as_raw_fd().to_le_bytes();
                element(MAP_UPDATE, &maps[index], entry as u32, &mut value)?;
            }
        }
        let starts: Vec<u32> = starts.iter().map(|&start| program.code.slot(start) as u32).collect();
        let whole = others.is_empty().then(|| load(&bytes, &starts));
        Ok(Self { program: whole.unwrap_or_else(|| loaded(0))?, maps, _others: others })
    }

    /// Its return value for a packet, and the packet afterwards.
    pub fn run(&self, packet: &[u8]) -> io::Result<(u32, Vec<u8>)> {
        let mut out = vec![0u8; LARGEST];
        let mut attributes: Attributes = [0; 16];
        attributes[0] = both(self.program.as_raw_fd() as u32, 0);
        attributes[1] = both(packet.len() as u32, LARGEST as u32);
        attributes[2] = packet.as_ptr().addr() as u64;
        attributes[3] = out.as_mut_ptr().addr() as u64;
        attributes[4] = both(1, 0);
        bpf(PROG_TEST_RUN, &mut attributes)?;
        out.truncate((attributes[1] >> 32) as usize);
        Ok(((attributes[0] >> 32) as u32, out))
    }

    /// The records in the ringbuf at map `index` with this capacity, except discarded ones.
    pub fn records(&self, index: usize, capacity: usize) -> io::Result<Vec<Vec<u8>>> {
        // The reader's position, the writer's, and the records mapped twice in a row.
        let mapped = Mapped::new(&self.maps[index], PAGE + 2 * capacity)?;
        let word = |at: usize| u64::from_le_bytes(mapped.bytes(at, 8).try_into().unwrap()) as usize;
        let (mut at, end, mut records) = (0, word(0), Vec::new());
        while at < end {
            let head = word(PAGE + at % capacity) as u32;
            assert_eq!(head & BUSY, 0);
            let length = (head & !DISCARDED) as usize;
            if head & DISCARDED == 0 {
                records.push(mapped.bytes(PAGE + at % capacity + 8, length).to_vec());
            }
            at += (8 + length).next_multiple_of(8);
        }
        Ok(records)
    }

    /// The values of the array at map `index`, in the form of [`Map::values`].
    pub fn array(&self, index: usize, map: &Map) -> io::Result<Vec<u8>> {
        let (spec, mut all) = (map.spec(), Vec::new());
        for number in 0..spec.max_entries {
            let mut value = vec![0u8; spec.stride()];
            element(MAP_LOOKUP, &self.maps[index], number, &mut value)?;
            all.extend(value);
        }
        Ok(all)
    }
}

const PAGE: usize = 4096;
/// BPF_RINGBUF_BUSY_BIT and BPF_RINGBUF_DISCARD_BIT.
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;

/// The pages of a ringbuf after its first.
struct Mapped {
    first: *mut c_void,
    length: usize,
}

impl Mapped {
    fn new(map: &OwnedFd, length: usize) -> io::Result<Self> {
        let (null, descriptor) = (std::ptr::null_mut(), map.as_raw_fd());
        // SAFETY: the kernel chooses a place that nothing is at.
        let first = unsafe {
            libc::mmap(null, length, libc::PROT_READ, libc::MAP_SHARED, descriptor, PAGE as libc::off_t)
        };
        if first == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Self { first, length }) }
    }

    /// They do not change: no program runs meanwhile.
    fn bytes(&self, at: usize, length: usize) -> &[u8] {
        assert!(at + length <= self.length);
        // SAFETY: they are within the pages, which are mapped as long as this is there.
        unsafe { std::slice::from_raw_parts(self.first.cast::<u8>().add(at), length) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: they were mapped by `new`, and nothing borrows them any more.
        unsafe { libc::munmap(self.first, self.length) };
    }
}

fn kind(kind: MapKind) -> Option<u32> {
    match kind {
        MapKind::Array => Some(2),
        MapKind::Hash => Some(1),
        MapKind::LruHash => Some(9),
        MapKind::LpmTrie => Some(11),
        MapKind::ProgArray => Some(3),
        MapKind::ArrayOfMaps => Some(12),
        MapKind::HashOfMaps => Some(13),
        MapKind::RingBuf => Some(27),
        MapKind::PerfEventArray => Some(4),
        _ => None,
    }
}

/// Creates all maps with their contents, maps of maps last.
fn create_all(maps: &Maps) -> io::Result<Vec<OwnedFd>> {
    let create =
        |map: &Map, inner| if map.spec().kind.is_of_maps() { Ok(None) } else { create(map, inner).map(Some) };
    let mut made: Vec<Option<OwnedFd>> =
        maps.all().iter().map(|map| create(map, 0)).collect::<io::Result<_>>()?;
    for (index, map) in maps.all().iter().enumerate() {
        let Some(inner) = &map.spec().inner else { continue };
        let descriptor = |number: u32| made[number as usize].as_ref().map_or(0, |map| map.as_raw_fd() as u32);
        let outer = self::create(map, descriptor(inner.maps[0]))?;
        for (entry, number) in map.spec().initial.as_chunks::<4>().0.iter().enumerate() {
            if let Some(number) = u32::from_le_bytes(*number).checked_sub(1) {
                element(MAP_UPDATE, &outer, entry as u32, &mut descriptor(number).to_le_bytes())?;
            }
        }
        made[index] = Some(outer);
    }
    Ok(made.into_iter().flatten().collect())
}

/// Creates a map with these contents; of a map of maps, for maps like `inner`.
fn create(map: &Map, inner: u32) -> io::Result<OwnedFd> {
    let spec = map.spec();
    let mut attributes: Attributes = [0; 16];
    attributes[0] = both(kind(spec.kind).unwrap_or(0), spec.key_size);
    attributes[1] = both(spec.value_size, spec.max_entries);
    // BPF_F_NO_PREALLOC, which the kernel requires for these.
    attributes[2] = both(u32::from(spec.kind == MapKind::LpmTrie), inner);
    let created = descriptor(bpf(MAP_CREATE, &mut attributes)?);
    if spec.kind == MapKind::Array {
        for number in 0..spec.max_entries {
            let mut value = vec![0; spec.stride()];
            map.values().read(number as usize * spec.stride(), &mut value);
            element(MAP_UPDATE, &created, number, &mut value)?;
        }
    }
    Ok(created)
}

/// Reads or writes an array's value, padded to its last word.
fn element(command: i32, map: &OwnedFd, number: u32, value: &mut [u8]) -> io::Result<()> {
    let mut attributes: Attributes = [0; 16];
    attributes[0] = both(map.as_raw_fd() as u32, 0);
    attributes[1] = (&raw const number).addr() as u64;
    attributes[2] = value.as_mut_ptr().addr() as u64;
    bpf(command, &mut attributes).map(|_| ())
}

/// Loads a program whose functions begin at these slots, which the kernel needs for callbacks.
fn load(bytes: &[u8], functions: &[u32]) -> io::Result<OwnedFd> {
    let mut attributes: Attributes = [0; 16];
    let (types, about): (OwnedFd, Vec<[u32; 2]>);
    if functions.len() > 1 {
        types = load_types()?;
        about = functions.iter().map(|&slot| [slot, 3]).collect();
        attributes[9] = both(types.as_raw_fd() as u32, size_of::<[u32; 2]>() as u32);
        attributes[10] = about.as_ptr().addr() as u64;
        attributes[11] = both(about.len() as u32, 0);
    }
    attributes[0] = PROG_TYPE_XDP | (bytes.len() as u64 / 8) << 32;
    attributes[1] = bytes.as_ptr().addr() as u64;
    attributes[2] = c"GPL".as_ptr().addr() as u64;
    Ok(descriptor(bpf(PROG_LOAD, &mut attributes)?))
}

/// BTF types, of which the third is that of a static function.
fn load_types() -> io::Result<OwnedFd> {
    const INT: u32 = 1 << 24;
    const FUNCTION: u32 = 12 << 24;
    const PROTOTYPE: u32 = 13 << 24;
    let types = [1, INT, 4, 1 << 24 | 32, 0, PROTOTYPE, 1, 5, FUNCTION, 2];
    let strings = b"\0int\0f\0";
    let length = size_of_val(&types) as u32;
    let mut blob = vec![0x9f, 0xeb, 1, 0];
    for word in [24, 0, length, length, strings.len() as u32].iter().chain(&types) {
        blob.extend(word.to_le_bytes());
    }
    blob.extend(strings);
    let mut attributes: Attributes = [0; 16];
    attributes[0] = blob.as_ptr().addr() as u64;
    attributes[2] = both(blob.len() as u32, 0);
    Ok(descriptor(bpf(BTF_LOAD, &mut attributes)?))
}

fn descriptor(number: i64) -> OwnedFd {
    // SAFETY: the kernel has just made it for this process, and nobody else has seen it.
    unsafe { OwnedFd::from_raw_fd(number as i32) }
}

fn bpf(command: i32, attributes: &mut Attributes) -> io::Result<i64> {
    let (place, size) = (attributes.as_mut_ptr().cast::<c_void>(), size_of::<Attributes>());
    // SAFETY: the attributes are as many bytes as are said, zero where the command has none; what they point
    // to is alive in the callers, and as long as they say or, for a map's value, as the map was made.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, place, size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Two halves of 8 bytes, in the kernel's order.
fn both(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}
