//! A control half's session with its router: programs that it installs, reads, writes, and removes at the
//! end.

use crate::{ResidentArgs, RouterArgs};
use anyhow::{Context, bail};
use longwire_control::{
    Client, ClientError, Entries, MapChange, NewForwarder, NewState, ProgramRequest, RoutePage, RowFilter,
    TypeQuery, directory,
};
use longwire_report::output;
use longwire_rundir::StopSignals;
use longwire_scenario::{WrittenForwarder, WrittenKey, digits, hexadecimal};
use longwire_units::{Nanos, counted};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Renewals of a lease within its duration.
const RENEWALS: u32 = 5;

/// A control half's state at its router. Its programs are removed when this is dropped, and by the instance
/// when the process is killed.
#[derive(Debug)]
pub(super) struct RouterSession {
    client: Client,
    router: String,
    json: bool,
    lease: Nanos,
    installed: Arc<InstalledIds>,
    signals: Mutex<StopSignals>,
    /// Dropping it ends the thread that renews leases.
    _renewing: Sender<()>,
}

/// The installed programs. None after leaving: nothing may be installed then, because nothing would remove
/// it.
type InstalledIds = Mutex<Option<BTreeSet<u32>>>;

/// An entry of a map: its key and its value.
pub(super) type Entry = (Vec<u8>, Vec<u8>);

impl RouterSession {
    /// Attaches to the router.
    ///
    /// # Errors
    /// If no instance is selected, or it does not answer, or it has no such router.
    pub(super) fn take(target: &ResidentArgs, json: bool) -> anyhow::Result<Self> {
        // Caught from the start, so that everything is undone.
        let signals = Mutex::new(StopSignals::catch().context("catching signals")?);
        let client = Client::connect(&directory(), target.instance.as_deref())?;
        let installed = Arc::new(Mutex::new(Some(BTreeSet::new())));
        let (renewing, ended) = channel();
        let instance = client.found().map(|found| format!("{}-{}", found.name, found.pid));
        let same = RouterArgs { router: target.router.clone(), instance };
        let own = Arc::clone(&installed);
        let interval = Duration::from_nanos(target.lease.0) / RENEWALS;
        std::thread::Builder::new()
            .name("renew".into())
            .spawn(move || renew(&same, &own, interval, &ended))?;
        let session = Self {
            client,
            router: target.router.clone(),
            json,
            lease: target.lease,
            installed,
            signals,
            _renewing: renewing,
        };
        session.ask(&ProgramRequest::List)?;
        Ok(session)
    }

    /// The instance's name.
    pub(super) fn instance(&self) -> String {
        self.client.name()
    }

    /// The router's name.
    pub(super) fn router(&self) -> &str {
        &self.router
    }

    /// Counters of the instance: the first page of those that the filter selects.
    pub(super) fn stats(&self, filter: &RowFilter) -> anyhow::Result<Value> {
        Ok(self.client.stats(filter)?)
    }

    /// The router's routes, or the first of them.
    pub(super) fn routes(&self) -> anyhow::Result<RoutePage> {
        Ok(self.client.routes(&self.router)?)
    }

    fn ask(&self, ask: &ProgramRequest) -> anyhow::Result<Value> {
        Ok(self.client.forwarders(&self.router, ask)?)
    }

    /// Installs a built-in program, and returns its number.
    ///
    /// # Errors
    /// If it is refused.
    pub(super) fn install(&self, written: &WrittenForwarder) -> anyhow::Result<u32> {
        // Locked until the number is known: leaving must wait for it.
        let mut own = self.own();
        let own = own.as_mut().context("the session has ended")?;
        let forwarder = serde_json::to_value(written).context("a forwarder can be written as JSON")?;
        let new = NewForwarder { forwarder, object: None, lease: Some(self.lease.to_string()) };
        let installed = self.ask(&ProgramRequest::Install(new));
        let installed = installed.with_context(|| match &written.name {
            Some(name) if written.program.is_empty() => format!("installing the attachment of {name}"),
            _ => format!("installing {}", written.program),
        })?;
        let fid = fid_of(&installed).context("an installation is answered with a number")?;
        own.insert(fid);
        Ok(fid)
    }

    /// Adopts programs with a lease that is no longer renewed, as if they had been installed from here.
    ///
    /// # Errors
    /// If one of them is gone, or has no lease.
    pub(super) fn adopt(&self, fids: &[u32]) -> anyhow::Result<()> {
        let mut own = self.own();
        let own = own.as_mut().context("the session has ended")?;
        self.ask(&ProgramRequest::Renew(fids.to_vec()))?;
        own.extend(fids);
        Ok(())
    }

    /// Removes a program.
    ///
    /// # Errors
    /// If the number is unknown.
    pub(super) fn remove(&self, fid: u32) -> anyhow::Result<()> {
        if let Some(own) = self.own().as_mut() {
            own.remove(&fid);
        }
        self.ask(&ProgramRequest::Remove(fid)).map(drop)
    }

    /// The router's programs, as listed by the instance.
    pub(super) fn list(&self) -> anyhow::Result<Vec<Value>> {
        match self.ask(&ProgramRequest::List)?["forwarders"].take() {
            Value::Array(list) => Ok(list),
            _ => bail!("the instance's list of programs can't be read"),
        }
    }

    /// A program's state.
    pub(super) fn data<const N: usize>(&self, fid: u32) -> anyhow::Result<[u8; N]> {
        let answer = self.ask(&ProgramRequest::Get(fid, TypeQuery::default()))?;
        let data = bytes(&answer["data"])?;
        let size = counted(data.len() as u64, "byte");
        data.try_into().map_err(|_| anyhow::anyhow!("program {fid} has a state of {size}, not {N}"))
    }

    /// A program's state; none if somebody else has removed the program.
    pub(super) fn data_unless_removed<const N: usize>(&self, fid: u32) -> anyhow::Result<Option<[u8; N]>> {
        self.unless_removed(fid, self.data(fid))
    }

    /// What the instance has answered about a program; none if somebody else has removed the program.
    fn unless_removed<T>(&self, fid: u32, answer: anyhow::Result<T>) -> anyhow::Result<Option<T>> {
        match answer {
            Err(error) if is_refused(&error) && !self.has(fid)? => {
                if let Some(own) = self.own().as_mut() {
                    own.remove(&fid);
                }
                Ok(None)
            }
            answer => answer.map(Some),
        }
    }

    /// Whether the router has a program with this number.
    fn has(&self, fid: u32) -> anyhow::Result<bool> {
        Ok(self.list()?.iter().any(|listed| listed["fid"] == fid))
    }

    /// Writes a program's state.
    pub(super) fn set(&self, fid: u32, data: &[u8]) -> anyhow::Result<()> {
        self.ask(&ProgramRequest::Set(fid, NewState { data: digits(data), kind: None })).map(drop)
    }

    /// The entries of a program's map.
    pub(super) fn entries(&self, fid: u32, map: &str) -> anyhow::Result<Vec<Entry>> {
        let answer = self.ask(&ProgramRequest::Map(fid, map.into(), Entries::default()))?;
        let entries = answer["entries"].as_array().context("a map has entries")?;
        entries.iter().map(|entry| Ok((bytes(&entry["key"])?, bytes(&entry["value"])?))).collect()
    }

    /// The entries of a program's map; none if somebody else has removed the program.
    pub(super) fn entries_unless_removed(&self, fid: u32, map: &str) -> anyhow::Result<Option<Vec<Entry>>> {
        self.unless_removed(fid, self.entries(fid, map))
    }

    /// The values of several keys of a program's map; none for missing ones.
    pub(super) fn values(
        &self,
        fid: u32,
        map: &str,
        keys: &[Vec<u8>],
    ) -> anyhow::Result<Vec<Option<Vec<u8>>>> {
        let keys = keys.iter().map(|key| digits(key)).collect();
        let answer = self.ask(&ProgramRequest::Values(fid, map.into(), keys))?;
        let values = answer["values"].as_array().context("keys have values")?;
        values.iter().map(|value| if value.is_null() { Ok(None) } else { bytes(value).map(Some) }).collect()
    }

    /// Removes entries of a program's map. Missing ones are ignored: the program may have evicted them.
    pub(super) fn prune(&self, fid: u32, map: &str, keys: &[Vec<u8>]) -> anyhow::Result<()> {
        let remove = keys.iter().map(|key| digits(key)).collect();
        self.write(fid, map, MapChange { remove, write: Vec::new() })
    }

    /// Writes entries of a program's map: as many as fit a request, about 600 of 32 bytes.
    pub(super) fn fill(&self, fid: u32, map: &str, entries: &[Entry]) -> anyhow::Result<()> {
        let write = entries.iter().map(|(key, value)| (digits(key), digits(value))).collect();
        self.write(fid, map, MapChange { remove: Vec::new(), write })
    }

    fn write(&self, fid: u32, map: &str, change: MapChange) -> anyhow::Result<()> {
        self.ask(&ProgramRequest::Write(fid, map.into(), change)).map(drop)
    }

    /// Removes all entries of a program's map, or sets them to zero in an array.
    pub(super) fn clear(&self, fid: u32, map: &str) -> anyhow::Result<()> {
        self.ask(&ProgramRequest::Clear(fid, map.into())).map(drop)
    }

    /// Prints an event: the object with --json, else the text.
    pub(super) fn tell(&self, event: &Value, text: &str) -> anyhow::Result<()> {
        Ok(if self.json { output::print(&event.to_string()) } else { output::print(text) }?)
    }

    /// Runs a function in each interval, with the time since the previous call, until a signal comes or the
    /// instance ends.
    ///
    /// # Errors
    /// Those of the function.
    pub(super) fn every(
        &self,
        interval: Nanos,
        mut act: impl FnMut(Duration) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let signals = held(&self.signals);
        let interval = Duration::from_nanos(interval.0);
        let mut last = Instant::now();
        while !signals.within(interval.saturating_sub(last.elapsed())) {
            let now = Instant::now();
            match act(now - last) {
                Err(error) if self.has_ended(&error) => {
                    output::note("the instance has ended");
                    self.own().take();
                    return Ok(());
                }
                done => done?,
            }
            last = now;
        }
        Ok(())
    }

    /// Whether an error means that the instance has ended. A killed one leaves its socket, without a
    /// listener.
    fn has_ended(&self, error: &anyhow::Error) -> bool {
        let silent = matches!(error.downcast_ref(), Some(ClientError::Silent { .. }));
        silent && self.client.has_ended()
    }

    /// Whether a process is attached under this name.
    pub(super) fn is_attached(&self, name: &str) -> bool {
        // Without the instance no process is attached.
        let levels = self.ask(&ProgramRequest::Levels).unwrap_or_default();
        let mut attachments = levels["attachments"].as_array().into_iter().flatten();
        attachments.any(|attachment| attachment["name"] == name && attachment["there"] == true)
    }

    /// Leaves the installed programs to the process that has adopted them.
    pub(super) fn abandon(&self) {
        self.own().take();
    }

    /// Removes the installed programs, and prevents further installations.
    pub(super) fn leave(&self) {
        for fid in self.own().take().into_iter().flatten() {
            // Without the instance its programs are gone, too.
            let _ = self.ask(&ProgramRequest::Remove(fid));
        }
    }

    fn own(&self) -> MutexGuard<'_, Option<BTreeSet<u32>>> {
        held(&self.installed)
    }
}

/// A program that ships with Longwire, for packets of this key, or all; with this state, or zeros.
pub(super) fn shipped(program: &str, key: Option<WrittenKey>, data: Option<&[u8]>) -> WrittenForwarder {
    let data = data.map(digits);
    WrittenForwarder { program: program.into(), key, data, ..WrittenForwarder::default() }
}

/// The number of an installed or listed program.
pub(super) fn fid_of(program: &Value) -> Option<u32> {
    program["fid"].as_u64()?.try_into().ok()
}

/// Whether the instance has refused a request, as for a program that it does not have.
pub(super) fn is_refused(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ClientError::Refused(_)))
}

/// No holder of these locks panics.
pub(super) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Renews the leases of installed programs until the session is dropped.
fn renew(target: &RouterArgs, installed: &InstalledIds, interval: Duration, ended: &Receiver<()>) {
    while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
        let fids: Vec<u32> = held(installed).iter().flatten().copied().collect();
        if !fids.is_empty() {
            // A program just removed has no lease; an ended instance is noticed by the next request.
            let _ = target.ask(&ProgramRequest::Renew(fids));
        }
    }
}

impl Drop for RouterSession {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A rate per second, rounded.
pub(super) fn per_second(count: u64, time: Duration) -> u64 {
    let nanos = time.as_nanos().max(1);
    u64::try_from((u128::from(count) * 1_000_000_000 + nanos / 2) / nanos).unwrap_or(u64::MAX)
}

/// An address in the format of programs' maps: IPv4 as ::ffff:a.b.c.d.
pub(super) fn address_bytes(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// The address at an offset of a map's key.
pub(super) fn address_at(key: &[u8], place: usize) -> Option<IpAddr> {
    let bytes: [u8; 16] = key.get(place..place + 16)?.try_into().ok()?;
    Some(Ipv6Addr::from(bytes).to_canonical())
}

/// An eight-byte number at an offset.
pub(super) fn double_at(bytes: &[u8], place: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(place..place + 8)?.try_into().ok()?))
}

/// A four-byte number at an offset.
pub(super) fn word_at(bytes: &[u8], place: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(place..place + 4)?.try_into().ok()?))
}

fn bytes(text: &Value) -> anyhow::Result<Vec<u8>> {
    let text = text.as_str().context("bytes are written as a text")?;
    hexadecimal(text).map_err(|fault| anyhow::anyhow!("{}", fault.why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn rates_are_rounded() {
        for (count, millis, rate) in
            [(0, 100, 0), (1, 100, 10), (7, 3000, 2), (8, 3000, 3), (5, 0, 5_000_000_000)]
        {
            assert_eq!(per_second(count, Duration::from_millis(millis)), rate);
        }
    }

    #[test]
    fn addresses_are_those_of_maps() {
        let four: IpAddr = Ipv4Addr::new(10, 0, 1, 9).into();
        let bytes = address_bytes(four);
        assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 1, 9]);
        assert_eq!(address_at(&bytes, 0), Some(four));
        assert_eq!(address_at(&bytes, 1), None);
        let six: IpAddr = "fd00::1".parse().unwrap();
        assert_eq!(address_at(&[&[9; 4][..], &address_bytes(six)].concat(), 4), Some(six));
    }
}
