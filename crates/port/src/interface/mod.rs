//! Properties and settings of network interfaces, through `ioctl` and netlink, without external commands.
#![allow(unsafe_code)]

mod claim;
mod counters;
mod error;
pub mod namespace;
mod offload;

pub use claim::Claim;
pub(crate) use counters::Counters;
pub use error::OpenError;
pub use offload::{Feature, Features, OffloadGuard};

use crate::system::{checked, owned};
use longwire_netlink::{Address, LinkSettings, Socket, address, link};
use longwire_rundir::lock_directory;
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How the names of lock files of interfaces end.
const SUFFIX: &str = ".lock";

/// Restores the offloads that killed processes turned off, and removes the files of their claims. What can't
/// be restored is left for the next call.
pub fn clear_leftovers() {
    // A directory that can't be used has nothing of ours.
    if let Ok(directory) = lock_directory() {
        offload::restore_left(&directory);
        claim::clear_left(&directory);
    }
}

/// The lock files whose names begin with `prefix`.
fn files_named(directory: &Path, prefix: &str) -> impl Iterator<Item = PathBuf> {
    let paths = fs::read_dir(directory).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let is_named = move |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(prefix) && name.ends_with(SUFFIX)
    };
    paths.filter(is_named)
}

/// A network interface of the namespace in which it was looked up, whatever the caller's namespace is later.
#[derive(Debug, Clone)]
pub struct Interface {
    /// A netlink socket, which also keeps its namespace alive.
    control: Arc<Socket>,
    name: String,
    index: u32,
}

impl Interface {
    /// Looks up an interface in the calling thread's network namespace.
    ///
    /// # Errors
    /// There is no such interface, or no socket can be opened.
    pub fn open(name: &str) -> Result<Self, OpenError> {
        let mut request = Request::named(name)?;
        let control = Socket::route().map_err(|e| OpenError::from_io(name, "open a control socket", e))?;
        request
            .call(control.as_fd(), libc::SIOCGIFINDEX)
            .map_err(|e| OpenError::from_io(name, "look it up", e))?;
        Ok(Self { control: Arc::new(control), name: name.into(), index: request.word() as u32 })
    }

    /// Its name when it was looked up.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its index, which survives renaming.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Its hardware address.
    ///
    /// # Errors
    /// The interface is gone, or is not Ethernet.
    pub fn mac(&self) -> Result<[u8; 6], OpenError> {
        let request = self.ask(libc::SIOCGIFHWADDR, "read its hardware address")?;
        let kind = request.half() as u16;
        if kind != libc::ARPHRD_ETHER {
            return Err(OpenError::NotEthernet { name: self.name.clone(), kind });
        }
        Ok(std::array::from_fn(|i| request.data[2 + i]))
    }

    /// Sets its hardware address.
    ///
    /// # Errors
    /// It is a group address, or the driver refuses; most drivers need the interface to be down.
    pub fn set_mac(&self, mac: [u8; 6]) -> Result<(), OpenError> {
        let mut request = self.request()?;
        request.data[..2].copy_from_slice(&libc::ARPHRD_ETHER.to_ne_bytes());
        request.data[2..8].copy_from_slice(&mac);
        self.tell(request, libc::SIOCSIFHWADDR, "set its hardware address")
    }

    /// Its MTU in bytes.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn mtu(&self) -> Result<u32, OpenError> {
        Ok(self.ask(libc::SIOCGIFMTU, "read its MTU")?.word() as u32)
    }

    /// Sets the MTU, in bytes.
    ///
    /// # Errors
    /// It is outside the driver's range.
    pub fn set_mtu(&self, mtu: u32) -> Result<(), OpenError> {
        let mut request = self.request()?;
        request.set_word(mtu as i32);
        self.tell(request, libc::SIOCSIFMTU, "set its MTU")
    }

    /// Whether it is up. Takes no kernel lock and does not allocate: for the packet path.
    pub(crate) fn link_up(&self) -> io::Result<bool> {
        let mut request = self.current()?;
        request.call(self.control.as_fd(), libc::SIOCGIFFLAGS)?;
        Ok(i32::from(request.half()) & libc::IFF_UP != 0)
    }

    /// Whether it has a carrier; true if the driver can't tell. Waits for the kernel's lock over all
    /// interfaces, because the flag that can be read without it lags by up to a second.
    pub(crate) fn carrier(&self) -> bool {
        const GLINK: u32 = 0x0a;
        let mut answer = [GLINK, 0];
        self.ethtool(&mut answer).is_err() || answer[1] != 0
    }

    /// As [`Interface::mtu`], without allocating: for the packet path.
    pub(crate) fn link_mtu(&self) -> io::Result<u32> {
        let mut request = self.current()?;
        request.call(self.control.as_fd(), libc::SIOCGIFMTU)?;
        Ok(request.word() as u32)
    }

    /// Sets it up or down.
    ///
    /// # Errors
    /// It is not permitted, or the driver refuses.
    pub fn set_up(&self, up: bool) -> Result<(), OpenError> {
        let mut request = self.ask(libc::SIOCGIFFLAGS, "read its flags")?;
        let flags = i32::from(request.half());
        let flags = if up { flags | libc::IFF_UP } else { flags & !libc::IFF_UP };
        request.data[..2].copy_from_slice(&(flags as i16).to_ne_bytes());
        self.tell(request, libc::SIOCSIFFLAGS, "set it up or down")
    }

    /// Sets the length of its transmit queue (`txqueuelen`) in packets. Uses netlink, because the `ioctl` is
    /// refused in a user namespace.
    ///
    /// # Errors
    /// It is not permitted.
    pub fn set_queue_length(&self, packets: u32) -> Result<(), OpenError> {
        let settings = LinkSettings { queue_length: Some(packets), ..LinkSettings::default() };
        self.control
            .request(link::change(self.index, &settings))
            .map_err(|e| OpenError::from_io(&self.name, "set its queue length", e))
    }

    /// Name of its driver: `veth`, `tun`, `virtio_net`, … Empty if the driver has none.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn driver(&self) -> Result<String, OpenError> {
        const GDRVINFO: u32 = 0x03;
        // struct ethtool_drvinfo: command, then six texts of 32 bytes less 12, then five counts; 196 bytes.
        let mut info = [0u32; 49];
        info[0] = GDRVINFO;
        match self.ethtool(&mut info) {
            Ok(()) => {}
            Err(e) if e.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(String::new()),
            Err(e) => return Err(OpenError::from_io(&self.name, "ask for its driver", e)),
        }
        let bytes: Vec<u8> = info[1..9].iter().flat_map(|word| word.to_ne_bytes()).collect();
        Ok(text(&bytes))
    }

    /// Its addresses in the namespace in which it was looked up.
    ///
    /// # Errors
    /// The system refuses.
    pub fn addresses(&self) -> Result<Vec<IpAddr>, OpenError> {
        let mut found = Vec::new();
        let mut note = |body: &[u8]| match Address::read(body) {
            Ok(Some(own)) if own.index == self.index => found.push(own.address),
            _ => {}
        };
        self.control
            .dump(address::list(), |_, body| note(body))
            .map_err(|e| OpenError::from_io(&self.name, "list its addresses", e))?;
        Ok(found)
    }

    /// Fails if the machine's own stack would also answer frames: if it has an IPv4 address, or an IPv6
    /// address that is not link-local.
    ///
    /// # Errors
    /// There is such an address; the error says how to fix it.
    pub fn refuse_addresses(&self) -> Result<(), OpenError> {
        let own = |address: &IpAddr| match address {
            IpAddr::V4(_) => true,
            IpAddr::V6(address) => !address.is_unicast_link_local(),
        };
        match self.addresses()?.into_iter().find(own) {
            Some(address) => Err(OpenError::HasAddress { name: self.name.clone(), address }),
            None => Ok(()),
        }
    }

    /// The number of its network namespace.
    fn namespace(&self) -> io::Result<u64> {
        const SIOCGSKNS: libc::Ioctl = 0x894c;
        // SAFETY: the request takes no argument, and returns a new descriptor or an error.
        let namespace = unsafe { owned(libc::ioctl(self.control.as_fd().as_raw_fd(), SIOCGSKNS)) }?;
        Ok(File::from(namespace).metadata()?.ino())
    }

    /// Runs an ethtool command: `words` starts with its number, and holds what it reads and writes.
    pub(crate) fn ethtool(&self, words: &mut [u32]) -> io::Result<()> {
        let name = self.current()?.name;
        let mut request = EthtoolRequest { name, data: words.as_mut_ptr(), rest: [0; 16] };
        // SAFETY: the request is what SIOCETHTOOL reads; `words` is exclusively ours and, as each caller
        // ensures, long enough for its command.
        checked(unsafe {
            libc::ioctl(self.control.as_fd().as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request)
        })
        .map(drop)
    }

    /// A request with the interface's current name.
    fn request(&self) -> Result<Request, OpenError> {
        self.current().map_err(|e| OpenError::from_io(&self.name, "look it up", e))
    }

    fn current(&self) -> io::Result<Request> {
        let mut request = Request { name: [0; libc::IFNAMSIZ], data: [0; 24] };
        request.set_word(self.index as i32);
        request.call(self.control.as_fd(), libc::SIOCGIFNAME)?;
        Ok(request)
    }

    fn ask(&self, number: libc::c_ulong, action: &'static str) -> Result<Request, OpenError> {
        let mut request = self.request()?;
        request.call(self.control.as_fd(), number).map_err(|e| OpenError::from_io(&self.name, action, e))?;
        Ok(request)
    }

    fn tell(
        &self,
        mut request: Request,
        number: libc::c_ulong,
        action: &'static str,
    ) -> Result<(), OpenError> {
        request.call(self.control.as_fd(), number).map_err(|e| OpenError::from_io(&self.name, action, e))
    }
}

/// `struct ifreq` with its union as bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) name: [u8; libc::IFNAMSIZ],
    pub(crate) data: [u8; 24],
}

const _: () = assert!(size_of::<Request>() == size_of::<libc::ifreq>());

#[repr(C)]
struct EthtoolRequest {
    name: [u8; libc::IFNAMSIZ],
    data: *mut u32,
    rest: [u8; 16],
}

impl Request {
    /// A request about the interface `name`.
    pub(crate) fn named(name: &str) -> Result<Self, OpenError> {
        let bytes = name.as_bytes();
        let odd = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'/' | b':' | 0);
        if bytes.is_empty() || bytes.len() >= libc::IFNAMSIZ || bytes.iter().any(odd) {
            return Err(OpenError::BadName { name: name.into() });
        }
        let mut request = Self { name: [0; libc::IFNAMSIZ], data: [0; 24] };
        request.name[..bytes.len()].copy_from_slice(bytes);
        Ok(request)
    }

    /// Makes an `ioctl` that takes a `struct ifreq` without pointers.
    pub(crate) fn call(&mut self, fd: BorrowedFd<'_>, number: impl Into<u64>) -> io::Result<()> {
        // SAFETY: `self` has the layout of `struct ifreq`, which is all that these requests read and write.
        checked(unsafe { libc::ioctl(fd.as_raw_fd(), number.into() as _, std::ptr::from_mut(self)) })
            .map(drop)
    }

    /// The interface's name in the request.
    pub(crate) fn name(&self) -> String {
        text(&self.name)
    }

    fn half(&self) -> i16 {
        i16::from_ne_bytes([self.data[0], self.data[1]])
    }

    fn word(&self) -> i32 {
        i32::from_ne_bytes(std::array::from_fn(|i| self.data[i]))
    }

    fn set_word(&mut self, word: i32) {
        self.data[..4].copy_from_slice(&word.to_ne_bytes());
    }
}

/// The text up to the first zero byte.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_names_no_interface_can_have() {
        for name in ["", "a name", "a/b", "a:b", "sixteen-bytes-xx", "nul\0"] {
            assert!(matches!(Interface::open(name), Err(OpenError::BadName { .. })), "{name:?}");
        }
        assert!(matches!(Interface::open("lw-none-such"), Err(OpenError::Missing { .. })));
    }

    #[test]
    fn reads_the_loopback_without_privileges() {
        let lo = Interface::open("lo").unwrap();
        assert_eq!(lo.index(), 1);
        assert!(lo.mtu().unwrap() >= 1500);
        assert!(matches!(lo.mac(), Err(OpenError::NotEthernet { kind: libc::ARPHRD_LOOPBACK, .. })));
        lo.driver().unwrap();
    }
}
