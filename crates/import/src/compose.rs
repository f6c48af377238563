//! Docker Compose files: each network is a bridge, each service in it a host.
//!
//! Compose has no impairments: they are read from `x-longwire` of a service, of a network, or of a service's
//! network, and from labels `longwire.KEY`, as keys of a link with their values.

use super::sheet::Sheet;
use super::stage::Stage;
use super::wiring::{Cable, Node, Wiring};
use super::yaml::{map, read, text};
use super::{ImportError, Notes, Result};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The key of impairments, and the prefix of their labels.
const KEY: &str = "x-longwire";
const LABEL: &str = "longwire.";
/// Impairments of packets that the service sends, and of those it receives.
const UP: &str = "up";
const DOWN: &str = "down";

/// Impairments of a cable in each direction: of packets that a service sends, and receives.
#[derive(Debug, Clone, Default)]
struct CableImpairments {
    up: Stage,
    down: Stage,
}

/// The scenario of a Compose file.
pub(super) fn import(source: &str, notes: &mut Notes) -> Result<Sheet> {
    let document = read(source, "a Compose file")?;
    // By network: its services.
    let mut networks: BTreeMap<&str, Vec<(&str, CableImpairments)>> = BTreeMap::new();
    for (name, service) in map(&document, "services") {
        let service = service.as_object().cloned().unwrap_or_default();
        if let Some(mode) = service.get("network_mode").and_then(text) {
            notes.add(0, name, format!("network_mode: {mode} has no network of its own, and is left out"));
            continue;
        }
        for (network, own) in memberships(&document, name)? {
            let mut impaired = CableImpairments::default();
            let of_network = document.get("networks").and_then(|all| all.get(network));
            for value in [of_network, document["services"].get(name), own].into_iter().flatten() {
                impaired.read(value, notes)?;
            }
            networks.entry(network).or_default().push((name, impaired));
        }
        for key in ["extends", "deploy", "scale"].into_iter().filter(|key| service.contains_key(*key)) {
            notes.add(0, &format!("{name}: {key}"), "it is not carried over: each service is one host");
        }
    }
    let mut wiring = Wiring::default();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (network, members) in networks {
        if members.len() < 2 {
            notes.add(0, network, "the network has one service, and is left out");
            continue;
        }
        let bridge = wiring.nodes.len();
        wiring.nodes.push(Node { name: network.into(), bridge: true });
        for (service, impaired) in members {
            let place = places.entry(service).or_default();
            *place += 1;
            let name = if *place == 1 { service.to_owned() } else { format!("{service}-{network}") };
            if *place == 2 {
                let why =
                    "a host has one interface here: each further network has a host of its own, such as";
                notes.add(0, service, format!("{why} {name}"));
            }
            let ends = (wiring.nodes.len(), bridge);
            wiring.nodes.push(Node { name, bridge: false });
            wiring.cables.push(Cable { ends, there: impaired.up, back: impaired.down });
        }
    }
    let fix = "write services: with two services at least";
    ImportError::unless(!wiring.nodes.is_empty(), 0, "no network in it has two services", fix)?;
    wiring.sheet("Services of a Compose file and their networks.", notes)
}

/// The networks of a service, each with its settings there.
fn memberships<'v>(
    document: &'v Map<String, Value>,
    service: &str,
) -> Result<Vec<(&'v str, Option<&'v Value>)>> {
    let wrong = |what: &str| {
        let fix = "write the networks' names as a list, numbers and true and false in quotes";
        ImportError::new(0, format!("{service}: {what}"), fix)
    };
    match document["services"].get(service).and_then(|service| service.get("networks")) {
        None | Some(Value::Null) => Ok(vec![("default", None)]),
        Some(Value::Object(networks)) => {
            Ok(networks.iter().map(|(name, own)| (name.as_str(), Some(own))).collect())
        }
        Some(Value::Array(networks)) => {
            let name = |network: &'v Value| {
                let name = network.as_str().map(|name| (name, None::<&Value>));
                name.ok_or_else(|| wrong(&format!("{network} is not the name of a network")))
            };
            networks.iter().map(name).collect()
        }
        Some(_) => Err(wrong("its networks are no list")),
    }
}

impl CableImpairments {
    /// Adds the impairments of a service, a network, or a service's network.
    fn read(&mut self, of: &Value, notes: &mut Notes) -> Result<()> {
        let labels = labels(of);
        let given = of.get(KEY).filter(|given| !given.is_null());
        let fix = format!("write {KEY}: {{ delay: 20 ms }}");
        ImportError::unless(given.is_none_or(Value::is_object), 0, format!("{KEY} is not a map"), fix)?;
        let given = given.and_then(Value::as_object).into_iter().flatten();
        for (key, value) in given.map(|(key, value)| (key.as_str(), value)) {
            match (key, value) {
                (UP | DOWN, Value::Object(settings)) => {
                    for (setting, value) in settings {
                        self.put(key, setting, value, notes)?;
                    }
                }
                _ => self.put(UP, key, value, notes)?,
            }
        }
        for (label, value) in &labels {
            let Some(key) = label.strip_prefix(LABEL) else { continue };
            match key.split_once('.') {
                Some((way @ (UP | DOWN), key)) => self.put(way, key, value, notes)?,
                _ => self.put(UP, key, value, notes)?,
            }
        }
        Ok(())
    }

    /// Sets a key of a link in one direction.
    fn put(&mut self, way: &str, key: &str, value: &Value, notes: &mut Notes) -> Result<()> {
        let stage = if way == DOWN { &mut self.down } else { &mut self.up };
        let known = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        if !known || ["name", "from", "to", "between", "match", "count", "forward", "backward"].contains(&key)
        {
            notes.add(0, &format!("{KEY}: {key}"), "it is not a characteristic of a link, and is left out");
            return Ok(());
        }
        let (what, fix) =
            (format!("{KEY}: {key} is not a text"), format!("write {key}: and a value such as 20 ms"));
        stage.set(key, &text(value).ok_or_else(|| ImportError::new(0, what, fix))?);
        Ok(())
    }
}

/// Labels, as a map or as a list of `key=value`.
fn labels(of: &Value) -> Vec<(String, Value)> {
    match of.get("labels") {
        Some(Value::Object(labels)) => {
            labels.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
        }
        Some(Value::Array(labels)) => {
            let pairs = labels.iter().filter_map(Value::as_str).filter_map(|label| label.split_once('='));
            pairs.map(|(key, value)| (key.to_owned(), value.into())).collect()
        }
        _ => Vec::new(),
    }
}
