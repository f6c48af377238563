//! A fake instance that records its calls.

use longwire_control::{
    Answers, Bounds, Comparison, Edition, EventPage, EventQuery, Instance, Kind, LoggedEvent, Made, Object,
    ObjectDifference, ObjectPage, ObjectQuery, PoolUse, Problem, ProgramRequest, Quantity, RefusedDifference,
    RewireRequest, RewireResponse, RewiredObject, RoutePage, RowFilter, Saving, ScenarioRequest, SetError,
    Settable, SettingDifference, Summary, Topology, TopologyLink, TopologyNode, chosen_in_order,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

pub struct Fake {
    name: String,
    settings: Mutex<BTreeMap<(Kind, String), BTreeMap<String, String>>>,
    pub stopped: AtomicBool,
    /// Panic when asked for statistics.
    pub broken: AtomicBool,
    /// The number of the counters: answers of one number are kept. 0: none is.
    pub counted: AtomicU64,
    answers: Answers,
    /// How often totals or an object were asked for.
    pub asked: AtomicU64,
}

/// The range of delays.
const DELAYS: Bounds = Bounds { least: 0, most: 1_000_000_000 };
const LINKS: [&str; 5] = ["up", "down", "dsl/17 ä?", "wan.forward", "wan.backward"];

impl Fake {
    pub fn named(name: &str) -> Arc<Self> {
        let of = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let mut settings: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for link in LINKS {
            let link = (Kind::Link, link.to_owned());
            settings.insert(link, of(&[("rate", "10 Mbit/s"), ("delay", "20 ms"), ("loss", "2 %")]));
        }
        for (kind, name, pairs) in [
            (Kind::Source, "video", &[("model", "cbr"), ("rate", "3 Mbit/s")][..]),
            (Kind::Medium, "cell", &[("rate", "11 Mbit/s")]),
            (Kind::Router, "core", &[("route.10.1.0.0/16", "via 10.9.0.2 dev east")]),
            (Kind::Flow, "core/voice", &[("weight", "1")]),
            (Kind::Port, "nic", &[("queues", "1")]),
        ] {
            settings.insert((kind, name.to_owned()), of(pairs));
        }
        let (stopped, broken) = (AtomicBool::new(false), AtomicBool::new(false));
        let (counted, answers, asked) = (AtomicU64::new(0), Answers::default(), AtomicU64::new(0));
        let (name, settings) = (name.into(), Mutex::new(settings));
        Arc::new(Self { name, settings, stopped, broken, counted, answers, asked })
    }
}

/// Nobody saves this instance.
fn saved<T>(answer: T) -> Made<T> {
    Made::new(answer, Saving::default())
}

impl Instance for Fake {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn stats(&self, _: &RowFilter) -> Result<Value, Box<Problem>> {
        assert!(!self.broken.load(Ordering::SeqCst), "this instance was told to fail");
        Ok(json!({"in": 10, "out": 9, "dropped": 1}))
    }

    fn kept(&self, _: Option<Kind>) -> Option<(&Answers, Edition)> {
        let counted = self.counted.load(Ordering::SeqCst);
        (counted > 0).then_some((&self.answers, Edition { counted, changed: 0 }))
    }

    fn summary(&self) -> Result<Summary, SetError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(Summary {
            scenario: "demo.toml".into(),
            elapsed_ns: 2_500_000_000,
            fidelity: Value::Null,
            window: Value::Null,
            faults: Vec::new(),
            in_packets: 10,
            out_packets: 9,
            out_bytes: 900,
            held: 0,
            dropped: [("loss".to_string(), 1)].into(),
            pool: PoolUse { used_bytes: 0, bytes: 1 << 20 },
            objects: [("links".to_string(), LINKS.len())].into(),
        })
    }

    fn topology(&self, _: Option<&ObjectQuery>) -> Result<Topology, SetError> {
        let node =
            |name: &str| TopologyNode { name: name.into(), kind: "host".into(), addresses: Vec::new() };
        let link = TopologyLink { name: "up".into(), from: "a".into(), to: "b".into() };
        Ok(Topology { nodes: vec![node("a"), node("b")], links: vec![link], ..Topology::default() })
    }

    fn events(&self, EventQuery { after, .. }: EventQuery) -> EventPage {
        let entry = |number| LoggedEvent {
            number,
            at_ns: number,
            kind: "change".into(),
            what: "up: delay 7 ms".into(),
        };
        EventPage { log: (after + 1..=3).map(entry).collect(), last: 3, ..EventPage::default() }
    }

    fn page(&self, kind: Kind, choice: &ObjectQuery) -> Result<ObjectPage, SetError> {
        let chosen = chosen_in_order(kind, &self.names(kind), choice)?;
        let objects = chosen.names.iter().filter_map(|name| self.object(kind, name).ok()).collect();
        Ok(ObjectPage { total: chosen.total, from: choice.from, counted_ns: 2_500_000_000, objects })
    }

    fn names(&self, kind: Kind) -> Arc<[String]> {
        let names: &[&str] = match kind {
            Kind::Link => &LINKS,
            Kind::Source => &["video"],
            Kind::Medium => &["cell"],
            Kind::Router => &["core"],
            Kind::Flow => &["core/voice"],
            Kind::Port => &["nic"],
            Kind::Forwarder => &[],
        };
        names.iter().map(ToString::to_string).collect()
    }

    fn object(&self, kind: Kind, name: &str) -> Result<Object, SetError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if let (Kind::Link, false) = (kind, LINKS.contains(&name)) {
            let direction = |which| self.object(kind, &format!("{name}.{which}"));
            let none = || SetError::Unknown { kind, name: name.into() };
            if !LINKS.contains(&format!("{name}.forward").as_str()) {
                return Err(none());
            }
            return Ok(Object::several(kind, name, vec![direction("forward")?, direction("backward")?]));
        }
        let settings = self.settings.lock().unwrap().get(&(kind, name.to_owned())).cloned();
        let settings = settings.ok_or_else(|| SetError::Unknown { kind, name: name.into() })?;
        let stats = if kind == Kind::Link { json!({"in": 5, "out": 4}) } else { Value::Null };
        Ok(Object { kind, name: name.into(), settings, stats, members: Vec::new(), notes: Vec::new() })
    }

    fn set(&self, kind: Kind, name: &str, changes: &[(String, String)]) -> Result<Made<Object>, SetError> {
        let meant = self.object(kind, name)?;
        let mut all = self.settings.lock().unwrap();
        let settings = &all[&(kind, meant.each()[0].name.clone())];
        for (key, text) in changes {
            if !settings.contains_key(key) && kind != Kind::Router {
                let known = settings.keys().cloned().collect();
                return Err(SetError::UnknownKey { kind, key: key.clone(), known });
            }
            if kind == Kind::Link && !text.starts_with(|c: char| c.is_ascii_digit()) {
                let reason = format!("\"{text}\" is not a time such as \"25 ms\"");
                return Err(SetError::Value { key: key.clone(), reason });
            }
        }
        for one in meant.each() {
            all.get_mut(&(kind, one.name.clone())).unwrap().extend(changes.iter().cloned());
        }
        drop(all);
        self.object(kind, name).map(saved)
    }

    fn settable(&self, kind: Kind) -> Vec<Settable> {
        let setting = |key: &str| {
            let quantity = if key == "delay" { Quantity::Time(DELAYS) } else { Quantity::Other };
            Settable::new(key, "a help", "a text".into(), quantity)
        };
        match kind {
            Kind::Link => vec![setting("rate"), setting("delay"), setting("ramp.step")],
            Kind::Router => vec![setting("route.NETWORK")],
            _ => Vec::new(),
        }
    }

    fn routes(&self, router: &str) -> Result<RoutePage, SetError> {
        let settings = self.object(Kind::Router, router)?.settings;
        let route = |(key, way): (String, String)| format!("{} {way}", key.trim_start_matches("route."));
        Ok(RoutePage { routes: settings.into_iter().map(route).collect(), more: false })
    }

    fn forwarders(&self, router: &str, ask: &ProgramRequest) -> Result<Value, SetError> {
        self.routes(router)?;
        Ok(json!({"asked": ask}))
    }

    fn metrics(&self, _: Option<&str>, limit: usize) -> Result<String, SetError> {
        Ok(format!("# limit {limit}\n# EOF\n"))
    }

    fn scenario(&self) -> Result<String, SetError> {
        Ok("[[link]]\nname = \"up\"\n".into())
    }

    fn compare(&self, toml: &str) -> Result<Comparison, SetError> {
        if toml.contains("nonsense") {
            return Err(SetError::Scenario { key: "toml".into(), mistakes: "toml:1:1: not TOML".into() });
        }
        let setting = SettingDifference {
            key: "delay".into(),
            now: Some("20 ms".into()),
            wanted: Some("40 ms".into()),
        };
        let link = ObjectDifference { kind: Kind::Link, name: "up".into(), settings: vec![setting] };
        let seed = RefusedDifference {
            what: "seed".into(),
            reason: "it is fixed when the instance starts: start the instance again".into(),
        };
        let added = |(kind, name): (&str, &str)| RewiredObject { kind: kind.into(), name: name.into() };
        let added = [("host", "c"), ("router", "r")].map(added).to_vec();
        Ok(Comparison { changes: vec![link], added, refused: vec![seed], ..Comparison::default() })
    }

    fn apply(&self, wanted: &ScenarioRequest) -> Result<Made<Comparison>, SetError> {
        let comparison = self.compare(&wanted.toml)?;
        if !wanted.partial {
            return Err(SetError::Refused("seed: it is fixed".into()));
        }
        Ok(saved(comparison))
    }

    fn rewire(&self, ask: &RewireRequest) -> Result<Made<RewireResponse>, SetError> {
        let link = |name: &str| RewiredObject { kind: "link".into(), name: name.into() };
        match ask.remove.first() {
            Some(name) if !LINKS.contains(&&**name) => Err(SetError::NoObject { name: name.clone() }),
            _ => Ok(saved(RewireResponse {
                added: ask.add.lines().map(link).collect(),
                removed: ask.remove.iter().map(|name| link(name)).collect(),
            })),
        }
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }
}
