//! Offloads of an interface: querying, turning off, and restoring.
//!
//! The kernel's feature numbers vary, but their names are stable, so features are found by name.

use super::{Interface, OpenError, text};
use std::io;

/// A group of offload features, as `ethtool -K` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Transmit checksums left to the device.
    TxChecksum,
    /// Receive checksums checked by the device.
    RxChecksum,
    /// TCP segmentation left to the device.
    Tso,
    /// UDP segmentation left to the device.
    Uso,
    /// Segmentation deferred until just before the device.
    Gso,
    /// Segments merged on receipt, which segmentation exactly undoes.
    Gro,
    /// Segments merged on receipt by the device, without their boundaries.
    Lro,
    /// VLAN tags removed by the device on receipt.
    RxVlan,
    /// VLAN tags inserted by the device.
    TxVlan,
}

impl Feature {
    const ALL: [Self; 9] = [
        Self::TxChecksum,
        Self::RxChecksum,
        Self::Tso,
        Self::Uso,
        Self::Gso,
        Self::Gro,
        Self::Lro,
        Self::RxVlan,
        Self::TxVlan,
    ];

    /// Its name in `ethtool -K`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TxChecksum => "tx",
            Self::RxChecksum => "rx",
            Self::Tso => "tso",
            Self::Uso => "tx-udp-segmentation",
            Self::Gso => "gso",
            Self::Gro => "gro",
            Self::Lro => "lro",
            Self::RxVlan => "rxvlan",
            Self::TxVlan => "txvlan",
        }
    }

    /// Whether the kernel's feature of this name (net/ethtool/common.c) is part of the group.
    fn has(self, name: &str) -> bool {
        match self {
            Self::TxChecksum => name.starts_with("tx-checksum-"),
            Self::RxChecksum => name == "rx-checksum",
            Self::Tso => name.starts_with("tx-tcp") && name.ends_with("-segmentation"),
            Self::Uso => name == "tx-udp-segmentation",
            Self::Gso => name == "tx-generic-segmentation",
            Self::Gro => name.starts_with("rx-gro") || name == "rx-udp-gro-forwarding",
            Self::Lro => name == "rx-lro",
            Self::RxVlan => name == "rx-vlan-hw-parse",
            Self::TxVlan => name == "tx-vlan-hw-insert",
        }
    }
}

/// The groups of features that are on: a group is on if any of its features is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features(u16);

impl Features {
    /// Whether `feature` is on.
    pub const fn is_on(self, feature: Feature) -> bool {
        self.0 & (1 << feature as u16) != 0
    }
}

impl Interface {
    /// Reads which offloads are on.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn features(&self) -> Result<Features, OpenError> {
        let table = Table::read(self)?;
        Ok(Features(Feature::ALL.iter().map(|&f| u16::from(table.any_on(f)) << f as u16).sum()))
    }
}

/// Offloads that were turned off, restored when this is dropped.
///
/// A killed process restores nothing; settings in a namespace vanish with it.
#[derive(Debug)]
pub struct OffloadGuard {
    interface: Interface,
    /// For each word of the kernel's feature bits: those that were turned off here.
    turned_off: Vec<u32>,
}

impl OffloadGuard {
    /// Turns `features` off on `interface`; those already off are not changed at the end either.
    ///
    /// # Errors
    /// One can't be turned off: changes are undone, and the error names the fix.
    pub fn turn_off(interface: &Interface, features: &[Feature]) -> Result<Self, OpenError> {
        let before = Table::read(interface)?;
        let turned_off = before.mask_of_active(features);
        let guard = Self { interface: interface.clone(), turned_off };
        if guard.is_idle() {
            return Ok(guard);
        }
        guard.write(false).map_err(|e| OpenError::from_io(interface.name(), "change its offloads", e))?;
        let after = Table::read(interface)?;
        match features.iter().find(|&&feature| after.any_on(feature)) {
            Some(feature) => {
                Err(OpenError::Offload { name: interface.name().into(), feature: feature.name() })
            }
            None => Ok(guard),
        }
    }

    /// Whether there was nothing to turn off.
    pub fn is_idle(&self) -> bool {
        self.turned_off.iter().all(|&mask| mask == 0)
    }

    fn write(&self, on: bool) -> io::Result<()> {
        const SFEATURES: u32 = 0x3b;
        let mut words = vec![SFEATURES, self.turned_off.len() as u32];
        words.extend(self.turned_off.iter().flat_map(|&mask| [mask, if on { mask } else { 0 }]));
        self.interface.ethtool(&mut words)
    }
}

impl Drop for OffloadGuard {
    fn drop(&mut self) {
        if !self.is_idle() {
            // The interface may be gone, and its settings with it.
            let _ = self.write(true);
        }
    }
}

/// The kernel's features of one interface.
struct Table {
    names: Vec<String>,
    active: Vec<u32>,
}

impl Table {
    fn read(interface: &Interface) -> Result<Self, OpenError> {
        Self::ask(interface).map_err(|e| OpenError::from_io(interface.name(), "read its offloads", e))
    }

    fn ask(interface: &Interface) -> io::Result<Self> {
        const GSTRINGS: u32 = 0x1b;
        const GSSET_INFO: u32 = 0x37;
        const GFEATURES: u32 = 0x3a;
        const FEATURE_NAMES: u32 = 4;
        const NAME_BYTES: usize = 32;
        // struct ethtool_sset_info: command, reserved, 64-bit mask of sets, then one count per set.
        let mut info = [GSSET_INFO, 0, 0, 0, 0];
        let mask = (1u64 << FEATURE_NAMES).to_ne_bytes();
        info[2] = u32::from_ne_bytes([mask[0], mask[1], mask[2], mask[3]]);
        info[3] = u32::from_ne_bytes([mask[4], mask[5], mask[6], mask[7]]);
        interface.ethtool(&mut info)?;
        let count = info[4] as usize;
        // struct ethtool_gstrings: command, set, count, then the texts.
        let mut strings = vec![0u32; 3 + count * NAME_BYTES / 4];
        (strings[0], strings[1], strings[2]) = (GSTRINGS, FEATURE_NAMES, count as u32);
        interface.ethtool(&mut strings)?;
        let bytes: Vec<u8> = strings[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let names = bytes.chunks_exact(NAME_BYTES).map(text).collect();
        // struct ethtool_gfeatures: command, blocks, then for each block: available, requested, active, never
        // changed.
        let blocks = count.div_ceil(32);
        let mut features = vec![0u32; 2 + blocks * 4];
        (features[0], features[1]) = (GFEATURES, blocks as u32);
        interface.ethtool(&mut features)?;
        let active = features[2..].chunks_exact(4).map(|block| block[2]).collect();
        Ok(Self { names, active })
    }

    fn any_on(&self, feature: Feature) -> bool {
        self.mask_of_active(&[feature]).iter().any(|&mask| mask != 0)
    }

    /// The bits of the active features that belong to one of `features`.
    fn mask_of_active(&self, features: &[Feature]) -> Vec<u32> {
        let mut mask = vec![0; self.active.len()];
        for (bit, name) in self.names.iter().enumerate() {
            if features.iter().any(|feature| feature.has(name)) {
                mask[bit / 32] |= self.active[bit / 32] & (1 << (bit % 32));
            }
        }
        mask
    }
}
