//! Offloads of an interface: querying, turning off, and restoring.
//!
//! The kernel's feature numbers vary, but their names are stable, so features are found by name.

use super::namespace::visit;
use super::{Interface, OpenError, SUFFIX, files_named, text};
use longwire_drivers::Netns;
use longwire_rundir::{Lock, LockError, lock_directory};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// A group of offload features, as `ethtool -K` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Transmit checksums left to the device.
    TxChecksum,
    /// Receive checksums checked by the device.
    RxChecksum,
    /// TCP segmentation left to the device.
    Tso,
    /// TCP segmentation of IPv4 only.
    TsoV4,
    /// TCP segmentation of IPv6 only.
    TsoV6,
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
    /// All of them in order, with their names.
    const ALL: [(Self, &str); 11] = [
        (Self::TxChecksum, "tx"),
        (Self::RxChecksum, "rx"),
        (Self::Tso, "tso"),
        (Self::TsoV4, "tx-tcp-segmentation"),
        (Self::TsoV6, "tx-tcp6-segmentation"),
        (Self::Uso, "tx-udp-segmentation"),
        (Self::Gso, "gso"),
        (Self::Gro, "gro"),
        (Self::Lro, "lro"),
        (Self::RxVlan, "rxvlan"),
        (Self::TxVlan, "txvlan"),
    ];

    /// Its name in `ethtool -K`.
    pub const fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Whether the kernel's feature of this name (net/ethtool/common.c) is part of the group.
    fn has(self, name: &str) -> bool {
        match self {
            Self::TxChecksum => name.starts_with("tx-checksum-"),
            Self::RxChecksum => name == "rx-checksum",
            Self::Tso => name.starts_with("tx-tcp") && name.ends_with("-segmentation"),
            Self::TsoV4 | Self::TsoV6 | Self::Uso => name == self.name(),
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
        Ok(Features(Feature::ALL.iter().map(|&(f, _)| u16::from(table.any_on(f)) << f as u16).sum()))
    }
}

/// Offloads that were turned off, restored when this is dropped.
///
/// What is turned off is recorded first, so that the next process restores it after a kill
/// ([`clear_leftovers`](super::clear_leftovers)).
#[derive(Debug)]
pub struct OffloadGuard {
    interface: Interface,
    /// For each word of the kernel's feature bits: those that were turned off here.
    turned_off: Vec<u32>,
    /// The record, if anything was turned off. It goes with the guard.
    record: Option<Lock>,
}

impl OffloadGuard {
    /// Turns `features` off on `interface`; those already off are not changed at the end either.
    ///
    /// # Errors
    /// One can't be turned off: changes are undone, and the error names the fix.
    pub fn turn_off(interface: &Interface, features: &[Feature]) -> Result<Self, OpenError> {
        let failed = |error| OpenError::from_io(interface.name(), "change its offloads", error);
        let before = Table::read(interface)?;
        let turned_off = before.mask_of_active(features);
        let mut guard = Self { interface: interface.clone(), turned_off, record: None };
        if guard.is_idle() {
            return Ok(guard);
        }
        let record = lock_directory().and_then(|folder| record(&folder, interface, &guard.turned_off));
        guard.record = Some(record.map_err(failed)?);
        set(interface, &guard.turned_off, false).map_err(failed)?;
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
}

impl Drop for OffloadGuard {
    fn drop(&mut self) {
        if !self.is_idle() {
            // The interface may be gone, and its settings with it.
            let _ = set(&self.interface, &self.turned_off, true);
        }
    }
}

/// Turns features on or off, given as words of the kernel's feature bits.
fn set(interface: &Interface, mask: &[u32], on: bool) -> io::Result<()> {
    const SFEATURES: u32 = 0x3b;
    let mut words = vec![SFEATURES, mask.len() as u32];
    words.extend(mask.iter().flat_map(|&mask| [mask, if on { mask } else { 0 }]));
    interface.ethtool(&mut words)
}

/// Records of offloads: `offloads-NAMESPACE-INDEX-PROCESS-NUMBER.lock`, with the interface's name and the
/// words of its features.
const PREFIX: &str = "offloads-";

/// Records that these features of an interface are turned off by this process.
fn record(directory: &Path, interface: &Interface, mask: &[u32]) -> io::Result<Lock> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let (namespace, index) = (interface.namespace()?, interface.index());
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("{PREFIX}{namespace}-{index}-{}-{number}{SUFFIX}", process::id());
    let taken = Lock::take(&directory.join(name)).map_err(|error| match error {
        LockError::Io { source, .. } => source,
        other => io::Error::other(other),
    });
    let mut lock =
        taken?.ok_or_else(|| io::Error::other("the record of its offloads is another process's"))?;
    let words: Vec<String> = mask.iter().map(u32::to_string).collect();
    lock.write(&format!("{} {}\n", interface.name(), words.join(" ")))?;
    Ok(lock)
}

/// Turns on again what killed processes have turned off. A record that can't be followed is kept.
pub(super) fn restore_left(directory: &Path) {
    for path in files_named(directory, PREFIX) {
        let Some(mut lock) = Lock::left(&path) else { continue };
        if restored(&path, &lock.text().unwrap_or_default()).is_err() {
            lock.keep();
        }
    }
}

/// Follows a record: its name and its text. Nothing is to be done if the interface is gone.
fn restored(path: &Path, text: &str) -> io::Result<()> {
    let mut numbers = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().split('-').skip(1);
    let mut number = || numbers.next()?.parse::<u64>().ok();
    let (Some(namespace), Some(index)) = (number(), number()) else { return Ok(()) };
    let mut words = text.split_whitespace();
    let Some(name) = words.next() else { return Ok(()) };
    let Some(mask) = words.map(|word| word.parse().ok()).collect::<Option<Vec<u32>>>() else { return Ok(()) };
    let Some(netns) = namespace_numbered(namespace) else { return Ok(()) };
    let turned_on = visit(&netns, || match Interface::open(name) {
        Ok(found) if u64::from(found.index()) == index => set(&found, &mask, true),
        _ => Ok(()),
    });
    turned_on.map_err(io::Error::other)?
}

/// The network namespace with this number, if it is this thread's, or has a name or a process.
fn namespace_numbered(number: u64) -> Option<Netns> {
    let is_it = |path: &Path| fs::metadata(path).is_ok_and(|found| found.ino() == number);
    if is_it(Path::new("/proc/thread-self/ns/net")) {
        return Some(Netns::Own);
    }
    let entries =
        |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let of_processes = entries("/proc").map(|process| process.join("ns/net"));
    entries("/run/netns").chain(of_processes).find(|path| is_it(path)).map(Netns::At)
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

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_rundir::own_uid;
    use std::process::Command;

    fn ip(arguments: &str) {
        assert!(Command::new("ip").args(arguments.split(' ')).status().unwrap().success(), "ip {arguments}");
    }

    #[test]
    fn features_are_listed_in_order() {
        assert!(Feature::ALL.iter().enumerate().all(|(at, (feature, _))| *feature as usize == at));
        assert_eq!((Feature::TxChecksum.name(), Feature::TxVlan.name()), ("tx", "txvlan"));
    }

    #[test]
    fn what_a_killed_process_turned_off_is_restored() {
        if own_uid() != 0 {
            return println!("skipped: network namespaces need root");
        }
        let name = format!("lw-offload-{}", process::id());
        let folder = std::env::temp_dir().join(&name);
        longwire_rundir::prepare(&folder).unwrap();
        ip(&format!("netns add {name}"));
        ip(&format!("-n {name} link add left type veth peer name right"));
        let netns = Netns::Named(name.clone());
        let left = visit(&netns, || Interface::open("left").unwrap()).unwrap();
        let is_on = || left.features().unwrap().is_on(Feature::Tso);
        let mask = Table::read(&left).unwrap().mask_of_active(&[Feature::Tso]);
        let held = record(&folder, &left, &mask).unwrap();
        set(&left, &mask, false).unwrap();
        restore_left(&folder);
        assert!(!is_on(), "it is in use");
        held.keep();
        restore_left(&folder);
        assert!(is_on());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        // Of an interface that is gone nothing is left either.
        record(&folder, &left, &mask).unwrap().keep();
        ip(&format!("netns del {name}"));
        drop(left);
        restore_left(&folder);
        fs::remove_dir(folder).unwrap();
    }
}
