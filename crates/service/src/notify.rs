//! The service manager: its signals, and reports to it (sd_notify(3)), which are datagrams to the socket in
//! `NOTIFY_SOCKET`.

use anyhow::Context;
use longwire_lab::{CommandRole, keep_for};
use longwire_rundir::StopSignals;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval between two looks at what a service runs, and at requests.
const LOOK: Duration = Duration::from_millis(50);

/// The signals that the manager, or a user, sends a service.
pub struct ServiceSignals {
    reload: Arc<AtomicBool>,
    stop: StopSignals,
}

impl ServiceSignals {
    /// Gives up what root need not keep, before the first thread, because each has its own; then catches the
    /// signals. `group` may use the API.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn catch(group: Option<u32>) -> anyhow::Result<Self> {
        let role = if group.is_some() { CommandRole::ServesGroup } else { CommandRole::Carries };
        keep_for(role).context("giving up what root need not keep")?;
        let reload = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGHUP, Arc::clone(&reload)).context("catching SIGHUP")?;
        let stop = StopSignals::catch_these(&[SIGINT, SIGTERM, SIGQUIT]).context("catching signals")?;
        Ok(Self { reload, stop })
    }

    /// Whether the service is to end; waits a moment for that.
    pub fn ask_to_stop(&self) -> bool {
        self.stop.within(LOOK)
    }

    /// Whether the service is to read its files again; asking clears it.
    pub fn ask_to_reload(&self) -> bool {
        self.reload.swap(false, Ordering::Relaxed)
    }
}

/// The service manager's socket, if there is one.
#[derive(Debug)]
pub struct Manager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
    next: Instant,
}

impl Manager {
    /// The manager named by the environment.
    ///
    /// # Errors
    /// If its socket can't be used.
    pub fn from_environment() -> io::Result<Self> {
        let watched = std::env::var("WATCHDOG_PID").ok();
        let is_meant = watched.is_none_or(|pid| pid == std::process::id().to_string());
        let watchdog = std::env::var("WATCHDOG_USEC").ok().and_then(|time| time.parse().ok());
        let watchdog = watchdog.filter(|_| is_meant).map(Duration::from_micros);
        Self::new(std::env::var_os("NOTIFY_SOCKET").as_deref(), watchdog)
    }

    fn new(address: Option<&OsStr>, watchdog: Option<Duration>) -> io::Result<Self> {
        let socket = match address.map(OsStrExt::as_bytes) {
            None | Some([]) => None,
            Some([b'@', name @ ..]) => {
                Some((UnixDatagram::unbound()?, SocketAddr::from_abstract_name(name)?))
            }
            Some(path) => {
                Some((UnixDatagram::unbound()?, SocketAddr::from_pathname(OsStr::from_bytes(path))?))
            }
        };
        Ok(Self { socket, watchdog, next: Instant::now() })
    }

    /// Reports that the service has started, or has reloaded.
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={status}"));
    }

    /// Reports that the service is reloading.
    pub fn reloading(&self) {
        let micros = longwire_clock::monotonic().0 / 1000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    /// Reports that the service is stopping.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// Whether the watchdog's next message is due: two per period.
    pub fn is_due(&self) -> bool {
        self.watchdog.is_some() && Instant::now() >= self.next
    }

    /// Sends the watchdog's message.
    pub fn alive(&mut self) {
        self.send("WATCHDOG=1");
        self.next = Instant::now() + self.watchdog.unwrap_or_default() / 2;
    }

    fn send(&self, text: &str) {
        if let Some((socket, address)) = &self.socket {
            // If the manager is gone, there is nobody to tell.
            let _ = socket.send_to_addr(text.as_bytes(), address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 200];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[test]
    fn the_manager_receives_its_messages() {
        let name = format!("longwire-notify-{}", std::process::id());
        let listening =
            UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name.as_bytes()).unwrap()).unwrap();
        let address = format!("@{name}");
        let mut manager = Manager::new(Some(OsStr::new(&address)), Some(Duration::from_secs(3600))).unwrap();
        manager.ready("2 scenarios");
        assert_eq!(received(&listening), "READY=1\nSTATUS=2 scenarios");
        manager.reloading();
        assert!(received(&listening).starts_with("RELOADING=1\nMONOTONIC_USEC="));
        assert!(manager.is_due());
        manager.alive();
        assert_eq!(received(&listening), "WATCHDOG=1");
        assert!(!manager.is_due(), "half an hour is left");
    }

    #[test]
    fn without_a_manager_nothing_is_sent() {
        let manager = Manager::new(None, None).unwrap();
        assert!(!manager.is_due());
        manager.stopping();
    }
}
