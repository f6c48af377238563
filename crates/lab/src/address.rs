//! Routes and Ethernet addresses of test hosts.

use longwire_document::address::{Mac, Network};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// A route of a test host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The destination network; its host part is ignored.
    pub to: Network,
    /// The next hop; `None` if the destination is on the link itself.
    pub via: Option<IpAddr>,
}

/// The default address of the host with this index in its lab: locally administered and the same in every
/// run, so that captures can be compared.
pub const fn mac_of_place(index: u32) -> Mac {
    let [a, b, c, d] = index.to_be_bytes();
    Mac([0x02, 0x4c, a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_a_lab_have_different_addresses() {
        assert_eq!(mac_of_place(1).to_string(), "02:4c:00:00:00:01");
        assert_eq!(mac_of_place(256).to_string(), "02:4c:00:00:01:00");
    }
}
