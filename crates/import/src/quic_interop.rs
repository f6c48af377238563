//! Scenario strings of the QUIC network simulator, with which quic-interop-runner says what lies between
//! client and server: `simple-p2p --delay=15ms --bandwidth=10Mbps --queue=25`.
//!
//! The simulator has a client at its left, a server at its right, and a link of ns-3 between two routers.
//! What a scenario does beyond that acts where packets arrive at the link's end, so here it acts on the wire.

use super::quantity::{LONGEST_DELAY, Share, ns3_rate, time};
use super::stage::Stage;
use super::{ImportError, LinkText, Note, Notes, Result, shortened};
use longwire_units::{Nanos, Rate};
use std::collections::BTreeMap;

/// The scenarios that are translated, with the options that each has besides [`USUAL`].
const SCENARIOS: [(&str, &[&str]); 8] = [
    ("simple-p2p", &[]),
    ("blackhole", &["on", "off", "repeat", "direction"]),
    ("drop-rate", &RATES),
    ("corrupt-rate", &RATES),
    ("droplist", &["drops_to_client", "drops_to_server"]),
    ("udp-cross-traffic", &["crossdatarate"]),
    ("tcp-cross-traffic", &[]),
    ("rebind", &["first-rebind", "rebind-freq", REBIND_ADDR]),
];
const RATES: [&str; 4] = ["rate_to_client", "burst_to_client", "rate_to_server", "burst_to_server"];
/// The options that every scenario has and needs.
const USUAL: [&str; 3] = ["delay", "bandwidth", "queue"];
/// The only option that needs no value.
const REBIND_ADDR: &str = "rebind-addr";
/// Longest text.
const LONGEST: usize = 4096;
/// Most times that a blackhole opens.
const MOST_REPEATS: u64 = 1000;
/// Most packets of a list.
const MOST_DROPS: usize = 1000;
/// When the simulator's cross traffic begins.
const CROSS_TRAFFIC: Nanos = Nanos::from_secs(20);

/// The link between client and server, and what else happens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InteropLink {
    /// The scenario string, its words separated by spaces.
    pub text: String,
    /// Keys of the link from the client to the server.
    pub to_server: LinkText,
    /// Keys of the link back.
    pub to_client: LinkText,
    /// A change of the link to the client at a time.
    pub later: Option<(Nanos, LinkText)>,
    /// The client's ports and addresses change.
    pub rebinding: Option<Rebinding>,
    /// A TCP connection inside of the simulator sends towards the client.
    pub has_tcp: bool,
    /// What is not as in the simulator.
    pub notes: Vec<Note>,
}

/// When a translator gives the client other ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rebinding {
    /// Time of the first, from the start.
    pub first: Nanos,
    /// Time from each to the next; 0: there is one only.
    pub again: Nanos,
    /// Whether it gets other addresses, too.
    pub addresses: bool,
}

/// Reads a scenario string: its name, and options such as `--delay=15ms`.
///
/// # Errors
/// The fault and its fix: an unknown scenario or option, a missing option, a value that is out of range.
pub fn quic_interop(text: &str) -> Result<InteropLink, ImportError> {
    let what = format!("the scenario is longer than {LONGEST} bytes");
    ImportError::unless(text.len() <= LONGEST, 0, what, "write a name and options")?;
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let own = known(name)?;
    let options = Options::read(name, own, words)?;
    let mut notes = Notes::default();
    let mut link = InteropLink {
        text: text.split_whitespace().collect::<Vec<_>>().join(" "),
        has_tcp: name == "tcp-cross-traffic",
        ..InteropLink::default()
    };
    let (mut to_server, mut to_client) = (options.link()?, options.link()?);
    match name {
        "blackhole" => options.blackhole(&mut to_server, &mut to_client)?,
        "drop-rate" => {
            options.drop_rate("rate_to_server", "burst_to_server", &mut to_server)?;
            options.drop_rate("rate_to_client", "burst_to_client", &mut to_client)?;
            notes.add(0, name, "packets of all protocols can be lost, not only those of UDP");
        }
        "corrupt-rate" => {
            options.corrupt_rate("rate_to_server", "burst_to_server", (&mut to_server, &mut notes))?;
            options.corrupt_rate("rate_to_client", "burst_to_client", (&mut to_client, &mut notes))?;
            let why = "UDP's checksum stays as it was, so the receiver's kernel drops what is corrupted";
            notes.add(0, name, why);
        }
        "droplist" => {
            options.droplist("drops_to_server", &mut to_server)?;
            options.droplist("drops_to_client", &mut to_client)?;
            notes.add(0, name, "packets of all protocols are counted, not only those of UDP");
        }
        "udp-cross-traffic" => {
            let rate = options.rate("crossdatarate")?;
            let mut more = Stage::default();
            // OnOffApplication's default: 512 bytes of payload, with 28 of headers and 14 of Ethernet.
            more.block("background", "cbr", &[("rate", rate.to_string()), ("size", "554 B".into())]);
            link.later = Some((CROSS_TRAFFIC, more.into_text()));
        }
        "tcp-cross-traffic" => notes.add(0, name, "the TCP is CUBIC without SACK, not NewReno with SACK"),
        "rebind" => {
            link.rebinding = Some(options.rebinding()?);
            notes.add(0, name, "all ports of the client are moved by the same number");
        }
        _ => {}
    }
    (link.to_server, link.to_client) = (to_server.into_text(), to_client.into_text());
    link.notes = notes.list;
    Ok(link)
}

/// The options of a scenario besides the usual ones.
fn known(name: &str) -> Result<&'static [&'static str]> {
    if let Some((_, own)) = SCENARIOS.iter().find(|scenario| scenario.0 == name) {
        return Ok(*own);
    }
    let named = if name.is_empty() { String::new() } else { format!(" \"{}\"", shortened(name)) };
    let fix = format!("there are {}", SCENARIOS.map(|scenario| scenario.0).join(", "));
    Err(ImportError::new(0, format!("there is no scenario{named}"), fix))
}

/// Options and their values.
struct Options<'t>(BTreeMap<&'static str, &'t str>);

impl<'t> Options<'t> {
    fn read(name: &str, own: &[&'static str], words: impl Iterator<Item = &'t str>) -> Result<Self> {
        let all = || USUAL.iter().chain(own).copied();
        let mut values = BTreeMap::new();
        for word in words {
            let option = word.strip_prefix("--").and_then(|option| {
                option.split_once('=').or_else(|| (option == REBIND_ADDR).then_some((option, "true")))
            });
            let what = format!("\"{}\" is no option with a value", shortened(word));
            let (key, value) = option.ok_or_else(|| ImportError::new(0, what, "write --delay=15ms"))?;
            let unknown = || {
                let names: Vec<String> = all().map(|one| format!("--{one}")).collect();
                let what = format!("{name} has no option --{}", shortened(key));
                ImportError::new(0, what, format!("it has {}", names.join(", ")))
            };
            let key = all().find(|one| *one == key).ok_or_else(unknown)?;
            let is_first = values.insert(key, value).is_none();
            ImportError::unless(is_first, 0, format!("--{key} is there twice"), "write it once")?;
        }
        Ok(Self(values))
    }

    fn needed(&self, key: &str) -> Result<&'t str> {
        let missing = || ImportError::new(0, format!("--{key} is missing"), "this scenario needs it");
        self.0.get(key).copied().filter(|value| !value.is_empty()).ok_or_else(missing)
    }

    fn wrong(&self, key: &str, fix: &str) -> ImportError {
        let value = shortened(self.0.get(key).copied().unwrap_or_default());
        ImportError::new(0, format!("--{key}={value} is out of range, or has an unknown unit"), fix)
    }

    /// A time: ns-3's bare numbers are seconds.
    fn time(&self, key: &str, most: Nanos) -> Result<Nanos> {
        let found = time(self.needed(key)?, 1_000_000_000).filter(|time| *time <= most);
        found.ok_or_else(|| self.wrong(key, &format!("write a time such as 15ms, at most {most}")))
    }

    fn rate(&self, key: &str) -> Result<Rate> {
        let found = ns3_rate(self.needed(key)?).filter(|rate| (300..=Rate::MAX.0).contains(rate));
        found.map(Rate).ok_or_else(|| self.wrong(key, "write a rate such as 10Mbps, 300bps to 400Gbps"))
    }

    fn number(&self, key: &str, least: u64, most: u64) -> Result<u64> {
        let found = self.needed(key)?.parse().ok().filter(|number| (least..=most).contains(number));
        found.ok_or_else(|| self.wrong(key, &format!("write {least} to {most}")))
    }

    /// What every scenario has: rate, delay and queue.
    fn link(&self) -> Result<Stage> {
        let mut link = Stage::default();
        let rate = self.rate("bandwidth")?.to_string();
        // A point-to-point device of ns-3 puts two bytes of PPP before an IP packet.
        let framing = [("rate", rate), ("framing", "ip".into()), ("overhead", "2".into())];
        link.block("rate", "constant", &framing);
        link.set("delay", &self.time("delay", LONGEST_DELAY)?.to_string());
        // Behind the queue of that length, ns-3 has one packet in its device, and one that is sent.
        let packets = self.number("queue", 1, 1_000_000)? + 2;
        link.set("queue", &format!("{packets} packets"));
        Ok(link)
    }

    fn blackhole(&self, to_server: &mut Stage, to_client: &mut Stage) -> Result<()> {
        let longest = Nanos::from_secs(1_000_000);
        let (on, off) = (self.time("on", longest)?, self.time("off", longest)?);
        if on == Nanos::ZERO || off == Nanos::ZERO {
            let key = if on == Nanos::ZERO { "on" } else { "off" };
            return Err(self.wrong(key, "write a time above 0"));
        }
        let repeats = if self.0.contains_key("repeat") { self.number("repeat", 1, MOST_REPEATS)? } else { 1 };
        let mut list = "0 s 0 %".to_owned();
        for round in 0..repeats {
            let begin = Nanos((on.0 + off.0) * round + on.0);
            list += &format!("; {begin} 100 %; {} 0 %", begin + off);
        }
        let parameters = [("file", list), ("end", "hold".into()), ("where", "wire".into())];
        let directions = match self.0.get("direction").copied().unwrap_or("both") {
            "both" => vec![to_server, to_client],
            "toserver" => vec![to_server],
            "toclient" => vec![to_client],
            _ => return Err(self.wrong("direction", "write both, toclient or toserver")),
        };
        directions.into_iter().for_each(|link| link.block("loss", "trace", &parameters));
        Ok(())
    }

    fn rebinding(&self) -> Result<Rebinding> {
        let longest = Nanos::from_secs(1_000_000);
        let first = self.time("first-rebind", longest)?;
        if first == Nanos::ZERO {
            return Err(self.wrong("first-rebind", "write a time above 0"));
        }
        let has_more = self.0.contains_key("rebind-freq");
        let again = if has_more { self.time("rebind-freq", longest)? } else { Nanos::ZERO };
        let addresses = match self.0.get(REBIND_ADDR).copied() {
            None | Some("false" | "0") => false,
            Some("true" | "1") => true,
            Some(_) => return Err(self.wrong(REBIND_ADDR, "write true or false")),
        };
        Ok(Rebinding { first, again, addresses })
    }

    /// A share in whole per cent, as the simulator reads it.
    fn percent(&self, key: &str) -> Result<String> {
        let percent = self.number(key, 0, 100)?;
        Share::percent(&percent.to_string()).map(Share::text).ok_or_else(|| self.wrong(key, "write 0 to 100"))
    }

    fn drop_rate(&self, rate: &str, burst: &str, link: &mut Stage) -> Result<()> {
        let mut parameters = vec![("probability", self.percent(rate)?)];
        let kind = if self.0.contains_key(burst) {
            parameters.push(("most", self.number(burst, 1, 1_000_000)?.to_string()));
            "limited"
        } else {
            "independent"
        };
        parameters.push(("where", "wire".into()));
        link.block("loss", kind, &parameters);
        Ok(())
    }

    fn corrupt_rate(&self, rate: &str, burst: &str, (link, notes): (&mut Stage, &mut Notes)) -> Result<()> {
        if self.0.contains_key(burst) {
            self.number(burst, 1, 1_000_000)?;
            notes.add(0, &format!("--{burst}"), "any number of packets in a row can be corrupted");
        }
        // The simulator replaces a byte, of whose bits half differ on average.
        let parameters = [
            ("probability", self.percent(rate)?),
            ("bits", "4".into()),
            ("headers", "spare".into()),
            ("where", "wire".into()),
        ];
        link.block("bit-error", "per-packet", &parameters);
        Ok(())
    }

    fn droplist(&self, key: &str, link: &mut Stage) -> Result<()> {
        let Some(list) = self.0.get(key).copied() else { return Ok(()) };
        let mut numbers: Vec<u64> = Vec::new();
        for number in list.split(',').filter(|number| !number.is_empty()) {
            let number = number.parse().ok().filter(|number| (1..=1_000_000_000).contains(number));
            numbers.push(number.ok_or_else(|| self.wrong(key, "write numbers from 1 on, such as 1,3,15"))?);
        }
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.len() > MOST_DROPS {
            return Err(self.wrong(key, &format!("write at most {MOST_DROPS} numbers")));
        }
        if !numbers.is_empty() {
            let list = numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
            link.block("loss", "pattern", &[("list", list), ("where", "wire".into())]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: &str = "--delay=15ms --bandwidth=10Mbps --queue=25";

    /// The keys of a direction, as lines.
    fn keys(link: &LinkText) -> String {
        link.settings.iter().map(|(key, value)| format!("{key} = {value}\n")).collect()
    }

    fn read(text: &str) -> [String; 2] {
        let link = quic_interop(text).unwrap();
        for text in [&link.to_server, &link.to_client] {
            let scenario = format!(
                "[[host]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\n[[host]]\nname = \"b\"\n\
                 address = \"10.0.0.2/24\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\n{}",
                keys(text)
            );
            longwire_scenario::plan_of(&scenario);
        }
        [keys(&link.to_server), keys(&link.to_client)]
    }

    #[test]
    fn every_scenario_of_the_runner_that_has_a_counterpart_is_a_link() {
        let plain = "rate = { kind = \"constant\", rate = \"10 Mbit/s\", framing = \"ip\", \
            overhead = \"2\" }\ndelay = \"15 ms\"\nqueue = \"27 packets\"\n";
        assert_eq!(read(&format!("simple-p2p {LINK}")), [plain, plain]);
        let loss = |rest: &str| format!("{plain}loss = {{ {rest}, where = \"wire\" }}\n");
        let hole = "kind = \"trace\", file = \"0 s 0 %; 5 s 100 %; 7 s 0 %\", end = \"hold\"";
        assert_eq!(read(&format!("blackhole {LINK} --on=5s --off=2s")), [loss(hole), loss(hole)]);
        let twice =
            "kind = \"trace\", file = \"0 s 0 %; 1 s 100 %; 3 s 0 %; 4 s 100 %; 6 s 0 %\", end = \"hold\"";
        let text = format!("blackhole {LINK} --on=1s --off=2s --repeat=2 --direction=toserver");
        assert_eq!(read(&text), [loss(twice), plain.to_owned()]);
        let text = format!("drop-rate {LINK} --rate_to_server=30 --rate_to_client=2 --burst_to_server=3");
        let limited = "kind = \"limited\", probability = \"30 %\", most = \"3\"";
        let independent = "kind = \"independent\", probability = \"2 %\"";
        assert_eq!(read(&text), [loss(limited), loss(independent)]);
        let text = format!("droplist {LINK} --drops_to_server=7,2,3,2");
        assert_eq!(read(&text), [loss("kind = \"pattern\", list = \"2, 3, 7\""), plain.to_owned()]);
        let text = format!("corrupt-rate {LINK} --rate_to_server=30 --rate_to_client=30 --burst_to_client=3");
        let corrupted = format!(
            "{plain}bit-error = {{ kind = \"per-packet\", probability = \"30 %\", bits = \"4\", \
             headers = \"spare\", where = \"wire\" }}\n"
        );
        assert_eq!(read(&text), [corrupted.clone(), corrupted]);
        assert_eq!(quic_interop(&text).unwrap().notes.len(), 2);
        let later = quic_interop(&format!("udp-cross-traffic {LINK} --crossdatarate=1Mbps")).unwrap().later;
        let (time, change) = later.unwrap();
        assert_eq!(time, CROSS_TRAFFIC);
        assert!(keys(&change).contains("rate = \"1 Mbit/s\""), "{change:?}");
    }

    #[test]
    fn rates_are_those_of_ns_3() {
        for (text, rate) in [
            ("10Mbps", 10_000_000),
            ("10Mb/s", 10_000_000),
            ("1.5Gbps", 1_500_000_000),
            ("56kbps", 56_000),
            ("1MBps", 8_000_000),
            ("1KiB/s", 8192),
            ("9600", 9600),
            ("9600bps", 9600),
        ] {
            assert_eq!(ns3_rate(text), Some(rate), "{text}");
        }
        for text in ["", "10mbit", "Mbps", "10 Mbps", "-1bps", "10Mps"] {
            assert_eq!(ns3_rate(text), None, "{text}");
        }
    }

    #[test]
    fn rebinding_and_tcp_are_beside_the_link() {
        let plain = quic_interop(&format!("simple-p2p {LINK}")).unwrap();
        assert_eq!((plain.rebinding, plain.has_tcp), (None, false));
        let tcp = quic_interop(&format!("tcp-cross-traffic {LINK}")).unwrap();
        assert_eq!((tcp.rebinding, tcp.has_tcp), (None, true));
        let (first, again) = (Nanos::from_secs(1), Nanos::from_secs(5));
        for (options, wanted) in [
            ("", Rebinding { first, again: Nanos::ZERO, addresses: false }),
            (" --rebind-freq=5s", Rebinding { first, again, addresses: false }),
            (" --rebind-freq=5s --rebind-addr", Rebinding { first, again, addresses: true }),
            (" --rebind-addr=false --rebind-freq=5s", Rebinding { first, again, addresses: false }),
        ] {
            let link = quic_interop(&format!("rebind {LINK} --first-rebind=1s{options}")).unwrap();
            assert_eq!((link.rebinding, link.has_tcp), (Some(wanted), false), "{options}");
            assert_eq!(keys(&link.to_server), keys(&plain.to_server));
        }
    }

    #[test]
    fn mistakes_list_what_is_known() {
        for (text, wanted) in [
            ("", "there is no scenario; there are simple-p2p, blackhole, drop-rate, corrupt-rate"),
            ("goodput --delay=1ms", "no scenario \"goodput\"; there are simple-p2p"),
            ("simple-p2p --delay=1ms --bandwidth=1Mbps", "--queue is missing"),
            ("simple-p2p --dealy=1ms", "no option --dealy; it has --delay, --bandwidth, --queue"),
            ("simple-p2p --on=1s", "no option --on"),
            ("simple-p2p delay=1ms", "\"delay=1ms\" is no option"),
            ("simple-p2p --delay", "\"--delay\" is no option"),
            ("simple-p2p --delay=1ms --delay=2ms", "--delay is there twice"),
            ("simple-p2p --delay=1mm --bandwidth=1Mbps --queue=1", "--delay=1mm is out of range"),
            ("simple-p2p --delay=1000s --bandwidth=1Mbps --queue=1", "--delay=1000s is out of range"),
            ("simple-p2p --delay=1ms --bandwidth=1bps --queue=1", "--bandwidth=1bps is out of range"),
            ("simple-p2p --delay=1ms --bandwidth=1Mbps --queue=0", "--queue=0 is out of range"),
        ] {
            let error = quic_interop(text).unwrap_err();
            assert!(error.to_string().contains(wanted) && !error.fix.is_empty(), "{text}: {error}");
        }
        for (options, wanted) in [
            ("blackhole --on=0s --off=1s", "--on=0s"),
            ("blackhole --on=1s --off=1s --repeat=0", "--repeat=0"),
            ("blackhole --on=1s --off=1s --direction=up", "write both, toclient or toserver"),
            ("drop-rate --rate_to_client=101 --rate_to_server=1", "--rate_to_client=101"),
            ("drop-rate --rate_to_client=1", "--rate_to_server is missing"),
            ("drop-rate --rate_to_client=1 --rate_to_server=1 --burst_to_server=0", "--burst_to_server=0"),
            ("rebind --first-rebind=0s", "write a time above 0"),
            ("rebind --rebind-freq=1s", "--first-rebind is missing"),
            ("rebind --first-rebind=1s --rebind-freq", "\"--rebind-freq\" is no option with a value"),
            ("rebind --first-rebind=1s --rebind-addr=maybe", "write true or false"),
            ("droplist --drops_to_client=1,0", "--drops_to_client=1,0"),
            ("droplist --drops_to_client=1,x", "numbers from 1 on"),
        ] {
            let (name, rest) = options.split_once(' ').unwrap();
            let error = quic_interop(&format!("{name} {LINK} {rest}")).unwrap_err().to_string();
            assert!(error.contains(wanted), "{options}: {error}");
        }
        assert!(quic_interop(&"x".repeat(5000)).unwrap_err().to_string().contains("longer than"));
    }
}
