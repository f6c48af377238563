//! The scenario of the links in both directions, from the options.

use super::own_settings;
use anyhow::{anyhow, ensure};
use clap::builder::NonEmptyStringValueParser as NonEmpty;
use longwire_import::{LinkText, NetemLinks, Note, links_between, netem_links};
use longwire_lab::{FAR, NEAR};
use longwire_run::named_files::named_files;
use longwire_scenario::library::Direction;
use longwire_scenario::{Finding, Plan, ScenarioError, parse};
use longwire_units::{Nanos, Probability, Rate};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Options for both directions and for each.
#[derive(Debug, Clone, clap::Args)]
pub struct LinkArgs {
    /// Defaults of the link: a name that `longwire profiles` lists, or a file. Down is towards the near end
    /// (the command, the container, the client), up is away from it.
    #[arg(long, value_name = "NAME", value_parser = NonEmpty::new(), conflicts_with = "netem")]
    profile: Option<String>,

    /// Bandwidth each way: 4mbit, "10 Mbit/s", unlimited. Default: unlimited.
    #[arg(long)]
    rate: Option<Rate>,

    /// Delay each way: 60ms. Default: none.
    #[arg(long, value_name = "TIME")]
    delay: Option<Nanos>,

    /// Share of packets lost each way: 1%, 0.01. Default: none.
    #[arg(long, value_name = "SHARE")]
    loss: Option<Probability>,

    /// Jitter each way: delays vary evenly by up to this, either way, and packets keep their order: 5ms.
    /// Default: none.
    #[arg(long, value_name = "TIME", requires = "delay")]
    jitter: Option<Nanos>,

    /// Share of packets that overtake others each way, by skipping the delay: 1%. Default: none.
    #[arg(long, value_name = "SHARE", requires = "delay")]
    reorder: Option<Probability>,

    /// Share of packets that arrive twice each way: 1%. Default: none.
    #[arg(long, value_name = "SHARE")]
    duplicate: Option<Probability>,

    /// Share of packets with a bit flipped each way: 1%. Default: none.
    #[arg(long, value_name = "SHARE")]
    corrupt: Option<Probability>,

    /// Limit of the queue each way: "100 packets", "64 KiB", 50ms. Default: 1000 packets.
    #[arg(long, value_name = "LIMIT")]
    queue: Option<String>,

    /// The effect of tc netem, each way: "delay 100ms 20ms distribution normal loss gemodel 1% 25%".
    #[arg(long, value_name = "OPTIONS", value_parser = netem,
        conflicts_with_all = ["rate", "delay", "jitter", "loss", "reorder", "duplicate", "corrupt", "queue"])]
    netem: Option<NetemLinks>,

    /// Rates from a trace, each way: mahimahi's, TheaterQ's, or a list of times and rates.
    #[arg(long, value_name = "FILE", value_parser = NonEmpty::new(), conflicts_with = "rate")]
    trace: Option<String>,

    /// Rates from a trace on the way out, instead of --trace.
    #[arg(long, value_name = "FILE", value_parser = NonEmpty::new(), conflicts_with = "rate")]
    trace_up: Option<String>,

    /// Rates from a trace on the way in, instead of --trace.
    #[arg(long, value_name = "FILE", value_parser = NonEmpty::new(), conflicts_with = "rate")]
    trace_down: Option<String>,

    /// Settings for the way out, from the near end: rate=1mbit,delay=80ms. Any key that `longwire blocks`
    /// lists.
    #[arg(long, value_name = "KEY=VALUE,…", default_value = "", hide_default_value = true)]
    up: Settings,

    /// Settings for the way in, to the near end.
    #[arg(long, value_name = "KEY=VALUE,…", default_value = "", hide_default_value = true)]
    down: Settings,
}

/// The name of the link from the near end, or the beginning of the names of several.
const UP: &str = "up";

/// What the links are between.
#[derive(Debug, Clone, Copy)]
pub enum LinkEnds {
    /// Hosts with this MTU.
    Hosts { mtu: u32 },
    /// Ports of this process.
    Process,
}

/// Settings of a link, each key once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Settings(BTreeMap<String, String>);

impl FromStr for Settings {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut settings = BTreeMap::new();
        for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
            let Some((key, value)) = pair.split_once('=') else {
                return Err(format!("\"{pair}\" is no KEY=VALUE; write rate=1mbit,delay=80ms"));
            };
            let key = key.trim();
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if key.is_empty() || !key.chars().all(plain) {
                return Err(format!("\"{key}\" is not a key; `longwire blocks` lists them"));
            }
            if settings.insert(key.to_owned(), value.trim().to_owned()).is_some() {
                return Err(format!("\"{key}\" is given twice"));
            }
        }
        Ok(Self(settings))
    }
}

impl LinkArgs {
    /// The plan of a command: the two ends, and the links in both directions.
    pub fn plan(&self, command: &str, seed: u64, ends: LinkEnds) -> anyhow::Result<Plan> {
        let seed = self.netem.as_ref().and_then(|netem| netem.seed).unwrap_or(seed);
        let mut text = format!("seed = {seed}\n");
        // The final addresses of hosts are chosen when they are made.
        for (end, address) in [(NEAR, "100.64.0.2"), (FAR, "100.64.0.1")] {
            text += &match ends {
                LinkEnds::Hosts { mtu } => {
                    format!("[[host]]\nname = \"{end}\"\naddress = \"{address}/30\"\nmtu = {mtu}\n")
                }
                LinkEnds::Process => {
                    format!("[[port]]\nname = \"{end}\"\ndriver = \"memory\"\naddresses = \"{address}\"\n")
                }
            };
        }
        let up = self.way(&self.up, self.trace_up.as_ref(), Direction::Backward)?;
        let down = self.way(&self.down, self.trace_down.as_ref(), Direction::Forward)?;
        text += &links_between((NEAR, FAR), (UP, "down"), up, down);
        let mut plan = parse(command, &text).map_err(|error| explained(&error))?;
        // Links without a profile do not say it themselves; there are no others than these.
        for link in plan.links.iter_mut().filter(|link| link.name.starts_with(UP)) {
            link.direction = Direction::Backward;
        }
        Ok(plan)
    }

    /// The files that it is made of: those that options name, and those that a profile among them names.
    pub fn files(&self) -> Vec<PathBuf> {
        let named = [&self.profile, &self.trace, &self.trace_up, &self.trace_down].into_iter().flatten();
        let values = [&self.up, &self.down].into_iter().flat_map(|own| own.0.values());
        named_files(Path::new(""), named.chain(values).map(String::as_str))
    }

    /// Options of netem that were not converted.
    pub fn notes(&self) -> &[Note] {
        self.netem.as_ref().map_or(&[], |netem| &netem.notes)
    }

    /// The links of one direction: netem's, or one with a profile and the common settings; then a trace's;
    /// then its own settings.
    fn way(&self, own: &Settings, trace: Option<&String>, way: Direction) -> anyhow::Result<Vec<LinkText>> {
        let mut links = match &self.netem {
            Some(netem) => netem.links.clone(),
            None => vec![LinkText { settings: self.common()? }],
        };
        if let (Some(profile), [link]) = (&self.profile, &mut links[..]) {
            link.settings.push(("profile".to_owned(), quoted(&format!("{profile}{}", way.suffix()))?));
        }
        if let Some(file) = trace.or(self.trace.as_ref()) {
            let rate = ("rate".to_owned(), format!("{{ kind = \"trace\", file = {} }}", quoted(file)?));
            let has = |link: &LinkText, key: &str| link.settings.iter().any(|(own, _)| own == key);
            ensure!(
                !links.iter().any(|link| has(link, "rate")),
                "netem's rate and a trace can't both be the rate; give one"
            );
            match links.last_mut() {
                // netem delays before it sends.
                Some(last) if self.netem.is_none() || !has(last, "delay") => last.settings.push(rate),
                _ => links.push(LinkText { settings: vec![rate] }),
            }
        }
        // A kind decides which parameters its block has.
        let mut own: Vec<_> = own.0.iter().collect();
        own.sort_by_key(|(key, _)| (key.contains('.'), !key.ends_with(".kind")));
        for (key, value) in own {
            own_settings::set(&mut links, key, &quoted(value)?);
        }
        Ok(links)
    }

    /// The settings of both directions, as TOML.
    fn common(&self) -> anyhow::Result<Vec<(String, String)>> {
        let text = |value: &dyn ToString| longwire_scenario::quoted(&value.to_string());
        let delay = self.delay.map(|delay| match &self.jitter {
            Some(jitter) => {
                format!("{{ kind = \"jitter\", delay = {}, jitter = {} }}", text(&delay), text(jitter))
            }
            None => text(&delay),
        });
        let corrupt =
            |share: Probability| format!("{{ kind = \"per-packet\", probability = {} }}", text(&share));
        let common = [
            ("rate", self.rate.map(|rate| text(&rate))),
            ("delay", delay),
            ("loss", self.loss.map(|share| text(&share))),
            ("reorder", self.reorder.map(|share| text(&share))),
            ("duplicate", self.duplicate.map(|share| text(&share))),
            ("bit-error", self.corrupt.map(corrupt)),
            ("queue", self.queue.as_deref().map(quoted).transpose()?),
        ];
        Ok(common.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect())
    }
}

/// netem's options.
fn netem(text: &str) -> Result<NetemLinks, String> {
    netem_links(text).map_err(|error| error.to_string())
}

/// A value as a TOML string.
fn quoted(value: &str) -> anyhow::Result<String> {
    ensure!(
        !value.contains(char::is_control),
        "\"{}\" has characters that no value has",
        value.escape_debug()
    );
    Ok(longwire_scenario::quoted(value))
}

/// Removes the positions in the generated file from the errors.
fn explained(error: &ScenarioError) -> anyhow::Error {
    let lines = error.findings.iter().map(|Finding { field, what, fix, .. }| {
        let place = if field.is_empty() { String::new() } else { format!("{field}: ") };
        let fix = if fix.is_empty() { String::new() } else { format!("; {fix}") };
        format!("{place}{what}{fix}")
    });
    anyhow!(lines.collect::<Vec<_>>().join("\n"))
}

/// The smallest MTU of hosts here.
pub const LEAST_MTU: u32 = 576;
/// The largest.
pub const LARGEST_MTU: u32 = 65_521;

/// The largest MTU of Ethernet with jumbo frames.
const LARGEST_FRAME: u32 = 9216;

/// The MTU of a link on a machine whose packets leave by this interface: the same, so that nothing is
/// fragmented behind the link. Interfaces such as the loopback have MTUs that no network has.
pub fn usual_mtu(way_out: Option<u32>) -> u32 {
    way_out.filter(|mtu| (LEAST_MTU..=LARGEST_FRAME).contains(mtu)).unwrap_or(1500)
}

/// Parses an MTU of hosts.
pub fn mtu(text: &str) -> Result<u32, String> {
    let bytes: u32 =
        text.parse().map_err(|_| format!("\"{text}\" is not a number of bytes, such as 1400"))?;
    if (LEAST_MTU..=LARGEST_MTU).contains(&bytes) {
        return Ok(bytes);
    }
    Err(format!("{bytes} is outside {LEAST_MTU} to {LARGEST_MTU} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_block::Value;
    use longwire_run::outlook::outlook;

    fn args(rate: &str, up: &str) -> LinkArgs {
        LinkArgs {
            profile: None,
            rate: Some(rate.parse().unwrap()),
            delay: Some("60ms".parse().unwrap()),
            jitter: None,
            loss: None,
            reorder: None,
            duplicate: None,
            corrupt: None,
            queue: Some("50ms".into()),
            netem: None,
            trace: None,
            trace_up: None,
            trace_down: None,
            up: up.parse().unwrap(),
            down: Settings::default(),
        }
    }

    fn settings(plan: &Plan, place: usize) -> Vec<String> {
        let blocks = plan.profile(place).blocks.iter();
        let mut all: Vec<_> = blocks
            .map(|(spec, values)| format!("{}={}", spec.key, values.as_slice()[0].print(spec.params[0].kind)))
            .collect();
        all.sort();
        all
    }

    #[test]
    fn the_way_out_says_how_long_packets_are() {
        for (way_out, mtu) in
            [(None, 1500), (Some(1400), 1400), (Some(9000), 9000), (Some(65_536), 1500), (Some(68), 1500)]
        {
            assert_eq!(usual_mtu(way_out), mtu);
        }
    }

    #[test]
    fn one_direction_can_differ() {
        let plan =
            args("4mbit", "rate=1mbit, loss=2%").plan("exec", 1, LinkEnds::Hosts { mtu: 1500 }).unwrap();
        assert_eq!(settings(&plan, 0), ["delay=60 ms", "loss=2 %", "queue=50 ms", "rate=1 Mbit/s"]);
        assert_eq!(settings(&plan, 1), ["delay=60 ms", "queue=50 ms", "rate=4 Mbit/s"]);
        assert_eq!(plan.links.iter().map(|l| &*l.name).collect::<Vec<_>>(), ["up", "down"]);
    }

    #[test]
    fn a_parameter_of_one_direction_is_added_to_the_common_block() {
        let plan = |up: &str| args("4mbit", up).plan("exec", 1, LinkEnds::Hosts { mtu: 1500 }).unwrap();
        let block = |plan: &Plan, key: &str| {
            let (spec, values) = plan.profile(0).blocks.iter().find(|(spec, _)| spec.key == key).unwrap();
            let texts = spec.params.iter().zip(values.as_slice());
            texts
                .map(|(param, value)| format!("{}={}", param.name, value.print(param.kind)))
                .collect::<Vec<_>>()
        };
        let both = plan("rate.overhead=20, delay.kind=jitter, delay.jitter=5ms, queue.limit=9 packets");
        let rate = block(&both, "rate");
        assert!(rate.contains(&"rate=4 Mbit/s".into()) && rate.contains(&"overhead=20".into()), "{rate:?}");
        let delay = block(&both, "delay");
        assert!(delay.starts_with(&["delay=60 ms".into(), "jitter=5 ms".into()]), "{delay:?}");
        assert!(block(&plan("rate=2mbit,rate.overhead=20"), "rate").contains(&"rate=2 Mbit/s".into()));
    }

    #[test]
    fn impairments() {
        let share = |text: &str| Some(text.parse().unwrap());
        let given = LinkArgs {
            jitter: Some("5ms".parse().unwrap()),
            reorder: share("1%"),
            duplicate: share("2%"),
            corrupt: share("3%"),
            ..args("10mbit", "")
        };
        let plan = given.plan("exec", 1, LinkEnds::Hosts { mtu: 1500 }).unwrap();
        let wanted =
            ["bit-error=3 %", "delay=60 ms", "duplicate=2 %", "queue=50 ms", "rate=10 Mbit/s", "reorder=1 %"];
        assert_eq!(settings(&plan, 0), wanted);
    }

    #[test]
    fn a_link_that_loses_all_is_said_to() {
        let said = |loss: &str, up: &str| {
            let given = LinkArgs { loss: Some(loss.parse().unwrap()), ..args("10mbit", up) };
            outlook(&given.plan("exec", 1, LinkEnds::Hosts { mtu: 1500 }).unwrap(), "it will be").join("; ")
        };
        assert!(said("99%", "").starts_with("it will be about 120"), "{}", said("99%", ""));
        assert_eq!(said("1", ""), "every packet will be lost (loss 100 %)");
        assert_eq!(said("1%", "loss=100%"), "every packet on up will be lost (loss 100 %)");
        assert_eq!(said("1%", "state=down"), "nothing will pass on up (state down)");
        assert_eq!(said("1%", "rate=0"), "nothing will pass on up (rate 0)");
        assert!(said("1%", "state=up").starts_with("it will be about 120"));
    }

    #[test]
    fn what_varies_is_said_to() {
        let said = |given: LinkArgs| {
            outlook(&given.plan("exec", 1, LinkEnds::Hosts { mtu: 1500 }).unwrap(), "it will be")
        };
        let plain = || LinkArgs { rate: None, delay: None, queue: None, ..args("1mbit", "") };
        let varies = ["it will be about 60.00 ms, and more where the rate is low: it varies"];
        assert_eq!(said(LinkArgs { profile: Some("lte".into()), ..plain() }), varies);
        // Evenly from -5 ms to 15 ms: 5.625 ms each way, as nothing is early.
        let [delay, jitter] = ["5ms", "10ms"].map(|time| Some(time.parse().unwrap()));
        let cut = said(LinkArgs { delay, jitter, ..plain() });
        assert_eq!((cut.len(), &*cut[0]), (2, "it will be about 11.25 ms"));
        assert!(cut[1].starts_with("note: a delay of 5 ms can't vary by 10 ms"), "{cut:?}");
    }

    #[test]
    fn netem_applies_to_both_directions() {
        let options = netem("delay 30ms rate 2mbit limit 20").unwrap();
        let common = LinkArgs { rate: None, delay: None, queue: None, ..args("1mbit", "delay=5ms") };
        let given = LinkArgs { netem: Some(options), ..common };
        let plan = given.plan("exec", 1, LinkEnds::Hosts { mtu: 1500 }).unwrap();
        assert_eq!(
            plan.links.iter().map(|l| &*l.name).collect::<Vec<_>>(),
            ["up-1", "up-2", "down-1", "down-2"]
        );
        assert_eq!(
            (settings(&plan, 0), settings(&plan, 2)),
            (vec!["delay=5 ms".into()], vec!["delay=30 ms".into()])
        );
        assert_eq!(settings(&plan, 1), ["queue=20 packets", "rate=2 Mbit/s"]);
        assert!(given.notes()[0].to_string().contains("limit 20"));
        let error = LinkArgs { trace: Some("x".into()), ..given }
            .plan("exec", 1, LinkEnds::Hosts { mtu: 1500 })
            .unwrap_err()
            .to_string();
        assert!(error.contains("netem's rate and a trace"), "{error}");
        assert!(netem("dely 1ms").unwrap_err().contains("no option \"dely\""));
    }

    #[test]
    fn a_trace_is_the_rate() {
        let file = std::env::temp_dir().join(format!("longwire-exec-{}.trace", std::process::id()));
        std::fs::write(&file, "1\n2\n").unwrap();
        let trace = Some(file.display().to_string());
        let given = LinkArgs { rate: None, trace, ..args("1mbit", "") };
        let ways = [(&given.up, Direction::Backward), (&given.down, Direction::Forward)]
            .map(|(own, way)| given.way(own, None, way).unwrap().swap_remove(0));
        assert!(
            ways.iter()
                .all(|way| way.settings.iter().any(|(key, value)| key == "rate" && value.contains("trace")))
        );
        assert_eq!(given.plan("exec", 1, LinkEnds::Hosts { mtu: 1500 }).unwrap().links.len(), 2);
        std::fs::remove_file(&file).unwrap();
        let missing = given.plan("exec", 1, LinkEnds::Hosts { mtu: 1500 }).unwrap_err().to_string();
        assert!(missing.contains("rate"), "{missing}");
    }

    #[test]
    fn a_profile_is_down_to_the_command() {
        let common = LinkArgs { rate: None, delay: None, queue: None, ..args("1mbit", "") };
        let given = LinkArgs { profile: Some("adsl".into()), ..common };
        let plan = given.plan("exec", 1, LinkEnds::Hosts { mtu: 1500 }).unwrap();
        assert_eq!(settings(&plan, 0), ["delay=10 ms", "queue=500 ms", "rate=640 kbit/s"]);
        assert_eq!(settings(&plan, 1), ["delay=10 ms", "queue=200 ms", "rate=6.144 Mbit/s"]);
        let rate = |plan: &Plan, place| {
            plan.profile(place).blocks.iter().find(|b| b.0.key == "rate").cloned().unwrap()
        };
        assert_eq!(rate(&plan, 0).1.as_slice()[1..], [Value::Choice(3), Value::Integer(32)]);
        let given =
            LinkArgs { delay: Some("1 ms".parse().unwrap()), up: "rate=2mbit".parse().unwrap(), ..given };
        let plan = given.plan("exec", 1, LinkEnds::Hosts { mtu: 1500 }).unwrap();
        assert_eq!(settings(&plan, 0), ["delay=1 ms", "queue=500 ms", "rate=2 Mbit/s"]);
        assert_eq!(rate(&plan, 0).1.as_slice()[1..], [Value::Choice(3), Value::Integer(32)], "still cells");
        let error = LinkArgs { profile: Some("adls".into()), ..given }
            .plan("exec", 1, LinkEnds::Hosts { mtu: 1500 })
            .unwrap_err()
            .to_string();
        assert!(error.contains("did you mean \"adsl\"?"), "{error}");
    }

    /// A profile that is set while it runs is up on the way out, also if the command was given none.
    #[test]
    fn the_links_know_their_directions() {
        let options = netem("delay 30ms rate 2mbit limit 20").unwrap();
        let several =
            LinkArgs { netem: Some(options), rate: None, delay: None, queue: None, ..args("1mbit", "") };
        for (given, links) in [(args("1mbit", ""), 2), (several, 4)] {
            let plan = given.plan("exec", 1, LinkEnds::Hosts { mtu: 1500 }).unwrap();
            let directions: Vec<_> = plan.links.iter().map(|link| link.direction).collect();
            let (up, down) = directions.split_at(links / 2);
            assert!(directions.len() == links && up.iter().all(|way| *way == Direction::Backward));
            assert!(down.iter().all(|way| *way == Direction::Forward), "{directions:?}");
        }
    }

    #[test]
    fn it_is_made_of_what_its_profile_names_too() {
        let folder = std::env::temp_dir().join(format!("longwire-link-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let [profile, trace] = ["mine.toml", "trace"].map(|name| folder.join(name));
        std::fs::write(&profile, format!("file = \"{}\"", trace.display())).unwrap();
        std::fs::write(&trace, "").unwrap();
        let name = profile.display().to_string();
        let backward = format!("profile={name}.backward");
        for given in [LinkArgs { profile: Some(name), ..args("1mbit", "") }, args("1mbit", &backward)] {
            assert_eq!(given.files(), [profile.clone(), trace.clone()]);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn mistakes_name_direction_key_and_fix() {
        let error = args("4mbit", "rate=10Mbitt")
            .plan("exec", 1, LinkEnds::Hosts { mtu: 1500 })
            .unwrap_err()
            .to_string();
        assert!(error.contains("up") && error.contains("rate") && error.contains("Mbit/s"), "{error}");
        let error = args("4mbit", "rate..x=1").plan("exec", 1, LinkEnds::Hosts { mtu: 1500 }).unwrap_err();
        assert!(error.to_string().starts_with("not TOML"), "{error}");
        let error = args("4mbit", "dealy=1ms")
            .plan("exec", 1, LinkEnds::Hosts { mtu: 1500 })
            .unwrap_err()
            .to_string();
        assert!(error.contains("dealy") && error.contains("delay"), "{error}");
        for (text, part) in
            [("rate", "no KEY=VALUE"), ("a b=1", "not a key"), ("rate=1mbit,rate=2mbit", "twice")]
        {
            assert!(text.parse::<Settings>().unwrap_err().contains(part), "{text}");
        }
        assert!(args("4mbit", "queue=\"]\\").plan("exec", 1, LinkEnds::Hosts { mtu: 1500 }).is_err());
        assert_eq!((mtu("1400"), mtu("100").is_err(), mtu("x").is_err()), (Ok(1400), true, true));
    }
}
