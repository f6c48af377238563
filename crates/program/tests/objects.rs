//! Objects compiled by clang, loaded and run. `objects/build.sh` builds them from the sources beside them.

use crate::harness::Bench;
use longwire_program::map::Refusal;
use longwire_program::{
    ExitKind, Helper, Maps, OWN_BASE, Object, ObjectError, Program, Redirect, Rejection, Verdict, hash,
    verify,
};

const CONSTANTS: &[u8] = include_bytes!("objects/constants.o");
const COUNTER: &[u8] = include_bytes!("objects/counter.o");
const EXITS: &[u8] = include_bytes!("objects/exits.o");
const GLOBALS: &[u8] = include_bytes!("objects/globals.o");
const LEGACY: &[u8] = include_bytes!("objects/legacy.o");
const LONGWIRE: &[u8] = include_bytes!("objects/longwire.o");
const MODERN: &[u8] = include_bytes!("objects/modern.o");
const RELOCATED: &[u8] = include_bytes!("objects/relocated.o");
const REFUSED: &[u8] = include_bytes!("objects/refused.o");

fn bench(program: &Program, packet: &[u8]) -> Bench {
    Bench::new(packet, Maps::new(&program.maps, 2, 1).unwrap())
}

fn number(bytes: &[u8], place: usize) -> u64 {
    u64::from_le_bytes(bytes[place..place + 8].try_into().unwrap())
}

/// An IPv4 header in an Ethernet frame of 60 bytes.
fn frame(protocol: u8, source: u8) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[12..15].copy_from_slice(&[8, 0, 0x45]);
    frame[23] = protocol;
    frame[26..30].copy_from_slice(&[10, 0, 0, source]);
    frame
}

#[test]
fn maps_are_found_and_counted_in() {
    let object = Object::parse(COUNTER).unwrap();
    assert_eq!(object.programs().collect::<Vec<_>>(), [("count", "xdp")]);
    let names: Vec<_> = object
        .maps()
        .iter()
        .map(|m| (&*m.name, m.kind.name(), m.key_size, m.value_size, m.max_entries))
        .collect();
    assert_eq!(names[..2], [("protocols", "array", 4, 8, 256), ("sources", "hash", 4, 16, 1024)]);

    let program = object.program("count").unwrap();
    let mut bench = bench(&program, &[]);
    for (protocol, source) in [(6, 1), (17, 1), (6, 2), (6, 1)] {
        let mut frame = frame(protocol, source);
        frame.resize(60 + usize::from(source), 0);
        let mut next = self::bench(&program, &frame);
        std::mem::swap(&mut next.maps, &mut bench.maps);
        assert_eq!(next.run(&program.code).unwrap().verdict, Verdict::Pass);
        std::mem::swap(&mut next.maps, &mut bench.maps);
    }
    let short = self::bench(&program, &[0; 33]).run(&program.code).unwrap();
    assert_eq!(short.verdict, Verdict::Drop(None));

    let protocols = bench.maps.named("protocols").unwrap();
    let counts: Vec<u64> =
        [6u32, 17, 1].iter().map(|p| number(&protocols.get(&p.to_le_bytes(), 0).unwrap(), 0)).collect();
    assert_eq!(counts, [3, 1, 0]);
    let sources: Vec<_> = bench.maps.named("sources").unwrap().dump();
    let sums: Vec<_> = sources.iter().map(|(key, v)| (key[3], number(&v[0], 0), number(&v[0], 8))).collect();
    assert_eq!(sums, [(1, 3, 183), (2, 1, 62)]);
}

#[test]
fn variables_and_functions_are_found() {
    let object = Object::parse(GLOBALS).unwrap();
    let programs: Vec<_> = object.programs().collect();
    assert_eq!(programs, [("first", "xdp/first"), ("second", "xdp/second"), ("third", "xdp/second")]);
    let maps: Vec<_> = object.maps().iter().map(|m| (&*m.name, m.value_size, m.read_only)).collect();
    assert_eq!(maps, [(".rodata", 4, true), (".data", 20, false), (".bss", 32, false)]);

    let first = object.program("first").unwrap();
    let functions: Vec<_> = first.functions.iter().map(|f| &*f.name).collect();
    assert_eq!(functions, ["first", "classify", "length"]);
    // classify: 2 of more than 100 bytes, 1 of 100, else 0; verdicts are DROP, PASS, TX.
    for (length, verdict) in [(101, Verdict::Transmit), (100, Verdict::Pass), (99, Verdict::Drop(None))] {
        let mut bench = bench(&first, &vec![0; length]);
        assert_eq!(bench.run(&first.code).unwrap().verdict, verdict, "{length}");
        let data = bench.maps.named(".data").unwrap().get(&[0; 4], 0).unwrap();
        let bss = bench.maps.named(".bss").unwrap().get(&[0; 4], 0).unwrap();
        assert_eq!((number(&data, 0), number(&bss, 8)), (6, length as u64));
    }

    // `third` calls `second`, itself a program, which calls `length` by its section.
    let second = object.program("second").unwrap();
    assert_eq!(bench(&second, &[0; 60]).run(&second.code).unwrap().verdict, Verdict::Pass);
    let third = object.program("third").unwrap();
    let functions: Vec<_> = third.functions.iter().map(|f| &*f.name).collect();
    assert!(functions.contains(&"length") && functions[0] == "third", "{functions:?}");
    let mut bench = bench(&third, &[0; 61]);
    assert_eq!(bench.run(&third.code).unwrap().returned, 1);
    let bss = bench.maps.named(".bss").unwrap().get(&[0; 4], 0).unwrap();
    assert_eq!(number(&bss, 16), 5);
}

#[test]
fn constants_are_known_when_a_program_is_verified() {
    let object = Object::parse(CONSTANTS).unwrap();
    let verified = verify(object.program("counted").unwrap()).unwrap_or_else(|rejected| panic!("{rejected}"));
    // The increment far beyond is unreachable.
    assert!(verified.facts().iter().any(|fact| !fact.reached));
    let counted = verified.program();
    let mut bench = bench(counted, &[0; 60]);
    assert_eq!(bench.run(&counted.code).unwrap().verdict, Verdict::Pass);
    let counts = bench.maps.named(".bss").unwrap().get(&[0; 4], 0).unwrap();
    let counts: Vec<_> = (0..8).map(|i| number(&counts, i * 8)).collect();
    assert_eq!(counts, [2, 0, 0, 10, 0, 1, 0, 0]);

    // Numbers and arrays of them are listed with the program, signed ones as such; variables of mixed types
    // are not.
    let told = |program: &Program| {
        let constants = program.constants.iter();
        constants.map(|(name, numbers)| format!("{name} {numbers:?}")).collect::<Vec<_>>()
    };
    assert_eq!(told(counted), ["before [-2]", "beyond [0]", "chosen [5]", "steps [1, -2, 3]"]);
    let mut other = Object::parse(CONSTANTS).unwrap();
    other.set_constant("steps", &[0xffff, -3, 4]).unwrap();
    other.set_constant("chosen", &[6]).unwrap();
    let other = other.program("counted").unwrap();
    assert_eq!(told(&other), ["before [-2]", "beyond [0]", "chosen [6]", "steps [-1, -3, 4]"]);

    // They can't be changed after that.
    let constants = bench.maps.named(".rodata").unwrap();
    let before = constants.get(&[0; 4], 0).unwrap();
    assert_eq!(constants.set(&[0; 4], 0, &vec![9; before.len()], 0), Err(Refusal::Constant));
    assert_eq!(constants.get(&[0; 4], 0).unwrap(), before);

    // The control half may change what is read-only for programs.
    let rejected = verify(object.program("set").unwrap()).unwrap_err();
    assert!(matches!(rejected.fault, Rejection::Bounds { .. }), "{rejected}");
    assert!(bench.maps.named("settings").unwrap().set(&[0; 4], 0, &[7, 0, 0, 0], 0).is_ok());
}

#[test]
fn lines_are_known() {
    let program = Object::parse(COUNTER).unwrap().program("count").unwrap();
    let source = include_str!("objects/counter.c");
    let line_of = |text: &str| source.lines().position(|line| line.contains(text)).unwrap() as u32 + 1;
    assert_eq!(
        program.place(0).to_string().rsplit(", ").next().unwrap().split(':').next(),
        Some("counter.c")
    );
    let add = program.code.instructions().iter().position(|i| i.to_string().starts_with("lock")).unwrap();
    let line = program.line(add).unwrap();
    assert_eq!((&*line.file, line.line), ("counter.c", line_of("__sync_fetch_and_add")));
    let listing = program.to_string();
    assert!(listing.starts_with("count:\n; counter.c:"), "{listing}");
    assert!(listing.contains("call 1 <map_lookup_elem>"), "{listing}");
}

#[test]
fn what_compilers_add_today_runs() {
    let program = Object::parse(MODERN).unwrap().program("modern").unwrap();
    let text = program.to_string();
    for piece in ["s/=", "s%=", "(s8)", "bswap64", "*(s16 *)", "atomic_fetch_add", "cmpxchg_64", "xchg_32"] {
        assert!(text.contains(piece), "{piece} is not in\n{text}");
    }
    let mut bench = bench(&program, &[0; 60]);
    assert_eq!(bench.run(&program.code).unwrap().verdict, Verdict::Pass);
    let bss = bench.maps.named(".bss").unwrap().get(&[0; 4], 0).unwrap();
    let results: Vec<i64> = (0..8).map(|i| number(&bss, i * 8) as i64).collect();
    // The receive queue is 0x85.
    assert_eq!(results, [-4, -1, -2, 0x0807_0605_0403_0201, -123, 5, 0x0102_0304_0506_0708, 7]);
}

#[test]
fn what_cannot_be_loaded_is_named() {
    let object = Object::parse(REFUSED).unwrap();
    assert!(object.program("works").is_ok());
    assert!(object.program("ring").is_ok());
    for (name, wanted) in [
        (
            "queue",
            "program queue, instruction 1, refused.c:43: map waiting: maps of type queue (22) can't be used \
             here",
        ),
        ("relocated", "program relocated, instruction 6, refused.c:54: it needs a CO-RE relocation of flow"),
        ("kernel", "refused.c:62: it calls bpf_xdp_metadata_rx_hash, a function of the kernel"),
        ("symbol", "refused.c:68: it uses HZ, a variable of the kernel (__ksym)"),
        (
            "function",
            "refused.c:78: it calls elsewhere, an external function that this object does not define",
        ),
        ("variable", "refused.c:84: it uses shared, an external variable that this object does not define"),
        ("configured", "refused.c:90: it uses CONFIG_HZ, of the kernel's configuration (__kconfig)"),
        ("leaving", "section xdp/devmap is run where a packet leaves that was redirected through a devmap"),
        ("on_processor", "section xdp.frags/cpumap is run on the processor that a cpumap has led"),
        ("other", "program other of section tc is no XDP program; put it in SEC(\"xdp\")"),
        (
            "none",
            "there is no program none; there are works, ring, queue, relocated, kernel, symbol, function, \
             variable, configured, leaving, on_processor, other",
        ),
    ] {
        let message = object.program(name).unwrap_err().to_string();
        assert!(message.contains(wanted), "{message}");
    }
}

#[test]
fn programs_that_entries_name_belong_to_the_one_that_redirects() {
    let mut object = Object::parse(EXITS).unwrap();
    assert!(object.program("redirect").unwrap().exits.is_empty());
    object.set_exits(&["stamp", "onward", "refuse"]).unwrap();
    let program = object.program("redirect").unwrap();
    let exits: Vec<_> = program.exits.iter().map(|exit| (exit.kind, &*exit.program.name)).collect();
    assert_eq!(
        exits,
        [(ExitKind::Port, "stamp"), (ExitKind::Processor, "onward"), (ExitKind::Port, "refuse")]
    );
    // Each kind of map has the programs that run at its targets, by the same numbers; values of four bytes
    // have no room.
    let of_map = |name: &str| program.maps.iter().find(|map| *map.name == *name).unwrap().exits.join(",");
    assert_eq!([of_map("ports"), of_map("processors"), of_map("plain")], ["stamp,,refuse", ",onward,", ""]);
    // Such a program alone can be inspected, but not installed.
    assert_eq!(object.any_program("stamp").unwrap().section.as_ref(), "xdp/devmap");
    let told = object.program("stamp").unwrap_err().to_string();
    assert!(
        told.ends_with("install the program that redirects, and name this one in exits (--exit)"),
        "{told}"
    );
    for (name, wanted) in [
        ("redirect", "program redirect of section xdp is none that an entry of a map names"),
        ("nobody", "there is no program nobody"),
    ] {
        let told = object.set_exits(&[name]).unwrap_err().to_string();
        assert!(told.contains(wanted), "{told}");
    }
    let told = object.set_exits(&["stamp"; 65]).unwrap_err().to_string();
    assert_eq!(told, "65 programs are named in exits; the limit is 64");
    // Naming it is an error if no entry has room for it.
    let told = Object::parse(REFUSED).unwrap().set_exits(&["leaving"]).unwrap_err().to_string();
    assert_eq!(
        told,
        "no devmap of the object can name program leaving: its values have to be of 8 bytes, struct \
         bpf_devmap_val"
    );
}

#[test]
fn relocations_of_fixed_layouts_change_nothing() {
    let program = Object::parse(RELOCATED).unwrap().program("ttl").unwrap();
    let mut frame = frame(17, 1);
    frame[22] = 64;
    assert_eq!(bench(&program, &frame).run(&program.code).unwrap().returned, 0x85_1140);
}

#[test]
fn maps_before_btf_are_refused() {
    let object = Object::parse(LEGACY).unwrap();
    let message = object.program("count").unwrap_err().to_string();
    assert!(
        message.contains("it uses map counters of section maps, which objects had before BTF"),
        "{message}"
    );
}

#[test]
fn other_files_are_no_objects() {
    let message = Object::parse(b"\x7fELF").unwrap_err().to_string();
    assert!(message.starts_with("this is no object file"), "{message}");
    let mut other = COUNTER.to_vec();
    other[18] = 62;
    assert_eq!(Object::parse(&other).unwrap_err(), ObjectError::Machine { machine: 62, kind: 1 });
}

#[test]
fn longwires_own_helpers_are_called_from_c() {
    let program = Object::parse(LONGWIRE).unwrap().program("spread").unwrap();
    let mut bench = bench(&program, &frame(6, 1));
    let ran = bench.run(&program.code).unwrap();
    let hash = hash(1, &frame(6, 1)[26..34]) as u32;
    let verdict = if hash >> 31 == 1 { Verdict::Redirect(Redirect::Link(2)) } else { Verdict::Pass };
    assert_eq!(
        (ran.verdict, ran.effects.mark, ran.effects.queue),
        (verdict, Some(hash), Some(hash as u16 % 4))
    );
    // The control half sets the limit to 59 bytes; the packet has 60.
    let mut state = bench.state.get();
    assert_eq!((number(&state, 0), state[12]), (1, 60));
    state[8] = 59;
    assert!(bench.state.set(&state));
    assert_eq!(bench.run(&program.code).unwrap().verdict, Verdict::Drop(Some(3)));
    assert_eq!(number(&bench.state.get(), 0), 2);
}

#[test]
fn the_header_has_every_helper_of_longwires_own() {
    let header = include_str!("../include/longwire.h");
    let own = Helper::ALL.iter().filter(|helper| helper.number() >= OWN_BASE);
    for helper in own {
        let (name, number) = (helper.name(), helper.number());
        let line = header.lines().find(|line| line.contains(&format!("(*const {name})(")));
        assert!(line.is_some_and(|line| line.ends_with(&format!("= (void *){number:#x};"))), "{name}");
    }
}

/// The book's first program, compiled with the book's command.
#[test]
fn the_book_says_how_to_compile() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/book/programs.md")).unwrap();
    let (source, after) =
        page.split_once("## Writing one").unwrap().1.split_once("```\n\nCompile it").unwrap();
    let (line, _) = after.split_once("```sh\n").unwrap().1.split_once("```").unwrap();
    assert!(
        line.contains("-I /usr/include/$(uname -m)-linux-gnu"),
        "Debian's <asm/types.h> is there: {line}"
    );
    let clang = ["clang", "clang-14", "clang-19"].into_iter().find(|name| {
        std::process::Command::new(name).arg("--version").output().is_ok_and(|done| done.status.success())
    });
    let Some(clang) = clang else {
        return println!("skipped the_book_says_how_to_compile: there is no clang");
    };
    let folder = std::env::temp_dir().join(format!("longwire-compile-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| folder.join(name).display().to_string();
    std::fs::write(file("count.c"), source.split_once("```c\n").unwrap().1).unwrap();
    let line = line.replacen("clang", clang, 1);
    let line = line.replace("count.c", &file("count.c")).replace("count.o", &file("count.o"));
    let compiled = std::process::Command::new("sh").args(["-c", &line]).current_dir(&root).output().unwrap();
    assert!(compiled.status.success(), "{line}: {}", String::from_utf8_lossy(&compiled.stderr));
    let object = std::fs::read(file("count.o")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    verify(Object::parse(&object).unwrap().program("count").unwrap()).unwrap();
}
