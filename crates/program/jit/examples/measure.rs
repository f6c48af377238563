//! Cost of compiled programs, and of compiling them: `cargo run --release -p longwire-jit --example measure`.
//!
//! Every number is the minimum of several rounds: the machine's performance without other load.

use longwire_jit::{CompiledProgram, compile};
use longwire_program::{
    Context, Effects, Environment, Instruction, Machine, Maps, Object, Packet, Program, ProgramState, Stack,
    assemble, interpret, verify,
};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: usize = 60;
const PACKETS: u32 = 50_000;

const HEADERS: &[u8] = include_bytes!("../../tests/xdp/headers.v4.o");
const FILTER: &[u8] = include_bytes!("../../tests/xdp/filter.v4.o");
const REWRITE: &[u8] = include_bytes!("../../tests/xdp/rewrite.v4.o");
const COUNTER: &[u8] = include_bytes!("../../tests/objects/counter.o");

struct Constant;

impl Environment for Constant {
    fn random(&mut self) -> u32 {
        4
    }
}

/// A TCP segment of 64 bytes.
fn frame() -> Vec<u8> {
    let mut frame = vec![0; 64];
    frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 50, 0, 1, 0, 0, 64, 6]);
    frame[26..38].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2, 4, 0, 0, 80]);
    frame
}

/// Checks for 60 bytes.
const BEGIN: &str =
    "r2 = *(u32 *)(r1 + 4)\n r1 = *(u32 *)(r1 + 0)\n r3 = r1\n r3 += 60\n r0 = 2\n if r3 > r2 goto out";

/// Checks for 60 bytes, then sums words of the packet, in this many instructions.
fn straight(instructions: usize) -> Program {
    let steps =
        ["r4 = *(u32 *)(r1 + 26)", "r0 += r4", "r5 = *(u16 *)(r1 + 36)", "r0 ^= r5", "r0 <<= 1", "r5 &= 255"];
    let end = "r0 = 2\n out: exit";
    let middle: Vec<&str> = (0..instructions - 8).map(|i| steps[i % steps.len()]).collect();
    let code = assemble(&format!("{BEGIN}\n{}\n{end}", middle.join("\n"))).unwrap();
    assert_eq!(code.len(), instructions);
    Program::new("straight", code, [])
}

/// Repeatedly compares a byte of the packet with a number, in this many instructions, all of them different.
fn branching(instructions: usize) -> Program {
    let mut text = String::from(BEGIN);
    for i in 0..(instructions - 8) / 4 {
        let place = 14 + i % 40;
        text +=
            &format!("\n r4 = *(u8 *)(r1 + {place})\n r0 += r4\n if r4 != {} goto +1\n r0 ^= {i}", i % 251);
    }
    let rest = (instructions - 8) % 4;
    text += &"\n r0 += 1".repeat(rest);
    let code = assemble(&format!("{text}\n r0 = 2\n out: exit")).unwrap();
    assert_eq!(code.len(), instructions);
    Program::new("branching", code, [])
}

fn compiled(program: &Program) -> (CompiledProgram, Arc<Maps>) {
    let maps = Arc::new(Maps::new(&program.maps, 1, 0).unwrap());
    let verified = verify(program.clone()).unwrap();
    (compile(&verified, Arc::clone(&maps)).unwrap(), maps)
}

/// The minimum time per packet over all rounds.
fn least(mut packets: impl FnMut(u32)) -> f64 {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        packets(PACKETS);
        best = best.min(start.elapsed());
    }
    best.as_nanos() as f64 / f64::from(PACKETS)
}

fn per_packet(maps: &Maps, mut run: impl FnMut(&mut Machine<'_>) -> u64) -> f64 {
    let (mut buffer, mut stack, state) = (vec![0; 256], Stack::trusting(), ProgramState::new(4096));
    buffer[64..128].copy_from_slice(&frame());
    let mut environment = Constant;
    least(|packets| {
        for _ in 0..packets {
            let mut machine = Machine {
                context: Context { ingress: 1, queue: 0, egress: 0, now: 7, worker: 0, mark: 0 },
                packet: Packet::new(black_box(&mut buffer), 64..128),
                stack: &mut stack,
                state: &state,
                maps,
                environment: &mut environment,
                effects: Effects::default(),
            };
            black_box(run(&mut machine));
        }
    })
}

fn main() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load {}", load.trim());
    let empty = Program::new("empty", assemble("r0 = 2\n exit").unwrap(), []);
    let mut programs = vec![
        ("empty".to_string(), empty),
        ("straight 60".into(), straight(60)),
        ("branching 60".into(), branching(60)),
    ];
    for (file, bytes) in
        [("headers", HEADERS), ("filter", FILTER), ("rewrite", REWRITE), ("counter", COUNTER)]
    {
        let parsed = Object::parse(bytes).unwrap();
        for (name, _) in parsed.programs() {
            programs.push((format!("{file} {name}"), parsed.program(name).unwrap()));
        }
    }
    let maps = Maps::new(&[], 1, 0).unwrap();
    let nothing = per_packet(&maps, |machine| u64::from(black_box(machine).context.ingress));
    println!("a machine made and nothing run: {nothing:.1} ns");
    for (name, program) in &programs {
        let (compiled, maps) = compiled(program);
        let time = per_packet(&maps, |machine| compiled.run(machine).unwrap());
        let slow = per_packet(&maps, |machine| interpret(&program.code, machine, 10_000).unwrap().returned);
        println!(
            "{name}: {} instructions, {} bytes of code, {:.1} ns a packet beyond that; interpreted {slow:.0} \
             ns",
            program.code.len(),
            compiled.code_size(),
            time - nothing,
        );
    }
    for program in [straight(500), branching(500)] {
        let (mut verifying, mut compiling) = (Duration::MAX, Duration::MAX);
        for _ in 0..ROUNDS {
            let (program, maps) = (program.clone(), Arc::new(Maps::new(&[], 1, 0).unwrap()));
            let start = Instant::now();
            let verified = verify(program).unwrap();
            let between = Instant::now();
            black_box(compile(&verified, maps).unwrap());
            compiling = compiling.min(between.elapsed());
            verifying = verifying.min(between - start);
        }
        println!("{} 500: verified in {verifying:.1?}, compiled in {compiling:.1?}", program.name);
    }
    let loads =
        programs[1].1.code.instructions().iter().filter(|i| matches!(i, Instruction::Load { .. })).count();
    println!("straight 60 has {loads} loads");
}
