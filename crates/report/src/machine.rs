//! The machine that a result was measured on, from `/proc`.

use serde::{Deserialize, Serialize};
use std::fs::read_to_string;

/// A description of the machine. What `/proc` does not contain is `"unknown"` or 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Model of the first processor, as the kernel names it.
    pub cpu_model: String,
    /// Processors this process may run on.
    pub cores: usize,
    /// Memory of the machine in bytes.
    pub memory_bytes: u64,
    /// Release of the running kernel.
    pub kernel: String,
}

impl Machine {
    /// The machine this runs on.
    pub fn this() -> Self {
        let read = |path| read_to_string(path).unwrap_or_default();
        Self {
            cpu_model: cpu_model(&read("/proc/cpuinfo")).to_owned(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_bytes: memory_bytes(&read("/proc/meminfo")),
            kernel: known(read("/proc/sys/kernel/osrelease").trim()).to_owned(),
        }
    }
}

fn known(text: &str) -> &str {
    if text.is_empty() { "unknown" } else { text }
}

/// The processor's name: x86 has `model name`, POWER and RISC-V use other keys, 64-bit ARM has only numbers.
fn cpu_model(cpuinfo: &str) -> &str {
    let field = |name| {
        cpuinfo.lines().find_map(|line| Some(line.strip_prefix(name)?.trim_start().strip_prefix(':')?.trim()))
    };
    known(["model name", "cpu", "uarch", "CPU part"].into_iter().find_map(field).unwrap_or_default())
}

/// `MemTotal` is in KiB, though the kernel writes kB (proc(5)).
fn memory_bytes(meminfo: &str) -> u64 {
    let kib = meminfo.lines().find_map(|line| {
        line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    kib.unwrap_or(0).saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        assert_eq!(
            cpu_model("processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2.0GHz\n"),
            "Some CPU @ 2.0GHz"
        );
        assert_eq!(cpu_model("processor : 0\nCPU part\t: 0xd0c\n"), "0xd0c");
        assert_eq!(cpu_model(""), "unknown");
        assert_eq!(memory_bytes("MemTotal:        2048 kB\nMemFree: 1 kB\n"), 2_097_152);
        assert_eq!(memory_bytes("MemTotal: many kB\n"), 0);
    }

    #[test]
    fn this_machine_is_known() {
        let machine = Machine::this();
        assert!(machine.cores >= 1 && machine.memory_bytes > 0, "{machine:?}");
        assert_ne!(machine.kernel, "unknown");
    }
}
