//! Memory usage by the system's accounting.

/// Resident memory of this process in bytes.
pub fn resident_bytes() -> f64 {
    field("/proc/self/status", "VmRSS:") as f64
}

/// Memory available to programs without swapping, in bytes.
pub fn available_bytes() -> u64 {
    field("/proc/meminfo", "MemAvailable:")
}

/// A field in KiB of a file in `/proc`, as bytes; 0 if missing.
fn field(file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB"));
    value.and_then(|kib| kib.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_what_is_used_and_free() {
        assert!(resident_bytes() > 0.0 && available_bytes() > 0);
        assert_eq!(field("/proc/none", "x"), 0);
    }
}
