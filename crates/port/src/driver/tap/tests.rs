use super::*;
use crate::driver::af_packet::{AfPacket, AfPacketOptions};
use longwire_clock::monotonic;
use longwire_packet::BATCH;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);
const NAME: &str = "t0";

/// Runs `test` in its own network namespace, which ends with its thread.
fn in_namespace(test: fn()) {
    let thread = std::thread::spawn(move || {
        // SAFETY: unshare takes no pointers; it changes this thread only.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            return println!(
                "skipped: no network namespace of its own to be had: {}",
                io::Error::last_os_error()
            );
        }
        std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap();
        test();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn tap() -> Tap {
    Tap::create("tap", NAME, &TapOptions { up: true, ..TapOptions::default() }).unwrap()
}

fn host() -> AfPacket {
    AfPacket::open("host", NAME, &AfPacketOptions { slots: Some(512), ..Default::default() }).unwrap()
}

/// A frame with an EtherType for experiments, `seed` behind it.
fn frame(len: usize, seed: u8) -> Vec<u8> {
    let mut bytes = vec![seed; len];
    bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]);
    bytes
}

/// A batch of frames of several lengths, some in one piece and some in two.
fn batch(pool: &mut Pool) -> (Batch, Vec<Vec<u8>>) {
    let frames: Vec<_> = (0..BATCH).map(|at| frame(14 + at * 23, at as u8)).collect();
    let mut batch = Batch::new();
    frames.iter().for_each(|frame| batch.push(pool.insert(frame).unwrap()));
    (batch, frames)
}

/// Receives `count` frames.
fn receive(port: &mut dyn Port, pool: &mut Pool, count: usize) -> Vec<Vec<u8>> {
    let (start, mut frames) = (Instant::now(), Vec::new());
    while frames.len() < count {
        assert!(start.elapsed() < PATIENCE, "{} of {count} frames came", frames.len());
        let mut batch = Batch::new();
        port.receive(pool, Nanos(monotonic().0), &mut batch).unwrap();
        for &handle in batch.as_slice() {
            frames.push(pool.data(handle).to_vec());
            pool.free(handle);
        }
    }
    frames
}

/// Makes a system call fail with EPERM in this thread from now on.
fn forbid(call: libc::c_long) {
    let statement =
        |code: u32, jump_else, k| libc::sock_filter { code: code as u16, jt: 0, jf: jump_else, k };
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, call as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program and its statements are read during the call.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

/// Sends a batch, all of which arrives in order.
fn crosses(tap: &mut Tap, pool: &mut Pool) {
    let mut host = host();
    for _ in 0..3 {
        let (batch, frames) = batch(pool);
        tap.transmit(pool, &batch).unwrap();
        assert_eq!(receive(&mut host, pool, BATCH), frames);
    }
    assert_eq!(pool.live(), 0);
}

fn pool() -> Pool {
    Pool::new(16 << 20).unwrap()
}

#[test]
fn batches_cross_in_order_however_they_are_written() {
    in_namespace(|| {
        for writes in [Writes::Together, Writes::Single] {
            let options = TapOptions { up: true, writes, ..TapOptions::default() };
            let mut tap = Tap::create("tap", "lw%d", &options).unwrap();
            let interface = tap.interface_name().to_owned();
            let options = AfPacketOptions { slots: Some(512), ..Default::default() };
            let mut host = AfPacket::open("host", &interface, &options).unwrap();
            let mut pool = pool();
            for _ in 0..20 {
                let (batch, frames) = batch(&mut pool);
                tap.transmit(&mut pool, &batch).unwrap();
                assert_eq!(receive(&mut host, &mut pool, BATCH), frames);
            }
            assert_eq!((tap.stats().out_frames, pool.live()), (20 * BATCH as u64, 0));
        }
    });
}

#[test]
fn where_io_uring_is_refused_frames_are_written_one_by_one() {
    in_namespace(|| {
        forbid(libc::SYS_io_uring_setup);
        let mut tap = tap();
        let said = "single writes (no io_uring: Operation not permitted (os error 1))";
        assert!(tap.describe().ends_with(said), "{}", tap.describe());
        crosses(&mut tap, &mut pool());
    });
}

#[test]
fn a_ring_that_fails_later_is_left_and_nothing_lost() {
    in_namespace(|| {
        let mut tap = tap();
        if !tap.describe().ends_with("by io_uring") {
            return println!("skipped: {}", tap.describe());
        }
        crosses(&mut tap, &mut pool());
        forbid(libc::SYS_io_uring_enter);
        crosses(&mut tap, &mut pool());
        assert!(tap.describe().contains("no io_uring: Operation not permitted"), "{}", tap.describe());
        assert_eq!((tap.stats().out_frames, tap.stats().out_full), (6 * BATCH as u64, 0));
    });
}

#[test]
fn what_the_kernel_refuses_in_a_batch_holds_nothing_up() {
    in_namespace(|| {
        let (mut tap, mut host, mut pool) = (tap(), host(), pool());
        let (batch, mut frames) = batch(&mut pool);
        // The checksum would be beyond the frame's end, which drivers reject on receipt.
        for at in [40, 20, 0] {
            pool.meta_mut(batch.as_slice()[at]).set_open_checksum(60_000, 16);
            frames.remove(at);
        }
        tap.transmit(&mut pool, &batch).unwrap();
        assert_eq!(receive(&mut host, &mut pool, BATCH - 3), frames);
        let stats = tap.stats();
        assert_eq!((stats.out_oversize, stats.out_frames, pool.live()), (3, BATCH as u64 - 3, 0));
    });
}

#[test]
fn a_batch_for_an_interface_that_is_down_or_gone_is_counted() {
    in_namespace(|| {
        let (mut tap, mut pool) = (tap(), pool());
        tap.interface().unwrap().set_up(false).unwrap();
        let (sent, _) = batch(&mut pool);
        assert!(matches!(tap.transmit(&mut pool, &sent), Err(PortError::Down { .. })));
        let deleted = std::process::Command::new("ip").args(["link", "del", NAME]).status().unwrap();
        assert!(deleted.success());
        let (sent, _) = batch(&mut pool);
        assert!(matches!(tap.transmit(&mut pool, &sent), Err(PortError::Vanished { .. })));
        let stats = tap.stats();
        assert_eq!((stats.out_down, stats.out_frames, pool.live()), (2 * BATCH as u64, 0, 0));
        // The name is free at once, whatever the ring's last use was.
        drop(tap);
        drop(self::tap());
        drop(self::tap());
    });
}
