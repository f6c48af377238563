//! `longwire control splice`: a TCP proxy that splices its connections into the data path.

mod pair;

use crate::session::{RouterSession, held, is_refused};
use crate::{Interval, ResidentArgs};
use anyhow::{Context, bail, ensure};
use longwire_lab::splicing::PlainTcp;
use longwire_lab::{Host, Lab};
use longwire_report::output;
use longwire_units::{Nanos, counted};
use pair::ProxiedConnection;
use serde_json::{Value, json};
use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time limit for a client's first line.
const FIRST_LINE: Duration = Duration::from_secs(10);
/// Maximum length of that line.
const LONGEST_LINE: usize = 4096;
/// Time limit for connecting to a server.
const CONNECT: Duration = Duration::from_secs(5);

/// Run a TCP proxy at one of the router's addresses, and splice its connections into the data path
///
/// Runs in the namespace of the router's control plane. Accepts a client's connection, chooses a server by
/// the first line, connects to it, and forwards what it has read. Then the connections are handed over to two
/// tcp-splicers, one for each direction, which change addresses, ports and numbers of all further segments on
/// the data path. They are removed when both ends have finished, one of them has reset, or nothing was sent
/// for long. A connection that can't be spliced is relayed to its end.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire control splice r1 --listen 10.0.1.1:8080 --backend 10.0.2.9:80
  longwire control splice r1 --listen '[fd00:0:0:1::1]:8080' --backend '[fd00:0:0:2::9]:80'
  longwire control splice r1 --listen 10.0.1.1:8080 --backend 'GET /video=10.0.2.9:81' --backend 'GET \
  =10.0.2.9:80' --json")]
pub struct Args {
    #[command(flatten)]
    target: ResidentArgs,

    /// The router's address and port for clients.
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,

    /// A server, and the beginning of its clients' first line; the first match wins. Without a beginning it
    /// matches all clients, and nothing is read before connecting.
    #[arg(long, value_name = "[BEGINNING=]ADDRESS:PORT", required = true, value_parser = Backend::read)]
    backend: Vec<Backend>,

    /// Most connections at a time.
    #[arg(long, value_name = "COUNT", default_value_t = 256)]
    connections: usize,

    /// Time without a packet after which a spliced connection is given up.
    #[arg(long, value_name = "TIME", default_value = "5 min")]
    idle: Nanos,

    /// Time for which programs stay after a connection's end, for retransmissions.
    #[arg(long, value_name = "TIME", default_value = "1 s")]
    linger: Nanos,

    /// Polling interval for ended connections.
    #[arg(long, value_name = "TIME", default_value = "500 ms")]
    interval: Interval,

    /// Print a JSON object for each event.
    #[arg(long)]
    json: bool,
}

/// A server for clients with this beginning of their first line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Backend {
    beginning: String,
    server: SocketAddr,
}

impl Backend {
    fn read(text: &str) -> Result<Self, String> {
        let (beginning, server) = text.rsplit_once('=').unwrap_or(("", text));
        let server = server
            .parse()
            .map_err(|_| format!("\"{server}\" is not an address and port, such as 10.0.2.9:80"))?;
        Ok(Self { beginning: beginning.to_owned(), server })
    }
}

impl Args {
    /// Runs until it is stopped. `open_lab` opens the lab of an instance by its name.
    ///
    /// # Errors
    /// If the router has no control plane, or the address is not its own.
    pub fn run(self, open_lab: impl FnOnce(&str) -> anyhow::Result<Lab>) -> anyhow::Result<()> {
        let session = RouterSession::take(&self.target, self.json)?;
        let lab = open_lab(&session.instance())?;
        let router = &self.target.router;
        let missing =
            || format!("router \"{router}\" has no control plane; give it control-plane = \"netns\"");
        let host = lab.host(router).with_context(missing)?;
        let _plain = PlainTcp::begin(lab.instance(), host)?;
        let listener = host.run(|| TcpListener::bind(self.listen))?;
        let listener = listener.with_context(|| format!("listening at {}", self.listen))?;
        session.tell(
            &json!({ "event": "listening", "address": self.listen.to_string() }),
            &format!("listening at {}", self.listen),
        )?;
        let interval = self.interval.nanos();
        let lab = Lab::open(&session.instance())?;
        let proxy = Arc::new(Proxy {
            session,
            lab,
            args: self,
            spliced: Mutex::default(),
            there: AtomicUsize::new(0),
        });
        let accepting = Arc::clone(&proxy);
        // The thread accepts clients until the process ends.
        std::thread::Builder::new().name("accept".into()).spawn(move || accept(&accepting, &listener))?;
        let ended = proxy.session.every(interval, |time| proxy.look(time));
        proxy.session.leave();
        ended
    }
}

/// State shared by the proxy's threads.
struct Proxy {
    session: RouterSession,
    lab: Lab,
    args: Args,
    spliced: Mutex<Vec<SplicedConnection>>,
    /// Number of open connections, including spliced ones.
    there: AtomicUsize,
}

/// A connection on the data path.
struct SplicedConnection {
    fids: [u32; 2],
    client: SocketAddr,
    server: SocketAddr,
    packets: u64,
    idle: Duration,
    /// Time since which both directions have ended.
    ended: Option<Instant>,
}

fn accept(proxy: &Arc<Proxy>, listener: &TcpListener) {
    loop {
        let client = match listener.accept() {
            Ok((client, _)) => client,
            Err(error) => {
                // There may be no descriptors left: other connections may end soon.
                output::note(&format!("could not accept a client: {error}"));
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        if proxy.there.fetch_add(1, Ordering::Relaxed) >= proxy.args.connections {
            proxy.there.fetch_sub(1, Ordering::Relaxed);
            output::note(&format!("a client was refused: there are {} connections", proxy.args.connections));
            continue;
        }
        let own = Arc::clone(proxy);
        let serving = std::thread::Builder::new().name("serve".into()).spawn(move || {
            let spliced = own.serve(client).unwrap_or_else(|error| {
                output::note(&format!("a connection failed: {}", output::chain(error.as_ref())));
                false
            });
            if !spliced {
                own.there.fetch_sub(1, Ordering::Relaxed);
            }
        });
        if let Err(error) = serving {
            proxy.there.fetch_sub(1, Ordering::Relaxed);
            output::note(&format!("a client could not be served: {error}"));
        }
    }
}

impl Proxy {
    /// Serves a client to the end, or until it is spliced; returns whether it is.
    fn serve(&self, client: TcpStream) -> anyhow::Result<bool> {
        let (server, read) = self.choose(&client)?;
        let connect = || TcpStream::connect_timeout(&server, CONNECT);
        let connected = self.host()?.run(connect)?.with_context(|| format!("connecting to {server}"))?;
        let pair = ProxiedConnection::new(client, connected, read)?;
        let [client, near, far, server] = pair.addresses;
        let event = |event: &str| {
            json!({ "event": event, "client": client.to_string(),
            "server": server.to_string() })
        };
        match pair.splice(&self.session) {
            Ok(fids) => {
                let mut told = event("spliced");
                (told["near"], told["far"]) = (near.to_string().into(), far.to_string().into());
                told["fids"] = fids.as_slice().into();
                let [there, back] = fids;
                self.session
                    .tell(&told, &format!("spliced: {client} to {server} by programs {there} and {back}"))?;
                let spliced =
                    SplicedConnection { fids, client, server, packets: 0, idle: Duration::ZERO, ended: None };
                held(&self.spliced).push(spliced);
                Ok(true)
            }
            Err((pair, why)) => {
                let why = output::chain(why.as_ref());
                let mut told = event("relayed");
                told["why"] = why.as_str().into();
                self.session.tell(&told, &format!("relayed: {client} to {server}: {why}"))?;
                pair.relay_to_the_end()?;
                self.session
                    .tell(&event("ended"), &format!("ended: {client} to {server}, which was relayed"))?;
                Ok(false)
            }
        }
    }

    /// The server for a client, and what was read from the client to choose it.
    fn choose(&self, client: &TcpStream) -> anyhow::Result<(SocketAddr, Vec<u8>)> {
        let backends = &self.args.backend;
        if let Some(first) = backends.first().filter(|backend| backend.beginning.is_empty()) {
            return Ok((first.server, Vec::new()));
        }
        let mut read = Vec::new();
        let begin = Instant::now();
        let mut client = client;
        while !read.contains(&b'\n') {
            let left = FIRST_LINE.saturating_sub(begin.elapsed());
            ensure!(
                !left.is_zero() && read.len() < LONGEST_LINE,
                "a client sent no line of at most {LONGEST_LINE} bytes"
            );
            client.set_read_timeout(Some(left))?;
            let mut bytes = [0; LONGEST_LINE];
            match client.read(&mut bytes) {
                Ok(0) => bail!("a client disconnected before it sent a line"),
                Ok(more) => read.extend_from_slice(&bytes[..more]),
                Err(e)
                    if matches!(
                        e.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) => {}
                Err(e) => return Err(e.into()),
            }
        }
        client.set_read_timeout(None)?;
        let fits = |backend: &&Backend| read.starts_with(backend.beginning.as_bytes());
        let found = backends.iter().find(fits).context("no backend matches the client's first line")?;
        Ok((found.server, read))
    }

    fn host(&self) -> anyhow::Result<&Host> {
        Ok(self.lab.host(&self.args.target.router)?)
    }

    /// Removes the programs of ended connections.
    fn look(&self, time: Duration) -> anyhow::Result<()> {
        // Before the list is read, which then has the programs of all of them.
        let mut all = std::mem::take(&mut *held(&self.spliced));
        let list = self.session.list()?;
        let mut left = Vec::with_capacity(all.len());
        let mut done = Ok(());
        for mut one in all.drain(..) {
            let packets = one.fids.map(|fid| packets(&list, fid));
            match self.has_ended(&mut one, packets, time) {
                Ok(None) => left.push(one),
                Ok(Some(why)) => {
                    self.there.fetch_sub(1, Ordering::Relaxed);
                    done = done.and(self.end(&one, why, packets.map(Option::unwrap_or_default)));
                }
                // It was removed just now: the next list is without it.
                Err(error) if is_refused(&error) => left.push(one),
                Err(error) => {
                    left.push(one);
                    done = done.and(Err(error));
                }
            }
        }
        held(&self.spliced).extend(left);
        done
    }

    /// Reason why a connection's programs are no longer needed, if so.
    fn has_ended(
        &self,
        one: &mut SplicedConnection,
        packets: [Option<u64>; 2],
        time: Duration,
    ) -> anyhow::Result<Option<&'static str>> {
        let [Some(there), Some(back)] = packets else { return Ok(Some("removed")) };
        let packets = there + back;
        one.idle = if packets == one.packets { one.idle + time } else { Duration::ZERO };
        one.packets = packets;
        if one.idle >= Duration::from_nanos(self.args.idle.0) {
            return Ok(Some("idle"));
        }
        let is_four = one.client.is_ipv4();
        let ends = [self.flags(one.fids[0], is_four)?, self.flags(one.fids[1], is_four)?];
        let reset = ends.iter().any(|flags| flags & RST != 0);
        if one.ended.is_none() && (reset || ends.iter().all(|flags| flags & FIN != 0)) {
            one.ended = Some(Instant::now());
        }
        let over = one.ended.is_some_and(|since| since.elapsed() >= Duration::from_nanos(self.args.linger.0));
        Ok(over.then_some(if reset { "reset" } else { "finished" }))
    }

    /// The flags with which a direction has ended.
    fn flags(&self, fid: u32, is_four: bool) -> anyhow::Result<u8> {
        Ok(if is_four {
            pair::flags(&self.session.data::<28>(fid)?)
        } else {
            pair::flags(&self.session.data::<48>(fid)?)
        })
    }

    fn end(&self, one: &SplicedConnection, why: &str, packets: [u64; 2]) -> anyhow::Result<()> {
        let removed = one.fids.map(|fid| self.session.remove(fid));
        // A program that somebody else has removed is refused.
        let failed = removed.into_iter().filter_map(Result::err).find(|error| !is_refused(error));
        if let Some(error) = failed {
            return Err(error);
        }
        let (client, server, [there, back]) = (one.client, one.server, packets);
        let event = json!({
            "event": "ended", "why": why, "client": client.to_string(), "server": server.to_string(),
            "packets": Value::from(packets.as_slice()), "fids": Value::from(one.fids.as_slice()),
        });
        let there = counted(there, "packet");
        self.session.tell(&event, &format!("ended: {client} to {server}, {why}; {there} there, {back} back"))
    }
}

/// Number of packets of a listed program; none if it is not installed any more.
fn packets(list: &[Value], fid: u32) -> Option<u64> {
    let listed = list.iter().find(|listed| listed["fid"] == fid)?;
    Some(listed["packets"].as_u64().unwrap_or(0))
}

/// The splicer's flag for a direction's end.
const FIN: u8 = 1;
const RST: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_listed_has_been_removed() {
        let list = [json!({ "fid": 3, "packets": 7 }), json!({ "fid": 4 })];
        assert_eq!([3, 4, 5].map(|fid| packets(&list, fid)), [Some(7), Some(0), None]);
    }

    #[test]
    fn servers_are_chosen_by_what_a_line_begins_with() {
        let plain = Backend::read("10.0.2.9:80").unwrap();
        assert_eq!((&*plain.beginning, plain.server), ("", "10.0.2.9:80".parse().unwrap()));
        let query = Backend::read("GET /a=b=10.0.2.9:81").unwrap();
        assert_eq!((&*query.beginning, query.server.port()), ("GET /a=b", 81));
        let wrong = Backend::read("GET /=b:81").unwrap_err();
        assert_eq!(wrong, "\"b:81\" is not an address and port, such as 10.0.2.9:80");
    }
}
