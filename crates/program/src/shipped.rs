//! Forwarders that ship with Longwire: objects built from `forwarders/*.c`, so that no compiler is needed to
//! use them.

/// A forwarder that ships with Longwire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShippedForwarder {
    /// Its name in scenarios: `syn-monitor`.
    pub name: &'static str,
    /// The function in its object.
    pub function: &'static str,
    /// Its object.
    pub object: &'static [u8],
}

macro_rules! shipped {
    ($($name:literal $function:literal)+) => {
        impl ShippedForwarder {
            /// All of them, by name.
            pub const ALL: &'static [Self] = &[
                $(Self {
                    name: $name,
                    function: $function,
                    object: include_bytes!(concat!("../../../forwarders/objects/", $function, ".o")),
                }),+
            ];
        }
    };
}

shipped! {
    "ack-monitor" "ack_monitor"
    "balancer" "balancer"
    "detector" "detector"
    "dscp-marker" "dscp_marker"
    "heavy-hitters" "heavy_hitters"
    "minimal-ip" "minimal_ip"
    "nat44" "nat44"
    "performance-monitor" "performance_monitor"
    "policer" "policer"
    "port-filter" "port_filter"
    "rebind" "rebind"
    "syn-filter" "syn_filter"
    "syn-monitor" "syn_monitor"
    "syn-targets" "syn_targets"
    "tcp-splicer" "tcp_splicer"
    "tcp-splicer-scaled" "tcp_splicer_scaled"
    "tcp-splicer6" "tcp_splicer6"
    "wavelet" "wavelet"
}

impl ShippedForwarder {
    /// The forwarder of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|shipped| shipped.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Object;

    #[test]
    fn each_holds_the_function_that_it_names() {
        for shipped in ShippedForwarder::ALL {
            let object = Object::parse(shipped.object).unwrap();
            assert_eq!(&*object.program(shipped.function).unwrap().name, shipped.function);
            assert_eq!(shipped.name, shipped.function.replace('_', "-"));
            assert_eq!(ShippedForwarder::named(shipped.name), Some(shipped));
        }
        assert!(ShippedForwarder::ALL.is_sorted_by_key(|shipped| shipped.name));
        assert_eq!(ShippedForwarder::named("firewall"), None);
    }
}
