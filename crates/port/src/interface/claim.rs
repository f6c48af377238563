//! Claims on interfaces: an interface belongs to one instance at a time.

use super::{Interface, OpenError, SUFFIX, clear_leftovers, files_named};
use longwire_rundir::{Lock, LockError, lock_directory};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// The right to use an interface, held until dropped.
///
/// It is a lock on a file in a directory of this user, which nobody else can open; with a name that everybody
/// can take, such as an abstract socket, any user could block root's interfaces. The file's name has the
/// numbers of the network namespace and the interface. It is removed with the claim; a killed process's claim
/// is free, and its file is removed with the next claim, or by [`clear_leftovers`].
#[derive(Debug)]
pub struct Claim {
    _lock: Lock,
}

/// How long a claim may be held without a user: by a process that is ending, or one that checks for leftover
/// files.
const PARTING: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(1);

impl Claim {
    /// Claims `interface`, in the namespace of which the caller must be.
    ///
    /// # Errors
    /// It is already claimed: the error names the process.
    pub fn take(interface: &Interface) -> Result<Self, OpenError> {
        let name = interface.name();
        let failed = |error| OpenError::from_io(name, "claim it", error);
        let directory = lock_directory().map_err(failed)?;
        let path = directory.join(file_name(interface.index()).map_err(failed)?);
        clear_leftovers();
        let deadline = Instant::now() + PARTING;
        loop {
            match Lock::take(&path) {
                Ok(Some(lock)) => return Ok(Self { _lock: lock }),
                Err(LockError::Io { source, .. }) => return Err(failed(source)),
                Ok(None) | Err(_) => {}
            }
            let pid = Lock::holder(&path).filter(|pid| Path::new(&format!("/proc/{pid}")).exists());
            if pid.is_some() || Instant::now() >= deadline {
                return Err(OpenError::Claimed { name: name.into(), pid });
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// The file of the claim on the interface with this index in this thread's network namespace.
fn file_name(index: u32) -> io::Result<String> {
    let namespace = fs::metadata("/proc/thread-self/ns/net")?.ino();
    Ok(format!("{PREFIX}{namespace}-{index}{SUFFIX}"))
}

const PREFIX: &str = "interface-";

/// Removes the files of claims that killed processes have left.
pub(super) fn clear_left(directory: &Path) {
    files_named(directory, PREFIX).for_each(|path| drop(Lock::left(&path)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    #[test]
    fn a_second_claim_names_the_holder_and_waits_for_its_end() {
        // Claims need no privileges, and nothing else claims the loopback.
        let lo = Interface::open("lo").unwrap();
        // A name that anybody can take must not block a claim.
        let name = format!("longwire/port/{}", lo.index());
        let _anybody = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).unwrap());
        let first = Claim::take(&lo).unwrap();
        for _ in 0..3 {
            match Claim::take(&lo) {
                Err(OpenError::Claimed { pid, .. }) => assert_eq!(pid, Some(std::process::id())),
                other => panic!("{other:?}"),
            }
        }
        drop(first);
        let left = lock_directory().unwrap().join(format!("{PREFIX}1-4294967295{SUFFIX}"));
        fs::write(&left, "1\n").unwrap();
        let second = Claim::take(&lo).unwrap();
        assert!(!left.exists(), "a killed process's claim is removed");
        let file = lock_directory().unwrap().join(file_name(lo.index()).unwrap());
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o600, "no other user can hold it");
        drop(second);
        assert!(!file.exists());
    }
}
