//! A client's session with an emulator, by Ethernet or UDP: messages, retransmissions, answers.

use anyhow::{Context, bail};
use longwire_clock::monotonic;
use longwire_nesp::{
    Answer, Client, ETHERTYPE, GROUP_ADDRESS, Item, Items, Key, MOST, MessageEnds, Operation, Request, Retry,
    RetryAction, wrap,
};
use longwire_port::raw::RawSocket;
use longwire_rundir::random;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// The transport of messages.
enum Carrier {
    Ethernet { socket: RawSocket, interface: String },
    Udp { socket: UdpSocket, to: SocketAddr },
}

/// A client's session with an emulator.
pub struct NespClient {
    carrier: Carrier,
    client: Client,
    patience: Duration,
}

impl NespClient {
    /// A session over an interface.
    ///
    /// # Errors
    /// If frames can't be sent there, or nobody answers.
    pub fn by_ethernet(interface: &str, key: Key, patience: Duration) -> anyhow::Result<Self> {
        let socket = RawSocket::open(interface, ETHERTYPE).with_context(|| {
            format!("can't send frames by {interface} (it takes CAP_NET_RAW; --udp takes no privilege)")
        })?;
        Self::begin(Carrier::Ethernet { socket, interface: interface.into() }, key, patience)
    }

    /// A session over UDP.
    ///
    /// # Errors
    /// If datagrams can't be sent there, or nobody answers.
    pub fn by_udp(to: SocketAddr, key: Key, patience: Duration) -> anyhow::Result<Self> {
        let any = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind(SocketAddr::new(any, 0)).context("can't make a UDP socket")?;
        socket.connect(to).with_context(|| format!("can't send to {to}"))?;
        Self::begin(Carrier::Udp { socket, to }, key, patience)
    }

    fn begin(carrier: Carrier, key: Key, patience: Duration) -> anyhow::Result<Self> {
        let mut session = Self { carrier, client: Client::new(key, random()?), patience };
        let hello = session.client.hello();
        session.until(&hello, |client, bytes| client.take_welcome(bytes))?;
        Ok(session)
    }

    /// Sends a request, in parts if necessary, and returns the answer.
    ///
    /// # Errors
    /// If it is refused, or nobody answers.
    pub fn ask(
        &mut self,
        operation: Operation,
        time: u64,
        items: Items<'static>,
    ) -> anyhow::Result<Answer<'static>> {
        let group = self.client.next_group();
        let mut last = None;
        for request in parts(operation, group, time, &items)? {
            let message = self.client.request(&request).context("a setting is too long for a message")?;
            let answer = self.until(&message, |client, bytes| client.take_answer(bytes).map(owned))?;
            if let Some(refused) = answer.refusal() {
                bail!("{refused} ({})", refused.code.word());
            }
            last = Some(answer);
        }
        last.context("there is nothing to ask")
    }

    /// Requests page by page, and returns all items except those that name the next page.
    ///
    /// # Errors
    /// As [`NespClient::ask`].
    pub fn all(&mut self, operation: Operation, asked: &[Item<'static>]) -> anyhow::Result<Items<'static>> {
        let (mut all, mut from, mut object) = (Vec::new(), Some(0), None);
        while let Some(place) = from.take() {
            let items = std::iter::once(Item::Next(place)).chain(asked.iter().cloned()).collect();
            for item in self.ask(operation, 0, items)?.items {
                match item {
                    // A page that does not advance would be requested for ever.
                    Item::Next(next) => from = Some(next).filter(|next| *next > place),
                    // A page begins with the object that ended the previous page.
                    item if Some(&item) == object.as_ref() => {}
                    item => {
                        if let Item::Object(..) = item {
                            object = Some(item.clone());
                        }
                        all.push(item);
                    }
                }
            }
        }
        Ok(all)
    }

    /// All objects with their settings; one without settings is there, too.
    ///
    /// # Errors
    /// As [`NespClient::ask`].
    pub fn settings(&mut self) -> anyhow::Result<Items<'static>> {
        let mut all = Vec::new();
        for object in self.all(Operation::List, &[])? {
            let named = self.all(Operation::Get, std::slice::from_ref(&object))?;
            all.extend(if named.is_empty() { vec![object] } else { named });
        }
        Ok(all)
    }

    /// Sends a message until `take` accepts an answer.
    fn until<T>(
        &mut self,
        message: &[u8],
        mut take: impl FnMut(&mut Client, &[u8]) -> Option<T>,
    ) -> anyhow::Result<T> {
        let mut retry = Retry::new(monotonic().0, self.patience.as_nanos() as u64);
        let mut buffer = [0; MOST + 200];
        loop {
            match retry.due(monotonic().0) {
                RetryAction::Send => self.carrier.send(message)?,
                RetryAction::GiveUp => bail!(
                    "no answer from {} after {} messages in {:?}; does the instance allow NESP from here \
                     ([nesp] ports), and is the key the same?",
                    self.carrier.name(),
                    retry.sent,
                    self.patience
                ),
                RetryAction::Wait(until) => {
                    let wait = Duration::from_nanos(until.saturating_sub(monotonic().0).max(1));
                    if let Some(bytes) = self.carrier.receive(&mut buffer, wait)?
                        && let Some(found) = take(&mut self.client, bytes)
                    {
                        return Ok(found);
                    }
                }
            }
        }
    }
}

impl Carrier {
    fn name(&self) -> String {
        match self {
            Self::Ethernet { interface, .. } => interface.clone(),
            Self::Udp { to, .. } => to.to_string(),
        }
    }

    fn send(&self, message: &[u8]) -> anyhow::Result<()> {
        match self {
            Self::Ethernet { socket, interface } => {
                let frame = wrap(&MessageEnds::ethernet(socket.mac(), GROUP_ADDRESS), message);
                socket.send(&frame).with_context(|| format!("can't send by {interface}"))
            }
            Self::Udp { socket, to } => match socket.send(message) {
                // An ICMP error about an earlier datagram: the next one may be answered.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
                sent => sent.map(drop).with_context(|| format!("can't send to {to}")),
            },
        }
    }

    /// Receives a message within `wait`.
    fn receive<'b>(&self, buffer: &'b mut [u8], wait: Duration) -> anyhow::Result<Option<&'b [u8]>> {
        match self {
            Self::Ethernet { socket, interface } => {
                let got =
                    socket.receive(buffer, wait).with_context(|| format!("can't receive by {interface}"))?;
                Ok(got.and_then(|got| buffer.get(14..got)))
            }
            Self::Udp { socket, to } => {
                socket.set_read_timeout(Some(wait)).context("can't wait")?;
                match socket.recv(buffer) {
                    Ok(got) => Ok(buffer.get(..got)),
                    Err(error)
                        if matches!(
                            error.kind(),
                            ErrorKind::WouldBlock
                                | ErrorKind::TimedOut
                                | ErrorKind::ConnectionRefused
                                | ErrorKind::Interrupted
                        ) =>
                    {
                        Ok(None)
                    }
                    Err(error) => Err(error).with_context(|| format!("can't receive from {to}")),
                }
            }
        }
    }
}

/// Splits a request whose items may not fit one message. Settings stay after their object.
fn parts(
    operation: Operation,
    group: u32,
    time: u64,
    items: &Items<'static>,
) -> anyhow::Result<Vec<Request<'static>>> {
    let mut groups: Vec<Items<'static>> = vec![Vec::new()];
    let (mut room, mut current) = (Request::ROOM, None);
    for item in items {
        if let Item::Object(..) = item {
            current = Some(item.clone());
        }
        if item.size() > room {
            groups.push(current.iter().filter(|object| *object != item).cloned().collect());
            room = Request::ROOM - current.as_ref().map_or(0, Item::size);
        }
        room = room.saturating_sub(item.size());
        if let Some(last) = groups.last_mut() {
            last.push(item.clone());
        }
    }
    let count = u8::try_from(groups.len()).ok().filter(|count| *count <= Request::MOST_PARTS);
    let parts = count.with_context(|| {
        format!("these are too many changes: they take {} parts, and a group has at most 16", groups.len())
    })?;
    let each = (0u8..).zip(groups);
    Ok(each.map(|(part, items)| Request { group, part, parts, operation, time, items }).collect())
}

/// An answer with owned texts.
fn owned(answer: Answer<'_>) -> Answer<'static> {
    let items = answer.items.into_iter().map(Item::into_owned).collect();
    Answer { status: answer.status, time: answer.time, items }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_nesp::Kind;

    #[test]
    fn long_groups_come_in_parts_that_name_their_object() {
        let mut items = vec![Item::Object(Kind::Link, "up".into())];
        items.extend((0..200).map(|n| Item::Setting(format!("key{n}").into(), "some value".into())));
        let parts = parts(Operation::Set, 7, 5, &items).unwrap();
        assert!(
            parts.len() > 2
                && parts.iter().all(|part| part.items[0] == items[0] && part.parts as usize == parts.len())
        );
        let settings =
            |items: &Items<'static>| items.iter().filter(|item| matches!(item, Item::Setting(..))).count();
        assert_eq!(parts.iter().map(|part| settings(&part.items)).sum::<usize>(), 200);
        for part in &parts {
            assert!(part.items.iter().map(Item::size).sum::<usize>() <= Request::ROOM);
        }
        let items: Items<'static> = (0..1000).map(|_| items[1].clone()).collect();
        assert!(super::parts(Operation::Set, 7, 5, &[items.clone(), items].concat()).is_err());
    }
}
