//! Tables of listening sockets (proc_net_tcp(5)).

use std::fs;
use std::path::Path;

/// The tables of the calling thread's network.
pub const OWN_TABLES: &str = "/proc/thread-self/net";
/// Tables, and the state of listening sockets; for UDP, that of an unconnected socket.
const TABLES: [(&str, &str); 4] = [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")];

/// The lines of the listening sockets in the network whose tables are in `folder`.
pub fn listening(folder: &Path) -> Vec<String> {
    let of = |(table, state): (&str, &str)| {
        // A system without IPv6 has no tables for it.
        let text = fs::read_to_string(folder.join(table)).unwrap_or_default();
        let listens = text.lines().filter(|line| is_in(line, state));
        listens.map(str::to_owned).collect::<Vec<_>>()
    };
    TABLES.into_iter().flat_map(of).collect()
}

/// Whether a line's socket is in this state.
fn is_in(line: &str, state: &str) -> bool {
    line.split_whitespace().nth(3) == Some(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_state() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1";
        assert!(is_in(line, "0A") && !is_in(line, "01"));
        assert!(!is_in("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt", "0A"));
    }
}
