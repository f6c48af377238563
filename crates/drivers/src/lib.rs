//! Declarations of port drivers: word in a scenario, settings, far side, and cost.
//!
//! A driver has a file here, with a row in [`DRIVERS`], and one in `longwire-port` that opens it. Scenario
//! keys, schema, the reference page, prices and the choice of test hosts' drivers are made from the rows.
#![forbid(unsafe_code)]

pub mod af_packet;
pub mod af_xdp;
mod driver;
mod host_driver;
mod interface;
pub mod memory;
pub mod pcap;
pub mod source;
pub mod tap;
pub mod tunnel;

/// The template of `cargo xtask new driver`, compiled as a declaration.
#[cfg(test)]
#[path = "../../../xtask/templates/driver.rs"]
pub mod template;

pub use driver::{Backend, Driver, Prices, Wire};
pub use host_driver::HostDriver;
pub use interface::{InterfaceName, Netns};

/// Every driver, in the order in which errors name them.
pub const DRIVERS: &[&Driver] = &[
    &af_packet::DRIVER,
    &af_xdp::DRIVER,
    &tap::DRIVER,
    &tunnel::DRIVER,
    &pcap::DRIVER,
    &memory::DRIVER,
    &source::DRIVER,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_words_and_each_has_one_driver() {
        for (at, driver) in DRIVERS.iter().enumerate() {
            let word = driver.word();
            assert!(!word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{word}");
            assert_eq!(
                DRIVERS.iter().position(|other| other.word() == word),
                Some(at),
                "{word} occurs twice"
            );
            assert_eq!(driver.spec.key, "port");
        }
    }

    /// Advice, prices and hosts name other drivers by their words.
    #[test]
    fn drivers_that_are_named_exist() {
        let known = |word: &str| DRIVERS.iter().find(|driver| driver.word() == word);
        for driver in DRIVERS {
            if let Prices::Of(other) = driver.prices {
                assert!(known(other).is_some_and(|other| matches!(other.prices, Prices::Own(_))), "{other}");
            }
            if let Prices::Own(rows) = driver.prices {
                let names = ["receive", "receive-byte", "transmit", "transmit-byte"];
                assert_eq!(rows.map(|(name, _)| name), names.map(|name| format!("{}-{name}", driver.word())));
            }
            assert!(driver.lighter.is_none_or(|other| known(other).is_some()));
            assert!(driver.host.is_none() || driver.backend == Backend::Interface);
        }
    }

    #[test]
    fn what_has_an_interface_has_its_settings() {
        for driver in DRIVERS.iter().chain([&&template::DRIVER]) {
            let has = |name| driver.spec.params.iter().any(|param| param.name == name);
            assert_eq!(has("interface"), driver.backend == Backend::Interface, "{}", driver.word());
        }
    }
}
