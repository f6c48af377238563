//! Opens interfaces in other network namespaces.

use super::OpenError;
use crate::system::checked;
use longwire_drivers::Netns;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Moves the calling thread into a namespace permanently. Interfaces opened there belong to it, whatever
/// thread uses them later.
///
/// # Errors
/// There is no such namespace, or entering it is not permitted.
pub fn enter(netns: &Netns) -> Result<(), OpenError> {
    let Some(path) = netns.path() else { return Ok(()) };
    let failed = |source| OpenError::Namespace { namespace: netns.to_string(), source };
    // The path may be a pipe: don't wait for its other end.
    let namespace = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(failed)?;
    move_into(namespace.as_fd()).map_err(failed)
}

/// Runs `work` on a new thread in a namespace, and waits for it.
///
/// # Errors
/// As [`enter`].
pub fn visit<T: Send>(netns: &Netns, work: impl FnOnce() -> T + Send) -> Result<T, OpenError> {
    if *netns == Netns::Own {
        return Ok(work());
    }
    on_a_thread(|| enter(netns).map(|()| work()))
}

/// Runs `work` in the namespace of a descriptor, as [`visit`].
pub(crate) fn visit_open<T: Send>(
    namespace: BorrowedFd<'_>,
    work: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    on_a_thread(|| move_into(namespace).map(|()| work()))
}

/// Namespaces belong to threads: a new thread enters it and ends.
fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

fn move_into(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: setns takes no pointers and only changes the calling thread; the kernel checks the descriptor.
    checked(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn a_namespace_that_is_not_there_is_named() {
        let named = Netns::Named("longwire-nobody-made-this".into());
        let error = visit(&named, || ()).unwrap_err().to_string();
        assert!(error.contains("\"longwire-nobody-made-this\"") && error.contains("ip netns"), "{error}");
        assert!(visit(&Netns::Process(u32::MAX), || ()).is_err());
        let file = Netns::At(PathBuf::from("/dev/null"));
        assert!(visit(&file, || ()).is_err(), "no namespace");
    }

    #[test]
    fn the_own_namespace_needs_no_rights() {
        assert_eq!(visit(&Netns::Own, || 7).ok(), Some(7));
    }
}
