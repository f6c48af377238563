//! Takes TCP connections out of the kernel, so that others can continue them: pending data, sequence numbers,
//! and a silent end.
//!
//! A socket in repair mode (tcp(7), `TCP_REPAIR`) reports its sequence numbers, sends no data, and is closed
//! without a segment.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use rustix::io::ioctl_fionread;
use rustix::ioctl::{Getter, Opcode, ioctl};
use serde::{Deserialize, Serialize};

use crate::state::{LabLock, OwnerProcess, folder_of, read_saved, write_whole};
use crate::{Host, LabError, Result, socket_option};

/// Numbers of linux/tcp.h and linux/sockios.h that are not among libc's on every platform.
const TCP_REPAIR: libc::c_int = 19;
const TCP_REPAIR_QUEUE: libc::c_int = 20;
const TCP_QUEUE_SEQ: libc::c_int = 21;
const RECEIVE_QUEUE: libc::c_int = 1;
const SEND_QUEUE: libc::c_int = 2;
const REPAIR_ON: libc::c_int = 1;
/// Without a window probe, which would be a segment.
const REPAIR_OFF: libc::c_int = -1;
const UNACKNOWLEDGED: Opcode = libc::TIOCOUTQ as Opcode;
/// The state of `struct tcp_info` in which both ends may send.
const ESTABLISHED: u8 = 1;

/// Sequence numbers of this side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceNumbers {
    /// The sequence number of the next byte that it would send.
    pub send: u32,
    /// The sequence number of the next byte that it expects.
    pub receive: u32,
}

/// Pending bytes of a connection, which prevent others from continuing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingBytes {
    /// Received and not read.
    pub unread: u32,
    /// Written and not acknowledged.
    pub unacknowledged: u32,
}

impl PendingBytes {
    /// Nothing is pending.
    pub const NONE: Self = Self { unread: 0, unacknowledged: 0 };
}

/// Pending data of a connection.
///
/// # Errors
/// If the kernel refuses.
pub fn pending(socket: &TcpStream) -> io::Result<PendingBytes> {
    // SIOCINQ and SIOCOUTQ have these numbers, too (linux/sockios.h).
    let unread = ioctl_fionread(socket)? as u32;
    // SAFETY: the kernel writes one int.
    let unacknowledged = unsafe { ioctl(socket, Getter::<UNACKNOWLEDGED, libc::c_int>::new()) }?;
    Ok(PendingBytes { unread, unacknowledged: unacknowledged.unsigned_abs() })
}

/// Window scale shifts of a connection (RFC 7323, section 2); 0 if windows are not scaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowScales {
    /// The shift of the other end's windows.
    pub send: u8,
    /// The shift of this end's windows.
    pub receive: u8,
}

/// The window scales of a connection that others can continue; none if they can't because it is not
/// established, or uses options in later segments (timestamps, SACK, ECN).
///
/// # Errors
/// If the kernel refuses.
pub fn plain(socket: &TcpStream) -> io::Result<Option<WindowScales>> {
    /// The window scale option (linux/tcp.h, `TCPI_OPT_WSCALE`).
    const SCALED: u8 = 4;
    // `struct tcp_info` begins with the state; the options are its sixth byte, the scales the next, in two
    // bit fields (linux/tcp.h).
    let mut words = [0; 2];
    socket_option::read(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut words)?;
    let [first, second] = words.map(u32::to_ne_bytes);
    let info = [first, second].concat();
    let halves = [info[6] & 15, info[6] >> 4];
    let [send, receive] = if cfg!(target_endian = "little") { halves } else { [halves[1], halves[0]] };
    Ok((info[0] == ESTABLISHED && info[5] & !SCALED == 0).then_some(WindowScales { send, receive }))
}

/// Puts a connection into repair mode, and returns its sequence numbers. From now on it sends no data, and
/// ends silently when it is dropped. Needs CAP_NET_ADMIN in its network namespace.
///
/// # Errors
/// If the kernel refuses.
pub fn freeze(socket: &TcpStream) -> io::Result<SequenceNumbers> {
    set(socket, TCP_REPAIR, REPAIR_ON)?;
    let number = |queue| {
        set(socket, TCP_REPAIR_QUEUE, queue)?;
        number(socket)
    };
    Ok(SequenceNumbers { send: number(SEND_QUEUE)?, receive: number(RECEIVE_QUEUE)? })
}

/// Takes a connection out of repair mode: it continues as before.
///
/// # Errors
/// If the kernel refuses.
pub fn thaw(socket: &TcpStream) -> io::Result<()> {
    set(socket, TCP_REPAIR, REPAIR_OFF)
}

/// TCP settings in a host's namespace, restored when the last user is dropped.
///
/// The users, which are processes, and the settings before the first are kept in the lab's state. A killed
/// user no longer counts, but restores nothing: the next one does.
#[derive(Debug)]
pub struct PlainTcp<'l> {
    instance: &'l str,
    host: &'l Host,
    user: OwnerProcess,
}

/// The saved state of a host.
#[derive(Debug, Default, Serialize, Deserialize)]
struct SavedHost {
    before: BTreeMap<String, String>,
    users: Vec<OwnerProcess>,
}

/// The saved state of a lab's hosts, by their names.
type SavedHosts = BTreeMap<String, SavedHost>;

/// The settings, which must be off for connections that others continue.
const SETTINGS: [&str; 3] = ["tcp_timestamps", "tcp_sack", "tcp_ecn"];
const OFF: &str = "0";
const KEPT: &str = "plain-tcp.json";

impl<'l> PlainTcp<'l> {
    /// Turns off timestamps, SACK and ECN for new connections in this host's namespace.
    ///
    /// # Errors
    /// If the settings or the lab's state can't be read or written.
    pub fn begin(instance: &'l str, host: &'l Host) -> Result<Self> {
        let own = Self { instance, host, user: OwnerProcess::this_process()? };
        own.change(&LabLock::acquire()?, |kept| {
            kept.users.retain(|user| !user.is_dead());
            for setting in SETTINGS {
                let now = read(setting)?;
                // Off without a user: it may be a leftover.
                if kept.users.is_empty() && now != OFF {
                    kept.before.insert(setting.to_owned(), now);
                } else {
                    kept.before.entry(setting.to_owned()).or_insert(now);
                }
            }
            kept.users.push(own.user.clone());
            Ok(())
        })?;
        // After they are recorded: a process killed in between has made no unrecorded change.
        own.host.run(|| SETTINGS.iter().try_for_each(|setting| write(setting, OFF)))?.map_err(doing())?;
        Ok(own)
    }

    /// Changes the host's saved state, in its namespace, one process at a time.
    fn change(
        &self,
        _guard: &LabLock,
        act: impl FnOnce(&mut SavedHost) -> io::Result<()> + Send,
    ) -> Result<()> {
        let path = folder_of(self.instance).join(KEPT);
        let mut all: SavedHosts = read_saved(&path, doing())?;
        let kept = all.entry(self.host.name().to_owned()).or_default();
        self.host.run(|| act(kept))?.map_err(doing())?;
        all.retain(|_, kept| !kept.users.is_empty());
        let text = serde_json::to_vec_pretty(&all).map_err(|e| doing()(e.into()))?;
        write_whole(&path, &text).map_err(doing())
    }
}

impl Drop for PlainTcp<'_> {
    fn drop(&mut self) {
        let Ok(guard) = LabLock::acquire_to_remove() else { return };
        // The lab may be gone, and its settings with it.
        let _ = self.change(&guard, |kept| {
            if let Some(own) = kept.users.iter().position(|user| *user == self.user) {
                kept.users.remove(own);
            }
            kept.users.retain(|user| !user.is_dead());
            if !kept.users.is_empty() {
                return Ok(());
            }
            kept.before.iter().try_for_each(|(setting, value)| write(setting, value))
        });
    }
}

fn doing() -> impl FnOnce(io::Error) -> LabError {
    LabError::system("setting how TCP connections begin")
}

fn path_of(setting: &str) -> PathBuf {
    Path::new("/proc/sys/net/ipv4").join(setting)
}

/// A setting of the calling thread's namespace.
fn read(setting: &str) -> io::Result<String> {
    Ok(fs::read_to_string(path_of(setting))?.trim().to_owned())
}

fn write(setting: &str, value: &str) -> io::Result<()> {
    fs::write(path_of(setting), value)
}

fn set(socket: &TcpStream, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    socket_option::set(socket, libc::IPPROTO_TCP, option, value)
}

fn number(socket: &TcpStream) -> io::Result<u32> {
    let mut number = [0];
    socket_option::read(socket, libc::IPPROTO_TCP, TCP_QUEUE_SEQ, &mut number)?;
    Ok(number[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn what_is_pending_is_told() {
        let (mut near, mut far) = pair();
        assert_eq!(pending(&near).unwrap(), PendingBytes::NONE);
        near.write_all(b"seven b").unwrap();
        // Peeking waits until they are there.
        far.peek(&mut [0; 7]).unwrap();
        assert_eq!(pending(&far).unwrap().unread, 7);
        far.read_exact(&mut [0; 7]).unwrap();
        assert_eq!(pending(&far).unwrap(), PendingBytes::NONE);
        // With the machine's unchanged settings, they have at least SACK.
        assert_eq!(plain(&far).unwrap(), None);
    }

    #[test]
    fn numbers_of_both_ends_agree() {
        let (mut near, mut far) = pair();
        let there = match freeze(&near) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return println!("skipped: {e}"),
            frozen => frozen.unwrap(),
        };
        let back = freeze(&far).unwrap();
        assert_eq!((there.send, there.receive), (back.receive, back.send));
        thaw(&near).unwrap();
        thaw(&far).unwrap();
        near.write_all(&[1; 10]).unwrap();
        far.read_exact(&mut [0; 10]).unwrap();
        assert_eq!(freeze(&far).unwrap().receive, back.receive.wrapping_add(10));
        // Closed in repair mode: the other end does not notice.
        drop(far);
        near.set_nonblocking(true).unwrap();
        assert_eq!(near.read(&mut [0; 1]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
