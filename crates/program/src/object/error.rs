//! Errors of objects and of their programs.

use crate::btf::BtfError;
use crate::map::MapError;
use crate::{CodeError, DecodeFault, ExitKind, MAX_EXITS};
use thiserror::Error;

/// Reason why an object or a program of it can't be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// It is no object file, or a damaged one.
    #[error("this is no object file that can be read: {0}; make one with clang -O2 -g -target bpf -c")]
    File(String),
    /// It is for another machine, or not an object file of a compiler.
    #[error(
        "this is a file of type {kind} for machine {machine}, not an object for BPF; make one with clang -O2 \
         -g -target bpf -c"
    )]
    Machine {
        /// e_machine in its header; BPF is 247.
        machine: u16,
        /// e_type in its header; an object is 1.
        kind: u16,
    },
    /// The type information is damaged.
    #[error("section {section}: {fault}")]
    Types {
        /// The section.
        section: &'static str,
        /// Its fault.
        fault: BtfError,
    },
    /// There are maps in `.maps` without type information.
    #[error("section .maps needs the types of section .BTF, which is missing; compile with -g")]
    MapsWithoutTypes,
    /// A map's variable has no symbol.
    #[error("map {0} is declared, but not in section .maps; declare it with SEC(\".maps\")")]
    MapWithoutSymbol(Box<str>),
    /// Too many relocations.
    #[error("it has too many relocations; the limit is {0}")]
    TooManyRelocations(usize),
    /// Too many maps.
    #[error("it has {0} maps; the limit is {limit}", limit = crate::memory::MAX_MAPS)]
    TooManyMaps(usize),
    /// There is no program of this name.
    #[error("there is no program {name}; there {}", match programs.as_str() { "" => "is none, only functions \
        of .text".into(), all => format!("are {all}") })]
    NoProgram {
        /// The name.
        name: Box<str>,
        /// The existing programs.
        programs: String,
    },
    /// The program is for another hook of the kernel.
    #[error(
        "program {program} of section {section} is no XDP program; put it in SEC(\"xdp\") and let it take \
         struct xdp_md"
    )]
    Kind {
        /// Its name.
        program: Box<str>,
        /// The section it is in.
        section: Box<str>,
    },
    /// The program runs at a port's exit, or on another processor.
    #[error(
        "program {program} of section {section} is run {}, by an entry that names it: install the program \
         that redirects, and name this one in exits (--exit)", .kind.place()
    )]
    Attached {
        /// Its name.
        program: Box<str>,
        /// The section it is in.
        section: Box<str>,
        /// Where it runs.
        kind: ExitKind,
    },
    /// The program is an ordinary one.
    #[error(
        "program {program} of section {section} is none that an entry of a map names: put it in \
         SEC(\"xdp/devmap\") or SEC(\"xdp/cpumap\")"
    )]
    NoExit {
        /// Its name.
        program: Box<str>,
        /// The section it is in.
        section: Box<str>,
    },
    /// No entry of the object's maps can name the program.
    #[error(
        "no {map} of the object can name program {program}: its values have to be of 8 bytes, struct \
         bpf_{map}_val"
    )]
    Unnamed {
        /// Its name.
        program: Box<str>,
        /// The kind of map.
        map: &'static str,
    },
    /// A map without targets.
    #[error(
        "{name} is no map whose entries lead somewhere, only devmaps and cpumaps are: write a number of \
         entries such as 64"
    )]
    NoTargets {
        /// Its name.
        name: Box<str>,
    },
    /// An entry can't name this program.
    #[error(
        "an entry of map {map} can't lead through program {program}: name it in exits (--exit), and let \
         values be of 8 bytes"
    )]
    NoSuchExit {
        /// The map.
        map: Box<str>,
        /// The program.
        program: Box<str>,
    },
    /// Too many programs for entries of maps.
    #[error("{0} programs are named in exits; the limit is {MAX_EXITS}")]
    TooManyExits(usize),
    /// There is no such map, or its size can't be set.
    #[error("there is no map {name} whose number of entries can be set; there are {known}")]
    NoMap {
        /// What was given.
        name: Box<str>,
        /// The existing ones.
        known: String,
    },
    /// The number of entries is invalid.
    #[error(transparent)]
    Entries(MapError),
    /// There is no such constant.
    #[error(
        "there is no constant {name} that could be set (const volatile, a whole number or an array of up to \
         256); there are {known}"
    )]
    NoConstant {
        /// What was given.
        name: Box<str>,
        /// The existing ones.
        known: String,
    },
    /// Wrong count of numbers for a constant.
    #[error(
        "constant {name} is {count} whole number{plural}, not {given}: write as many, with commas between",
        plural = if *count == 1 { "" } else { "s" }
    )]
    ConstantCount {
        /// The constant.
        name: Box<str>,
        /// Its count.
        count: usize,
        /// The given count.
        given: usize,
    },
    /// The map is no program array of the object.
    #[error(
        "{name} is no map that holds programs, only prog_arrays do: write a number of entries such as 64"
    )]
    NoProgramArray {
        /// Its name.
        name: Box<str>,
    },
    /// A value is out of range for a constant.
    #[error("constant {name} is from {low} to {high}, not {value}")]
    ConstantRange {
        /// The constant.
        name: Box<str>,
        /// The value.
        value: i128,
        /// The minimum.
        low: i128,
        /// The maximum.
        high: i128,
    },
    /// A program can't be linked.
    #[error("program {program}, {place}: {fault}")]
    Program {
        /// Its name.
        program: Box<str>,
        /// Instruction, function and line.
        place: String,
        /// The reason.
        fault: LinkFault,
    },
    /// A program's instructions are inconsistent.
    #[error("program {program}: {fault}")]
    Code {
        /// Its name.
        program: Box<str>,
        /// The reason.
        fault: CodeError,
    },
}

/// Reason why an instruction of a program can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LinkFault {
    /// It is malformed.
    #[error(transparent)]
    Decode(#[from] DecodeFault),
    /// Its function is not aligned to whole instructions within its section.
    #[error("function {0} does not lie within its section, or is too long")]
    Extent(Box<str>),
    /// It jumps out of its function.
    #[error("it jumps out of its function")]
    Leaves,
    /// It depends on the layout of a kernel type.
    #[error(
        "it needs a CO-RE relocation of {0}; declare the type without preserve_access_index, as linux/ \
         headers do"
    )]
    CoRe(Box<str>),
    /// It calls a function of the kernel.
    #[error("it calls {0}, a function of the kernel (kfunc); only helpers with numbers can be called")]
    KernelFunction(Box<str>),
    /// It uses a variable that the object does not define.
    #[error(
        "it uses {0}, an external variable that this object does not define; link it with the object that \
         does (bpftool gen object)"
    )]
    Undefined(Box<str>),
    /// It calls a function that the object does not define.
    #[error(
        "it calls {0}, an external function that this object does not define; link it with the object that \
         does (bpftool gen object), or define it static"
    )]
    UndefinedFunction(Box<str>),
    /// It uses a variable of the kernel.
    #[error(
        "it uses {0}, a variable of the kernel (__ksym); make it a constant (const volatile) that is set \
         when it is installed"
    )]
    KernelVariable(Box<str>),
    /// It uses an option of the kernel's configuration.
    #[error(
        "it uses {0}, of the kernel's configuration (__kconfig); make it a constant (const volatile) that is \
         set when it is installed"
    )]
    Configuration(Box<str>),
    /// It uses a map whose number of entries is not set.
    #[error(
        "map {0} has no max_entries: say how many entries it has when it is installed, --map {0}=ENTRIES or \
         maps = {{ {0} = ENTRIES }}"
    )]
    NoEntries(Box<str>),
    /// It uses a map of the format before BTF.
    #[error(
        "it uses map {0} of section maps, which objects had before BTF; declare it in SEC(\".maps\") with \
         __uint and __type"
    )]
    LegacyMap(Box<str>),
    /// It takes an address inside a function.
    #[error("it takes an address in {0}, where no function begins")]
    FunctionAddress(Box<str>),
    /// It takes an address in a section other than maps and data.
    #[error("it takes an address in section {0}, which holds neither maps nor data")]
    Section(Box<str>),
    /// It uses a data section that contains addresses.
    #[error("it uses section {0}, which holds addresses; initialise pointers in the program")]
    Addresses(Box<str>),
    /// No map begins at this offset.
    #[error("no map begins at byte {0} of section .maps")]
    NoMap(u64),
    /// It names a map by a number that the object does not have.
    #[error("it names map {0} by number, and the object has no such map; compile it with clang")]
    NoMapNumber(u32),
    /// The address is beyond the section's end.
    #[error("byte {offset} lies beyond section {section}")]
    Beyond {
        /// The section.
        section: Box<str>,
        /// The offset.
        offset: u64,
    },
    /// The map is invalid.
    #[error(transparent)]
    Map(#[from] MapError),
    /// No callable function begins there.
    #[error("no function begins where it calls")]
    NoFunction,
    /// Unknown kind of relocation.
    #[error("relocations of type {0} are not known; compile with clang")]
    Relocation(u32),
    /// The relocation does not fit the instruction.
    #[error("a relocation does not fit this instruction")]
    Misplaced,
}
